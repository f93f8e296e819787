// SPDX-License-Identifier: MIT OR Apache-2.0
// The finest level of whole tiles, which has five sixths of a block's points.
//
// A thread has some new points behind each other on a line. Neighbours share three of the four points that each is
// predicted from, so every one is loaded once, and where a thread's points lie is found once. Lanes of a warp have
// neighbouring lines. Loops are short and not unrolled: unrolled, what a warp executes once took longer to fetch than
// to do, and a tile took an eighth longer.
#pragma once
#include "whole.cuh"

namespace interpolate {

// Weights of the first new point and of the last one on the finest level, of an axis with an even extent from 6 on.
// That of c is the same.
constexpr Weights FIRST = weights_of(16, 0, 0), LAST = weights_of(16, 0, 6);
static_assert(FIRST.c == LAST.c && FIRST.a == 0, "less to choose from");

// The guess at the first point of a line, or at the last one. The first one's a counts nothing.
__device__ __forceinline__ u32 at_end(u32 a, u32 b, u32 c, u32 d, bool first) {
    return weighted_wide(a, b, c, d, first ? 0 : LAST.a, FIRST.c, first ? FIRST.d : LAST.d);
}

// The guess at one point of a line, b at `p`, which is the first, the last or neither. What is read for the
// first one's a are the words before a class, which is not the tile's first class.
__device__ __forceinline__ u32 guess_across(const int* p, int apart, bool first, bool last) {
    const u32 a = (u32)p[-apart], b = (u32)p[0], c = (u32)p[apart], d = (u32)p[2 * apart];
    u32 g = cubic(a, b, c, d);
    if (first || last) g = at_end(a, b, c, d, first);
    return g;
}

// Numbers of `COUNT` new points on a line with the first and the last one behind all others: a warp seldom has both
// kinds.
template <u32 COUNT>
__device__ __forceinline__ u32 ends_last(u32 k) {
    return k < COUNT - 2 ? k + 1 : (k - (COUNT - 2)) * (COUNT - 1);
}

// Visits a class of the finest level, `EACH` points of a line along `ALONG` a thread, from warp `WARP` on.
template <u32 RANK, u32 FRESH, u32 ALONG, u32 EACH, u32 WARP, class One>
__device__ __forceinline__ void visit_class(const int* v, u32 way, One one) {
    using W = Whole<RANK>;
    static_assert((FRESH & ~W::AXES) == 0 && (FRESH & ALONG), "a class of the tile, along one of its axes");
    constexpr u32 NX = W::nx(FRESH), NY = W::ny(FRESH), NZ = W::nz(FRESH), BEGIN = W::begin(FRESH);
    constexpr u32 ON = ALONG == X ? NX : ALONG == Y ? NY : NZ, PARTS = (ON + EACH - 1) / EACH;
    constexpr u32 LINES = NX * NY * NZ / ON, ITEMS = LINES * PARTS;
    // Points of a line's last part; words from one point of a line to the next.
    constexpr u32 ENDS = ON - (PARTS - 1) * EACH;
    constexpr int APART = ALONG == X ? 1 : ALONG == Y ? NX : NY * NX;
    // Of one axis, the compiler knows.
    const u32 use = (FRESH & (FRESH - 1)) == 0 ? FRESH : used(FRESH, way);
#pragma unroll 1
    for (u32 k = (threadIdx.x + 256 - 32 * WARP) % 256; k < ITEMS; k += 256) {
        // Along x, parts of a line are neighbours where there are many.
        constexpr bool TURNED = ALONG == X && PARTS > 3;
        const u32 part = PARTS == 1 ? 0 : TURNED ? k % PARTS : k / LINES;
        const u32 line = PARTS == 1 ? k : TURNED ? k / PARTS : k - part * LINES, at = part * EACH;
        const bool first = part == 0, last = part + 1 == PARTS;
        // The first point's numbers.
        u32 x = at, y = at, z = at;
        if constexpr (ALONG == X) {
            z = line / NY, y = line - z * NY;
        } else {
            constexpr u32 ROWS = LINES / NX, INSIDE = ROWS * (NX - 2);
            u32 above;
            if constexpr (FRESH & X) {
                // Those near an end are behind all others, as they take longer.
                const bool inside = line < INSIDE;
                above = inside ? line / (NX - 2) : (line - INSIDE) / 2;
                x = inside ? 1 + line - above * (NX - 2) : (line - INSIDE) % 2 * (NX - 1);
            } else {
                above = line / NX, x = line - above * NX;
            }
            if constexpr (ALONG == Y) {
                z = above;
            } else {
                y = FRESH & Y ? ends_last<NY>(above) : above;
            }
        }
        const u32 row = z * NY + y, i = row * NX + x;
        constexpr u32 ACROSS = FRESH ^ ALONG, STEP_X = (ALONG == Y ? 1 : NY) * W::nx(0), STEP_Y = W::ny(0) * NX;
        const int* px = v + W::begin(FRESH ^ X) + row * W::nx(0) + x;
        const int* py = v + W::begin(FRESH ^ Y) + (z * W::ny(0) + y) * NX + x;
        const int* p = ALONG == X ? px : ALONG == Y ? py : v + W::begin(FRESH ^ Z) + i;
        u32 a = (u32)p[first ? 0 : -APART], b = (u32)p[0], c = (u32)p[APART], own = BEGIN + i;
        const u32 each = last ? ENDS : EACH;
#pragma unroll 1
        for (u32 j = 0; j < each; j++, own += APART) {
            u32 g = 0;
            if (use & ALONG) {
                const u32 d = (u32)p[2 * APART];
                g = cubic(a, b, c, d);
                const bool begins = first && j == 0, ends = last && j + 1 == ENDS;
                if (begins || ends) g = at_end(a, b, c, d, begins);
                a = b, b = c, c = d, p += APART;
            }
            if constexpr (ACROSS != 0) {
                u32 gx = 0, gy = 0;
                if (ACROSS & X & use) gx = guess_across(px, 1, x == 0, x + 1 == NX);
                if (ACROSS & Y & use) gy = guess_across(py, NX, y == 0, y + 1 == NY);
                px += STEP_X, py += STEP_Y;
                g = joined(use, ALONG == X ? g : gx, ALONG == Y ? g : gy, ALONG == Z ? g : 0);
            }
            one(own, own, g, STEP);
        }
    }
}

// Visits the new points of the finest level, by all threads. Lines are as long as warps have about the same to do.
template <u32 RANK, class One>
__device__ __forceinline__ void visit_finest(const int* v, u32 way, One one) {
    __syncthreads();
    if constexpr (RANK == 1) {
        visit_class<1, X, X, 5, 0>(v, way, one);
    } else if constexpr (RANK == 2) {
        visit_class<2, X, X, 7, 0>(v, way, one);
        visit_class<2, Y, Y, 8, 2>(v, way, one);
        __syncthreads();
        visit_class<2, X | Y, Y, 8, 0>(v, way, one);
    } else {
        visit_class<3, X, X, 15, 0>(v, way, one);
        visit_class<3, Y, Y, 7, 3>(v, way, one);
        visit_class<3, Z, Z, 7, 3>(v, way, one);
        __syncthreads();
        visit_class<3, X | Y, Y, 7, 0>(v, way, one);
        visit_class<3, X | Z, Z, 7, 5>(v, way, one);
        visit_class<3, Y | Z, Z, 7, 2>(v, way, one);
        __syncthreads();
        visit_class<3, X | Y | Z, Z, 4, 0>(v, way, one);
    }
}

}  // namespace interpolate
