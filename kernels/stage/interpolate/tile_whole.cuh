// SPDX-License-Identifier: MIT OR Apache-2.0
// Whole tiles of the shapes that large chunks are cut into, by code that knows their extents: 8192 values in a line, 64
// × 128, 16 × 16 × 32. Along x there are as many places as a power of two says, along the other axes half as many, and
// so on each level. The coarsest 128 points are one warp's, while others bring values; then the CTA does four points of
// a row at once.
#pragma once
#include "levels.cuh"

namespace interpolate {

// The finest level of 16 × 16 × 32: rows of a warp lie in one plane (p) or behind each other (q), so that an axis has
// one place in all of the warp. What differs little is written once: less code is read faster.
template <class Four>
__device__ __forceinline__ void visit_finest(const int* v, Four four) {
    constexpr u32 ROW = 16, SIDE = 8, PLANE = ROW * SIDE, CLASS = PLANE * SIDE;
    const u32 x = threadIdx.x % 4 * 4, i = threadIdx.x / 4 % 8, w = threadIdx.x / 32;
    const u32 p = w * PLANE + i * ROW + x, q = i * PLANE + w * ROW + x;
    auto of = [&](u32 number) { return v + number * CLASS; };
    u32 a[4], b[4], g[4];
    along_row(of(0) + p, x, ROW, g);
    four(CLASS + p, g);
#pragma unroll 1
    for (u32 k = 2; k < 4; k++) {
        const u32 at = k == 2 ? q : p;
        across_rows(of(0) + at, w, SIDE, k == 2 ? ROW : PLANE, g);
        four(k * CLASS + at, g);
    }
    __syncthreads();
#pragma unroll 1
    for (u32 k = 2; k < 4; k++) {
        const u32 at = k == 2 ? q : p;
        along_row(of(k) + at, x, ROW, a);
        across_rows(of(1) + at, w, SIDE, k == 2 ? ROW : PLANE, b);
#pragma unroll
        for (u32 j = 0; j < 4; j++) g[j] = both({a[j], j < 3 || x < ROW - 4}, {b[j], w < SIDE - 1});
        four((k + 2) * CLASS + at, g);
    }
    across_rows(of(3) + p, i, SIDE, ROW, a);
    across_rows(of(2) + p, w, SIDE, PLANE, b);
#pragma unroll
    for (u32 j = 0; j < 4; j++) g[j] = both({a[j], i < SIDE - 1}, {b[j], w < SIDE - 1});
    four(6 * CLASS + p, g);
    __syncthreads();
    along_row(of(6) + p, x, ROW, g);
    across_rows(of(5) + p, i, SIDE, ROW, a);
    across_rows(of(4) + p, w, SIDE, PLANE, b);
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        g[j] = all({g[j], j < 3 || x < ROW - 4}, {a[j], i < SIDE - 1}, {b[j], w < SIDE - 1});
    }
    four(7 * CLASS + p, g);
    __syncthreads();
}

template <u32 RANK>
struct Whole {
    using Finest = Halves<RANK>;
    // Places along x are a power of two; levels that the CTA does, above which there are 128 points.
    static constexpr u32 LOG_X = (LEVELS + RANK - 1) / RANK, FINE_LEVELS = (LEVELS - 7) / RANK, POINTS = 128;
    static constexpr bool VEC4 = true;
    static constexpr u32 SIDE_X = 1u << LOG_X, SIDE_Y = RANK > 1 ? SIDE_X / 2 : 1, SIDE_Z = RANK > 2 ? SIDE_X / 2 : 1;
    static_assert(SIDE_Z * SIDE_Y * SIDE_X == tiles::MOST, "a whole tile");

    static __device__ __forceinline__ bool fits(const Three& e) {
        return e.z == SIDE_Z && e.y == SIDE_Y && e.x == SIDE_X;
    }
    static __device__ __forceinline__ Finest finest() { return {LOG_X - 1}; }
    // Place of value `i` of the tile, of all values; of one of the coarsest points.
    static __device__ __forceinline__ Three where(u32 i) {
        return {RANK > 2 ? i / (SIDE_X * SIDE_Y) : 0, RANK > 1 ? i / SIDE_X % SIDE_Y : 0, i % SIDE_X};
    }
    static __device__ __forceinline__ u32 values() { return tiles::MOST; }
    static __device__ __forceinline__ u32 fine_levels() { return FINE_LEVELS; }
    static __device__ __forceinline__ u32 coarse_points() { return POINTS; }
    static __device__ __forceinline__ Three coarse_place(u32 i) {
        constexpr u32 X = SIDE_X >> FINE_LEVELS, Y = RANK > 1 ? SIDE_Y >> FINE_LEVELS : 1;
        return {RANK > 2 ? i / (X * Y) << FINE_LEVELS : 0, RANK > 1 ? i / X % Y << FINE_LEVELS : 0,
                i % X << FINE_LEVELS};
    }
    // Where the stream has the point at a place of level `l`.
    static __device__ __forceinline__ u32 at(const Three& p, u32 l) {
        return find(Finest{LOG_X - 1 - l}, Three{p.z >> l, p.y >> l, p.x >> l});
    }
    static __device__ __forceinline__ u32 at(const Three& p) {
        const u32 any = p.z | p.y | p.x, l = (u32)__ffs((int)any) - 1;
        // The topmost two points.
        return any == 0 ? 0 : l == LOG_X - 1 ? 1 : at(p, l);
    }
    // The coarsest points, by one warp; then all others, one or four at a time, by the CTA.
    template <class One>
    static __device__ __forceinline__ void visit_coarse(int* v, One one) {
        if (threadIdx.x % 32 == 0) {
            one(0u, 0u);
            one(1u, (u32)v[0]);
        }
        __syncwarp();
#pragma unroll(RANK == 3 ? 2 : 1)
        for (u32 log_x = 1; log_x < LOG_X - FINE_LEVELS; log_x++) {
            const Finest level = {log_x};
            visit_each<Warp>(v, level, one);
            merge<Warp, POINTS>(v, level);
        }
    }
    template <class One, class Four>
    static __device__ __forceinline__ void visit_others(int* v, One one, Four four) {
        if constexpr (RANK == 3) {
            const Finest level = {LOG_X - FINE_LEVELS};
            visit_each<Cta>(v, level, one);
            merge<Cta, (tiles::MOST >> RANK)>(v, level);
            visit_finest(v, four);
        } else {
#pragma unroll 1
            for (u32 log_x = LOG_X - FINE_LEVELS;; log_x++) {
                const Finest level = {log_x};
                visit_vec4(v, level, four);
                if (log_x == LOG_X - 1) return;
                merge_vec4<(tiles::MOST >> RANK)>(v, level);
            }
        }
    }
};

using Tile1d = Whole<1>;
using Tile2d = Whole<2>;
using Tile3d = Whole<3>;

}  // namespace interpolate
