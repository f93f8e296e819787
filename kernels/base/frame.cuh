// SPDX-License-Identifier: MIT OR Apache-2.0
// What kernels of every room do with a frame: find the chunk of a tile, sum words, seal.
#pragma once
#include "../prim/lookback.cuh"

namespace frame {

// The checksum's key of place `i` of a frame; the next place's is this plus KEY_STEP. FORMAT.md §4.2.
constexpr u64 KEY_STEP = 2 * fmt::CHECKSUM_STEP;
__device__ __forceinline__ u64 key_of(u64 i) { return i * KEY_STEP + fmt::CHECKSUM_STEP; }

// What a word adds to the checksum under the key of its place; a zero adds nothing.
__device__ __forceinline__ u64 keyed(u32 w, u64 key) {
    const u32 low = (u32)key, high = (u32)(key >> 32) ^ low;
    const u32 upper = __umulhi(w, low) + w * high;
    return (u64)upper << 32 | (w * low ^ upper);
}
__device__ __forceinline__ u64 term(u32 w, u64 i) { return keyed(w, key_of(i)); }

// Moves words between a frame and shared memory, a CTA of `THREADS`, `BATCH` loads of a thread in flight; returns
// what this thread's words add to the checksum. The frame's words start at place `word0`.
template <int THREADS, int BATCH>
__device__ __forceinline__ u64 copy_summed(u32* to, const u32* from, u64 word0, u32 words) {
    u64 sum = 0, key = key_of(word0 + threadIdx.x);
    u32 word[BATCH];
    // Pointers that move, and offsets known beforehand: an index would cost five instructions a word.
    to += threadIdx.x, from += threadIdx.x;
    int left = (int)words - (int)threadIdx.x;
#pragma unroll 1
    for (; left > (BATCH - 1) * THREADS; left -= BATCH * THREADS) {
#pragma unroll
        for (int k = 0; k < BATCH; k++) word[k] = from[k * THREADS];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            to[k * THREADS] = word[k];
            sum += keyed(word[k], key + k * (KEY_STEP * THREADS));
        }
        key += BATCH * (KEY_STEP * THREADS);
        to += BATCH * THREADS, from += BATCH * THREADS;
    }
    if (left > 0) {
#pragma unroll
        for (int k = 0; k < BATCH - 1; k++) word[k] = left > k * THREADS ? from[k * THREADS] : 0;
#pragma unroll
        for (int k = 0; k < BATCH - 1; k++) {
            if (left > k * THREADS) {
                to[k * THREADS] = word[k];
                sum += keyed(word[k], key + k * (KEY_STEP * THREADS));
            }
        }
    }
    return sum;
}

constexpr u32 CHECKSUM_WORD = (u32)(fmt::CHECKSUM_OFFSET / 4);

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

// Counts `more` tiles of the chunk as done; true in the one warp that is last, which then sees what the others added.
__device__ __forceinline__ bool last_of(ChunkState* state, u32 tiles, u32 more, u64 sum, u32 fault, int lane) {
    u32 last = 0;
    if (lane == 0) {
        atomicAdd(&state->sum, sum);
        if (fault) atomicOr(&state->fault, fault);
        __threadfence();
        last = atomicAdd(&state->done, more) == tiles - more;
        __threadfence();
    }
    return warp::from(last, 0) != 0;
}

// The bound of a chunk.
__device__ __forceinline__ double used_bound(const EncodeChunk& c, const ChunkState* state) {
    if (c.bound_kind != BOUND_RANGE) return c.bound;
    double spread = 0.0;
    if (state->high) spread = exact::sub_down(exact::unordered(state->high), exact::unordered(~state->low));
    return exact::mul_down(c.bound, spread);
}

// Writes a header but for the checksum; returns what it adds to that. `patch(i, w)` makes of word i, which is w on the host,
// what only the device knows. Whole warp.
template <class Patch>
__device__ __forceinline__ u64 write_head(const EncodeChunk& c, u64 stored, double used, int lane, Patch patch) {
    u32* out = (u32*)c.frame;
    u64 sum = 0;
    for (u32 i = lane; i < c.head_words; i += 32) {
        u32 w = patch(i, c.head[i]);
        if (i == 6) w = (u32)stored;
        if (i == 7) w = (u32)(stored >> 32);
        if (i == 8) w = (u32)__double_as_longlong(used);
        if (i == 9) w = (u32)((u64)__double_as_longlong(used) >> 32);
        if (i == CHECKSUM_WORD || i == CHECKSUM_WORD + 1) continue;
        out[i] = w;
        sum += term(w, i);
    }
    return sum;
}

// Adds this warp's sum to the chunk's, which makes the checksum, and tells the frame's length.
__device__ __forceinline__ void finish(const EncodeChunk& c, ChunkState* state, u64 stored, u64 sum, u64* length, int lane) {
    sum = warp::sum(sum);
    if (lane == 0) {
        sum += atomicAdd(&state->sum, 0ull);
        u32* out = (u32*)c.frame;
        out[CHECKSUM_WORD] = (u32)sum;
        out[CHECKSUM_WORD + 1] = (u32)(sum >> 32);
        *length = stored;
    }
}

// Completes a frame whose tiles are all written: header, gap before the payload, checksum, length. Whole warp.
__device__ __forceinline__ void seal(const EncodeChunk& c, ChunkState* state, u64 payload, double used, u64* length, int lane) {
    u32* out = (u32*)c.frame;
    const u64 stored = c.payload_at + payload;
    u64 sum = write_head(c, stored, used, lane, [&](u32 i, u32 w) {
        if (i != c.payload_len_at && i != c.payload_len_at + 1) return w;
        const u64 base = c.head[c.payload_len_at] | (u64)c.head[c.payload_len_at + 1] << 32;
        return (u32)((base + payload) >> (i == c.payload_len_at ? 0 : 32));
    });
    for (u64 i = (c.table_at + 4ull * c.table_words) / 4 + lane; i < c.payload_at / 4; i += 32) out[i] = 0;
    finish(c, state, stored, sum, length, lane);
}

}  // namespace frame
