// SPDX-License-Identifier: MIT OR Apache-2.0
// Values into quanta of tiles of class 0, and back: FORMAT.md §5 and §8.1.
//
// A quantum is the integer nearest to a value over the step. Added to a number that is large enough, the value over the
// step is rounded to that integer, and the sum's lowest bits are the quantum: one fused operation, which rounds once,
// for 4-byte values; a product and a sum for 8-byte ones. With the tile's base in that number the lowest 13 bits are
// the quantum less the base, 4096 added. Two of them share a register: columns 0 and 2, columns 1 and 3.
//
// Every value is decoded at once and compared. The largest error of a lane's values is kept, and whether any was out of
// range: they are looked at once a tile. A tile where anything fails goes to exceptions.cuh, which looks at each value;
// what is not a few exceptions is encode_any.cuh's.
#pragma once
#include "../base/keep.cuh"
#include "../prim/warp.cuh"

namespace planes {

// What a bound makes of values.
template <class S>
struct Rule {
    S step, inverse;
    // A rounded error not above it is an error not above the bound.
    S most;
    bool usable;
    // More than the bound is kept.
    bool limited;
    keep::Limits<S> limits;
};

template <class S>
__device__ __forceinline__ Rule<S> rule(double bound) {
    using T = Traits<S>;
    constexpr double FAR = T::W == 4 ? 0x1p100 : 0x1p1000;
    static_assert(
        fmt::PLANES_STEP_LOG2_F32 == 100 && fmt::PLANES_STEP_LOG2_F64 == 1000 && fmt::PLANES_STEP_128THS == 255, "");
    Rule<S> r;
    r.step = T::round(__dmul_rn(bound, 1.9921875));
    r.usable = (double)r.step >= 1.0 / FAR && (double)r.step <= FAR;
    r.inverse = T::round(__ddiv_rn(1.0, (double)r.step));
    r.most = T::surely(bound);
    r.limited = false;
    return r;
}

constexpr u32 REACH = (u32)fmt::PLANES_NEAR;
// A pair of two zeros, as quanta less the base are kept.
constexpr u32 ZEROS = REACH | REACH << 16;

template <class S>
struct Quantizer;

template <>
struct Quantizer<float> {
    static constexpr int UNIT_LOG2 = 1;
    static constexpr long long LIMIT = fmt::PLANES_LIMIT_F32;
    float magic;
    u32 wrong = 0;
    float error = 0.0f;

    static __device__ __forceinline__ float magic_of(long long base) {
        return (float)(12582912 + (int)REACH - (int)base);
    }
    __device__ __forceinline__ explicit Quantizer(float magic) : magic(magic) {}
    // The quantum of a value; beyond LIMIT: some number beyond it.
    static __device__ __forceinline__ long long quantum(float x, const Rule<float>& r) {
        return (int)(__float_as_uint(__fmaf_rn(x, r.inverse, 12582912.0f)) - 0x4b400000u);
    }
    __device__ __forceinline__ u32 one(float x, const Rule<float>& r) {
        const float t = __fmaf_rn(x, r.inverse, magic);
        const u32 bits = __float_as_uint(t);
        wrong |= bits ^ 0x4b400000u;
        const float back = __fmul_rn(__fsub_rn(t, magic), r.step);
        error = fmaxf(error, fabsf(__fsub_rn(x, back)));
        return bits;
    }
    __device__ __forceinline__ bool good(const Rule<float>& r) const {
        return (wrong & ~(2 * REACH - 1)) == 0 && error <= r.most;
    }
};

template <>
struct Quantizer<double> {
    static constexpr int UNIT_LOG2 = 9;
    static constexpr long long LIMIT = fmt::PLANES_LIMIT_F64;
    double magic;
    u32 wrong = 0, error = 0;

    static __device__ __forceinline__ double magic_of(long long base) {
        return (double)(6755399441055744ll + (long long)REACH - base);
    }
    __device__ __forceinline__ explicit Quantizer(double magic) : magic(magic) {}
    static __device__ __forceinline__ long long quantum(double x, const Rule<double>& r) {
        const double t = __dadd_rn(__dmul_rn(x, r.inverse), 6755399441055744.0);
        return (long long)((u64)__double_as_longlong(t) - 0x4338000000000000ull);
    }
    __device__ __forceinline__ u32 one(double x, const Rule<double>& r) {
        const double t = __dadd_rn(__dmul_rn(x, r.inverse), magic);
        const u64 bits = (u64)__double_as_longlong(t);
        wrong |= ((u32)(bits >> 32) ^ 0x43380000u) | ((u32)bits & ~(2 * REACH - 1));
        const double back = __dmul_rn(__dsub_rn(t, magic), r.step);
        error = max(error, (u32)((u64)__double_as_longlong(__dsub_rn(x, back)) >> 32) & 0x7fffffffu);
        return (u32)bits;
    }
    // The upper half of the error decides: an error that is as large by it is looked at again.
    __device__ __forceinline__ bool good(const Rule<double>& r) const {
        return wrong == 0 && error < (u32)((u64)__double_as_longlong(r.most) >> 32);
    }
};

// The integer of a value's width.
template <class S>
using Int = typename Traits<S>::Bits;

// What a value is by itself. SMALLS: there may be small ones, for which half a step stands. `fill`: bits that count as
// fill, those of an infinity, which never holds, where there are none.
template <class S, bool SMALLS = false>
struct Judged {
    using T = Traits<S>;
    // The quantum, right where `within`.
    S number;
    Int<S> quantum;
    // What stands for a small value, else 0.
    S half = 0;
    // Normal, and within the limit.
    bool within;
    // Comes back within the bound too.
    bool holds;

    // `halves`: of a tile in half steps.
    __device__ __forceinline__ Judged(S x, const Rule<S>& r, Int<S> fill, bool halves = false) {
        constexpr S MAGIC = T::W == 4 ? (S)12582912.0 : (S)6755399441055744.0, LIMIT = (S)Quantizer<S>::LIMIT;
        const S sum = T::W == 4 ? T::fma(x, r.inverse, MAGIC) : T::add(T::mul(x, r.inverse), MAGIC);
        number = T::sub(sum, MAGIC);
        quantum = T::bits(sum) - T::bits(MAGIC);
        within = r.usable && number <= LIMIT && number >= -LIMIT && T::bits(x) != fill;
        S back = T::mul(number, r.step);
        if constexpr (SMALLS) {
            const bool minus = x < S(0), signs = r.limits.flags & FLAG_SIGN,
                       small = signs && x != S(0) && fabs(x) <= r.limits.small_of(r.step);
            if (small) back = half = T::mul((S)(minus ? -0.5 : 0.5), r.step);
            if (halves) {
                number = small ? (S)(minus ? -1 : 1) : T::add(number, number);
                quantum = small ? (Int<S>)(minus ? -1 : 1) : quantum + quantum;
            }
        }
        const S error = T::sub(x, back);
        holds = within && error <= r.most && error >= -r.most && T::bits(back) != fill;
        if (r.limited) holds = holds && r.limits.allow(x, back);
    }
    // The bits of r(x), of a value that was not judged in half steps.
    __device__ __forceinline__ Int<S> settled(S x, const Rule<S>& r) const {
        return T::bits(!holds ? x : SMALLS && half != S(0) ? half : T::mul(number, r.step));
    }
};

// Two quanta in a register, as they come from a Quantizer.
__device__ __forceinline__ u32 pair(u32 low, u32 high) { return __byte_perm(low, high, 0x5410); }

// The middle of the smallest and the largest quantum, made a multiple of the unit. FORMAT.md §8.2.
template <class S>
__device__ __forceinline__ long long middle(long long lo, long long hi) {
    constexpr int U = Quantizer<S>::UNIT_LOG2;
    const long long mid = (lo + hi) >> 1;
    if (Traits<S>::W == 8) return (mid + (1 << (U - 1))) >> U << U;
    constexpr long long MOST = fmt::PLANES_BASE_F32;
    const long long base = mid >> U << U;
    return base < -MOST ? -MOST : base > MOST ? MOST : base;
}

// Whether tiles of class 0 may have this base.
template <class S>
__device__ __forceinline__ bool narrow(long long base) {
    constexpr long long MOST = fmt::PLANES_BASE_F64;
    return Traits<S>::W == 4 || (base <= MOST && base >= -MOST);
}

// Quanta of class 0 back into values: q = u + base, of pairs with REACH added to u.
template <class S>
struct Scale;

template <>
struct Scale<float> {
    float offset, step;
    u32 exponent;
    __device__ __forceinline__ Scale(long long base, float step)
        : offset((float)(8388608 + (int)REACH - (int)base)), step(step), exponent(opaque(0x4b00u)) {}
    __device__ __forceinline__ u32 value(u32 pair, int half) const {
        const float f = __uint_as_float(__byte_perm(pair, exponent, half ? 0x5432 : 0x5410));
        return __float_as_uint(__fmul_rn(__fsub_rn(f, offset), step));
    }
};

template <>
struct Scale<double> {
    double offset, step;
    __device__ __forceinline__ Scale(long long base, double step)
        : offset((double)(4503599627370496ll + (long long)REACH - base)), step(step) {}
    __device__ __forceinline__ u64 value(u32 pair, int half) const {
        const double f = __hiloint2double(0x43300000, (int)(half ? pair >> 16 : pair & 0xffffu));
        return (u64)__double_as_longlong(__dmul_rn(__dsub_rn(f, offset), step));
    }
};

}  // namespace planes
