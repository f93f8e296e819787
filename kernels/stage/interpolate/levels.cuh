// SPDX-License-Identifier: MIT OR Apache-2.0
// A level of a tile's lattice in shared memory, as formulas.cuh tells: which point lies where, and the passes over it,
// by a warp or a CTA. Two kinds of levels have the same members: those of any extents, and those of powers of two.
#pragma once
#include "formulas.cuh"

namespace interpolate {

// A level of any extents.
struct Level {
    static constexpr u32 PASSES = 3;
    // Even and odd places along each axis.
    Three even, odd;
    // Where in the stream each class begins, by parity; last, where they end.
    u32 starts[9];
    // For quotients by places along x and y: all, even, odd.
    u32 by_x, by_y, by_even_x, by_odd_x, by_even_y, by_odd_y;

    // Level `l` of a tile of extents `e`.
    __device__ __forceinline__ void set(const Three& e, u32 l) {
        const u32 up = (1u << l) - 1;
        const Three d = {(e.z + up) >> l, (e.y + up) >> l, (e.x + up) >> l};
        even = {(d.z + 1) / 2, (d.y + 1) / 2, (d.x + 1) / 2};
        odd = {d.z / 2, d.y / 2, d.x / 2};
        u32 at = 0;
#pragma unroll 1
        for (u32 k = 0; k < 8; k++) {
            starts[parity(k)] = at;
            at += extents(parity(k)).product();
        }
        starts[8] = at;
        by_x = tiles::Divisor(d.x).inverse;
        by_y = tiles::Divisor(d.y).inverse;
        by_even_x = tiles::Divisor(even.x).inverse;
        by_odd_x = tiles::Divisor(max(odd.x, 1u)).inverse;
        by_even_y = tiles::Divisor(even.y).inverse;
        by_odd_y = tiles::Divisor(max(odd.y, 1u)).inverse;
    }
    __device__ __forceinline__ u32 points() const { return starts[8]; }
    __device__ __forceinline__ u32 begin(u32 parity) const { return starts[parity]; }
    __device__ __forceinline__ Three extents(u32 parity) const {
        return {parity & 4 ? odd.z : even.z, parity & 2 ? odd.y : even.y, parity & 1 ? odd.x : even.x};
    }
    // Whether its classes have equal extents, rows of whole vec4s, but for an axis of one place.
    __device__ __forceinline__ bool vec4() const {
        return even.x == odd.x && even.x % 4 == 0 && (even.y == odd.y || odd.y == 0) && (even.z == odd.z || odd.z == 0);
    }
    // The classes of `pass` + 1 odd places, and which of them has what is at `i`.
    __device__ __forceinline__ u32 first(u32 pass) const { return starts[pass == 0 ? 1 : pass == 1 ? 3 : 7]; }
    __device__ __forceinline__ u32 end(u32 pass) const { return starts[pass == 0 ? 3 : pass == 1 ? 7 : 8]; }
    __device__ __forceinline__ u32 class_of(u32 pass, u32 i) const {
        return pass == 2   ? 7
               : pass == 1 ? (i >= starts[6]   ? 6
                              : i >= starts[5] ? 5
                                               : 3)
                           : (i >= starts[4]   ? 4
                              : i >= starts[2] ? 2
                                               : 1);
    }
    // Place of a class's point `i`, and where the point at a place is.
    __device__ __forceinline__ Three place(u32 parity, u32 i) const {
        const Three e = extents(parity);
        const u32 row = tiles::Divisor(e.x, parity & 1 ? by_odd_x : by_even_x).of(i);
        const u32 z = tiles::Divisor(e.y, parity & 2 ? by_odd_y : by_even_y).of(row);
        return {z, row - z * e.y, i - row * e.x};
    }
    __device__ __forceinline__ u32 index(u32 parity, const Three& at, u32 = 0) const {
        const Three e = extents(parity);
        return starts[parity] + (at.z * e.y + at.y) * e.x + at.x;
    }
    // Place of the level's point `i` in the order of places.
    __device__ __forceinline__ Three whole(u32 i) const {
        const u32 x = even.x + odd.x, y = even.y + odd.y;
        const u32 row = tiles::Divisor(x, by_x).of(i), z = tiles::Divisor(y, by_y).of(row);
        return {z, row - z * y, i - row * x};
    }
};
// Those of the largest tile: a line's.
constexpr u32 LEVELS = 13;
static_assert(tiles::MOST == 1u << LEVELS, "a line is halved as often");

// A level whose classes have 2^log_x places along x, half as many along the others of `RANK` axes.
template <u32 RANK>
struct Halves {
    static constexpr u32 PASSES = RANK;
    u32 log_x;
    __device__ __forceinline__ u32 log() const { return RANK * log_x - (RANK - 1); }
    __device__ __forceinline__ u32 points() const { return 1u << (log() + RANK); }
    // Parities of two axes are their classes' numbers.
    __device__ __forceinline__ u32 begin(u32 parity) const { return (RANK == 3 ? number(parity) : parity) << log(); }
    __device__ __forceinline__ Three extents(u32) const {
        const u32 x = 1u << log_x;
        return {RANK > 2 ? x / 2 : 1, RANK > 1 ? x / 2 : 1, x};
    }
    __device__ __forceinline__ u32 first(u32 pass) const { return (RANK == 3 ? 1 + 3 * pass : 1 + 2 * pass) << log(); }
    __device__ __forceinline__ u32 end(u32 pass) const { return pass + 1 < RANK ? first(pass + 1) : points(); }
    // Of fewer axes, says so: that spares the code of others.
    __device__ __forceinline__ u32 class_of(u32, u32 i) const {
        return RANK == 3 ? parity(i >> log()) : RANK == 2 ? i >> log() & 3 : 1;
    }
    __device__ __forceinline__ Three split(u32 i, u32 log_x, u32 log_y) const {
        return {RANK > 2 ? i >> (log_x + log_y) : 0, RANK > 1 ? i >> log_x & ((1u << log_y) - 1) : 0,
                i & ((1u << log_x) - 1)};
    }
    __device__ __forceinline__ Three place(u32, u32 i) const { return split(i, log_x, log_x - 1); }
    __device__ __forceinline__ Three whole(u32 i) const { return split(i, log_x + 1, log_x); }
    __device__ __forceinline__ u32 index(u32 parity, const Three&, u32 i) const { return begin(parity) + i; }
    __device__ __forceinline__ u32 index(u32 parity, const Three& at) const {
        return begin(parity) + (RANK > 2 ? at.z << (2 * log_x - 1) : 0) + (RANK > 1 ? at.y << log_x : 0) + at.x;
    }
};

// Where the point at a place of the level is.
template <class L>
__device__ __forceinline__ u32 find(const L& level, const Three& p) {
    return level.index((p.z & 1) << 2 | (p.y & 1) << 1 | (p.x & 1), Three{p.z / 2, p.y / 2, p.x / 2});
}
// Where the two even ones of four points in a row are, the first at place `p` with an even x; `odd`: the two others.
template <class L>
__device__ __forceinline__ u32 find_pair(const L& level, const Three& p, u32& odd) {
    const Three half = {p.z / 2, p.y / 2, p.x / 2};
    const u32 parity = (p.z & 1) << 2 | (p.y & 1) << 1;
    odd = level.index(parity | 1, half);
    return level.index(parity, half);
}

// Threads that go through a level together.
struct Warp {
    static constexpr u32 THREADS = 32;
    static __device__ __forceinline__ u32 thread() { return threadIdx.x % 32; }
    static __device__ __forceinline__ void sync() { __syncwarp(); }
};
struct Cta {
    static constexpr u32 THREADS = 256;
    static __device__ __forceinline__ u32 thread() { return threadIdx.x; }
    static __device__ __forceinline__ void sync() { __syncthreads(); }
};

// Calls `visit(where, guess)` for every point of the level's classes.
template <class Group, class L, class F>
__device__ __forceinline__ void visit_each(const int* v, const L& level, F visit) {
#pragma unroll 1
    for (u32 pass = 0; pass < L::PASSES; pass++) {
#pragma unroll 1
        for (u32 i = level.first(pass) + Group::thread(); i < level.end(pass); i += Group::THREADS) {
            const u32 parity = level.class_of(pass, i), k = i - level.begin(parity);
            visit(i, predict(v, level, pass, parity, level.place(parity, k), k));
        }
        Group::sync();
    }
}

// The same four neighbours at a time, of a level whose classes have equal extents.
template <class L, class F>
__device__ __forceinline__ void visit_vec4(const int* v, const L& level, F visit) {
#pragma unroll 1
    for (u32 pass = 0; pass < L::PASSES; pass++) {
#pragma unroll 1
        for (u32 i = level.first(pass) + 4 * threadIdx.x; i < level.end(pass); i += 4 * Cta::THREADS) {
            const u32 parity = level.class_of(pass, i), k = i - level.begin(parity);
            u32 guess[4];
            predict_four(v, level, parity, level.place(parity, k), k, guess);
            visit(i, guess);
        }
        Cta::sync();
    }
}

// Puts a complete level of up to `MOST` points into the order of its places.
template <class Group, u32 MOST, class L>
__device__ __forceinline__ void merge(int* v, const L& level) {
    constexpr u32 EACH = (MOST + Group::THREADS - 1) / Group::THREADS;
    int held[EACH];
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = Group::thread() + j * Group::THREADS;
        if (i < level.points()) held[j] = v[find(level, level.whole(i))];
    }
    Group::sync();
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = Group::thread() + j * Group::THREADS;
        if (i < level.points()) v[i] = held[j];
    }
    Group::sync();
}

// The same of a level with rows of whole vec4s.
template <u32 MOST, class L>
__device__ __forceinline__ void merge_vec4(int* v, const L& level) {
    constexpr u32 EACH = MOST / 4 / Cta::THREADS;
    int4 held[EACH];
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = 4 * (threadIdx.x + j * Cta::THREADS);
        if (i < level.points()) {
            u32 at;
            const int2 even = *(const int2*)(v + find_pair(level, level.whole(i), at)), odd = *(const int2*)(v + at);
            held[j] = make_int4(even.x, odd.x, even.y, odd.y);
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = 4 * (threadIdx.x + j * Cta::THREADS);
        if (i < level.points()) *(int4*)(v + i) = held[j];
    }
    __syncthreads();
}

}  // namespace interpolate
