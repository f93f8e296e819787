// SPDX-License-Identifier: MIT OR Apache-2.0
// Stages by themselves, over arrays: `gpu_check --stages` runs each on the GPU and on the CPU, and names the first item
// that differs. A kernel takes words: addresses of its arrays first, then numbers. Outputs are zero before.
#pragma once
#include "base/frame.cuh"

namespace {

// NaNs have bits that machines disagree on, and no byte of a frame comes from them.
template <class S>
__device__ __forceinline__ u64 plain(S x) {
    return x != x ? ~0ull : (u64)Traits<S>::bits(x);
}

struct Arrays {
    u64 in, out, n;
};

}  // namespace

#define STAGE(name, threads, Args, body) \
    extern "C" __global__ __launch_bounds__(threads) void check_##name(Args a) { body(a); }
