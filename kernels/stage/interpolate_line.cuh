// SPDX-License-Identifier: MIT OR Apache-2.0
// Guesses at the points of a whole tile in one line, which lie in shared memory as the stream has them: FORMAT.md §4.4 of lorenzo,
// and the same as interpolate_any.cuh and interpolate_fours.cuh find for any extents.
//
// As in interpolate_full.cuh the caller says what becomes of a guess. A level is the one before, in the order of its places, and
// as many points between those behind it.
#pragma once
#include "interpolate_fours.cuh"
#include "interpolate_full.cuh"

namespace interpolate_line {

constexpr u32 POINTS = tiles::MOST, FEW = 128, THREADS = 256;

__device__ __forceinline__ bool fits(const tiles::Three& e) { return e.x == POINTS; }

// Where the stream has a place's point, and which place a point of the stream has.
__device__ __forceinline__ u32 at(u32 x) {
    const int up = __ffs((int)x);
    return x ? (POINTS >> up) + (x >> up) : 0;
}
__device__ __forceinline__ u32 place_of(u32 at) {
    const u32 zeros = (u32)__clz((int)at), up = zeros - (u32)__clz((int)POINTS / 2);
    return at ? ((2 * at + 1) << up) & (POINTS - 1) : 0;
}

// Calls `visit(place, guess)` for the coarsest points, `FEW` of them, which then lie in the order of their places. One warp.
template <class F>
__device__ __forceinline__ void coarse(int* v, F visit) {
    const u32 lane = threadIdx.x % 32;
    if (lane == 0) visit(0u, 0u);
    __syncwarp();
#pragma unroll 1
    for (u32 n = 1; n < FEW; n *= 2) {
        for (u32 i = lane; i < n; i += 32) visit(n + i, interpolate_full::along(v + i, i, n, 1).at);
        __syncwarp();
        int held[FEW / 32];
#pragma unroll
        for (u32 j = 0; j < FEW / 32; j++) {
            const u32 i = lane + 32 * j;
            if (i < 2 * n) held[j] = v[i % 2 * n + i / 2];
        }
        __syncwarp();
#pragma unroll
        for (u32 j = 0; j < FEW / 32; j++) {
            const u32 i = lane + 32 * j;
            if (i < 2 * n) v[i] = held[j];
        }
        __syncwarp();
    }
}

// Calls `visit(place, guesses)` for all others, four neighbours at a time. Points of even places remain in front of all others.
// Whole CTA.
template <class F>
__device__ __forceinline__ void others(int* v, F visit) {
    constexpr u32 EACH = POINTS / 2 / 4 / THREADS;
#pragma unroll 1
    for (u32 n = FEW;; n *= 2) {
#pragma unroll 1
        for (u32 i = 4 * threadIdx.x; i < n; i += 4 * THREADS) {
            u32 guess[4];
            interpolate::along_row(v + i, i, n, guess);
            visit(n + i, guess);
        }
        __syncthreads();
        if (n == POINTS / 2) return;
        int4 held[EACH];
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            const u32 i = 2 * (threadIdx.x + j * THREADS);
            if (i < n) {
                const int2 even = *(const int2*)(v + i), odd = *(const int2*)(v + n + i);
                held[j] = make_int4(even.x, odd.x, even.y, odd.y);
            }
        }
        __syncthreads();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            const u32 i = 2 * (threadIdx.x + j * THREADS);
            if (i < n) *(int4*)(v + 2 * i) = held[j];
        }
        __syncthreads();
    }
}

}  // namespace interpolate_line
