// SPDX-License-Identifier: MIT OR Apache-2.0
// Compares what came back with what was given, in exact arithmetic. Shares no arithmetic with the codecs.
#pragma once
#include "piece.cuh"

namespace values {

enum Rule : u32 { SAME_BITS, WITHIN, WITHIN_PART, KEPT };

// x - y as its rounded value and the error of that. Exact: the larger one comes first, and no step of it overflows
// where the rounded value does not.
struct Difference {
    double rounded, error;

    __device__ __forceinline__ Difference(double x, double y) {
        const double d = x - y, larger = fabs(x) < fabs(y) ? -y : x, smaller = fabs(x) < fabs(y) ? x : -y;
        const double e = smaller - (d - larger);
        rounded = fabs(d);
        error = d < 0.0 ? -e : e;
    }
};

// abs(x - y) <= limit in real arithmetic. Rounding keeps order, so only where the rounded difference is the limit does
// its error matter. Not where anything is infinite or NaN.
__device__ __forceinline__ bool within(double x, double y, double limit) {
    const Difference d(x, y);
    return d.rounded < limit || (d.rounded == limit && d.error <= 0.0);
}

// abs(x - y) <= part * abs(x) in real arithmetic, for a part of at least 2^-200.
__device__ __forceinline__ bool within_part(double x, double y, double part) {
    // Where the product's error is too small for a number, both are made larger; y may become infinite, and is far off
    // then.
    if (fabs(x) < 0x1p-700) x *= 0x1p+600, y *= 0x1p+600;
    const double most = part * fabs(x), more = __fma_rn(part, fabs(x), -most);
    const Difference d(x, y);
    return d.rounded < most || (d.rounded == most && d.error <= more);
}

// Whether y keeps what is asked of x: 1 the sign, 2 a zero, 4 the range.
__device__ __forceinline__ bool kept(double x, double y, bool same, u32 keep, double low, double high) {
    if ((keep & 1) && ((x > 0.0) != (y > 0.0) || (x < 0.0) != (y < 0.0) || y != y)) return false;
    if ((keep & 2) && x == 0.0 && !same) return false;
    return !(keep & 4) || same || (x != 0.0 && x != low && x != high && y >= low && y <= high);
}

// An integer of the same order as the number.
__device__ __forceinline__ u64 rank(double x) {
    const u64 bits = (u64)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// What a thread found.
template <class S>
struct Tally {
    u32 finite = 0, special = 0, broken = 0, filled = 0, moved = 0, first = ~0u;
    S low = Traits<S>::infinity(), high = -Traits<S>::infinity();

    __device__ __forceinline__ void take(const Piece& p, u32 i, S x, S y) {
        using T = Traits<S>;
        const auto a = T::bits(x), b = T::bits(y);
        const auto fill = (typename T::Bits)p.fill;
        const bool number = (a & T::EXPONENT) != T::EXPONENT;
        // No range counts a fill value, be it the default, 0.
        if (number && a != fill) {
            if (x < low) low = x;
            if (x > high) high = x;
        }
        bool wrong;
        if (p.rule == SAME_BITS || !number || (p.has_fill && a == fill)) {
            special++;
            wrong = a != b;
            moved += wrong;
        } else {
            finite++;
            const double limit = as_f64(p.limit);
            const bool right = p.rule == WITHIN ? within((double)x, (double)y, limit)
                               : p.rule == WITHIN_PART
                                   ? within_part((double)x, (double)y, limit)
                                   : kept((double)x, (double)y, a == b, (u32)p.keep, as_f64(p.low), as_f64(p.high));
            wrong = !right;
            broken += wrong;
            filled += p.has_fill && b == fill;
        }
        if (wrong && i < first) first = i;
    }

    // Adds a warp's to the chunk's.
    __device__ __forceinline__ void leave(Found* found) {
        const u32 numbers = warp::sum(finite), bits = warp::sum(special), off = warp::sum(broken),
                  filling = warp::sum(filled), changed = warp::sum(moved);
        warp::range(low, high);
        if (first != ~0u) atomicMax(&found->first, ~(u64)first);
        if ((threadIdx.x & 31) != 0) return;
        if (numbers) atomicAdd(&found->finite, (u64)numbers);
        if (bits) atomicAdd(&found->special, (u64)bits);
        if (off) atomicAdd(&found->broken, (u64)off);
        if (filling) atomicAdd(&found->filled, (u64)filling);
        if (changed) atomicAdd(&found->moved, (u64)changed);
        if (low <= high) {
            atomicMax(&found->high, rank((double)high));
            atomicMax(&found->low, ~rank((double)low));
        }
    }
};

// One part of a chunk.
template <class S>
__device__ __forceinline__ void judge(const Args& args) {
    const u32 chunk = blockIdx.x / (u32)args.parts, part = blockIdx.x - chunk * (u32)args.parts;
    const Piece& p = ((const Piece*)args.pieces)[chunk];
    Tally<S> tally;
    // A chunk that did not come back has no address.
    if (p.decoded) {
        for (u32 round = 0; round < ROUNDS; round++) {
            const u32 at = part * PART + 4 * (round * THREADS + threadIdx.x);
            const S *from = (const S*)p.original + at, *back = (const S*)p.decoded + at;
            if (at + 4 <= args.count) {
                S x[4], y[4];
                load4<true>(from, x), load4<true>(back, y);
                for (u32 j = 0; j < 4; j++) tally.take(p, at + j, x[j], y[j]);
            } else {
                for (u32 j = 0; j < 4 && at + j < args.count; j++) tally.take(p, at + j, from[j], back[j]);
            }
        }
    }
    tally.leave((Found*)args.found + chunk);
}

}  // namespace values
