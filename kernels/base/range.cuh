// SPDX-License-Identifier: MIT OR Apache-2.0
// The range of a chunk's values, which a relative bound is a part of: the smallest and the largest of those that are
// finite and not the fill value. A CTA reads `TILE` values in a row, brings its threads' extremes together and adds
// them to the chunk's state by two atomics, on integers of the same order as the values. A chunk has at least as many
// CTAs as it has `TILE`s. The last CTA takes the first values: these were read last then, and are still near when the
// next kernel begins with them.
#pragma once
#include "../prim/load.cuh"
#include "frame.cuh"

namespace frame {

template <class S, int THREADS, u32 TILE>
__device__ __forceinline__ void find_range(const EncodeArgs& args) {
    using T = Traits<S>;
    // Loads of a thread in flight, of four values each.
    constexpr u32 STEP = 4 * THREADS, BATCH = TILE / STEP < 4 ? TILE / STEP : 4, WARPS = THREADS / 32;
    static_assert(TILE % (BATCH * STEP) == 0, "whole batches");
    __shared__ S lows[WARPS], highs[WARPS];
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 tile = args.tiles - 1 - blockIdx.x;
    const u32 chunk = chunk_of((const EncodeChunk*)args.chunks, args.chunk_count, tile, lane);
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[chunk];
    const u64 first = (u64)(tile - c.first_tile) * TILE, left = first < c.values ? c.values - first : 0;
    const u32 here = left < TILE ? (u32)left : TILE;
    const S* input = (const S*)c.input + first;
    // The default fill value, 0, where the user defined none.
    const typename T::Bits fill = (typename T::Bits)c.fill;
    const bool swap = c.flags & FLAG_SWAP;
    S lo = T::infinity(), hi = -T::infinity();
    for (u32 at = 4 * threadIdx.x, end = BATCH * STEP; at < here; at += BATCH * STEP, end += BATCH * STEP) {
        S x[BATCH][4];
        if (end <= here) {
#pragma unroll
            for (u32 k = 0; k < BATCH; k++) load4(input + at + k * STEP, x[k]);
        } else {
            // The last value again after the end.
#pragma unroll
            for (u32 k = 0; k < 4 * BATCH; k++) x[k / 4][k % 4] = input[min(at + k / 4 * STEP + k % 4, here - 1)];
        }
#pragma unroll
        for (u32 k = 0; k < 4 * BATCH; k++) {
            const auto stored = T::bits(x[k / 4][k % 4]), bits = swap ? swapped(stored) : stored;
            const S v = T::value(bits);
            const bool regular = (bits & T::EXPONENT) != T::EXPONENT && bits != fill;
            if (regular && v < lo) lo = v;
            if (regular && v > hi) hi = v;
        }
    }
    warp::range(lo, hi);
    if (lane == 0) {
        lows[w] = lo;
        highs[w] = hi;
    }
    __syncthreads();
    if (w != 0) return;
    lo = lane < (int)WARPS ? lows[lane] : T::infinity();
    hi = lane < (int)WARPS ? highs[lane] : -T::infinity();
    warp::range(lo, hi);
    if (lane == 0 && lo <= hi) {
        ChunkState* state = (ChunkState*)args.states + chunk;
        const u64 high = exact::ordered((double)hi), low = ~exact::ordered((double)lo);
        if (lookback::peek(&state->high) < high) atomicMax(&state->high, high);
        if (lookback::peek(&state->low) < low) atomicMax(&state->low, low);
    }
}

}  // namespace frame
