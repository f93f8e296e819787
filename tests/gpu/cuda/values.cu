// SPDX-License-Identifier: MIT OR Apache-2.0
// What `gpu_check --values` adds to a codec's kernels: values out of a counter, the first words of frames brought
// together for the host, and a judge. Values stay on the device; the host reads counts.
#include "base/frame.cuh"
#include "values/judge.cuh"
#include "values/make.cuh"

namespace values {

// Words of a frame's beginning that are brought together, behind two that say its length.
constexpr u32 HEAD = 62;

struct Heads {
    // Addresses of the first frame, of the frames' lengths and of the heads; bytes from one frame to the next.
    u64 frames, lengths, heads, step;
};

__device__ __forceinline__ void gather(const Heads& args) {
    const u32* frame = (const u32*)(args.frames + blockIdx.x * args.step);
    u32* to = (u32*)args.heads + (u64)blockIdx.x * (HEAD + 2);
    const u64 length = ((const u64*)args.lengths)[blockIdx.x];
    const u32 t = threadIdx.x;
    to[t] = t == 0 ? (u32)length : t == 1 ? (u32)(length >> 32) : 4ull * (t - 2) < length ? frame[t - 2] : 0;
}

}  // namespace values

#define ENTRIES(S, name)                                                                                   \
    extern "C" __global__ __launch_bounds__(values::THREADS) void values_make_##name(values::Args args) {  \
        values::make<S>(args);                                                                             \
    }                                                                                                      \
    extern "C" __global__ __launch_bounds__(values::THREADS) void values_judge_##name(values::Args args) { \
        values::judge<S>(args);                                                                            \
    }
ENTRIES(float, f32)
ENTRIES(double, f64)
extern "C" __global__ __launch_bounds__(64) void values_heads(values::Heads args) { values::gather(args); }
