// SPDX-License-Identifier: MIT OR Apache-2.0
// Interpolation of a tile's lattice, after SZ3 (Zhao et al., ICDE 2021, doi:10.1109/ICDE51399.2021.00145), on integers:
// codecs/src/codec/lorenzo/FORMAT.md §4.4; on the CPU codecs/src/stage/interpolate.
//
// Level l of an axis has the places 0, 2^l, 2 · 2^l … and always the last one. Half of them, the coarse ones, are level
// l + 1; the others are new. All axes halve together, until a single point is left. The new points of a level fall into
// seven classes, by the axes along which they are new. A class is predicted along these axes, or along those of them
// that are in the tile's set, from the four nearest points on each such line, which lie in classes with one new axis
// less. So the stream has the single point first, then level by level the classes of one new axis, of two, of three;
// each pass needs the one before. What becomes of a guess is the caller's part: a reader adds the residual at hand, a
// writer finds it from the value.
//
// Where four points lie evenly around a place their weights are -1, 9, 9, -1 of 16. Elsewhere, at the ends of an axis,
// they are Lagrange's, through those that are there at their true distances.
//
// How a tile is interpolated, its *way*, is told by bits of its kind: the set of axes, and whether coarse levels have
// finer steps.
//
// This file has the arithmetic, which wraps around; whole.cuh what lies where in tiles of the usual shapes, and the way
// through them; lattice.cuh and visit.cuh the same of tiles of any extents.
#pragma once
#include "../tiles.cuh"

namespace interpolate {

using tiles::Three;

constexpr int FINE = (int)fmt::LORENZO_FINE_BITS;

// Axes as bits: x, y, z. The classes in the order of the stream, from 1 on, as sets of new axes.
constexpr u32 X = 1, Y = 2, Z = 4, CLASSES = 7;
constexpr __device__ u32 class_at(u32 k) { return 0x76534210u >> (4 * k) & 7u; }

// The bits of a way: axes; finer steps.
constexpr u32 ALL_AXES = 7, FINER = 0x80;
// The axes that a class of new axes is predicted along.
__device__ __forceinline__ u32 used(u32 fresh, u32 way) { return fresh & way ? fresh & way : fresh; }

// The step of residuals of level `l`; all from the last one on have the same.
constexpr u32 STEP = 1u << FINE, LAST_STEP = 4;
__device__ __forceinline__ u32 step_at(u32 way, u32 l) {
    constexpr u64 LESS = (STEP - fmt::LORENZO_STEP_0) | (STEP - fmt::LORENZO_STEP_1) << 8 |
                         (u64)(STEP - fmt::LORENZO_STEP_2) << 16 | (u64)(STEP - fmt::LORENZO_STEP_3) << 24 |
                         (u64)(STEP - fmt::LORENZO_STEP_4) << 32;
    return way & FINER ? STEP - ((u32)(LESS >> (8 * min(l, LAST_STEP))) & 255u) : STEP;
}

// x >> k of signed numbers, kept as unsigned ones that wrap around.
__device__ __forceinline__ u32 halved(u32 x, int k) { return (u32)((int)x >> k); }

// Between b and c, from the four nearest on a line, evenly apart.
__device__ __forceinline__ u32 cubic(u32 a, u32 b, u32 c, u32 d) { return halved(b + c, 1) + halved(b + c - a - d, 4); }
__device__ __forceinline__ u32 mean(u32 p, u32 q) { return q + halved(p - q, 1); }
// Of three, from the sum of the first two.
__device__ __forceinline__ u32 mean_of(u32 two, u32 r) { return r + halved(85 * (two - 2 * r) + 128, 8); }

// The guess along a set of axes, from those along each.
__device__ __forceinline__ u32 joined(u32 use, u32 x, u32 y, u32 z) {
    if (use == (X | Y | Z)) return mean_of(x + y, z);
    const u32 last = use & Z ? z : use & Y ? y : x;
    return use & (use - 1) ? mean(use & X ? x : y, last) : last;
}

// Lagrange's weights of a, c and d; b has the rest of 1, which is 2^WEIGHT_BITS. A point that is not there has 0.
constexpr int WEIGHT_BITS = (int)fmt::LORENZO_WEIGHT_BITS;
struct alignas(16) Weights {
    int a, c, d;
    // 1 for four points evenly apart, which have `cubic`.
    int even;
};
__device__ __forceinline__ u32 weighted(u32 a, u32 b, u32 c, u32 d, int wa, int wc, int wd) {
    const long long sum = (long long)wa * (int)(a - b) + (long long)wc * (int)(c - b) + (long long)wd * (int)(d - b);
    return b + (u32)((u64)(sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS);
}

// The same with weights that are not known when compiled, and would be taken for those of either sign.
__device__ __forceinline__ u32 weighted_wide(u32 a, u32 b, u32 c, u32 d, int wa, int wc, int wd) {
#ifdef __CUDA_ARCH__
    long long sum = 1 << (WEIGHT_BITS - 1);
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(sum) : "r"(a - b), "r"(wa));
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(sum) : "r"(c - b), "r"(wc));
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(sum) : "r"(d - b), "r"(wd));
    return b + (u32)((u64)sum >> WEIGHT_BITS);
#else
    return weighted(a, b, c, d, wa, wc, wd);
#endif
}

// The coarsest level of an axis: the level at which the axis has one point.
constexpr __device__ u32 top_of(u32 extent) {
    u32 top = extent > 1;
    while (extent > 1 && (extent - 2) >> (top - 1)) top++;
    return top;
}
// How many points an axis has at level `l`.
constexpr __device__ u32 points_of(u32 extent, u32 l) {
    return extent > 1 && (l == 0 || (extent - 2) >> (l - 1)) ? ((extent - 2) >> l) + 2 : 1;
}
// How many of an axis' points at a level are new there, not points of the next coarser level.
constexpr __device__ u32 new_of(u32 points) { return points == 2 ? 1 : (points - 1) / 2; }
// The number of the last point that the next coarser level has too.
constexpr __device__ u32 last_of(u32 points) { return points - 1 - new_of(points); }

// The weights at new point `k` of level `l` of an axis.
constexpr __device__ Weights weights_of(u32 extent, u32 l, u32 k) {
    const u32 points = points_of(extent, l), last = last_of(points);
    Weights found = {0, 0, 0, 0};
    // Of two points the new one is predicted to be the other.
    if (points == 2) return found;
    const int h = 1 << l, at = (int)(2 * k + 1) << l, end = (int)extent - 1;
    const int c = at + h < end ? h : end - at, d = at + 3 * h < end ? 3 * h : end - at;
    const int x[4] = {-3 * h, -h, c, d};
    // The last point counts nothing just behind the one before it.
    const bool there[4] = {k > 0, true, true, k + 1 < last && d - c >= h};
    int w[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        if (i == 1 || !there[i]) continue;
        long long over = 1, under = 1;
        for (int j = 0; j < 4; j++) {
            if (j == i || !there[j]) continue;
            over *= -x[j];
            under *= x[i] - x[j];
        }
        if (under < 0) over = -over, under = -under;
        // ⌊weight + ½⌋
        const long long sum = over * (2 << WEIGHT_BITS) + under;
        const u64 by = 2 * (u64)under, size = sum < 0 ? (u64)-sum + by - 1 : (u64)sum;
        w[i] = sum < 0 ? -(int)(size / by) : (int)(size / by);
    }
    found.a = w[0], found.c = w[2], found.d = w[3];
    found.even = there[0] && there[3] && c == h && d == 3 * h;
    return found;
}

// The weights at new points where four may not be evenly apart: at the first one (0), and at those that have one or two
// coarse points behind.
constexpr __device__ Weights weights_at(u32 extent, u32 l, u32 kind) {
    const u32 points = points_of(extent, l), last = last_of(points), k = last > kind ? last - kind : 0;
    return weights_of(extent, l, kind == 0 || k >= new_of(points) ? 0 : k);
}

// A point from its prediction and its residual.
__device__ __forceinline__ int point(u32 predicted, int residual, u32 step) {
    return (int)(predicted + (u32)residual * step);
}

// The residual that brings a prediction nearest to x.
__device__ __forceinline__ int residual(u32 x, u32 predicted, u32 step) {
    const u32 apart = x - predicted + step / 2;
    if (step == STEP) return (int)halved(apart, FINE);
    const int down = (int)apart / (int)step;
    return down - ((int)apart < down * (int)step);
}

}  // namespace interpolate
