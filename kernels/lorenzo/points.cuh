// SPDX-License-Identifier: MIT OR Apache-2.0
// What all ways of interpolating a tile share: what they keep of it, and what becomes of a point.
#pragma once
#include "../stage/interpolate_fours.cuh"
#include "../stage/interpolate_full.cuh"
#include "../stage/interpolate_line.cuh"
#include "../stage/interpolate_sheet.cuh"
#include "tile.cuh"

namespace {

// A tile as interpolation goes through it: how many of its levels are split, the extents of what is left, whether that is for the
// first warp alone, while others bring values, and whether it is one of those that have code of their own: 16 × 16 × 32 values,
// 64 × 128, or as many in one line.
struct Plane {
    u32 depth;
    tiles::Three left;
    bool alone, full, line, sheet;
    static __device__ __forceinline__ Plane of(const tiles::Three& e) {
        Plane p = {0, e, false, interpolate_full::fits(e), interpolate_line::fits(e), interpolate_sheet::fits(e)};
        p.depth = p.full ? 4 : p.line || p.sheet ? 1 : interpolate::splits(p.left);
        if (p.full) p.left = {1, 1, 2};
        p.alone = p.left.product() <= interpolate::FEW;
        return p;
    }
};

struct InterpolateShared : TileShared {
    // Points that may be too far from their values, where they lie.
    u32 unsure[MARKS];
    // Whether points here and there give their values bit for bit.
    u32 alike;
    // Here and not in registers, of which there are few.
    Plane plane;
    interpolate::Split split[interpolate::SPLITS];
    // Levels, before anything is counted.
    __device__ __forceinline__ interpolate::Level* levels() { return (interpolate::Level*)bins; }
};
static_assert(interpolate::LEVELS * sizeof(interpolate::Level) <= huffman::BINS * 4, "levels fit where counts will be");

// A value in interpolation's units, or `NONE`.
template <class S>
__device__ __forceinline__ int in_units(const quantize::Linear<S>& fine, S x, typename Traits<S>::Bits fill) {
    double whole;
    int q;
    return fine.nearest(x, whole, q) && Traits<S>::bits(x) != fill ? q : interpolate::NONE;
}

// A point less than half of 2^FINE units off its value keeps the bound, which is half of 2^FINE + 1, as long as rounding it to
// the type takes at most a quarter of a unit: up to this size, away from the ends of the type's range.
constexpr u32 SURE = 1u << 22;
template <class S>
__device__ __forceinline__ bool usual(double unit) {
    return Traits<S>::W == 4 ? unit > 1e-30 && unit < 1e30 : unit > 1e-290 && unit < 1e290;
}

// The point at `at` and its residual, which the stream has at `i`, from what is predicted. Adds its zigzag value to `all`.
__device__ __forceinline__ void visit_one(InterpolateShared& sh, u32 at, u32 i, int predicted, u32* exact, u32& all) {
    const int read = sh.points[at], x = read == interpolate::NONE ? predicted : read;
    const int d = interpolate::residual(x, predicted), r = interpolate::point(predicted, d);
    sh.points[at] = r;
    if (x - r == -(1 << (interpolate::FINE - 1)) || (u32)r + SURE > 2 * SURE) atomicOr(sh.unsure + at / 32, 1u << (at % 32));
    const u32 z = estimate::zigzag(d);
    all |= z;
    if (z >= huffman::FAR) exact[i] = z;
    ((u8*)sh.bytes)[i] = (u8)huffman::byte_of(z);
}

// Four points at `at` and their residuals, from what is predicted. With `some` there are exceptions.
__device__ __forceinline__ void visit_four(InterpolateShared& sh, u32 at, const u32 (&predicted)[4], bool some, u32* exact, All& all) {
    constexpr u32 HALF = 1u << (interpolate::FINE - 1);
    const int4 x4 = *(const int4*)(sh.points + at);
    int x[4] = {x4.x, x4.y, x4.z, x4.w};
    if (some) {
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = x[j] == interpolate::NONE ? (int)predicted[j] : x[j];
    }
    u32 d[4], off[4], r[4], far = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const u32 apart = (u32)x[j] - predicted[j] + HALF;
        off[j] = apart & (2 * HALF - 1);
        d[j] = interpolate::halved(apart, interpolate::FINE) + 128;
        r[j] = (u32)x[j] + HALF - off[j];
        far |= r[j] + SURE;
    }
    *(int4*)(sh.points + at) = make_int4((int)r[0], (int)r[1], (int)r[2], (int)r[3]);
    if (off[0] == 0 || off[1] == 0 || off[2] == 0 || off[3] == 0 || far >= 2 * SURE) {
        u32 unsure = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) unsure |= off[j] == 0 || r[j] + SURE > 2 * SURE ? 1u << j : 0u;
        atomicOr(sh.unsure + at / 32, unsure << (at % 32));
    }
    keep_four(sh.bytes, at, d, exact, all);
}

}  // namespace
