// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of any extents, with the members of tile_whole.cuh: the levels' extents are found beforehand and lie in shared
// memory. Levels of up to 128 points are one warp's; of others the CTA does four points of a row at once where its
// classes have equal extents, else one by one.
#pragma once
#include "levels.cuh"

namespace interpolate {

// The level that has a single point.
__device__ __forceinline__ u32 top_of(const Three& e) { return 32u - (u32)__clz((int)(max(e.z, max(e.y, e.x)) - 1)); }

struct TileAny {
    // Known late; and not all rows are whole vec4s.
    static constexpr u32 FINE_LEVELS = 0, POINTS = 128;
    static constexpr bool VEC4 = false;
    // The finest level first.
    const Level* levels;
    // All levels, and those that the CTA does.
    u32 top, fine;

    // Finds the levels, at least one; all threads, which then wait.
    static __device__ __forceinline__ void prepare(Level* levels, const Three& e) {
        if (threadIdx.x < max(top_of(e), 1u)) levels[threadIdx.x].set(e, threadIdx.x);
    }
    __device__ __forceinline__ TileAny(const Level* levels_, const Three& e)
        : levels(levels_), top(top_of(e)), fine(0) {
        while (fine < top && levels[fine].points() > POINTS) fine++;
    }
    __device__ __forceinline__ const Level& finest() const { return levels[0]; }
    __device__ __forceinline__ Three where(u32 i) const { return levels[0].whole(i); }
    __device__ __forceinline__ u32 values() const { return levels[0].points(); }
    __device__ __forceinline__ u32 fine_levels() const { return fine; }
    __device__ __forceinline__ u32 coarse_points() const { return levels[fine].points(); }
    __device__ __forceinline__ Three coarse_place(u32 i) const {
        const Three p = levels[fine].whole(i);
        return {p.z << fine, p.y << fine, p.x << fine};
    }
    __device__ __forceinline__ u32 at(const Three& p, u32 l) const {
        return find(levels[l], Three{p.z >> l, p.y >> l, p.x >> l});
    }
    __device__ __forceinline__ u32 at(const Three& p) const {
        const u32 any = p.z | p.y | p.x;
        return any ? at(p, (u32)__ffs((int)any) - 1) : 0;
    }
    // The reverse.
    __device__ __forceinline__ Three place_of(u32 i) const {
        if (i == 0) return {0, 0, 0};
        u32 l = 0;
        while (i < levels[l].first(0)) l++;
        const Level& v = levels[l];
        const u32 p = v.class_of(i < v.first(1) ? 0 : i < v.first(2) ? 1 : 2, i);
        const Three at = v.place(p, i - v.begin(p));
        return {(2 * at.z + (p >> 2)) << l, (2 * at.y + (p >> 1 & 1)) << l, (2 * at.x + (p & 1)) << l};
    }
    template <class One>
    __device__ __forceinline__ void visit_coarse(int* v, One one) const {
        if (threadIdx.x % 32 == 0) one(0u, 0u);
        __syncwarp();
#pragma unroll 1
        for (u32 l = top; l-- > fine;) {
            visit_each<Warp>(v, levels[l], one);
            if (l) merge<Warp, POINTS>(v, levels[l]);
        }
    }
    template <class One, class Four>
    __device__ __forceinline__ void visit_others(int* v, One one, Four) const {
#pragma unroll 1
        for (u32 l = fine; l-- > 0;) {
            visit_each<Cta>(v, levels[l], one);
            if (l) merge<Cta, tiles::MOST / 2>(v, levels[l]);
        }
    }
};

// Points from residuals, of a tile of either kind; whole CTA, which has waited for these. Points remain where the
// finest level has them.
template <class Tile>
__device__ __forceinline__ void points(const Tile& tile, int* v) {
    auto one = [&](u32 at, u32 guess) { v[at] = point((int)guess, v[at]); };
    if (threadIdx.x < 32) tile.visit_coarse(v, one);
    __syncthreads();
    tile.visit_others(v, one, [&](u32 at, const u32(&guess)[4]) {
        const int4 d = *(const int4*)(v + at);
        *(int4*)(v + at) = make_int4(point((int)guess[0], d.x), point((int)guess[1], d.y), point((int)guess[2], d.z),
                                     point((int)guess[3], d.w));
    });
}

}  // namespace interpolate
