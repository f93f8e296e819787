// SPDX-License-Identifier: MIT OR Apache-2.0
// A frame's checksum, the twin of codecs/src/checksum.rs: a sum over all words but its own, each under a key of its
// place, FORMAT.md §4.2. Terms may be added in any order, so every thread sums what it moves. A CTA's warps bring their
// sums together in shared memory, and each CTA adds to its chunk's once.
#pragma once
#include "../prim/warp.cuh"

namespace frame {

constexpr u32 CHECKSUM_WORD = (u32)(fmt::CHECKSUM_OFFSET / 4);

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
// what this thread's words add to the checksum, the first under `key`.
template <int THREADS, int BATCH>
__device__ __forceinline__ u64 copy_keyed(u32* to, const u32* from, u64 key, u32 words) {
    u64 sum = 0;
    key += threadIdx.x * KEY_STEP;
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

// The same; the frame's words start at place `word0`.
template <int THREADS, int BATCH>
__device__ __forceinline__ u64 copy_summed(u32* to, const u32* from, u64 word0, u32 words) {
    return copy_keyed<THREADS, BATCH>(to, from, key_of(word0), words);
}

// What words add to the checksum, the first under `key`. One warp.
__device__ __forceinline__ u64 sum_words(const u32* words, u64 key, u32 count, int lane) {
    u64 sum = 0;
#pragma unroll 4
    for (u32 k = lane; k < count; k += 32) sum += keyed(words[k], key + k * KEY_STEP);
    return sum;
}

// The sum of a CTA's threads, in shared memory. All threads `put`; after a barrier any whole warp asks for `all`.
template <int THREADS>
struct Sums {
    u64 warps[THREADS / 32];
    __device__ __forceinline__ void put(u64 sum, int lane, int w) {
        sum = warp::sum(sum);
        if (lane == 0) warps[w] = sum;
    }
    __device__ __forceinline__ u64 all(int lane) const { return warp::sum(lane < THREADS / 32 ? warps[lane] : 0ull); }
    // Both, with the barrier: the sum in the first warp, 0 in the others.
    __device__ __forceinline__ u64 gather(u64 sum, int lane, int w) {
        put(sum, lane, w);
        __syncthreads();
        return w == 0 ? all(lane) : 0;
    }
};

}  // namespace frame
