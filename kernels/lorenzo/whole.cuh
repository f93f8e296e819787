// SPDX-License-Identifier: MIT OR Apache-2.0
// Whole tiles of the shapes that most chunks are cut into, interpolated by code that knows their extents.
#pragma once
#include "points.cuh"

namespace {

// A whole tile of 16 × 16 × 32, four values of a row for a lane, four rows for a warp.
struct Box {
    static constexpr u32 SIDE_X = interpolate_full::SIDE_X, PLANE = SIDE_X * interpolate_full::SIDE_Y;
    // Places of four values, and of one of the coarsest points but one lane's `j`-th, z slowest.
    static __device__ __forceinline__ tiles::Three four(u32 k, int lane) { return {k / 4, k % 4 * 4 + lane / 8, 4 * ((u32)lane % 8)}; }
    static __device__ __forceinline__ tiles::Three coarse(u32 j, int lane) { return {4 * j, 4 * ((u32)lane / 8), 4 * ((u32)lane % 8)}; }
    static __device__ __forceinline__ u32 at_coarse(const tiles::Three& p) { return interpolate_full::at_coarse(p.z / 4, p.y / 4, p.x / 4); }
    static __device__ __forceinline__ u32 place(const tiles::Three& p) { return p.z * PLANE + p.y * SIDE_X + p.x; }
    // Puts four where they will be points, but for one that is on a coarse level.
    static __device__ __forceinline__ void put(int* v, const tiles::Three& p, const int (&q)[4]) {
        namespace full = interpolate_full;
        *(int2*)(full::odd(v, p.z, p.y) + p.x / 2) = make_int2(q[1], q[3]);
        if ((p.z | p.y) & 1) {
            *(int2*)(full::even(v, p.z, p.y) + p.x / 2) = make_int2(q[0], q[2]);
        } else {
            v[full::at_middle(p.z / 2, p.y / 2, p.x / 2 + 1)] = q[2];
            if ((p.z | p.y) & 3) v[full::at_middle(p.z / 2, p.y / 2, p.x / 2)] = q[0];
        }
    }
    // Visits the coarsest points, one warp; all others, one or four at a time, the whole CTA.
    template <class One>
    static __device__ __forceinline__ void visit_coarse(int* v, One one) { interpolate_full::coarse(v, one); }
    template <class One, class Four>
    static __device__ __forceinline__ void visit_others(int* v, One one, Four four) {
        interpolate_full::middle(v, one);
        interpolate_full::finest(v, [&](u32 at, const interpolate_full::Four& guess) { four(at, guess.x); });
    }
};

// The same of a whole tile in one line.
struct Line {
    static __device__ __forceinline__ tiles::Three four(u32 k, int lane) { return {0, 0, 128 * k + 4 * (u32)lane}; }
    static __device__ __forceinline__ tiles::Three coarse(u32 j, int lane) { return {0, 0, (TILE / interpolate_line::FEW) * (32 * j + (u32)lane)}; }
    static __device__ __forceinline__ u32 at_coarse(const tiles::Three& p) { return interpolate_line::at(p.x); }
    static __device__ __forceinline__ u32 place(const tiles::Three& p) { return p.x; }
    static __device__ __forceinline__ void put(int* v, const tiles::Three& p, const int (&q)[4]) {
        *(int2*)(v + TILE / 2 + p.x / 2) = make_int2(q[1], q[3]);
        v[TILE / 4 + p.x / 4] = q[2];
        if (p.x % (TILE / interpolate_line::FEW)) v[interpolate_line::at(p.x)] = q[0];
    }
    template <class One>
    static __device__ __forceinline__ void visit_coarse(int* v, One one) { interpolate_line::coarse(v, one); }
    template <class One, class Four>
    static __device__ __forceinline__ void visit_others(int* v, One, Four four) { interpolate_line::others(v, four); }
};

// The same of a whole tile of 64 × 128: a warp has a row.
struct Sheet {
    static constexpr u32 SIDE_X = interpolate_sheet::SIDE_X, FIRST = interpolate_sheet::SIDE_Y * SIDE_X / 4;
    static __device__ __forceinline__ tiles::Three four(u32 k, int lane) { return {0, k, 4 * (u32)lane}; }
    static __device__ __forceinline__ tiles::Three coarse(u32 j, int lane) { return {0, 8 * (2 * j + (u32)lane / 16), 8 * ((u32)lane % 16)}; }
    static __device__ __forceinline__ u32 at_coarse(const tiles::Three& p) { return interpolate_sheet::at(p.y, p.x); }
    static __device__ __forceinline__ u32 place(const tiles::Three& p) { return p.y * SIDE_X + p.x; }
    static __device__ __forceinline__ void put(int* v, const tiles::Three& p, const int (&q)[4]) {
        int* at = v + (p.y & 1) * 2 * FIRST + p.y / 2 * (SIDE_X / 2) + p.x / 2;
        *(int2*)(at + FIRST) = make_int2(q[1], q[3]);
        if (p.y & 1) {
            *(int2*)at = make_int2(q[0], q[2]);
        } else {
            v[interpolate_sheet::at(p.y, p.x + 2)] = q[2];
            if ((p.y | p.x) % 8) v[interpolate_sheet::at(p.y, p.x)] = q[0];
        }
    }
    template <class One>
    static __device__ __forceinline__ void visit_coarse(int* v, One one) { interpolate_sheet::coarse(v, one); }
    template <class One, class Four>
    static __device__ __forceinline__ void visit_others(int* v, One, Four four) { interpolate_sheet::others(v, four); }
};

// What `bring` does for a whole tile of such a shape: the first warp brings the coarsest points, a lane four of them.
template <class Shape, class S>
__device__ __forceinline__ bool bring_coarse(InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine,
                                             typename Traits<S>::Bits fill, int lane) {
    bool some = false;
    S v[4];
#pragma unroll
    for (u32 j = 0; j < 4; j++) v[j] = in.first[in.place(Shape::coarse(j, lane))];
    in.turn(v);
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const tiles::Three at = Shape::coarse(j, lane);
        const int q = in_units(fine, v[j], fill);
        sh.points[Shape::at_coarse(at)] = q;
        if (q == interpolate::NONE) {
            some = true;
            const u32 place = Shape::place(at);
            atomicOr(sh.exceptions + place / 32, 1u << (place % 32));
        }
    }
    return some;
}

// The others bring all values, each warp 128 at a time.
template <class Shape, class S>
__device__ __forceinline__ bool bring_others(InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine,
                                             typename Traits<S>::Bits fill, int lane, int w) {
    constexpr u32 ROUNDS = TILE / 128, APART = THREADS / 32 - 1;
    bool some = false;
    S v[4], next[4];
    in.raw(0, in.place(Shape::four(w - 1, lane)), next);
#pragma unroll 1
    for (u32 k = w - 1; k < ROUNDS; k += APART) {
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = next[j];
        // One round ahead of what is computed.
        if (k + APART < ROUNDS) in.raw(0, in.place(Shape::four(k + APART, lane)), next);
        in.turn(v);
        int q[4];
        u32 bad = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            q[j] = in_units(fine, v[j], fill);
            bad |= q[j] == interpolate::NONE ? 1u << j : 0;
        }
        const tiles::Three at = Shape::four(k, lane);
        if (bad) {
            some = true;
            const u32 place = Shape::place(at);
            atomicOr(sh.exceptions + place / 32, bad << (place % 32));
        }
        Shape::put(sh.points, at, q);
    }
    return some;
}

// All of interpolation for such a tile. Returns all of this thread's zigzag values together, and whether there are exceptions.
template <class Shape, class S>
__device__ __forceinline__ u32 interpolate_whole(InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine,
                                                 typename Traits<S>::Bits fill, bool& some, u32* exact, int lane, int w) {
    All all = {0, 0};
    auto one = [&](u32 at, u32 guess) { visit_one(sh, at, at, (int)guess, exact, all.large); };
    if (w == 0) {
        some = bring_coarse<Shape>(sh, in, fine, fill, lane);
        __syncwarp();
        Shape::visit_coarse(sh.points, one);
    } else {
        some = bring_others<Shape>(sh, in, fine, fill, lane, w);
    }
    some = __syncthreads_or(some);
    Shape::visit_others(sh.points, one, [&](u32 at, const u32 (&guess)[4]) { visit_four(sh, at, guess, some, exact, all); });
    return all.together();
}

}  // namespace
