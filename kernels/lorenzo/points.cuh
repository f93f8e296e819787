// SPDX-License-Identifier: MIT OR Apache-2.0
// From a tile's values to points and residuals: values come into shared memory where the stream has their points, then
// each is replaced by what a reader will find there. The first warp brings the coarsest points and codes them at once,
// while the others bring all values; then all threads code the finer levels.
#pragma once
#include "../stage/interpolate/tile_any.cuh"
#include "../stage/interpolate/tile_whole.cuh"
#include "tile.cuh"

namespace {

using tiles::Three;

// An outlier's point before it has one.
constexpr int NONE = (int)0x80000000u;

struct InterpolateShared : TileShared {
    // Points that may be too far from their values, where they lie.
    u32 unsure[MARKS];
    // Whether points here and there give their values bit for bit.
    u32 alike;
    // Here and not in registers, of which there are few.
    interpolate::Level finest;
    // Levels, before anything is counted.
    __device__ __forceinline__ interpolate::Level* levels() { return (interpolate::Level*)bins; }
};
static_assert(interpolate::LEVELS * sizeof(interpolate::Level) <= huffman::BINS * 4, "levels fit where counts will be");

// A value in interpolation's units, or `NONE`.
template <class S>
__device__ __forceinline__ int in_units(const quantize::Linear<S>& fine, S x, typename Traits<S>::Bits fill) {
    double whole;
    int q;
    return fine.nearest(x, whole, q) && Traits<S>::bits(x) != fill ? q : NONE;
}

// A point less than half of 2^FINE units off its value keeps the bound, which is half of 2^FINE + 1, as long as
// rounding it to the type takes at most a quarter of a unit: up to this size, away from the ends of the type's range.
constexpr u32 SURE = 1u << 22;
template <class S>
__device__ __forceinline__ bool usual(double unit) {
    return Traits<S>::W == 4 ? unit > 1e-30 && unit < 1e30 : unit > 1e-290 && unit < 1e290;
}

// The point at `at` and its residual, from what is predicted. Adds its zigzag value to `all`.
__device__ __forceinline__ void code_one(InterpolateShared& sh, u32 at, int predicted, u32* exact, u32& all) {
    const int read = sh.points[at], x = read == NONE ? predicted : read;
    const int d = interpolate::residual(x, predicted), r = interpolate::point(predicted, d);
    sh.points[at] = r;
    if (x - r == -(1 << (interpolate::FINE - 1)) || (u32)r + SURE > 2 * SURE)
        atomicOr(sh.unsure + at / 32, 1u << (at % 32));
    const u32 z = estimate::zigzag(d);
    all |= z;
    if (z >= huffman::FAR) exact[at] = z;
    ((u8*)sh.bytes)[at] = (u8)huffman::byte_of(z);
}

// Four points at `at` and their residuals, from what is predicted. With `some` there are outliers.
__device__ __forceinline__ void code_four(InterpolateShared& sh, u32 at, const u32 (&predicted)[4], bool some,
                                          u32* exact, All& all) {
    constexpr u32 HALF = 1u << (interpolate::FINE - 1);
    const int4 x4 = *(const int4*)(sh.points + at);
    int x[4] = {x4.x, x4.y, x4.z, x4.w};
    if (some) {
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = x[j] == NONE ? (int)predicted[j] : x[j];
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

// The first warp brings the coarsest points. Outliers go to `sh.outliers`; tells whether this thread has met some.
template <class Tile, class S>
__device__ __forceinline__ bool bring_coarse(InterpolateShared& sh, const Tile& tile, const Source<S>& in,
                                             const quantize::Linear<S>& fine, typename Traits<S>::Bits fill, int lane) {
    const u32 count = tile.coarse_points();
    bool some = false;
    S x[4];
#pragma unroll
    for (u32 j = 0; j < 4; j++) x[j] = in.first[in.place(tile.coarse_place(min(32 * j + (u32)lane, count - 1)))];
    in.turn(x);
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        if (32 * j + (u32)lane >= count) break;
        const Three p = tile.coarse_place(32 * j + (u32)lane);
        const int q = in_units(fine, x[j], fill);
        sh.points[tile.at(p)] = q;
        if (q == NONE) {
            some = true;
            const u32 i = (p.z * in.e.y + p.y) * in.e.x + p.x;
            atomicOr(sh.outliers + i / 32, 1u << (i % 32));
        }
    }
    return some;
}

// Puts four values' points, from place `p` with an even x on, where they will be, but for one on a coarse level.
template <class Tile>
__device__ __forceinline__ void put_four(int* points, const Tile& tile, const Three& p, const int (&q)[4]) {
    u32 odd;
    const u32 even = interpolate::find_pair(tile.finest(), p, odd);
    *(int2*)(points + odd) = make_int2(q[1], q[3]);
    if ((p.z | p.y) & 1) {
        *(int2*)(points + even) = make_int2(q[0], q[2]);
    } else {
        if (tile.fine_levels() > 1) points[tile.at({p.z, p.y, p.x + 2}, 1)] = q[2];
        const u32 any = p.z | p.y | p.x, l = Tile::FINE_LEVELS == 2 ? 1 : (u32)__ffs((int)any) - 1;
        if (any & ((1u << tile.fine_levels()) - 1)) points[tile.at(p, l)] = q[0];
    }
}

// The other warps bring all values, each 128 at a time.
template <class Tile, class S>
__device__ __forceinline__ bool bring_others(InterpolateShared& sh, const Tile& tile, const Source<S>& in,
                                             const quantize::Linear<S>& fine, typename Traits<S>::Bits fill, int lane,
                                             int w) {
    constexpr u32 APART = 128 * (THREADS / 32 - 1);
    const u32 n = tile.fine_levels() ? tile.values() : 0;
    bool some = false;
    S x[4], next[4];
    u32 i = 128 * (w - 1) + 4 * lane;
    if (i < n) in.raw(i, in.place(tile.where(i)), next);
#pragma unroll 1
    for (; i < n; i += APART) {
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = next[j];
        // One round ahead of what is computed.
        if (i + APART < n) in.raw(i + APART, in.place(tile.where(i + APART)), next);
        in.turn(x);
        int q[4];
        u32 bad = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            q[j] = in_units(fine, x[j], fill);
            bad |= q[j] == NONE ? 1u << j : 0;
        }
        if (bad) {
            bad &= four_valid(i, n);
            some = some || bad;
            atomicOr(sh.outliers + i / 32, bad << (i % 32));
        }
        if (Tile::VEC4 || in.vec4) {
            put_four(sh.points, tile, tile.where(i), q);
        } else {
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                const Three p = tile.where(i + j);
                const u32 any = p.z | p.y | p.x;
                if (i + j < n && (any & ((1u << tile.fine_levels()) - 1))) sh.points[tile.at(p)] = q[j];
            }
        }
    }
    return some;
}

// All of it. Returns all of this thread's zigzag values together, and whether there are outliers.
template <class Tile, class S>
__device__ __forceinline__ u32 code_points(InterpolateShared& sh, const Tile& tile, const Source<S>& in,
                                           const quantize::Linear<S>& fine, typename Traits<S>::Bits fill, bool& some,
                                           u32* exact, int lane, int w) {
    All all = {0, 0};
    auto one = [&](u32 at, u32 guess) { code_one(sh, at, (int)guess, exact, all.large); };
    if (w == 0) {
        some = bring_coarse(sh, tile, in, fine, fill, lane);
        __syncwarp();
        tile.visit_coarse(sh.points, one);
    } else {
        some = bring_others(sh, tile, in, fine, fill, lane, w);
    }
    some = __syncthreads_or(some);
    tile.visit_others(sh.points, one,
                      [&](u32 at, const u32(&guess)[4]) { code_four(sh, at, guess, some, exact, all); });
    return all.together();
}

}  // namespace
