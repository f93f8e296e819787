// SPDX-License-Identifier: MIT OR Apache-2.0
// Points of a tile of any extents from residuals that lie in shared memory as the stream has them: FORMAT.md §4.4 of lorenzo.
//
// As in interpolate_full.cuh, a level is eight lattices, its even part and its seven classes, one behind the other; here their
// extents differ where the level's are odd. The even part is the level before, put into the order of its places.
#pragma once
#include "interpolate_full.cuh"

namespace interpolate_any {

using interpolate::Guess;
using tiles::Three;

constexpr u32 THREADS = 256;
// Levels of the largest tile in one line.
constexpr u32 LEVELS = (u32)fmt::LORENZO_RUNS - 1;

// One of a level's eight lattices: where its points begin, how they lie.
struct Lattice {
    u32 begin, points, sides, cz, inverse_x, inverse_y;
    __device__ __forceinline__ u32 cx() const { return sides & 0xffffu; }
    __device__ __forceinline__ u32 cy() const { return sides >> 16; }
    __device__ __forceinline__ u32 at(const Three& p) const { return begin + (p.z * cy() + p.y) * cx() + p.x; }
    __device__ __forceinline__ Three place(u32 i) const {
        const u32 row = tiles::Divisor(cx(), inverse_x).of(i), z = tiles::Divisor(cy(), inverse_y).of(row);
        return {z, row - z * cy(), i - row * cx()};
    }
};

// Lattice `number` of level `l`, in the order of the stream.
__device__ __forceinline__ Lattice lattice(const Three& e, u32 l, u32 number) {
    const Three d = interpolate::lattice(e, l);
    u32 begin = 0;
    Three c = interpolate::parts(d, 0);
    for (u32 k = 1; k <= number; k++) {
        begin += c.product();
        c = interpolate::parts(d, interpolate::parity(k - 1));
    }
    return {begin, c.product(), c.y << 16 | c.x, c.z, tiles::Divisor(max(c.x, 1u)).inverse, tiles::Divisor(max(c.y, 1u)).inverse};
}

// Completes the classes with `ODD` odd axes.
template <u32 ODD>
__device__ __forceinline__ void classes(int* v, const Lattice* level) {
    for (u32 number = ODD == 1 ? 1 : ODD == 2 ? 4 : 7; number <= (ODD == 1 ? 3 : ODD == 2 ? 6 : 7); number++) {
        const u32 odd = interpolate::parity(number - 1);
        const Lattice own = level[number];
        for (u32 i = threadIdx.x; i < own.points; i += THREADS) {
            const Three p = own.place(i);
            // From the lattice that is even along `axis`.
            auto along = [&](u32 axis) {
                const Lattice from = level[interpolate_full::number(odd ^ axis)];
                const u32 count = axis == 1 ? from.cx() : axis == 2 ? from.cy() : from.cz;
                const u32 place = axis == 1 ? p.x : axis == 2 ? p.y : p.z;
                return interpolate_full::along(v + from.at(p), place, count, axis == 1 ? 1 : axis == 2 ? from.cx() : from.cx() * from.cy());
            };
            const u32 first = odd & (0u - odd);
            u32 guess;
            if (ODD == 1) guess = along(odd).at;
            else if (ODD == 2) guess = interpolate::both(along(first), along(odd ^ first));
            else guess = interpolate::all(along(1), along(2), along(4));
            int* at = v + own.begin + i;
            *at = interpolate::point((int)guess, *at);
        }
    }
    __syncthreads();
}

// Where places x of a row at (z, y) of level 0 are: even ones and odd ones, from each a half apart.
struct Row {
    const int *even, *odd;
    __device__ __forceinline__ Row(const int* v, const Lattice* level, u32 z, u32 y) {
        const u32 which = (z & 1) << 2 | (y & 1) << 1;
        const Three half = {z / 2, y / 2, 0};
        even = v + level[interpolate_full::number(which)].at(half);
        odd = v + level[interpolate_full::number(which | 1)].at(half);
    }
    __device__ __forceinline__ int operator()(u32 x) const { return (x % 2 ? odd : even)[x / 2]; }
};

// Puts level `l` into the order of its places: the even part of the one before.
__device__ __forceinline__ void merge(int* v, const Lattice* level, const Lattice& whole) {
    constexpr u32 EACH = tiles::MOST / 2 / THREADS;
    int held[EACH];
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = threadIdx.x + j * THREADS;
        held[j] = 0;
        if (i < whole.points) {
            const Three p = whole.place(i);
            held[j] = Row(v, level, p.z, p.y)(p.x);
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const u32 i = threadIdx.x + j * THREADS;
        if (i < whole.points) v[i] = held[j];
    }
    __syncthreads();
}

// All of it; whole CTA, which has waited for the residuals. Points remain in the eight lattices of level 0: `lattices`, of which
// there is room for 8 · LEVELS, are those of all levels.
__device__ __forceinline__ void points(int* v, Lattice* lattices, const Three& e) {
    const u32 top = interpolate::top(e);
    for (u32 i = threadIdx.x; i < 8 * top; i += THREADS) lattices[i] = lattice(e, i / 8, i % 8);
    if (threadIdx.x == 0) v[0] = interpolate::point(0, v[0]);
    __syncthreads();
#pragma unroll 1
    for (u32 l = top; l-- > 0;) {
        const Lattice* level = lattices + 8 * l;
        classes<1>(v, level);
        classes<2>(v, level);
        classes<3>(v, level);
        if (l) merge(v, level, level[-8]);
    }
}

}  // namespace interpolate_any
