// SPDX-License-Identifier: MIT OR Apache-2.0
// What every kernel asks about the chunks of its batch: which one a tile is of, its bound, whether all its tiles are
// done.
#pragma once
#include "../prim/lookback.cuh"
#include "checksum.cuh"

namespace frame {

// The chunk that tile `tile` of the batch belongs to. Whole warp.
template <class Chunk>
__device__ __forceinline__ u32 chunk_of(const Chunk* chunks, u32 count, u32 tile, int lane) {
    u32 lo = 0;
    // Invariant: the answer is in [lo, lo + count).
    while (count > 1) {
        const u32 step = (count + 31) / 32;
        const u32 k = lo + min((u32)lane * step, count - 1);
        const u32 below = __ballot_sync(warp::ALL, (u32)lane * step < count && chunks[k].first_tile <= tile);
        const u32 last = 31 - __clz((int)below);
        lo += last * step;
        count = min(step, count - last * step);
    }
    return lo;
}

// The bound of a chunk.
__device__ __forceinline__ double used_bound(const EncodeChunk& c, const ChunkState* state) {
    if (c.bound_kind != BOUND_RANGE) return c.bound;
    double spread = 0.0;
    if (state->high) spread = exact::sub_down(exact::unordered(state->high), exact::unordered(~state->low));
    return exact::mul_down(c.bound, spread);
}

// Counts `more` tiles of a chunk as done and adds what they sum up to; true for the last ones. Before what the other
// CTAs left is read, a fence is needed. One lane.
__device__ __forceinline__ bool count(ChunkState* state, u32 tiles, u32 more, u64 sum, u32 fault) {
    atomicAdd(&state->sum, sum);
    if (fault) atomicOr(&state->fault, fault);
    __threadfence();
    return atomicAdd(&state->done, more) == tiles - more;
}

}  // namespace frame
