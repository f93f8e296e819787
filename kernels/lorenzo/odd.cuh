// SPDX-License-Identifier: MIT OR Apache-2.0
// Which values interpolation leaves as they are, outliers before anything is predicted: those with the bits of the fill
// value; where more than the bound is kept also those that no point may stand for. The twin of PointLimits in
// codecs/src/keep.rs.
//
//   Bits            the fill value's, those of an infinity for none
//   PointLimits<S>  the same, and the points that may stand for the others
#pragma once
#include "../stage/interpolate/visit.cuh"
#include "tile.cuh"

namespace {

// A point that is none: an outlier's before it has one, a zero's of a chunk of which more than the bound is kept.
constexpr int NONE = (int)0x80000000u, ZERO = NONE + 1;

template <class S>
struct PointLimits {
    using T = Traits<S>;
    typename T::Bits fill;
    keep::Limits<S> limits;
    // Points below it count as those of negative values, the others as those of positive ones.
    int threshold;
    // The first and the last for positive values, and for negative ones.
    int first[2], last[2];
    bool has_base;

    __device__ __forceinline__ bool fixes(S x, int own) const {
        if (x == S(0)) return has_base || (limits.zero_is_exact() && T::bits(x) != 0);
        const bool told = !(limits.flags & FLAG_SIGN) || (x > S(0)) == (own >= threshold);
        return x == limits.low || x == limits.high || !told;
    }
    __device__ __forceinline__ bool allow(int own, int point) const {
        if (own == ZERO) return point == 0;
        const int k = own < threshold;
        return point >= first[k] && point <= last[k];
    }
};

// Finds them: a lane each. Whole warp.
template <class S>
__device__ __forceinline__ void find_points(PointLimits<S>& out, typename Traits<S>::Bits fill,
                                            const keep::Limits<S>& limits, const quantize::Linear<S>& fine, int lane) {
    constexpr int FARTHEST = fmt::LORENZO_POINT_LIMIT;
    const S low = limits.low, high = limits.high;
    // The first point from which on this is true of what it is worth: mostly near what is nearest to this number.
    const S end = lane == 0 ? S(0) : lane == 1 ? limits.positive : lane == 2 ? high : lane == 3 ? low : limits.negative;
    auto is = [&](int point) {
        const S y = fine.value(quantize::number(point));
        const bool above = y > low || (y == low && low == S(0)), beyond = y > high || (y == high && high != S(0));
        return lane == 0   ? y > S(0)
               : lane == 1 ? above && y >= limits.positive
               : lane == 2 ? beyond
               : lane == 3 ? above
                           : beyond || y > limits.negative;
    };
    int own;
    if (!fine.nearest(end, own) || own > FARTHEST || own < -FARTHEST) own = end > S(0) ? FARTHEST : -FARTHEST;
    int below = max(own - 2, -FARTHEST - 1), from = min(own + 2, FARTHEST + 1);
    if ((below >= -FARTHEST && is(below)) || (from <= FARTHEST && !is(from)))
        below = -FARTHEST - 1, from = FARTHEST + 1;
    while (from - below > 1) {
        const int middle = (below + from) >> 1;
        (is(middle) ? from : below) = middle;
    }
    const int found[5] = {warp::from(from, 0), warp::from(from, 1), warp::from(from, 2), warp::from(from, 3),
                          warp::from(from, 4)};
    if (lane == 0)
        out = {fill, limits, found[0], {found[1], found[3]}, {found[2] - 1, found[4] - 1}, fine.base != S(0)};
}

template <class S>
__device__ __forceinline__ typename Traits<S>::Bits bits_of_fill(typename Traits<S>::Bits fill) {
    return fill;
}
template <class S>
__device__ __forceinline__ typename Traits<S>::Bits bits_of_fill(const PointLimits<S>& limits) {
    return limits.fill;
}

// What `fill` is of a chunk. All threads.
template <class S, bool LIMITED>
struct OddOf {
    typename Traits<S>::Bits fill;
    __device__ __forceinline__ OddOf(const EncodeArgs&, const EncodeChunk& c, u32, const quantize::Linear<S>&, int, int)
        : fill(fill_of<S>(c)) {}
    __device__ __forceinline__ const typename Traits<S>::Bits& get() const { return fill; }
};
template <class S>
struct OddOf<S, true> {
    const PointLimits<S>* limits;
    __device__ __forceinline__ OddOf(const EncodeArgs& args, const EncodeChunk& c, u32 chunk,
                                     const quantize::Linear<S>& fine, int w, int lane) {
        __shared__ PointLimits<S> found;
        if (w == 0) {
            const keep::Limits<S> l = keep::limits_of<S>(c, (const ChunkState*)args.states + chunk);
            find_points(found, fill_of<S>(c), l, fine, lane);
        }
        __syncthreads();
        limits = &found;
    }
    __device__ __forceinline__ const PointLimits<S>& get() const { return *limits; }
};

// Adds what storing outliers costs to the tile's cost, where they depend on the predictor. All threads.
template <class S>
__device__ __forceinline__ void add_outliers_cost(TileShared& sh, int lane) {
    const u32 count = warp::total((u32)__popc(sh.outliers[threadIdx.x]));
    if (lane == 0 && count) atomicAdd(&sh.cost, 256 * 8 * Traits<S>::W * count);
    __syncthreads();
}

// Whether a value is left as it is, whose nearest point is `own`.
template <class S>
__device__ __forceinline__ bool is_odd(S x, int, typename Traits<S>::Bits fill) {
    return Traits<S>::bits(x) == fill;
}
template <class S>
__device__ __forceinline__ bool is_odd(S x, int own, const PointLimits<S>& limits) {
    return Traits<S>::bits(x) == limits.fill || limits.fixes(x, own);
}

// A value in interpolation's units, or `NONE`.
template <class S>
__device__ __forceinline__ int in_units(const quantize::Linear<S>& fine, S x, typename Traits<S>::Bits fill) {
    int q;
    return fine.nearest(x, q) && Traits<S>::bits(x) != fill ? q : NONE;
}
// The same, or `ZERO`.
template <class S>
__device__ __forceinline__ int in_units(const quantize::Linear<S>& fine, S x, const PointLimits<S>& limits) {
    int q;
    if (!fine.nearest(x, q) || is_odd(x, q, limits)) return NONE;
    return x == S(0) ? ZERO : q;
}

// The point that was read for a value, which `in_units` told, where that is one.
__device__ __forceinline__ u32 point_of(int read, u32 predicted, u32) { return read == NONE ? predicted : (u32)read; }
__device__ __forceinline__ u32 point_of(int read, u32 predicted, u64) { return read == NONE ? predicted : (u32)read; }
template <class S>
__device__ __forceinline__ u32 point_of(int read, u32 predicted, const PointLimits<S>&) {
    return read == NONE ? predicted : read == ZERO ? 0 : (u32)read;
}

}  // namespace
