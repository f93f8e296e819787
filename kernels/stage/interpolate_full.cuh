// SPDX-License-Identifier: MIT OR Apache-2.0
// Guesses at the points of a whole tile of 16 × 16 × 32, which lie in shared memory as the stream has them: FORMAT.md §4.4 of
// lorenzo, and the same as interpolate_any.cuh and interpolate_fours.cuh find for any extents.
//
// The caller says what becomes of a guess: a reader adds the residual that is there, a writer finds it from the value. All
// extents of a level are even, so its even part and its seven classes are eight lattices of the same extents, one behind the
// other. What predicts a point lies in other lattices at the point's own place and next to it along one axis. The classes stay
// where they are; the even part is the level before, put into the order of its places when that is complete.
#pragma once
#include "interpolate.cuh"

namespace interpolate_full {

using interpolate::all;
using interpolate::cubic;
using interpolate::Guess;
using interpolate::halved;
using interpolate::square;

constexpr u32 SIDE_Z = 16, SIDE_Y = 16, SIDE_X = 32, THREADS = 256;

__device__ __forceinline__ bool fits(const tiles::Three& e) { return e.z == SIDE_Z && e.y == SIDE_Y && e.x == SIDE_X; }

// The lattice, of a level's eight, that is odd along `odd`: bit 0 stands for x, 1 y, 2 z.
__device__ __forceinline__ u32 number(u32 odd) { return 0x76534210u >> (4 * odd) & 7u; }

// From two.
__device__ __forceinline__ u32 line(u32 b, u32 slope) { return b + halved(slope, 1); }

// --- levels of few points, one by one ---

// The guess behind place `i` of `count` on a line.
__device__ __forceinline__ Guess along(const int* at, u32 i, u32 count, u32 stride) {
    const bool before = i > 0, inner = i + 1 < count, behind = i + 2 < count;
    const u32 b = (u32)at[0], c = inner ? (u32)at[stride] : b, a = before ? (u32)at[-(int)stride] : b, d = behind ? (u32)at[2 * stride] : c;
    const u32 third = before ? a : d, near = before ? b : c, far = before ? c : b;
    const u32 three = square(near, far, third), two = line(b, inner ? c - b : b - a);
    return {before && behind ? cubic(a, b, c, d) : inner && (before || behind) ? three : two, inner};
}

// Calls `visit(place, guess)` for a level whose classes have CZ × CY × CX points each: those of one odd axis, of two, of three.
template <u32 CZ, u32 CY, u32 CX, class Sync, class F>
__device__ __forceinline__ void classes(const int* v, u32 thread, u32 threads, Sync sync, F visit) {
    constexpr u32 N = CZ * CY * CX;
#pragma unroll 1
    for (u32 first = 1; first < 8; first += 3) {
#pragma unroll 1
        for (u32 i = N * first + thread; i < min(N * (first + 3), 8 * N); i += threads) {
            const u32 odd = interpolate::parity(i / N - 1), p = i % N, x = p % CX, y = p / CX % CY, z = p / (CX * CY);
            // From the class that is even along `axis`.
            auto line = [&](u32 axis) {
                return along(v + N * number(odd ^ axis) + p, axis == 1 ? x : axis == 2 ? y : z, axis == 1 ? CX : axis == 2 ? CY : CZ,
                             axis == 1 ? 1 : axis == 2 ? CX : CX * CY);
            };
            const u32 fast = odd & (0u - odd);
            Guess guess = line(fast);
            if (first == 4) guess.at = interpolate::both(guess, line(odd ^ fast));
            if (first == 7) guess.at = all(guess, line(2), line(4));
            visit(i, guess.at);
        }
        sync();
    }
}

// Puts a complete level into the order of its places.
template <u32 CZ, u32 CY, u32 CX, u32 THREADS, class Sync>
__device__ __forceinline__ void merge(int* v, u32 thread, Sync sync) {
    constexpr u32 ALL = 8 * CZ * CY * CX, EACH = (ALL + THREADS - 1) / THREADS;
    int held[EACH];
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = thread + j * THREADS, x = i % (2 * CX), y = i / (2 * CX) % (2 * CY), z = i / (4 * CX * CY);
        if (i < ALL) held[j] = v[number((x & 1) | (y & 1) << 1 | (z & 1) << 2) * (ALL / 8) + (z / 2 * CY + y / 2) * CX + x / 2];
    }
    sync();
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = thread + j * THREADS;
        if (i < ALL) v[i] = held[j];
    }
    sync();
}

template <u32 CZ, u32 CY, u32 CX, u32 THREADS, class Sync, class F>
__device__ __forceinline__ void level(int* v, u32 thread, Sync sync, F visit) {
    classes<CZ, CY, CX>(v, thread, THREADS, sync, visit);
    merge<CZ, CY, CX, THREADS>(v, thread, sync);
}

// --- the finest level, four points of a row at once ---

constexpr u32 ROW = SIDE_X / 2, PLANE = ROW * SIDE_Y / 2, CLASS = PLANE * SIDE_Z / 2;

struct Four {
    u32 x[4];
};
__device__ __forceinline__ Four four(const int* at) {
    const int4 v = *(const int4*)at;
    return {{(u32)v.x, (u32)v.y, (u32)v.z, (u32)v.w}};
}

// Behind the four places of a row from 4c on. The last guess of a row is not inner.
__device__ __forceinline__ Four along_row(const int* at, u32 c) {
    const Four v = four(at);
    const u32 left = (u32)at[c > 0 ? -1 : 0];
    const int2 right = *(const int2*)(at + (c < 3 ? 4 : 2));
    const u32 r = (u32)right.x;
    return {{c > 0 ? cubic(left, v.x[0], v.x[1], v.x[2]) : square(v.x[1], v.x[0], v.x[2]), cubic(v.x[0], v.x[1], v.x[2], v.x[3]),
             c < 3 ? cubic(v.x[1], v.x[2], v.x[3], r) : square(v.x[2], v.x[3], v.x[1]),
             c < 3 ? cubic(v.x[2], v.x[3], r, (u32)right.y) : line(v.x[3], v.x[3] - v.x[2])}};
}

// Behind place `i` of eight on four lines side by side; not inner behind the last. Where a warp has one `i`, it takes one way.
__device__ __forceinline__ Four across(const int* at, u32 i, u32 stride) {
    const Four b = four(at);
    Four g;
    if (i > 0 && i < 6) {
        const Four a = four(at - stride), c = four(at + stride), d = four(at + 2 * stride);
#pragma unroll
        for (u32 j = 0; j < 4; j++) g.x[j] = cubic(a.x[j], b.x[j], c.x[j], d.x[j]);
    } else if (i == 7) {
        const Four a = four(at - stride);
#pragma unroll
        for (u32 j = 0; j < 4; j++) g.x[j] = line(b.x[j], b.x[j] - a.x[j]);
    } else {
        const Four c = four(at + stride), third = four(i ? at - stride : at + 2 * stride);
#pragma unroll
        for (u32 j = 0; j < 4; j++) g.x[j] = square(i ? b.x[j] : c.x[j], i ? c.x[j] : b.x[j], third.x[j]);
    }
    return g;
}

__device__ __forceinline__ Four both(const Four& p, bool last, const Four& q, bool inner) {
    Four g;
#pragma unroll
    for (u32 j = 0; j < 4; j++) g.x[j] = interpolate::both({p.x[j], j < 3 || !last}, {q.x[j], inner});
    return g;
}

// Calls `visit(place, guesses)` for four places of a row. Whole CTA.
template <class F>
__device__ __forceinline__ void finest(const int* v, F visit) {
    // Rows of a warp lie in one plane (p) or behind each other (q), so that an axis has one place in all of the warp.
    const u32 c = threadIdx.x % 4, i = threadIdx.x / 4 % 8, w = threadIdx.x / 32;
    const u32 p = w * PLANE + i * ROW + 4 * c, q = i * PLANE + w * ROW + 4 * c;
    auto of = [&](u32 lattice) { return v + lattice * CLASS; };
    visit(CLASS + p, along_row(of(0) + p, c));
    // What differs little is written once: less code is read faster.
#pragma unroll 1
    for (u32 k = 2; k < 4; k++) {
        const u32 at = k == 2 ? q : p;
        visit(k * CLASS + at, across(of(0) + at, w, k == 2 ? ROW : PLANE));
    }
    __syncthreads();
#pragma unroll 1
    for (u32 k = 2; k < 4; k++) {
        const u32 at = k == 2 ? q : p;
        visit((k + 2) * CLASS + at, both(along_row(of(k) + at, c), c == 3, across(of(1) + at, w, k == 2 ? ROW : PLANE), w < 7));
    }
    {
        const Four y = across(of(3) + p, i, ROW), z = across(of(2) + p, w, PLANE);
        Four g;
#pragma unroll
        for (u32 j = 0; j < 4; j++) g.x[j] = interpolate::both({y.x[j], i < 7}, {z.x[j], w < 7});
        visit(6 * CLASS + p, g);
    }
    __syncthreads();
    {
        const Four x = along_row(of(6) + p, c), y = across(of(5) + p, i, ROW), z = across(of(4) + p, w, PLANE);
        Four g;
#pragma unroll
        for (u32 j = 0; j < 4; j++) g.x[j] = all({x.x[j], j < 3 || c < 3}, {y.x[j], i < 7}, {z.x[j], w < 7});
        visit(7 * CLASS + p, g);
    }
    __syncthreads();
}

// All levels but two, which then lie in the order of their places; one warp.
template <class F>
__device__ __forceinline__ void coarse(int* v, F visit) {
    auto sync = [] { __syncwarp(); };
    if (threadIdx.x % 32 == 0) {
        visit(0u, 0u);
        visit(1u, (u32)v[0]);
    }
    sync();
    level<1, 1, 2, 32>(v, threadIdx.x % 32, sync, visit);
    level<2, 2, 4, 32>(v, threadIdx.x % 32, sync, visit);
}
// The level between; whole CTA.
template <class F>
__device__ __forceinline__ void middle(int* v, F visit) {
    level<4, 4, 8, THREADS>(v, threadIdx.x, [] { __syncthreads(); }, visit);
}

// Points from residuals; whole CTA, which has waited for these. Points remain in eight lattices.
__device__ __forceinline__ void points(int* v) {
    auto one = [&](u32 at, u32 guess) { v[at] = interpolate::point((int)guess, v[at]); };
    if (threadIdx.x < 32) coarse(v, one);
    __syncthreads();
    middle(v, one);
    finest(v, [&](u32 at, const Four& guess) {
        const int4 d = *(const int4*)(v + at);
        *(int4*)(v + at) = make_int4(interpolate::point((int)guess.x[0], d.x), interpolate::point((int)guess.x[1], d.y),
                                     interpolate::point((int)guess.x[2], d.z), interpolate::point((int)guess.x[3], d.w));
    });
}

// Where the points of a row are: those at even places along x, and those at odd ones.
template <class I>
__device__ __forceinline__ I* even(I* v, u32 z, u32 y) {
    return v + (0x6320u >> (4 * (z % 2 * 2 + y % 2)) & 7u) * CLASS + z / 2 * PLANE + y / 2 * ROW;
}
template <class I>
__device__ __forceinline__ I* odd(I* v, u32 z, u32 y) {
    return v + (0x7541u >> (4 * (z % 2 * 2 + y % 2)) & 7u) * CLASS + z / 2 * PLANE + y / 2 * ROW;
}
// Where a point of the level between is before that is complete, by its places there, if it is on no coarser one.
__device__ __forceinline__ u32 at_middle(u32 z, u32 y, u32 x) {
    return number((x & 1) | (y & 1) << 1 | (z & 1) << 2) * (CLASS / 8) + (z / 2 * 4 + y / 2) * 8 + x / 2;
}
// The same of points on coarser ones.
__device__ __forceinline__ u32 at_coarse(u32 z, u32 y, u32 x) {
    const u32 p = (x & 1) | (y & 1) << 1 | (z & 1) << 2, half = (x / 2 & 1) | (y / 2) << 1 | (z / 2) << 2;
    return p ? number(p) * (CLASS / 64) + (z / 2 * 2 + y / 2) * 4 + x / 2 : number(half) * 2 + x / 4;
}

}  // namespace interpolate_full
