// SPDX-License-Identifier: MIT OR Apache-2.0
// Prediction of a tile's points from every second one, level by level: FORMAT.md §4.4 of lorenzo. Integers wrap around.
//
// Level l has the points whose three places are multiples of 2^l; those of
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

// Extents of the class of a level of extents `d` whose odd places are `odd`; of the coarser level, with none.
__device__ __forceinline__ Three parts(const Three& d, u32 odd) {
    return {(d.z + 1 - (odd >> 2)) / 2, (d.y + 1 - (odd >> 1 & 1)) / 2, (d.x + 1 - (odd & 1)) / 2};
}

// A point's place in the tile's own order.
__device__ __forceinline__ u32 dense(const Three& e, const Three& p) { return (p.z * e.y + p.y) * e.x + p.x; }

// x >> k of signed numbers, kept as unsigned ones that wrap around.
__device__ __forceinline__ u32 halved(u32 x, int k) { return (u32)((int)x >> k); }

// Between b and c, from the four nearest on a line.
__device__ __forceinline__ u32 cubic(u32 a, u32 b, u32 c, u32 d) { return halved(b + c, 1) + halved(b + c - a - d, 4); }
// From the near one of two, the other, and a third on the other side of the near one.
__device__ __forceinline__ u32 square(u32 near, u32 far, u32 third) { return near + halved(3 * far - 2 * near - third, 3); }
__device__ __forceinline__ u32 mean(u32 p, u32 q) { return q + halved(p - q, 1); }
__device__ __forceinline__ u32 mean(u32 p, u32 q, u32 r) { return r + halved(85 * (p + q - 2 * r) + 128, 8); }

// A guess at a point, and whether there is one behind it.
struct Guess {
    u32 at;
    bool inner;
};

// Two guesses, or the inner one; of three, the inner ones.
__device__ __forceinline__ u32 both(const Guess& p, const Guess& q) {
    const u32 middle = mean(p.at, q.at);
    return p.inner == q.inner ? middle : p.inner ? p.at : q.at;
}
__device__ __forceinline__ u32 all(const Guess& x, const Guess& y, const Guess& z) {
    const Guess xy = {both(x, y), x.inner || y.inner};
    return x.inner == y.inner && y.inner == z.inner ? mean(x.at, y.at, z.at) : both(xy, z);
}

// A point from its prediction and its residual.
__device__ __forceinline__ int point(int predicted, int residual) { return (int)((u32)predicted + ((u32)residual << FINE)); }

// The residual that brings a prediction nearest to x.
__device__ __forceinline__ int residual(int x, int predicted) { return (int)halved((u32)x - (u32)predicted + (1u << (FINE - 1)), FINE); }

}  // namespace interpolate
