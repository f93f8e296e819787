// SPDX-License-Identifier: MIT OR Apache-2.0
// Whether interpolation may pay, and along which axes: codecs/src/codec/lorenzo/FORMAT.md §8.
//
// A sample of at most 128 points stands for the tile: points of the finest level's class that is new along all axes,
// predicted along each axis from values, not from what a reader has. For each set of axes the logarithms of the mean's
// squared errors are summed; the set with the least sum is the tile's, and what its residuals cost tells whether to try
// it. A thread has one point. All values that it needs are loaded before the first one is looked at.
#pragma once
#include "points.cuh"

namespace {

// Weights on the finest level, of an axis's first new point or another one, by the places behind it: none, one, two,
// more.
struct Nearest {
    interpolate::Weights at[2][4];
};
constexpr Nearest nearest() {
    using interpolate::weights_of;
    return {{{weights_of(2, 0, 0), weights_of(3, 0, 0), weights_of(4, 0, 0), weights_of(5, 0, 0)},
             {{0, 0, 0, 0}, weights_of(5, 0, 1), weights_of(6, 0, 1), weights_of(7, 0, 1)}}};
}
__constant__ Nearest nearest_weights = nearest();

// 0.3 and 0.2 of a bound's square in units, by which errors count; and the largest one that does.
constexpr u32 LOOK_ALL = 4954, LOOK_AXES = 3302, LOOK_MOST = 32767;
// Finer steps on coarse levels where the sample costs at most the reciprocal of this in bits a value.
constexpr u32 LOOK_SMOOTH = 5;

// Whether the sample's cost of `count` points says that a tile may be worth an attempt, by Lorenzo's cost of all `n`:
// coarse levels, which it does not see, are dearest in three axes, and lines of few bits are always worth it.
__device__ __forceinline__ bool look_pays(const Three& e, u32 sampled, u32 count, u32 cost, u32 n) {
    const u32 axes = (e.x > 1) + (e.y > 1) + (e.z > 1), worth = axes == 2                         ? 205
                                                                : axes == 1 && cost < 4 * 256 * n ? 256
                                                                                                  : 128;
    return 256ull * sampled * n <= (u64)worth * cost * count;
}

// How to interpolate, and what the sample's residuals cost then; and, a bit each, the sets of axes under which the tile
// may have been interpolated before, as all of the sample's errors are multiples of a step.
struct Looked {
    u32 way, cost, count, possible;
};

// Most points of a sample.
constexpr u32 LOOK_POINTS = 128;

// What a look takes: costs by set, a bit for each residual, and logarithms of 1 to 2 in 1/256 bits.
struct LookShared {
    u32 costs[8], masks[LOOK_POINTS / 32], impossible;
    u8 fractions[256];
};

// The error of a set's mean, from those along its axes: that of the last line less what the others move it.
__device__ __forceinline__ u32 error_of(u32 set, u32 x, u32 y, u32 z) {
    const u32 last = set & 4 ? z : set & 2 ? y : x, before = set & 1 ? x : y;
    if ((set & (set - 1)) == 0) return last;
    if (set != 7) return last - interpolate::halved(last - before, 1);
    return z - interpolate::halved(85 * (2 * z - x - y) + 128, 8);
}

// log2(n) in 1/256 bits, but for a table's part: 256 · e + f, and f.
__device__ __forceinline__ u32 log2_less(u32 n, u32& f) {
#ifdef __CUDA_ARCH__
    // Its highest bits are a number's.
    const u32 high = (__float_as_uint(__uint2float_rz(n)) >> 15) - (127 << 8);
#else
    const u32 high = (31 - (u32)__clz((int)n)) << 8 | (n << __clz((int)n) >> 23 & 255u);
#endif
    f = high & 255u;
    return high - f;
}

// All threads. Overwrites `classes`.
template <class S, class Fill>
__device__ __forceinline__ Looked look(const int* quanta, const Source<S>& in, const quantize::Linear<S>& fine,
                                       const Fill& fill, LookShared& sh, u32* classes, u32& cost, int lane, int w) {
    using T = Traits<S>;
    const Three& e = in.e;
    const u32 t = threadIdx.x, have = (e.x > 1 ? 1 : 0) | (e.y > 1 ? 2 : 0) | (e.z > 1 ? 4 : 0);
    const bool single = (have & (have - 1)) == 0;
    auto fresh = [](u32 e) { return e > 1 ? interpolate::new_of(e) : 1; };
    const u32 nx = fresh(e.x), ny = fresh(e.y), all = fresh(e.z) * ny * nx;
    const u32 apart = (all + LOOK_POINTS - 1) / LOOK_POINTS, count = (all + apart - 1) / apart;
    if (t < estimate::CLASSES) classes[t] = 0;
    if (t < 8) sh.costs[t] = 0;
    if (t == 0) sh.impossible = 0;
    if (!single) sh.fractions[t] = estimate::fractions_apart.at[t];
    __syncthreads();
    const bool here = t < count;
    // Errors along x, y and z.
    u32 errors[3] = {0, 0, 0};
    if (w < (int)LOOK_POINTS / 32) {
        const u32 i = here ? t * apart : 0, row = tiles::Divisor(nx).of(i), plane = tiles::Divisor(ny).of(row);
        const u32 numbers[3] = {i - row * nx, row - plane * ny, plane}, extents[3] = {e.x, e.y, e.z};
        u32 places[3];
#pragma unroll
        for (u32 axis = 0; axis < 3; axis++) places[axis] = have >> axis & 1 ? 2 * numbers[axis] + 1 : 0;
        const Three p = {places[2], places[1], places[0]};
        const S* at = in.first + in.place(p);
        // Of a, b, c, d on a line; b for what is not there.
        auto off = [&](u32 axis, u32 j) {
            const u32 place = places[axis], behind = extents[axis] - 1 - place;
            return j == 0                 ? (place > 1 ? -3 : -1)
                   : j == 2 && behind > 0 ? 1
                   : j == 3 && behind > 1 ? (int)min(behind, 3u)
                                          : -1;
        };
        S value[3][4], own = *at;
#pragma unroll
        for (u32 axis = 0; axis < 3; axis++) {
            const int step = axis == 0 ? 1 : axis == 1 ? (int)in.rise : (int)in.plane;
#pragma unroll
            for (u32 j = 0; j < 4; j++) value[axis][j] = have >> axis & 1 ? at[off(axis, j) * step] : own;
        }
        auto units = [&](S v, u32 bit, u32& bad) {
            const auto bits = in.swap ? swapped(T::bits(v)) : T::bits(v);
            int q;
            if (!fine.nearest(T::value(bits), q) || is_odd(T::value(bits), q, fill)) bad |= bit;
            return (u32)q;
        };
        const int* quantum = quanta + (p.z * e.y + p.y) * e.x + p.x;
        u32 bad = 0, x = units(own, 1, bad);
        bool whole = !bad;
        if (bad) x = 257 * (u32)*quantum;
#pragma unroll
        for (u32 axis = 0; axis < 3; axis++) {
            if (!(have >> axis & 1)) continue;
            u32 q[4];
            bad = 0;
#pragma unroll
            for (u32 j = 0; j < 4; j++) q[j] = units(value[axis][j], 1u << j, bad);
            if (bad) {
                whole = false;
                const int step = axis == 0 ? 1 : axis == 1 ? (int)e.x : (int)(e.x * e.y);
#pragma unroll
                for (u32 j = 0; j < 4; j++) {
                    if (bad >> j & 1) q[j] = 257 * (u32)quantum[off(axis, j) * step];
                }
            }
            u32 guess = interpolate::cubic(q[0], q[1], q[2], q[3]);
            const u32 behind = min(extents[axis] - 1 - places[axis], 3u);
            if (places[axis] <= 1 || behind < 3) {
                const interpolate::Weights& w = nearest_weights.at[places[axis] > 1][behind];
                if (!w.even) guess = interpolate::weighted(q[0], q[1], q[2], q[3], w.a, w.c, w.d);
            }
            errors[axis] = x - guess;
        }
        whole = whole && here;
        u32 possible = 0;
#pragma unroll
        for (u32 set = 1; set < 8; set++) {
            if (set & ~have) continue;
            const u32 error = error_of(set, errors[0], errors[1], errors[2]);
            possible |= __all_sync(warp::ALL, !whole || error % interpolate::STEP == 0) ? 1u << set : 0u;
            if (!single) {
                const u32 size = min((int)error < 0 ? 0 - error : error, LOOK_MOST);
                const u32 axes = (set & 1) + (set >> 1 & 1) + (set >> 2);
                u32 f;
                const u32 high = log2_less(LOOK_ALL + LOOK_AXES / axes + size * size, f);
                const u32 sum = warp::total(here ? high + sh.fractions[f] : 0);
                if (lane == 0) atomicAdd(sh.costs + set, sum);
            }
        }
        if (lane == 0) atomicOr(&sh.impossible, ~possible);
    }
    u32 set = have;
    if (!single) {
        __syncthreads();
        // The least cost, of equals the most axes, then the largest number. A cost has 21 bits at most.
        const u32 mine = (u32)lane;
        const bool may = mine > 0 && mine < 8 && !(mine & ~have);
        const u32 own = may ? sh.costs[mine] << 5 | (3 - (u32)__popc(mine)) << 3 | (7 - mine) : warp::ALL;
        set = 7 - (warp::least(own) & 7u);
    }
    if (w < (int)LOOK_POINTS / 32) {
        const u32 error = error_of(set, errors[0], errors[1], errors[2]);
        const u32 z = here ? estimate::zigzag((int)interpolate::halved(error + 128, interpolate::FINE)) : 0;
        if (z) atomicAdd(classes + estimate::class_of(z), 1u);
        const u32 others = __ballot_sync(warp::ALL, z != 0);
        if (lane == 0) sh.masks[w] = others;
    }
    __syncthreads();
    if (w == 0) {
        const u32 sampled = selection::cost_of(classes, sh.masks, count, lane);
        if (lane == 0) cost = sampled;
    }
    __syncthreads();
    const bool smooth = !single && LOOK_SMOOTH * cost <= 256 * count;
    return {set | (smooth ? interpolate::FINER : 0), cost, count, ~sh.impossible & 255u};
}

}  // namespace
