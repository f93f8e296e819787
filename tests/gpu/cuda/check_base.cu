// SPDX-License-Identifier: MIT OR Apache-2.0
// What all kernels share: exact arithmetic, the chunk of a tile, the checksum, scans, the look-back.
#include "check.cuh"

namespace {

// Three f64 an item; seven words out.
__device__ __forceinline__ void exact_ops(const Arrays& a) {
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i >= a.n) return;
    const double* v = (const double*)a.in + 3 * i;
    const double x = v[0], y = v[1], b = v[2];
    u64* out = (u64*)a.out + 7 * i;
    const bool finite = fabs(x) <= 1.7976931348623157e308 && fabs(y) <= 1.7976931348623157e308;
    const double lo = x < y ? x : y, hi = x < y ? y : x;
    out[0] = exact::within(x, y, b);
    out[1] = finite ? plain(exact::mul_down(fabs(x), fabs(y))) : 0;
    out[2] = finite ? plain(exact::sub_down(hi, lo)) : 0;
    out[3] = exact::ordered(x);
    out[4] = (u64)__double_as_longlong(exact::unordered(exact::ordered(x)));
    out[5] = finite ? plain(exact::below(fabs(x))) : 0;
    out[6] = swapped((u64)__double_as_longlong(x));
}

// Three numbers and an f64, in 8 bytes each; eight words out.
template <class S>
__device__ __forceinline__ void arithmetic(const Arrays& a) {
    using T = Traits<S>;
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i >= a.n) return;
    const u64* v = (const u64*)a.in + 4 * i;
    const S x = T::value((typename T::Bits)v[0]), y = T::value((typename T::Bits)v[1]),
            z = T::value((typename T::Bits)v[2]);
    const double d = __longlong_as_double((long long)v[3]);
    u64* out = (u64*)a.out + 8 * i;
    out[0] = plain(T::add(x, y));
    out[1] = plain(T::sub(x, y));
    out[2] = plain(T::mul(x, y));
    out[3] = plain(T::fma(x, y, z));
    out[4] = plain(T::add(z, T::mul(x, y)));
    out[5] = plain(T::round(d));
    out[6] = d == d ? plain(T::down(d)) : 0;
    out[7] = (u64)T::length(T::bits(x));
}

struct Chunks {
    u64 chunks, tiles, out, count, n;
};

// The chunk of each of n tiles, a warp a tile.
__device__ __forceinline__ void chunk_of(const Chunks& a) {
    const int lane = threadIdx.x & 31;
    const u64 i = (u64)blockIdx.x * 4 + threadIdx.x / 32;
    if (i >= a.n) return;
    const u32 at = frame::chunk_of((const EncodeChunk*)a.chunks, (u32)a.count, ((const u32*)a.tiles)[i], lane);
    if (lane == 0) ((u32*)a.out)[i] = at;
}

struct Copy {
    u64 in, copy, sums, n, first, segment;
};

// Copies n words, `segment` a CTA, and sums each segment; word 0 is number `first` of a frame.
template <int THREADS, int BATCH>
__device__ __forceinline__ void copy_summed(const Copy& a) {
    const u64 from = blockIdx.x * a.segment, words = min(a.segment, a.n - from);
    const u64 sum = warp::sum(
        frame::copy_summed<THREADS, BATCH>((u32*)a.copy + from, (const u32*)a.in + from, a.first + from, (u32)words));
    if ((threadIdx.x & 31) == 0) atomicAdd((u64*)a.sums + blockIdx.x, sum);
}

struct Scans {
    u64 in, sums, scans, xors, ranges, n;
};

// Words of 8 bytes, 32 a warp: their sum, running sums and exclusive ors; range of them as f64, of upper halves as f32.
__device__ __forceinline__ void scans(const Scans& a) {
    const int lane = threadIdx.x & 31;
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    const u64 warp = i / 32;
    if (warp * 32 >= a.n) return;
    const u64 x = ((const u64*)a.in)[i];
    const u64 sum = warp::sum(x);
    ((u64*)a.scans)[i] = warp::inclusive(x, lane);
    ((u64*)a.xors)[i] = warp::inclusive_xor(x, lane);
    float lo = __uint_as_float((u32)(x >> 32)), hi = lo;
    double low = __longlong_as_double((long long)x), high = low;
    warp::range(lo, hi);
    warp::range(low, high);
    if (lane == 0) {
        ((u64*)a.sums)[warp] = sum;
        // Zeros of either sign are equal.
        u64* range = (u64*)a.ranges + 4 * warp;
        range[0] = plain(__fadd_rn(lo, 0.0f));
        range[1] = plain(__fadd_rn(hi, 0.0f));
        range[2] = plain(__dadd_rn(low, 0.0));
        range[3] = plain(__dadd_rn(high, 0.0));
    }
}

struct Places {
    u64 sizes, starts, places, ticket;
};

// Every tile's start, from all sizes. One warp a tile; tiles by tickets.
__device__ __forceinline__ void look_back(const Places& a) {
    const int lane = threadIdx.x;
    u32 t = 0;
    if (lane == 0) t = atomicAdd((u32*)a.ticket, 1u);
    t = warp::from(t, 0);
    const u32 size = ((const u32*)a.sizes)[t];
    if (lane == 0) lookback::announce((u64*)a.places, t, size);
    __syncwarp();
    const u32 start = lookback::place((u64*)a.places, t, size, lane);
    if (lane == 0) ((u32*)a.starts)[t] = start;
}

}  // namespace

STAGE(base_exact, 128, Arrays, exact_ops)
STAGE(base_arithmetic_f32, 128, Arrays, arithmetic<float>)
STAGE(base_arithmetic_f64, 128, Arrays, arithmetic<double>)
STAGE(base_chunk_of, 128, Chunks, chunk_of)
STAGE(base_sum_4, 128, Copy, (copy_summed<128, 4>))
STAGE(base_sum_8, 256, Copy, (copy_summed<256, 8>))
STAGE(base_sum_11, 128, Copy, (copy_summed<128, 11>))
STAGE(base_scans, 128, Scans, scans)
STAGE(base_look_back, 32, Places, look_back)
