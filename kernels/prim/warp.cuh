// SPDX-License-Identifier: MIT OR Apache-2.0
// Warp scope: reductions and scans over 32 lanes, all of which take part.
#pragma once
#include "../base/scalar.cuh"

namespace warp {

constexpr u32 ALL = 0xffffffffu;

template <class T>
__device__ __forceinline__ T from(T x, int lane) {
    return __shfl_sync(ALL, x, lane);
}

template <class T>
__device__ __forceinline__ T sum(T x) {
#pragma unroll
    for (int k = 16; k > 0; k /= 2) x += __shfl_xor_sync(ALL, x, k);
    return x;
}

// The same in one instruction, where there is one for it.
__device__ __forceinline__ u32 total(u32 x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL, x);
#else
    return sum(x);
#endif
}

__device__ __forceinline__ u32 least(u32 x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    return __reduce_min_sync(ALL, x);
#else
#pragma unroll
    for (int k = 16; k > 0; k /= 2) x = min(x, __shfl_xor_sync(ALL, x, k));
    return x;
#endif
}

__device__ __forceinline__ u32 any(u32 x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    return __reduce_or_sync(ALL, x);
#else
#pragma unroll
    for (int k = 16; k > 0; k /= 2) x |= __shfl_xor_sync(ALL, x, k);
    return x;
#endif
}
__device__ __forceinline__ u64 any(u64 x) { return (u64)any((u32)(x >> 32)) << 32 | any((u32)x); }

template <class S>
__device__ __forceinline__ void range(S& lo, S& hi) {
#pragma unroll
    for (int k = 16; k > 0; k /= 2) {
        const S a = __shfl_xor_sync(ALL, lo, k), b = __shfl_xor_sync(ALL, hi, k);
        lo = a < lo ? a : lo;
        hi = b > hi ? b : hi;
    }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// The same in two instructions, over integers of the same order. No NaN.
__device__ __forceinline__ void range(float& lo, float& hi) {
    const int a = __float_as_int(lo), b = __float_as_int(hi);
    const int low = __reduce_min_sync(ALL, a ^ (a >> 31 & 0x7fffffff)),
              high = __reduce_max_sync(ALL, b ^ (b >> 31 & 0x7fffffff));
    lo = __int_as_float(low ^ (low >> 31 & 0x7fffffff));
    hi = __int_as_float(high ^ (high >> 31 & 0x7fffffff));
}
#endif

// Sum over this lane and those before it, lane `lane` of lanes that belong together; in steps of `FROM` lanes at first,
// of less than `TO` in the end.
template <int FROM = 1, int TO = 32, class T>
__device__ __forceinline__ T inclusive(T x, int lane) {
#pragma unroll
    for (int k = FROM; k < TO; k *= 2) {
        const T y = __shfl_up_sync(ALL, x, k);
        if (lane >= k) x += y;
    }
    return x;
}

// Exclusive or over this lane and those before it.
template <class T>
__device__ __forceinline__ T inclusive_xor(T x, int lane) {
#pragma unroll
    for (int k = 1; k < 32; k *= 2) {
        const T y = __shfl_up_sync(ALL, x, k);
        if (lane >= k) x ^= y;
    }
    return x;
}

}  // namespace warp
