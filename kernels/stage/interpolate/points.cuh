// SPDX-License-Identifier: MIT OR Apache-2.0
// Points of a tile from residuals in the order of the stream, in place: residuals are first put where their points will
// be.
#pragma once
#include "finest.cuh"
#include "visit.cuh"

namespace interpolate {

// What a tile of any extents takes beside the values: its lattice, and where each level's classes begin in the stream.
struct AnyShared {
    Lattice lattice;
    Steps steps;
    u32 begin[LEVELS][CLASSES + 1];
};

// Puts the residuals of a whole tile's coarse points in the order of places; the others are where they belong.
template <u32 RANK>
__device__ __forceinline__ void spread(int* v) {
    constexpr u32 COARSE = Whole<RANK>::COARSE, EACH = (COARSE + 255) / 256;
    const Coarse* where = COARSER<RANK>.points;
    int q[EACH];
#pragma unroll
    for (u32 k = 0; k < EACH; k++) q[k] = v[min(threadIdx.x + 256 * k, COARSE - 1)];
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
        const u32 i = threadIdx.x + 256 * k;
        if (i < COARSE) v[where[i].at()] = q[k];
    }
}

// Number of a place on the next coarser level, of `points`; whether it is new there.
__device__ __forceinline__ bool next_level(u32& i, u32 points) {
    const bool fresh = points == 2 ? i : i % 2 && i + 1 < points;
    i = fresh ? i / 2 : (i + 1) / 2;
    return fresh;
}

// The same of a tile of any extents, in the order of places: each thread keeps its own in local memory, which is less
// code, for tiles of which there are few.
__device__ __forceinline__ void spread_any(int* v, AnyShared& sh, const Three& e) {
    const u32 t = threadIdx.x, n = e.product();
    const tiles::Divisor by_x(e.x), by_y(e.y);
    if (t < LEVELS) {
        u32 at = points_at(e, t + 1);
#pragma unroll 1
        for (u32 k = 1; k <= CLASSES; k++) {
            const u32 fresh = class_at(k);
            auto along = [&](u32 extent, u32 axis) {
                const u32 points = points_of(extent, t);
                return fresh & axis ? new_of(points) : last_of(points) + 1;
            };
            sh.begin[t][fresh] = at;
            at += along(e.z, Z) * along(e.y, Y) * along(e.x, X);
        }
    }
    __syncthreads();
    int q[tiles::MOST / 256];
#pragma unroll 1
    for (u32 k = 0; t + 256 * k < n; k++) {
        const u32 i = t + 256 * k, row = by_x.of(i);
        u32 z = by_y.of(row), y = row - z * e.y, x = i - row * e.x, from = 0;
#pragma unroll 1
        for (u32 l = 0; (z | y | x) != 0; l++) {
            const u32 nx = points_of(e.x, l), ny = points_of(e.y, l);
            u32 fresh = next_level(x, nx) ? X : 0;
            if (next_level(y, ny)) fresh |= Y;
            if (next_level(z, points_of(e.z, l))) fresh |= Z;
            if (fresh) {
                from =
                    sh.begin[l][fresh] +
                    (z * (fresh & Y ? new_of(ny) : last_of(ny) + 1) + y) * (fresh & X ? new_of(nx) : last_of(nx) + 1) +
                    x;
                break;
            }
        }
        q[k] = v[from];
    }
    __syncthreads();
#pragma unroll 1
    for (u32 k = 0; t + 256 * k < n; k++) v[t + 256 * k] = q[k];
    __syncthreads();
}

// A whole tile's points from its residuals; whole CTA, which has waited for these, and has to wait for the points.
template <u32 RANK>
__device__ __forceinline__ void points(int* v, u32 way) {
    auto one = [&](u32, u32 at, u32 guess, u32 step) { v[at] = point(guess, v[at], step); };
    spread<RANK>(v);
    __syncthreads();
    if (threadIdx.x < 32) visit_few<RANK>(v, way, threadIdx.x, one);
    visit_coarser<RANK>(v, way, one);
    visit_finest<RANK>(v, way, one);
    __syncthreads();
}

// Any other tile's, which has the same needs.
__device__ __forceinline__ void points(int* v, AnyShared& sh, const Three& e, u32 way) {
    prepare(sh.lattice, sh.steps, e);
    spread_any(v, sh, e);
    visit_any(
        v, sh.lattice, sh.steps, way, e.product(), [] { __syncthreads(); },
        [&](u32, u32 at, u32 guess, u32 step) { v[at] = point(guess, v[at], step); });
}

}  // namespace interpolate
