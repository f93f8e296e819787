// SPDX-License-Identifier: MIT OR Apache-2.0
// Interpolation of a tile's lattice, after SZ3 (Zhao et al., ICDE 2021, doi:10.1109/ICDE51399.2021.00145), on integers:
// src/codec/lorenzo/FORMAT.md §4.4; on the CPU src/stage/interpolate.rs.
//
// Level l has the points whose three places are multiples of 2^l. Its even part is level l + 1; all others fall into
// seven classes, by which of their places in units of 2^l are odd. A class is predicted along its odd axes, from the
// four nearest points on each such line, which lie in classes with one odd axis less. So the stream has the single
// point of the topmost level first, then level by level the classes of one odd axis, of two, of three; each pass needs
// the one before.
//
// Points lie in shared memory where the stream has them. A level is its even part, in the order of its places, and its
// classes behind that. Once a level is complete it is put into the order of its places: the even part of the next one.
// What becomes of a guess is the caller's part: a reader adds the residual at hand, a writer finds it from the value.
//
// This file has the arithmetic, which wraps around: for a point (`along`, `predict`), for four neighbours in a row.
#pragma once
#include "../tiles.cuh"

namespace interpolate {

using tiles::Three;

constexpr int FINE = (int)fmt::LORENZO_FINE_BITS;

// The classes in the order of the stream, and their numbers in it; bit 0 stands for an odd place along x, 1 y, 2 z.
__device__ __forceinline__ u32 parity(u32 number) { return 0x76534210u >> (4 * number) & 7u; }
__device__ __forceinline__ u32 number(u32 parity) { return 0x76534210u >> (4 * parity) & 7u; }

// x >> k of signed numbers, kept as unsigned ones that wrap around.
__device__ __forceinline__ u32 halved(u32 x, int k) { return (u32)((int)x >> k); }

// Between b and c, from the four nearest on a line.
__device__ __forceinline__ u32 cubic(u32 a, u32 b, u32 c, u32 d) { return halved(b + c, 1) + halved(b + c - a - d, 4); }
// From the near one of two, the other, and a third on the other side of the near one.
__device__ __forceinline__ u32 square(u32 near, u32 far, u32 third) {
    return near + halved(3 * far - 2 * near - third, 3);
}
// From one and how far it is from another.
__device__ __forceinline__ u32 line(u32 b, u32 slope) { return b + halved(slope, 1); }
__device__ __forceinline__ u32 mean(u32 p, u32 q) { return q + halved(p - q, 1); }
__device__ __forceinline__ u32 mean(u32 p, u32 q, u32 r) { return r + halved(85 * (p + q - 2 * r) + 128, 8); }

// A guess along a line, and whether there are points on either side.
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
__device__ __forceinline__ int point(int predicted, int residual) {
    return (int)((u32)predicted + ((u32)residual << FINE));
}

// The residual that brings a prediction nearest to x.
__device__ __forceinline__ int residual(int x, int predicted) {
    return (int)halved((u32)x - (u32)predicted + (1u << (FINE - 1)), FINE);
}

// --- one point ---

// The guess between points `i` and `i` + 1 of `count` on a line.
__device__ __forceinline__ Guess along(const int* at, u32 i, u32 count, u32 stride) {
    const bool before = i > 0, inner = i + 1 < count, behind = i + 2 < count;
    const u32 b = (u32)at[0], c = inner ? (u32)at[stride] : b;
    const u32 a = before ? (u32)at[-(int)stride] : b, d = behind ? (u32)at[2 * stride] : c;
    const u32 third = before ? a : d, near = before ? b : c, far = before ? c : b;
    const u32 three = square(near, far, third), two = line(b, inner ? c - b : b - a);
    return {before && behind ? cubic(a, b, c, d) : inner && count > 2 ? three : two, inner};
}

// Predicts point `i` of a level's class, which has `pass` + 1 odd axes, at place `at` of the class.
template <class Level>
__device__ __forceinline__ u32 predict(const int* v, const Level& level, u32 pass, u32 parity, const Three& at, u32 i) {
    // From the class that is even along `axis`.
    auto line = [&](u32 axis) {
        const Three e = level.extents(parity ^ axis);
        return along(v + level.index(parity ^ axis, at, i),
                     axis == 1   ? at.x
                     : axis == 2 ? at.y
                                 : at.z,
                     axis == 1   ? e.x
                     : axis == 2 ? e.y
                                 : e.z,
                     axis == 1   ? 1
                     : axis == 2 ? e.x
                                 : e.x * e.y);
    };
    const u32 first = parity & (0u - parity);
    Guess guess = line(first);
    if (Level::PASSES > 1 && pass == 1) guess.at = both(guess, line(parity ^ first));
    if (Level::PASSES > 2 && pass == 2) guess.at = all(guess, line(2), line(4));
    return guess.at;
}

// --- four points, neighbours in a row, of a level whose classes have equal extents ---

__device__ __forceinline__ void load(const int* p, u32 (&v)[4]) {
    const int4 q = *(const int4*)p;
    v[0] = (u32)q.x, v[1] = (u32)q.y, v[2] = (u32)q.z, v[3] = (u32)q.w;
}

// Guesses along a row of `extent` points, between four at `at`, the first of which is number `x`, and the next ones
// each. All are inner but, at the end of a row, the last one.
__device__ __forceinline__ void along_row(const int* at, u32 x, u32 extent, u32 (&g)[4]) {
    const bool first = x == 0, last = x + 4 == extent;
    u32 m[4];
    load(at, m);
    const int2 r = last ? make_int2(0, 0) : *(const int2*)(at + 4);
    const u32 l = first ? 0 : (u32)at[-1];
    g[0] = cubic(l, m[0], m[1], m[2]);
    g[1] = cubic(m[0], m[1], m[2], m[3]);
    g[2] = cubic(m[1], m[2], m[3], (u32)r.x);
    g[3] = cubic(m[2], m[3], (u32)r.x, (u32)r.y);
    if (first) g[0] = square(m[1], m[0], m[2]);
    if (last) {
        g[2] = square(m[2], m[3], m[1]);
        g[3] = line(m[3], m[3] - m[2]);
    }
}

// Guesses across rows, between four points at `at`, the `i`-th of `extent` that lie `apart`, and the next ones. Tells
// whether they are inner. Where a warp has one `i`, it takes one way.
__device__ __forceinline__ bool across_rows(const int* at, u32 i, u32 extent, u32 apart, u32 (&g)[4]) {
    const bool before = i >= 1, inner = i + 1 < extent, behind = i + 2 < extent;
    u32 b[4], c[4], d[4];
    if (before && behind) {
        u32 a[4];
        load(at - apart, a), load(at, b), load(at + apart, c), load(at + 2 * apart, d);
#pragma unroll
        for (int j = 0; j < 4; j++) g[j] = cubic(a[j], b[j], c[j], d[j]);
    } else if (inner && extent > 2) {
        const int step = before ? (int)apart : -(int)apart;
        at += before ? 0 : apart;
        load(at, b), load(at + step, c), load(at - step, d);
#pragma unroll
        for (int j = 0; j < 4; j++) g[j] = square(b[j], c[j], d[j]);
    } else {
        load(at, b), load(inner ? at + apart : before ? at - apart : at, c);
#pragma unroll
        for (int j = 0; j < 4; j++) g[j] = line(b[j], inner ? c[j] - b[j] : b[j] - c[j]);
    }
    return inner;
}

// Predicts four points of a level's class, the first one number `i` at place `at` of the class.
template <class Level>
__device__ __forceinline__ void predict_four(const int* v, const Level& level, u32 parity, const Three& at, u32 i,
                                             u32 (&g)[4]) {
    const u32 p = parity;
    const Three half = level.extents(0);
    const bool last = (p & 1) && at.x + 4 == half.x;
    // Along x; along y, or z where y is even; along z where both are odd.
    u32 b[4], c[4];
    bool b_inner = true, c_inner = true;
    if (p & 1) along_row(v + level.begin(p ^ 1) + i, at.x, half.x, g);
    if (p & 6) {
        const bool y = p & 2;
        b_inner = across_rows(v + level.begin(y ? p ^ 2 : p ^ 4) + i, y ? at.y : at.z, y ? half.y : half.z,
                              y ? half.x : half.x * half.y, b);
    }
    if (p >= 6) c_inner = across_rows(v + level.begin(p ^ 4) + i, at.z, half.z, half.x * half.y, c);
    if (p == 7) {
        const u32 x = g[3];
        if (b_inner && c_inner) {
#pragma unroll
            for (int j = 0; j < 4; j++) g[j] = mean(g[j], b[j], c[j]);
        } else if (b_inner || c_inner) {
#pragma unroll
            for (int j = 0; j < 4; j++) g[j] = mean(g[j], b_inner ? b[j] : c[j]);
        }
        if (last) g[3] = all(Guess{x, false}, Guess{b[3], b_inner}, Guess{c[3], c_inner});
    } else if (p == 6) {
        if (b_inner == c_inner) {
#pragma unroll
            for (int j = 0; j < 4; j++) g[j] = mean(b[j], c[j]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) g[j] = b_inner ? b[j] : c[j];
        }
    } else if (p == 2 || p == 4) {
#pragma unroll
        for (int j = 0; j < 4; j++) g[j] = b[j];
    } else if (p != 1) {
        const u32 x = g[3];
        if (b_inner) {
#pragma unroll
            for (int j = 0; j < 4; j++) g[j] = mean(g[j], b[j]);
        }
        if (last) g[3] = both(Guess{x, false}, Guess{b[3], b_inner});
    }
}

}  // namespace interpolate
