// SPDX-License-Identifier: MIT OR Apache-2.0
// Values → quanta under a bound: codecs/src/codec/lorenzo/FORMAT.md §5 and §8, on the CPU codecs/src/stage/quantize.rs.
//
// A quantum is the nearest multiple of a step to the value (`Linear`), or, for bounds relative to each value, to the
// bits of its magnitude (`Log`). The value that a decoder will find is computed with the decoder's own arithmetic and
// compared with the bound: first by a rounded difference, which settles almost all, then exactly. A value whose bound
// does not hold is an outlier, as are those that are not finite, have the fill value's bits or a quantum beyond the
// limit.
//
// Most f32 values need no f64, which many GPUs compute at a 64th of the speed (SLOW_F64): `quick` finds the same
// quantum by sums and products of f32, and says whether it is sure of it.
#pragma once
#include "../base/keep.cuh"
#include "../prim/warp.cuh"
#include "../tuning.cuh"

namespace quantize {

// Added to and taken from a number below 2^51 in size, it rounds to the nearest integer, ties to even; the lowest bits
// of the sum are that integer's.
constexpr double ROUND = 6755399441055744.0;
// The same in f32, below 2^22.
constexpr float ROUND_F32 = 12582912.0f;
// Part of a step by which `quick` must be nearer to a multiple than to the middle; it errs by less than 2^-24.
constexpr float DOUBT = 0x1p-19f;
// Rounding q steps to f32 takes at most half as many steps for each of q.
constexpr float ROUNDING = 0x1p-23f;

// Whole multiples of a step, from a base on.
template <class S>
struct Linear {
    using T = Traits<S>;
    double step, inverse, bound, limit;
    // A rounded difference below it is an exact difference within the bound. The base: -0 for none, as nothing changes
    // by it.
    S surely, base;
    // The inverse as a sum of two f32, for `quick`; NaN where that is never sure.
    float high, low;
    __device__ __forceinline__ Linear(double step_, double bound_, double limit_, S base_)
        : step(step_),
          inverse(__ddiv_rn(1.0, step_)),
          bound(bound_),
          limit(limit_),
          surely(T::down(bound_)),
          base(base_) {
        const bool usual = T::W == 4 && base == S(0) && step > 1e-25 && step < 1e25;
        high = usual ? __double2float_rn(inverse) : Traits<float>::value(0x7fffffffu);
        low = __double2float_rn(__dsub_rn(inverse, (double)high));
    }

    // What is nearest to x, in steps, and how far x is above it. Returns whether that is surely what `nearest` says,
    // counts, and is within half a step of x when rounded to f32.
    //
    // `above` is x · inverse - whole but for two roundings of numbers below 1, less than 2^-24 in all. `nearest` errs
    // by less than 2^-29 there. What is at least 2^22, or no number, is not sure.
    __device__ __forceinline__ bool quick(float x, float& whole, float& above, int& q) const {
        const float sum = __fmaf_rn(x, high, ROUND_F32);
        q = (int)(Traits<float>::bits(sum) - Traits<float>::bits(ROUND_F32));
        whole = __fsub_rn(sum, ROUND_F32);
        above = __fmaf_rn(x, low, __fmaf_rn(x, high, -whole));
        return __fmaf_rn(fabsf(whole), ROUNDING, fabsf(above)) < 0.5f - DOUBT;
    }

    // x in steps as an integer, and whether it counts.
    __device__ __forceinline__ bool nearest(S x, int& q) const {
        if constexpr (T::W == 4 && SLOW_F64) {
            float whole, above;
            if (quick(x, whole, above, q)) return true;
        }
        double whole;
        return nearest(x, whole, q);
    }

    // x in steps, as a number and as an integer, and whether it is one that counts.
    __device__ __forceinline__ bool nearest(S x, double& whole, int& q) const {
        const double t = __dmul_rn((double)T::sub(x, base), inverse), sum = __dadd_rn(t, ROUND);
        q = __double2loint(sum);
        whole = __dsub_rn(sum, ROUND);
        return fabs(t) <= limit;
    }
    __device__ __forceinline__ S value(double whole) const { return T::add(base, T::round(__dmul_rn(whole, step))); }
    // Whether x has the bits of `whole` steps, and not those of `whole` + 1 steps.
    __device__ __forceinline__ bool tells(S x, double whole) const {
        return T::bits(value(whole)) == T::bits(x) && T::bits(value(__dadd_rn(whole, 1.0))) != T::bits(x);
    }
    __device__ __forceinline__ bool surely_holds(S x, S back) const { return fabs(T::sub(x, back)) < surely; }
    __device__ __forceinline__ bool holds(S x, S back) const { return exact::within((double)x, (double)back, bound); }
};

// The base of a chunk under an absolute bound, or -0, from the values at BASE_PLACES places at equal distances and as
// many others, which `at(k)` tells. Returns the bound used. Whole warp.
constexpr int BASE_PLACES = 16;
// Steps of a range from which on it does not matter whether its ends are multiples.
constexpr double MOST_STEPS = 16384.0;
// Of a chunk of `values`.
__device__ __forceinline__ u64 other_place(u64 values, u32 k) {
    return __umul64hi(0x9E3779B97F4A7C15ull * (k + 1), values);
}
__device__ __forceinline__ u64 base_place(u64 values, u32 k) {
    if (k < BASE_PLACES) return (2 * k + 1) * values / (2 * BASE_PLACES);
    return other_place(values, k - BASE_PLACES);
}
template <class S, class At>
__device__ __forceinline__ double base_of(double bound, typename Traits<S>::Bits fill, S& base, int lane, At at) {
    using T = Traits<S>;
    const S x = at((u32)lane);
    // A unit in the last place of a slightly larger number.
    auto spacing = [](double size) {
        const u64 e = Traits<double>::bits(size) >> 52;
        return e > T::M ? Traits<double>::value((e - T::M) << 52) : 0.0;
    };
    const double size = fabs(__dmul_rn((double)x, 1.0625)), ulp = spacing(size);
    const bool counts = (T::bits(x) & T::EXPONENT) != T::EXPONENT && T::bits(x) != fill && ulp <= bound;
    const bool fits = counts && lane < BASE_PLACES;
    // Without a base the bound is a multiple of what a bit of the largest values is worth, where that matters.
    double largest = counts ? size : 0.0;
#pragma unroll
    for (int far = 16; far > 0; far /= 2) largest = fmax(largest, warp::from(largest, lane ^ far));
    const double bits = __ddiv_rn(bound, spacing(largest)), whole_bits = __dmul_rn(floor(bits), spacing(largest));
    const bool fine = __dmul_rn(largest, 257.0) > __dmul_rn(whole_bits, 0x1p30);
    // Decimals of half whose step the bound is come back bit for bit as it is.
    const double own = __dmul_rn(2.0, bound);
    const double quanta = __dsub_rn(__dadd_rn(__dmul_rn((double)x, __ddiv_rn(1.0, own)), ROUND), ROUND);
    const bool told = __all_sync(warp::ALL, !counts || T::round(__dmul_rn(quanta, own)) == x);
    const double rounded = bits >= 2.0 && bits < 32768.0 && !fine && !told ? whole_bits : bound;
    const u32 fit = __ballot_sync(warp::ALL, fits);
    u32 below = 0;
#pragma unroll
    for (int k = 0; k < BASE_PLACES; k++) {
        const S y = warp::from(x, k);
        below += (fit >> k & 1) && (y < x || (y == x && k < lane));
    }
    const u32 mid = __ballot_sync(warp::ALL, fits && below == ((u32)__popc(fit) - 1) / 2);
    const int which = mid ? __ffs((int)mid) - 1 : 0;
    const double middle = (double)warp::from(x, which), unit = warp::from(ulp, which);
    base = -S(0);
    constexpr double LEAST = T::W == 4 ? 0x1p-149 : 0x1p-1022;
    const double inverse = __ddiv_rn(1.0, __dmul_rn(2.0, bound));
    auto beyond = [&](int limit, double y) { return fabs(__dmul_rn(y, inverse)) > (double)limit; };
    auto far = [&](double y) { return beyond(fmt::LORENZO_BASE_REACH, y); };
    const bool close = !far(__dsub_rn((double)x, middle)), other = counts && (double)x != middle;
    const u32 near = __ballot_sync(warp::ALL, fits && close);
    // A number that stands for missing ones is no base for those that are there.
    const u32 beside = __ballot_sync(warp::ALL, other && close);
    const u32 without = __ballot_sync(warp::ALL, other && !close && x != S(0) && !far((double)x));
    const bool spread = 4 * __popc(near) < 3 * __popc(fit);
    if (!mid || !beyond(fmt::LORENZO_BASE_FROM, middle) || spread || unit < LEAST) return rounded;
    if (__popc(without) > __popc(beside)) return rounded;
    const double used = __dmul_rn(floor(__ddiv_rn(bound, unit)), unit), step = __dmul_rn(2.0, used);
    const double t = __dmul_rn(__dmul_rn(middle, __ddiv_rn(1.0, step)), 1.0 / 256);
    const double whole = __dsub_rn(__dadd_rn(t, ROUND), ROUND);
    const S found = T::round(__dmul_rn(__dmul_rn(whole, 256.0), step));
    if ((T::bits(found) & T::EXPONENT) == T::EXPONENT) return rounded;
    base = found;
    return used;
}

// What some of a chunk's values say where more than the bound is kept: a bit each.
constexpr u32 POSITIVE = 1, NEGATIVE = 2, SMALL = 4, LOST = 8, SAID = 16;
constexpr u32 GUARDED_PLACES = 1024;
template <class S>
__device__ __forceinline__ u32 said(S value, double bound, typename Traits<S>::Bits fill,
                                    const keep::Limits<S>& limits) {
    using T = Traits<S>;
    const double x = (double)value;
    if ((T::bits(value) & T::EXPONENT) == T::EXPONENT || T::bits(value) == fill || x == 0.0) return 0;
    const double low = (double)limits.low, high = (double)limits.high, step = __dmul_rn(2.0, bound),
                 quanta = __dsub_rn(__dadd_rn(__dmul_rn(x, __ddiv_rn(1.0, step)), ROUND), ROUND),
                 multiple = __dmul_rn(quanta, step);
    const bool lost = x == low || x == high || multiple < low || multiple > high;
    return (x > 0.0 ? POSITIVE : NEGATIVE) | (fabs(x) <= __dmul_rn(1.5, bound) ? SMALL : 0) | (lost ? LOST : 0);
}

// The same base where more than the bound is kept: multiples that are no zeros, or of which ends of the range are some.
// `all` is what GUARDED_PLACES values have said.
template <class S, class At>
__device__ __forceinline__ double base_of(double bound, typename Traits<S>::Bits fill, const keep::Limits<S>& limits,
                                          u32 all, S& base, int lane, At at) {
    using T = Traits<S>;
    base = -S(0);
    if ((limits.flags & FLAG_SIGN) && ((all & SMALL) || (all & POSITIVE && all & NEGATIVE))) {
        const S x = at((u32)lane);
        const bool counts = (T::bits(x) & T::EXPONENT) != T::EXPONENT && T::bits(x) != fill;
        double largest = counts ? fabs((double)x) : 0.0;
#pragma unroll
        for (int far = 16; far > 0; far /= 2) largest = fmax(largest, warp::from(largest, lane ^ far));
        const u64 e = Traits<double>::bits(__dmul_rn(largest, 1.0625)) >> 52;
        const double spacing = e > T::M ? Traits<double>::value((e - T::M) << 52) : 0.0;
        const double bits = __ddiv_rn(bound, spacing);
        const double used = bits >= 2.0 && bits < 32768.0 ? __dmul_rn(floor(bits), spacing) : bound;
        const S half = T::round(used);
        if (half != S(0) && half < T::infinity()) {
            base = half;
            return used;
        }
    }
    const double low = (double)limits.low, high = (double)limits.high, span = __dsub_rn(high, low);
    const double steps = __dadd_rn(floor(__ddiv_rn(span, __dmul_rn(2.0, bound))), 1.0);
    if ((limits.flags & FLAG_RANGE) && (all & LOST) && steps < MOST_STEPS && span > 0.0) {
        if (low != 0.0 && high != 0.0) base = limits.low;
        return fmin(__dmul_rn(__ddiv_rn(span, steps), 0.5), bound);
    }
    return base_of<S>(bound, fill, base, lane, at);
}

// Linear quanta that keep more than the bound.
template <class S>
struct Limited {
    Linear<S> linear;
    keep::Limits<S> limits;
};

// An integer as a number, without a conversion.
__device__ __forceinline__ double number(int q) {
    return __dsub_rn(__hiloint2double(0x43300000, (int)((u32)q ^ 0x80000000u)), 4503601774854144.0);
}

// Multiples of a distance between the bits of magnitudes.
template <class S>
struct Log {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    u64 step;
    double inverse, bound, limit;
    __device__ __forceinline__ Log(double bound_, double limit_) : bound(bound_), limit(limit_) {
        const u64 whole = (u64)__dmul_rn(bound_, (double)(1ull << (T::M + 1)));
        step = whole ? whole : 1;
        inverse = __ddiv_rn(1.0, (double)step);
    }
    // The quantum of x, its value, and whether that keeps the bound.
    __device__ __forceinline__ bool good(S x, int& q, S& back) const {
        constexpr Bits SIGN = (Bits)1 << (8 * T::W - 1);
        const Bits magnitude = T::bits(x) & ~SIGN;
        const double t = __dmul_rn(__ull2double_rn((u64)magnitude), inverse);
        q = __double2loint(__dadd_rn(t, ROUND));
        if ((double)x < 0.0) q = (int)(0u - (u32)q);
        const u64 size = q < 0 ? 0u - (u32)q : (u32)q;
        back = T::value(((Bits)(size * step) & ~SIGN) | (q < 0 ? SIGN : 0));
        const bool counts = t <= limit && (magnitude & T::EXPONENT) != T::EXPONENT;
        return counts && exact::within((double)x, (double)back, exact::mul_down(bound, fabs((double)x)));
    }
};

// Quanta of four values. Returns which of them are no outliers; `differ` gathers what those lose. `fill` is the fill
// value's bits, or those of infinity; only values of `valid` count.
template <class S>
__device__ __forceinline__ u32 four(const Linear<S>& l, const S (&x)[4], typename Traits<S>::Bits fill, u32 valid,
                                    int (&q)[4], typename Traits<S>::Bits& differ) {
    using T = Traits<S>;
    if constexpr (T::W == 4 && SLOW_F64) {
        // What is behind the end is like the last one. A value that is surely not its quantum's, further from it than
        // rounding can take it, says that the tile is not exact; 0 surely is; the others are asked below.
        bool sure = true, far = differ != 0, zeros = true;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float whole, above;
            sure = l.quick(x[j], whole, above, q[j]) && T::bits(x[j]) != fill && sure;
            far = __fmaf_rn(fabsf(whole), -ROUNDING, fabsf(above)) > ROUNDING || far;
            zeros = T::bits(x[j]) == 0 && zeros;
        }
        if (sure && (far || zeros)) {
            if (far) differ = 1;
            return valid;
        }
    }
    S back[4];
    bool counts[4], plain = true;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        double whole;
        counts[j] = l.nearest(x[j], whole, q[j]) && T::bits(x[j]) != fill;
        back[j] = l.value(whole);
        plain = plain && counts[j] && l.surely_holds(x[j], back[j]);
    }
    // As most are; what is behind the end is like the last one.
    u32 good = valid;
    if (!plain) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (!(counts[j] && l.holds(x[j], back[j]))) good &= ~(1u << j);
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) differ |= good >> j & 1 ? T::bits(back[j]) ^ T::bits(x[j]) : 0;
    return good;
}

template <class S>
__device__ __forceinline__ u32 four(const Log<S>& l, const S (&x)[4], typename Traits<S>::Bits fill, u32 valid,
                                    int (&q)[4], typename Traits<S>::Bits& differ) {
    u32 good = 0;
#pragma unroll 1
    for (int j = 0; j < 4; j++) {
        const S v = j == 0 ? x[0] : j == 1 ? x[1] : j == 2 ? x[2] : x[3];
        int k;
        S back;
        const bool fits = (valid >> j & 1) && Traits<S>::bits(v) != fill & l.good(v, k, back);
        if (fits) {
            good |= 1u << j;
            differ |= Traits<S>::bits(back) ^ Traits<S>::bits(v);
        }
        if (j == 0) q[0] = k;
        if (j == 1) q[1] = k;
        if (j == 2) q[2] = k;
        if (j == 3) q[3] = k;
    }
    return good;
}

template <class S>
__device__ __forceinline__ u32 four(const Limited<S>& l, const S (&x)[4], typename Traits<S>::Bits fill, u32 valid,
                                    int (&q)[4], typename Traits<S>::Bits& differ) {
    using T = Traits<S>;
    typename T::Bits lost = 0;
    u32 good = four(l.linear, x, fill, valid, q, lost);
    // Where half a step is the base, or the lower end is, multiples keep signs, or the end, but for roundings; not 0.
    const S row[1][4] = {{x[0], x[1], x[2], x[3]}}, step = (S)l.linear.step, little = T::mul(step, (S)0x1p-20);
    const S base = l.linear.base, zero = base == T::round(l.linear.bound) ? little : step,
            end = base == l.limits.low ? little : step;
    bool smalls, signs = base != S(0) && (x[0] == S(0) || x[1] == S(0) || x[2] == S(0) || x[3] == S(0));
    if (l.limits.near(row, step, zero, end, signs, smalls) || signs) {
        lost = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            double whole;
            l.linear.nearest(x[j], whole, q[j]);
            const S back = l.linear.value(whole);
            if (!l.limits.allow(x[j], back)) good &= ~(1u << j);
            lost |= good >> j & 1 ? T::bits(back) ^ T::bits(x[j]) : 0;
        }
    }
    differ |= lost;
    return good;
}

}  // namespace quantize
