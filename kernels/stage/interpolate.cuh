// SPDX-License-Identifier: MIT OR Apache-2.0
// Prediction of a tile's points from every second one, level by level: FORMAT.md §6 of lorenzo. Integers wrap around.
//
// Points lie in the tile's own order, z slowest. Level l has the points whose three places are multiples of 2^l; those of
// them that are not on level l + 1 fall into seven classes by which of their places, in units of 2^l, are odd. Classes of
// one odd place need the coarser level, those of two need the former, the last one those.
#pragma once
#include "tiles.cuh"

namespace interpolate {

using tiles::Three;

constexpr int FINE = (int)fmt::LORENZO_FINE_BITS;

// The classes in the order of the stream; bit 0 stands for an odd place along x, 1 y, 2 z.
__device__ __forceinline__ u32 parity(u32 k) { return 0x7653421u >> (4 * k) & 7u; }

// The level that has a single point.
__device__ __forceinline__ u32 top(const Three& e) { return 32u - (u32)__clz((int)(max(e.z, max(e.y, e.x)) - 1)); }

// Extents of level l.
__device__ __forceinline__ Three lattice(const Three& e, u32 l) {
    const u32 up = (1u << l) - 1;
    return {(e.z + up) >> l, (e.y + up) >> l, (e.x + up) >> l};
}

// The points of level l whose odd places are `odd`, row by row.
struct Class {
    Three extents;
    tiles::Divisor by_x, by_y;
    // Place in the tile of its first point, and from one point to the next.
    Three first;
    u32 step;
    __device__ __forceinline__ Class(const Three& e, u32 l, u32 odd)
        : extents(parts(lattice(e, l), odd)), by_x(max(extents.x, 1u)), by_y(max(extents.y, 1u)),
          first{(odd >> 2) << l, (odd >> 1 & 1) << l, (odd & 1) << l}, step(2u << l) {}
    // Where its point k is.
    __device__ __forceinline__ Three point(u32 k) const {
        const u32 row = by_x.of(k), z = by_y.of(row);
        return {first.z + z * step, first.y + (row - z * extents.y) * step, first.x + (k - row * extents.x) * step};
    }
    static __device__ __forceinline__ Three parts(const Three& d, u32 odd) {
        return {(d.z + 1 - (odd >> 2)) / 2, (d.y + 1 - (odd >> 1 & 1)) / 2, (d.x + 1 - (odd & 1)) / 2};
    }
};

// A point's place in the tile's own order.
__device__ __forceinline__ u32 dense(const Three& e, const Three& p) { return (p.z * e.y + p.y) * e.x + p.x; }

// x >> k of signed numbers, kept as unsigned ones that wrap around.
__device__ __forceinline__ u32 halved(u32 x, int k) { return (u32)((int)x >> k); }

// The `i`-th point of a line of `extent` places that lie `distance` apart, from the points `step` and three times `step`
// before and behind it; `inner`: there is one behind it.
__device__ __forceinline__ u32 along(const int* at, u32 i, u32 extent, u32 step, u32 distance, bool& inner) {
    const int reach = (int)(step * distance);
    const u32 b = (u32)at[-reach];
    const bool more_before = i >= 3 * step, more_behind = i + 3 * step < extent;
    inner = i + step < extent;
    if (!inner) return more_before ? b + halved(b - (u32)at[-3 * reach], 1) : b;
    const u32 c = (u32)at[reach];
    if (more_before && more_behind) {
        const u32 near = b + c;
        return halved(near, 1) + halved(near - ((u32)at[-3 * reach] + (u32)at[3 * reach]), 4);
    }
    if (!more_before && !more_behind) return b + halved(c - b, 1);
    // Two points with a third before them or, seen from the other side, behind them.
    const u32 near = more_before ? b : c, far = more_before ? c : b;
    const u32 third = (u32)(more_before ? at[-3 * reach] : at[3 * reach]);
    return near + halved(2 * (far - near) + (far - third), 3);
}

// Predicts the point at p, of level l and with the odd places `odd`, from points of the tile that are there already.
__device__ __forceinline__ int predict(const int* points, const Three& e, u32 l, u32 odd, const Three& p) {
    const int* at = points + dense(e, p);
    const u32 step = 1u << l;
    u32 x = 0, y = 0, z = 0;
    bool inner_x = false, inner_y = false, inner_z = false;
    if (odd & 1) x = along(at, p.x, e.x, step, 1, inner_x);
    if (odd & 2) y = along(at, p.y, e.y, step, e.x, inner_y);
    if (odd & 4) z = along(at, p.z, e.z, step, e.x * e.y, inner_z);
    u32 use = (inner_x ? 1u : 0u) | (inner_y ? 2u : 0u) | (inner_z ? 4u : 0u);
    if (use == 0) use = odd;
    switch (use) {
        case 1: return (int)x;
        case 2: return (int)y;
        case 4: return (int)z;
        case 3: return (int)(y + halved(x - y, 1));
        case 5: return (int)(z + halved(x - z, 1));
        case 6: return (int)(z + halved(y - z, 1));
        default: return (int)(z + halved(85 * (x + y - 2 * z) + 128, 8));
    }
}

// A point from its prediction and its residual.
__device__ __forceinline__ int point(int predicted, int residual) { return (int)((u32)predicted + ((u32)residual << FINE)); }

// The residual that brings a prediction nearest to x.
__device__ __forceinline__ int residual(int x, int predicted) { return (int)halved((u32)x - (u32)predicted + (1u << (FINE - 1)), FINE); }

}  // namespace interpolate
