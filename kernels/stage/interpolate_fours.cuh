// SPDX-License-Identifier: MIT OR Apache-2.0
// Interpolation as a writer does it, most of it four neighbours at a time: FORMAT.md §4.4 of lorenzo.
//
// A level is split as in the stream: the coarser level, in its own order, then up to seven classes one after the other. As all
// of them have the same extents, neighbours on a line have the same place in another class or the next one in it, and residuals
// come out where they are wanted. What is too small or too odd to be split is left in the order of its level.
#pragma once
#include "interpolate.cuh"

namespace interpolate {

// The most levels of a tile.
constexpr u32 LEVELS = 13;
static_assert(tiles::MOST == 1u << LEVELS, "a line is halved as often");

// An exception's point before it has one.
constexpr int NONE = (int)0x80000000u;

// So many points are left to one warp.
constexpr u32 FEW = 128;

// A level that is split: along every axis it has one place, or as many even ones as odd ones, of these along x whole fours.
struct Split {
    Three half;
    // Points of a class; places along y. For quotients by a fourth part of the former, by what `half` says, by the latter.
    u32 points, high, by_fours, by_x, by_y, by_z, by_high;
    // What comes where in the stream: parities (bit 0 stands for odd places along x, 1 y, 2 z) by number, four bits each, and
    // numbers by parity. The classes of one odd place, of two, of three.
    u32 parities, numbers, classes[3];

    static __device__ __forceinline__ bool fits(const Three& e) {
        return e.x % 8 == 0 && (e.y == 1 || e.y % 2 == 0) && (e.z == 1 || e.z % 2 == 0) && e.product() > FEW;
    }
    __device__ __forceinline__ void set(const Three& e) {
        const bool y = e.y > 1, z = e.z > 1;
        half = {(e.z + 1) / 2, (e.y + 1) / 2, e.x / 2};
        points = half.product();
        high = e.y;
        by_high = tiles::Divisor(high).inverse;
        by_fours = tiles::Divisor(max(points / 4, 1u)).inverse;
        by_x = tiles::Divisor(half.x).inverse;
        by_y = tiles::Divisor(half.y).inverse;
        by_z = tiles::Divisor(half.z).inverse;
        parities = y && z ? 0x76534210u : z ? 0x5410u : 0x3210u;
        numbers = y && z ? 0x76534210u : z ? 0x320010u : 0x3210u;
        classes[0] = 1 + y + z;
        classes[1] = y && z ? 3 : y || z ? 1 : 0;
        classes[2] = y && z ? 1 : 0;
    }
    // Where a class begins.
    __device__ __forceinline__ u32 begin(u32 parity) const { return (numbers >> (4 * parity) & 7u) * points; }
    // Where point `i` of a class is.
    __device__ __forceinline__ Three place(u32 i) const {
        const u32 row = tiles::Divisor(half.x, by_x).of(i), z = tiles::Divisor(half.y, by_y).of(row);
        return {z, row - z * half.y, i - row * half.x};
    }
    // Where in a class its four `k` is that a thread takes, with y slowest or z: what lies on lines along that axis is at the same
    // place of them throughout a warp.
    __device__ __forceinline__ Three four(u32 k, bool y_slowest) const {
        const u32 row = tiles::Divisor(half.x, by_x).of(4 * k), fast = y_slowest ? half.z : half.y;
        const u32 slow = tiles::Divisor(fast, y_slowest ? by_z : by_y).of(row), other = row - slow * fast, x = 4 * k - row * half.x;
        return {y_slowest ? other : slow, y_slowest ? slow : other, x};
    }
    __device__ __forceinline__ u32 dense(const Three& at) const { return (at.z * half.y + at.y) * half.x + at.x; }
    // Where point `i` of the level is, a multiple of four, in its own order.
    __device__ __forceinline__ Three whole(u32 i) const {
        const u32 row = tiles::Divisor(half.x, by_x).of(i / 2), z = tiles::Divisor(high, by_high).of(row);
        return {z, row - z * high, i - row * 2 * half.x};
    }
    __device__ __forceinline__ u32 index(const Three& at) const { return dense({at.z / 2, at.y / 2, at.x / 2}); }
    // Where the point at a place of the level is.
    __device__ __forceinline__ u32 at(const Three& place) const {
        return begin((place.z & 1) << 2 | (place.y & 1) << 1 | (place.x & 1)) + index(place);
    }
    // Where the two even ones of four points in a row are, from an even place on; `odd`: the two others.
    __device__ __forceinline__ u32 pair(const Three& place, u32& odd) const {
        const u32 p = (place.z & 1) << 2 | (place.y & 1) << 1, i = index(place);
        odd = begin(p | 1) + i;
        return begin(p) + i;
    }
};

// Levels that may be split: those of a line.
constexpr u32 SPLITS = 6;
static_assert(tiles::MOST >> SPLITS == FEW, "no line is split more often");

// How many levels of a tile are split; `e` becomes what is left.
__device__ __forceinline__ u32 splits(Three& e) {
    u32 depth = 0;
    for (; Split::fits(e); depth++) e = lattice(e, 1);
    return depth;
}

// Where a point of a tile is when so many of its levels are split, at least one.
__device__ __forceinline__ u32 position(const Split* levels, u32 depth, const Three& place) {
    const u32 any = place.z | place.y | place.x, l = any ? min((u32)__ffs((int)any), depth) - 1 : depth - 1;
    return levels[l].at({place.z >> l, place.y >> l, place.x >> l});
}

// The reverse; `left` is what is not split.
__device__ __forceinline__ Three place_of(const Split* levels, u32 depth, const Three& left, u32 i) {
    u32 l = 0;
    while (l < depth && i < levels[l].points) l++;
    Three at;
    if (l == depth) {
        const u32 row = i / left.x, z = row / left.y;
        at = {z, row - z * left.y, i - row * left.x};
    } else {
        const Split& v = levels[l];
        const u32 number = i / v.points, p = v.parities >> (4 * number) & 7u;
        at = v.place(i - number * v.points);
        at = {2 * at.z + (p >> 2), 2 * at.y + (p >> 1 & 1), 2 * at.x + (p & 1)};
    }
    return {at.z << l, at.y << l, at.x << l};
}

// A level that is not split.
struct Level {
    // Even and odd places along each axis.
    Three even, odd;
    // Where in the stream each class begins, by parity; last, where they end.
    u32 begin[9];
    // For quotients by places along x and y, even and odd.
    u32 by_even_x, by_odd_x, by_even_y, by_odd_y;

    // Level `l` of a tile.
    __device__ __forceinline__ void set(const Three& e, u32 l) {
        const Three d = lattice(e, l);
        even = {(d.z + 1) / 2, (d.y + 1) / 2, (d.x + 1) / 2};
        odd = {d.z / 2, d.y / 2, d.x / 2};
        u32 at = 0;
#pragma unroll 1
        for (u32 k = 0; k < 8; k++) {
            const u32 p = 0x76534210u >> (4 * k) & 7u;
            begin[p] = at;
            at += (p & 4 ? odd.z : even.z) * high(p) * wide(p);
        }
        begin[8] = at;
        by_even_x = tiles::Divisor(even.x).inverse;
        by_odd_x = tiles::Divisor(max(odd.x, 1u)).inverse;
        by_even_y = tiles::Divisor(even.y).inverse;
        by_odd_y = tiles::Divisor(max(odd.y, 1u)).inverse;
    }
    // Places along x and y of the class with this parity.
    __device__ __forceinline__ u32 wide(u32 p) const { return p & 1 ? odd.x : even.x; }
    __device__ __forceinline__ u32 high(u32 p) const { return p & 2 ? odd.y : even.y; }
    // Where in it its point `i` is.
    __device__ __forceinline__ Three place(u32 p, u32 i) const {
        const u32 row = tiles::Divisor(wide(p), p & 1 ? by_odd_x : by_even_x).of(i);
        const u32 z = tiles::Divisor(high(p), p & 2 ? by_odd_y : by_even_y).of(row);
        return {z, row - z * high(p), i - row * wide(p)};
    }
    // The class, of `pass` + 1 odd places, of what is at `i`.
    __device__ __forceinline__ u32 class_of(u32 pass, u32 i) const {
        return pass == 2 ? 7 : pass == 1 ? (i >= begin[6] ? 6 : i >= begin[5] ? 5 : 3) : i >= begin[4] ? 4 : i >= begin[2] ? 2 : 1;
    }
    __device__ __forceinline__ u32 first(u32 pass) const { return begin[pass == 0 ? 1 : pass == 1 ? 3 : 7]; }
    __device__ __forceinline__ u32 end(u32 pass) const { return begin[pass == 0 ? 3 : pass == 1 ? 7 : 8]; }
};

__device__ __forceinline__ void load(const int* p, u32 (&v)[4]) {
    const int4 q = *(const int4*)p;
    v[0] = (u32)q.x, v[1] = (u32)q.y, v[2] = (u32)q.z, v[3] = (u32)q.w;
}

// Guesses along a row of `extent` points, between four at `at`, the first of which is number `x`, and the next ones each. All are
// inner but, at the end of a row, the last one.
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
        g[3] = m[3] + halved(m[3] - m[2], 1);
    }
}

// Guesses across rows, between four points at `at`, the `i`-th of `extent` that lie `apart`, and the next ones. Tells whether they
// are inner.
__device__ __forceinline__ bool across_rows(const int* at, u32 i, u32 extent, u32 apart, u32 (&g)[4]) {
    const bool before = i >= 1, inner = i + 1 < extent, behind = i + 2 < extent;
    u32 b[4], c[4], d[4];
    if (before && behind) {
        u32 a[4];
        load(at - apart, a), load(at, b), load(at + apart, c), load(at + 2 * apart, d);
#pragma unroll
        for (int j = 0; j < 4; j++) g[j] = cubic(a[j], b[j], c[j], d[j]);
    } else if (inner && (before || behind)) {
        const int step = before ? (int)apart : -(int)apart;
        at += before ? 0 : apart;
        load(at, b), load(at + step, c), load(at - step, d);
#pragma unroll
        for (int j = 0; j < 4; j++) g[j] = square(b[j], c[j], d[j]);
    } else {
        load(at, b), load(inner ? at + apart : before ? at - apart : at, c);
#pragma unroll
        for (int j = 0; j < 4; j++) g[j] = b[j] + halved(inner ? c[j] - b[j] : b[j] - c[j], 1);
    }
    return inner;
}

// Predicts four points of the class with parity `p` of a level that is split, from its point at `at` on. `here` is where the coarser
// level has that point.
template <class Classes>
__device__ __forceinline__ void predict_four(const Classes& v, const int* here, u32 p, const Three& at, u32 (&g)[4]) {
    const bool last = (p & 1) && at.x + 4 == v.half.x;
    const u32 plane = v.half.x * v.half.y;
    // Along x; along y, or z where y is even; along z where both are odd.
    u32 b[4], c[4];
    bool b_inner = true, c_inner = true;
    if (p & 1) along_row(here + v.begin(p ^ 1), at.x, v.half.x, g);
    if (p & 6) {
        const bool y = p & 2;
        b_inner = across_rows(here + v.begin(y ? p ^ 2 : p ^ 4), y ? at.y : at.z, y ? v.half.y : v.half.z, y ? v.half.x : plane, b);
    }
    if (p >= 6) c_inner = across_rows(here + v.begin(p ^ 4), at.z, v.half.z, plane, c);
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

// The `i`-th point of a line of `extent` places that lie `distance` apart, from the points `step` and three times `step`
// before and behind it. All cases are computed: neighbours in a warp have different ones.
__device__ __forceinline__ Guess along(const int* at, u32 i, u32 extent, u32 step, u32 distance) {
    const int reach = (int)(step * distance);
    const bool before = i >= 3 * step, inner = i + step < extent, behind = i + 3 * step < extent;
    const u32 b = (u32)at[-reach], c = inner ? (u32)at[reach] : b;
    const u32 a = before ? (u32)at[-3 * reach] : b, d = behind ? (u32)at[3 * reach] : c;
        // Two points with a third before them or, seen from the other side, behind them.
    const u32 three = square(before ? b : c, before ? c : b, before ? a : d), two = b + halved(inner ? c - b : b - a, 1);
    return {before && behind ? cubic(a, b, c, d) : inner && (before || behind) ? three : two, inner};
}

// Predicts one point of a level in its own order, `scale` levels above the one whose extents are `e`, as it is in the stream at
// `i`; `to` becomes its place there.
__device__ __forceinline__ int predict_one(const Level& v, const int* points, const Three& e, u32 scale, u32 pass, u32 i, u32& to) {
    const u32 p = v.class_of(pass, i), step = 1u << scale;
    Three at = v.place(p, i - v.begin[p]);
    at = {(2 * at.z + (p >> 2)) << scale, (2 * at.y + (p >> 1 & 1)) << scale, (2 * at.x + (p & 1)) << scale};
    to = dense(e, at);
    auto line = [&](u32 axis) {
        const bool x = axis == 1, y = axis == 2;
        return along(points + to, x ? at.x : y ? at.y : at.z, x ? e.x : y ? e.y : e.z, step, x ? 1 : y ? e.x : e.x * e.y);
    };
    const Guess a = line(p & 1 ? 1 : p & 2);
    if (pass == 0) return (int)a.at;
    const Guess b = line(p == 5 || p == 6 ? 4 : 2);
    if (pass == 1) return (int)both(a, b);
    return (int)all(a, b, line(4));
}

}  // namespace interpolate
