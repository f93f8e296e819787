// SPDX-License-Identifier: MIT OR Apache-2.0
// f32 and f64 behind one name, with the exact operations that the format allows: rounded to nearest, never fused.
#pragma once
#include "h5z_abi.cuh"

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// Bits up to the highest that is one; 0 has none.
__device__ __forceinline__ int bit_length(u32 x) {
#ifdef __CUDA_ARCH__
    // The place of that bit, or -1: one instruction less than by its distance from the top.
    int place;
    asm("bfind.u32 %0, %1;" : "=r"(place) : "r"(x));
    return place + 1;
#else
    return 32 - __clz((int)x);
#endif
}

template <class S>
struct Traits;

template <>
struct Traits<float> {
    using Bits = u32;
    static constexpr int W = 4, M = 23, E = 8;
    // Largest exponent of a usable step, and the smallest.
    static constexpr int MOST = 126, LEAST = -126;
    static constexpr Bits EXPONENT = 0x7f800000u, MAGIC = 0x4b000000u;
    static __device__ __forceinline__ Bits bits(float x) { return __float_as_uint(x); }
    static __device__ __forceinline__ float value(Bits b) { return __uint_as_float(b); }
    static __device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
    static __device__ __forceinline__ float sub(float a, float b) { return __fsub_rn(a, b); }
    static __device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
    static __device__ __forceinline__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
    static __device__ __forceinline__ float round(double x) { return __double2float_rn(x); }
    static __device__ __forceinline__ float power(int e) { return __uint_as_float((u32)(e + 127) << 23); }
    static __device__ __forceinline__ float infinity() { return __uint_as_float(EXPONENT); }
    // The upper half of the bits as an integer; what is in the order of numbers, or equal, in few instructions.
    static __device__ __forceinline__ int upper(float x) { return (int)bits(x); }
    static __device__ __forceinline__ float rough(float x) { return x; }
    // The largest number of the type not above b.
    static __device__ __forceinline__ float down(double b) { return __double2float_rd(b); }
    // Of two numbers one of which may be NaN, the other.
    static __device__ __forceinline__ float least(float a, float b) { return fminf(a, b); }
    static __device__ __forceinline__ float most(float a, float b) { return fmaxf(a, b); }
    // At most b less a part in 2^20: a rounded difference not above it is an exact difference not above b.
    static __device__ __forceinline__ float surely(double b) { return __double2float_rd(__dmul_rd(b, 1.0 - 0x1p-20)); }
    static __device__ __forceinline__ int length(Bits b) { return bit_length(b); }
};

template <>
struct Traits<double> {
    using Bits = u64;
    static constexpr int W = 8, M = 52, E = 11;
    static constexpr int MOST = 1022, LEAST = -1022;
    static constexpr Bits EXPONENT = 0x7ff0000000000000ull, MAGIC = 0x4330000000000000ull;
    static __device__ __forceinline__ Bits bits(double x) { return (u64)__double_as_longlong(x); }
    static __device__ __forceinline__ double value(Bits b) { return __longlong_as_double((long long)b); }
    static __device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
    static __device__ __forceinline__ double sub(double a, double b) { return __dsub_rn(a, b); }
    static __device__ __forceinline__ double mul(double a, double b) { return __dmul_rn(a, b); }
    static __device__ __forceinline__ double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
    static __device__ __forceinline__ double round(double x) { return x; }
    static __device__ __forceinline__ double power(int e) { return value((u64)(e + 1023) << 52); }
    static __device__ __forceinline__ double infinity() { return value(EXPONENT); }
    static __device__ __forceinline__ int upper(double x) { return (int)(bits(x) >> 32); }
    static __device__ __forceinline__ int rough(double x) { return upper(x) ^ (upper(x) >> 31 & 0x7fffffff); }
    static __device__ __forceinline__ double down(double b) { return b; }
    static __device__ __forceinline__ double least(double a, double b) { return fmin(a, b); }
    static __device__ __forceinline__ double most(double a, double b) { return fmax(a, b); }
    static __device__ __forceinline__ double surely(double b) { return __dmul_rd(b, 1.0 - 0x1p-40); }
    static __device__ __forceinline__ int length(Bits b) { return 64 - __clzll((long long)b); }
};

namespace exact {

// The next f64 towards zero of a number not below it; 0 for 0.
__device__ __forceinline__ double below(double x) {
    return x > 0.0 ? __longlong_as_double(__double_as_longlong(x) - 1) : 0.0;
}

// Whether abs(x - y) <= b in real arithmetic: the rounding error of the subtraction decides where the rounded
// difference equals b. False for anything not finite.
__device__ __forceinline__ bool within(double x, double y, double b) {
    double d = __dsub_rn(x, y);
    double t = __dsub_rn(d, x);
    double error = __dadd_rn(__dsub_rn(x, __dsub_rn(d, t)), __dsub_rn(-y, t));
    if (d < 0.0) {
        d = -d;
        error = -error;
    }
    return d < b || (d == b && error <= 0.0);
}

// The largest f64 not above the product of two numbers that are not negative.
__device__ __forceinline__ double mul_down(double a, double b) {
    const double p = __dmul_rn(a, b);
    if (p > 1.7976931348623157e308) return 1.7976931348623157e308;
    return p < 1e-289 || __fma_rn(a, b, -p) < 0.0 ? below(p) : p;
}

// The largest f64 not above a - b, for a >= b.
__device__ __forceinline__ double sub_down(double a, double b) {
    const double d = __dsub_rn(a, b);
    if (d > 1.7976931348623157e308) return 1.7976931348623157e308;
    const double t = __dsub_rn(d, a);
    const double error = __dadd_rn(__dsub_rn(a, __dsub_rn(d, t)), __dsub_rn(-b, t));
    return error < 0.0 ? below(d) : d;
}

// Integers of the same order as the numbers.
__device__ __forceinline__ u64 ordered(double x) {
    const u64 b = (u64)__double_as_longlong(x);
    return b >> 63 ? ~b : b | 1ull << 63;
}
__device__ __forceinline__ double unordered(u64 k) {
    return __longlong_as_double((long long)(k >> 63 ? k & ~(1ull << 63) : ~k));
}

}  // namespace exact

// The number itself, which the compiler takes for one that it does not know: an instruction has one constant only, and
// another would be moved into a register each time.
__device__ __forceinline__ u32 opaque(u32 x) {
#ifdef __CUDA_ARCH__
    asm("mov.b32 %0, %0;" : "+r"(x));
#endif
    return x;
}

// Other byte order.
__device__ __forceinline__ u32 swapped(u32 x) { return __byte_perm(x, 0, 0x0123); }
__device__ __forceinline__ u64 swapped(u64 x) { return (u64)swapped((u32)x) << 32 | swapped((u32)(x >> 32)); }
