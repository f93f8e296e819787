// SPDX-License-Identifier: MIT OR Apache-2.0
// Guesses at the points of a whole tile of 64 × 128, which lie in shared memory as the stream has them: FORMAT.md §4.4 of lorenzo,
// and the same as interpolate_any.cuh and interpolate_fours.cuh find for any extents.
//
// As in interpolate_full.cuh the caller says what becomes of a guess. A level is the one before, in the order of its places, and
// three classes of as many points behind it: those between along x, along y, along both.
#pragma once
#include "estimate.cuh"
#include "interpolate_fours.cuh"
#include "interpolate_full.cuh"

namespace interpolate_sheet {

constexpr u32 SIDE_Y = 64, SIDE_X = 128, FEW = 128, THREADS = 256;

__device__ __forceinline__ bool fits(const tiles::Three& e) { return e.z == 1 && e.y == SIDE_Y && e.x == SIDE_X; }

// A level's classes: half as many rows as points in a row.
struct Classes {
    tiles::Three half;
    u32 log_x, points;
    __device__ __forceinline__ explicit Classes(u32 log_x_) : half{1, 1u << log_x_ >> 1, 1u << log_x_}, log_x(log_x_), points(half.y << log_x) {}
    __device__ __forceinline__ u32 begin(u32 odd) const { return odd * points; }
    __device__ __forceinline__ tiles::Three place(u32 i) const { return {0, i >> log_x, i & (half.x - 1)}; }
    // Where a point of the level is, by its place there.
    __device__ __forceinline__ u32 at(u32 y, u32 x) const { return begin((y & 1) << 1 | (x & 1)) + (y / 2 << log_x) + x / 2; }
};

// Where the stream has a place's point, and which place a point of the stream has.
__device__ __forceinline__ u32 at(u32 y, u32 x) {
    if (!(y | x)) return 0;
    const u32 level = (u32)__ffs((int)(y | x)) - 1;
    return level == 6 ? 1 : Classes(6 - level).at(y >> level, x >> level);
}
__device__ __forceinline__ tiles::Three place_of(u32 at) {
    if (at < 2) return {0, 0, at * SIDE_X / 2};
    const Classes c((estimate::highest(at) + 1) / 2);
    const u32 odd = at / c.points, level = 6 - c.log_x;
    const tiles::Three p = c.place(at % c.points);
    return {0, (2 * p.y + (odd >> 1)) << level, (2 * p.x + (odd & 1)) << level};
}

// Calls `visit(place, guess)` for the coarsest points, `FEW` of them, which then lie in the order of their places. One warp.
template <class F>
__device__ __forceinline__ void coarse(int* v, F visit) {
    const u32 lane = threadIdx.x % 32;
    if (lane == 0) {
        visit(0u, 0u);
        visit(1u, (u32)v[0]);
    }
    __syncwarp();
#pragma unroll 1
    for (u32 log_x = 1; log_x < 4; log_x++) {
        const Classes c(log_x);
#pragma unroll 1
        for (u32 first = 1; first < 4; first += 2) {
#pragma unroll 1
            for (u32 i = c.begin(first) + lane; i < c.begin(first == 1 ? 3 : 4); i += 32) {
                const u32 odd = i >> (2 * log_x - 1) & 3u, p = i & (c.points - 1);
                const tiles::Three at = c.place(p);
                auto x = [&] { return interpolate_full::along(v + c.begin(odd ^ 1) + p, at.x, c.half.x, 1); };
                auto y = [&] { return interpolate_full::along(v + c.begin(odd ^ 2) + p, at.y, c.half.y, c.half.x); };
                visit(i, odd == 1 ? x().at : odd == 2 ? y().at : interpolate::both(x(), y()));
            }
            __syncwarp();
        }
        int held[FEW / 32];
#pragma unroll
        for (u32 j = 0; j < FEW / 32; j++) {
            const u32 i = lane + 32 * j;
            if (i < 4 * c.points) held[j] = v[c.at(i >> (log_x + 1), i & (2 * c.half.x - 1))];
        }
        __syncwarp();
#pragma unroll
        for (u32 j = 0; j < FEW / 32; j++) {
            const u32 i = lane + 32 * j;
            if (i < 4 * c.points) v[i] = held[j];
        }
        __syncwarp();
    }
}

// Calls `visit(place, guesses)` for all others, four neighbours at a time. The even part of the finest level remains in front of
// its classes. Whole CTA.
template <class F>
__device__ __forceinline__ void others(int* v, F visit) {
    constexpr u32 EACH = SIDE_Y * SIDE_X / 4 / 4 / THREADS;
#pragma unroll 1
    for (u32 log_x = 4;; log_x++) {
        const Classes c(log_x);
#pragma unroll 1
        for (u32 first = 1; first < 4; first += 2) {
#pragma unroll 1
            for (u32 i = c.begin(first) + 4 * threadIdx.x; i < c.begin(first == 1 ? 3 : 4); i += 4 * THREADS) {
                // No third axis: that spares its code.
                const u32 odd = i >> (2 * log_x - 1) & 3u, p = i & (c.points - 1);
                u32 guess[4];
                interpolate::predict_four(c, v + p, odd, c.place(p), guess);
                visit(i, guess);
            }
            __syncthreads();
        }
        if (log_x == 6) return;
        int4 held[EACH];
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            const u32 i = 4 * (threadIdx.x + j * THREADS);
            if (i < 4 * c.points) {
                const int* at = v + c.at(i >> (log_x + 1), i & (2 * c.half.x - 1));
                const int2 even = *(const int2*)at, odd = *(const int2*)(at + c.points);
                held[j] = make_int4(even.x, odd.x, even.y, odd.y);
            }
        }
        __syncthreads();
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            const u32 i = 4 * (threadIdx.x + j * THREADS);
            if (i < 4 * c.points) *(int4*)(v + i) = held[j];
        }
        __syncthreads();
    }
}

}  // namespace interpolate_sheet
