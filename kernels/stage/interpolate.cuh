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

// A class of some tile, short enough to be kept for all levels and classes: what it takes divisions to know.
struct Kept {
    u32 points, sides, inverse_x, inverse_y;
};

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
    __device__ __forceinline__ Class(const Kept& kept, u32 l, u32 odd)
        : extents{0, kept.sides >> 16, kept.sides & 0xffffu}, by_x(extents.x, kept.inverse_x), by_y(extents.y, kept.inverse_y),
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

// Class `i` of a tile, counted from the coarsest level on, seven a level, those without points too.
__device__ __forceinline__ Kept keep(const Three& e, u32 i) {
    const Class c(e, top(e) - 1 - i / 7, parity(i % 7));
    return {c.extents.product(), c.extents.y << 16 | c.extents.x, c.by_x.inverse, c.by_y.inverse};
}

// A point's place in the tile's own order.
__device__ __forceinline__ u32 dense(const Three& e, const Three& p) { return (p.z * e.y + p.y) * e.x + p.x; }

// x >> k of signed numbers, kept as unsigned ones that wrap around.
__device__ __forceinline__ u32 halved(u32 x, int k) { return (u32)((int)x >> k); }

// A guess at a point, and whether there is one behind it.
struct Guess {
    u32 at;
    bool inner;
};

// The `i`-th point of a line of `extent` places that lie `distance` apart, from the points `step` and three times `step`
// before and behind it. All cases are computed: neighbours in a warp have different ones.
__device__ __forceinline__ Guess along(const int* at, u32 i, u32 extent, u32 step, u32 distance) {
    const int reach = (int)(step * distance);
    const bool before = i >= 3 * step, inner = i + step < extent, behind = i + 3 * step < extent;
    const u32 b = (u32)at[-reach], c = inner ? (u32)at[reach] : b;
    const u32 a = before ? (u32)at[-3 * reach] : b, d = behind ? (u32)at[3 * reach] : c;
    const u32 both = b + c, cubic = halved(both, 1) + halved(both - (a + d), 4);
    // Two points with a third before them or, seen from the other side, behind them.
    const u32 near = before ? b : c, far = before ? c : b, third = before ? a : d;
    const u32 square = near + halved(2 * (far - near) + (far - third), 3);
    const u32 line = b + halved(inner ? c - b : b - a, 1);
    return {before && behind ? cubic : inner && (before || behind) ? square : line, inner};
}

// Two guesses, or the inner one.
__device__ __forceinline__ u32 both(const Guess& p, const Guess& q) {
    const u32 mean = q.at + halved(p.at - q.at, 1);
    return p.inner == q.inner ? mean : p.inner ? p.at : q.at;
}

// Predicts the point at p, of level l and with the odd places `odd`, from points of the tile that are there already.
__device__ __forceinline__ int predict(const int* points, const Three& e, u32 l, u32 odd, const Three& p) {
    const int* at = points + dense(e, p);
    const u32 step = 1u << l;
    const u32 plane = e.x * e.y;
    switch (odd) {
        case 1: return (int)along(at, p.x, e.x, step, 1).at;
        case 2: return (int)along(at, p.y, e.y, step, e.x).at;
        case 3: return (int)both(along(at, p.x, e.x, step, 1), along(at, p.y, e.y, step, e.x));
        case 4: return (int)along(at, p.z, e.z, step, plane).at;
        case 5: return (int)both(along(at, p.x, e.x, step, 1), along(at, p.z, e.z, step, plane));
        case 6: return (int)both(along(at, p.y, e.y, step, e.x), along(at, p.z, e.z, step, plane));
        default: {
            const Guess x = along(at, p.x, e.x, step, 1), y = along(at, p.y, e.y, step, e.x), z = along(at, p.z, e.z, step, plane);
            if (x.inner == y.inner && y.inner == z.inner) {
                return (int)(z.at + halved(85 * (x.at + y.at - 2 * z.at) + 128, 8));
            }
            // One or two of them are inner.
            if (x.inner == y.inner) return (int)(z.inner ? z.at : both(x, y));
            return (int)(z.inner ? both(x.inner ? x : y, z) : x.inner ? x.at : y.at);
        }
    }
}

// A point from its prediction and its residual.
__device__ __forceinline__ int point(int predicted, int residual) { return (int)((u32)predicted + ((u32)residual << FINE)); }

// The residual that brings a prediction nearest to x.
__device__ __forceinline__ int residual(int x, int predicted) { return (int)halved((u32)x - (u32)predicted + (1u << (FINE - 1)), FINE); }

}  // namespace interpolate
