// SPDX-License-Identifier: MIT OR Apache-2.0
// CTA scope: scans over all threads, all of which take part. `sums` has a word for each warp.
#pragma once
#include "warp.cuh"

namespace block {

// Combines, for every thread, what the threads before it have; `total` becomes what all of them have together. `f` is
// associative, 0 changes nothing.
template <int THREADS, class F>
__device__ __forceinline__ u32 before(u32 x, u32* sums, u32& total, F f) {
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    u32 upto = x;
#pragma unroll
    for (int k = 1; k < 32; k *= 2) {
        const u32 y = __shfl_up_sync(warp::ALL, upto, k);
        if (lane >= k) upto = f(upto, y);
    }
    if (lane == 31) sums[w] = upto;
    u32 less = __shfl_up_sync(warp::ALL, upto, 1);
    if (lane == 0) less = 0;
    __syncthreads();
    u32 front = 0;
    total = 0;
#pragma unroll
    for (int k = 0; k < THREADS / 32; k++) {
        if (k == w) front = total;
        total = f(total, sums[k]);
    }
    __syncthreads();
    return f(front, less);
}

template <int THREADS>
__device__ __forceinline__ u32 sum_before(u32 x, u32* sums, u32& total) {
    return before<THREADS>(x, sums, total, [](u32 a, u32 b) { return a + b; });
}

template <int THREADS>
__device__ __forceinline__ u32 most_before(u32 x, u32* sums, u32& total) {
    return before<THREADS>(x, sums, total, [](u32 a, u32 b) { return max(a, b); });
}

}  // namespace block
