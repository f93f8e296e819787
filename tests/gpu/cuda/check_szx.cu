// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of szx, one warp each, without a frame.
#include "check.cuh"
#include "szx/decode.cuh"
#include "szx/encode.cuh"

namespace {

template <class S>
constexpr u32 LONGEST = 32 + 4096 * Traits<S>::W;

// Bounds in; three words out.
template <class S>
__device__ __forceinline__ void szx_rule(const Arrays& a) {
    using T = Traits<S>;
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i >= a.n) return;
    const double b = ((const double*)a.in)[i];
    u64* out = (u64*)a.out + 3 * i;
    const szx::Rule<S> r = szx::rule<S>(b, false, 0, false);
    out[0] = r.usable ? (u64)T::bits(r.step) : 0;
    out[1] = r.usable ? (u64)T::bits(r.inverse) : 0;
    out[2] = szx::rule<S>(b, true, 0, false).q;
}

struct Szx {
    u64 values, kinds, words, payloads, n, bound, fill, fill_on;
};

// Tiles into payloads, one warp a tile: kinds, 32 a tile; words of the payload; the payload.
template <class S, bool POINTWISE>
__device__ __forceinline__ void szx_encode(const Szx& a) {
    using T = Traits<S>;
    __shared__ uint4 bytes[LONGEST<S> / 16 + 1];
    u8* stage = (u8*)bytes;
    __shared__ szx::Block<S> blocks[32];
    const int lane = threadIdx.x;
    const u64 first = (u64)blockIdx.x * 4096;
    const u32 here = (u32)min(a.n - first, (u64)4096), count = (here + 127) / 128;
    const szx::Rule<S> r = szx::rule<S>(__longlong_as_double((long long)a.bound), POINTWISE, a.fill, a.fill_on != 0);
    auto load = [&](u32 block, S(&x)[4]) {
        const u32 last = min(here, 128 * (block + 1)) - 1;
#pragma unroll
        for (u32 j = 0; j < 4; j++) x[j] = ((const S*)a.values)[first + min(128 * block + 4 * lane + j, last)];
    };
    szx::LaneWords<S> own;
    for (u32 block = 0; block < 32; block++) {
        szx::Block<S> b = {};
        if (block < count) {
            S x[4];
            load(block, x);
            szx::analyse<S, POINTWISE>(b, own, x, r, szx::Free(), (int)min(here - 128 * block, 128u), lane);
        }
        if (lane == 0) blocks[block] = b;
    }
    for (u32 i = lane; i < (LONGEST<S> + 16) / 4; i += 32) ((u32*)stage)[i] = 0;
    __syncwarp();
    const u32 kind = blocks[lane].kind;
    u32 end;
    const szx::Parts parts = szx::offsets<T::W>(szx::fixed_parts<POINTWISE>(kind), blocks[lane].lens, count, lane, end);
    if (lane < (int)count) stage[lane] = (u8)kind;
    for (u32 block = 0; block < count; block++) {
        S x[4];
        szx::Block<S> b;
        const int values = (int)min(here - 128 * block, 128u);
        load(block, x);
        szx::analyse<S, POINTWISE>(b, own, x, r, szx::Free(), values, lane);
        szx::emit<S, POINTWISE>(stage, blocks[block], own, parts, block, values, lane,
                                [&](S(&y)[4]) { load(block, y); });
    }
    __syncwarp();
    const u32 words = (end + 3) / 4;
    ((u8*)a.kinds)[32 * blockIdx.x + lane] = (u8)kind;
    if (lane == 0) ((u32*)a.words)[blockIdx.x] = words;
    u32* out = (u32*)a.payloads + (u64)blockIdx.x * (LONGEST<S> / 4);
    for (u32 i = lane; i < words; i += 32) out[i] = ((const u32*)stage)[i];
}

struct SzxBack {
    u64 payloads, words, verdicts, values, n, bound;
};

// The way back: 1 where a payload's lengths are right; its values.
template <class S, bool POINTWISE>
__device__ __forceinline__ void szx_decode(const SzxBack& a) {
    using Bits = typename Traits<S>::Bits;
    __shared__ uint4 bytes[LONGEST<S> / 16 + 1];
    u8* stage = (u8*)bytes;
    __shared__ szx::Parts parts[32];
    __shared__ u32 kinds[32];
    const int lane = threadIdx.x;
    const u64 first = (u64)blockIdx.x * 4096;
    const u32 here = (u32)min(a.n - first, (u64)4096), count = (here + 127) / 128,
              words = ((const u32*)a.words)[blockIdx.x];
    const u32* from = (const u32*)a.payloads + (u64)blockIdx.x * (LONGEST<S> / 4);
    for (u32 i = lane; i < (LONGEST<S> + 16) / 4; i += 32) ((u32*)stage)[i] = i < words ? from[i] : 0;
    __syncwarp();
    const szx::Rule<S> r = szx::rule<S>(__longlong_as_double((long long)a.bound), POINTWISE, 0, false);
    const int mine = max(min((int)here - 128 * lane, 128), 0);
    if (!szx::layout<S, POINTWISE>(stage, parts, kinds, r, 4 * words, count, mine, lane)) return;
    if (lane == 0) ((u32*)a.verdicts)[blockIdx.x] = 1;
    __syncwarp();
    for (u32 block = 0; block < count; block++) {
        Bits x[4];
        szx::take<S, POINTWISE>(stage, kinds[block], parts[block], r, lane, x);
        for (u32 j = 0; j < 4; j++) {
            const u32 i = 128 * block + 4 * lane + j;
            if (i < here) ((Bits*)a.values)[first + i] = x[j];
        }
    }
}

}  // namespace

STAGE(szx_rule_f32, 128, Arrays, szx_rule<float>)
STAGE(szx_rule_f64, 128, Arrays, szx_rule<double>)
STAGE(szx_encode_f32, 32, Szx, (szx_encode<float, false>))
STAGE(szx_encode_f64, 32, Szx, (szx_encode<double, false>))
STAGE(szx_encode_pointwise_f32, 32, Szx, (szx_encode<float, true>))
STAGE(szx_encode_pointwise_f64, 32, Szx, (szx_encode<double, true>))
STAGE(szx_decode_f32, 32, SzxBack, (szx_decode<float, false>))
STAGE(szx_decode_f64, 32, SzxBack, (szx_decode<double, false>))
STAGE(szx_decode_pointwise_f32, 32, SzxBack, (szx_decode<float, true>))
STAGE(szx_decode_pointwise_f64, 32, SzxBack, (szx_decode<double, true>))
