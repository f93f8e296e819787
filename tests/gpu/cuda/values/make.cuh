// SPDX-License-Identifier: MIT OR Apache-2.0
// Values out of a counter: value i of a chunk depends on its piece and on i alone.
#pragma once
#include "piece.cuh"

namespace values {

enum Kind : u32 { PATTERNS, WAVES, ONE_EXPONENT, NEAR_STEPS, LARGEST, SUBNORMAL, ANY_BITS, PLATEAUS };

// From -1 to 1 as a phase of 32 bits goes round: two arcs of parabolas.
__device__ __forceinline__ double arc(u32 phase) {
    const double t = (double)(int)phase * 0x1p-31;
    return t * (1.0 - (t < 0.0 ? -t : t)) * 4.0;
}

// A sum of waves along the axes.
__device__ __forceinline__ double waves(const Piece& p, u32 i) {
    const u32 width = (u32)p.width, height = (u32)p.height;
    const u32 row = i / width, x = i - row * width, z = row / height, y = row - z * height;
    const u64 a = mixed(p.seed), b = mixed(p.seed + 1);
    // At least 16 values a period.
    return arc(x * ((u32)a >> 4) + (u32)b) + arc(y * ((u32)(a >> 32) >> 5)) + arc(z * ((u32)(b >> 32) >> 6));
}

// From -0.5 to 0.5, by the upper half of a random number.
__device__ __forceinline__ double centred(u64 random) { return (double)(int)(u32)(random >> 32) * 0x1p-32; }

template <class S>
__device__ __forceinline__ S near_steps(const Piece& p, u32 i, u64 random) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    // Multiples of half a step: as a wave has them, or random ones of up to `stride` bits.
    const double smooth = waves(p, i) * (double)(1ull << p.stride);
    const long long any = (long long)(random >> (63 - p.stride)) - (1ll << p.stride);
    const double k = p.seed & 1 ? (double)(long long)smooth : (double)any;
    const Bits bits = T::bits(T::round(k * as_f64(p.step)));
    // And up to three bits beside.
    return T::value((Bits)(bits + ((Bits)(random & 7) + 5) % 7 - 3));
}

template <class S>
__device__ __forceinline__ S unsalted(const Piece& p, u32 i, u64 random) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    constexpr Bits MANTISSA = ((Bits)1 << T::M) - 1, SIGN = (Bits)1 << (8 * T::W - 1);
    switch ((u32)p.kind) {
        case PATTERNS: return T::value((Bits)(p.first + i * p.stride));
        // `stride` is log2 of the noise's part.
        case WAVES:
            return T::round((waves(p, i) + centred(random) * as_f64((1023 - p.stride) << 52)) * as_f64(p.scale) +
                            as_f64(p.step));
        // As smooth as values of an exponent can be, but for the sign, or random ones.
        case ONE_EXPONENT: return T::value((Bits)p.first | ((Bits)random & (MANTISSA | SIGN)));
        case NEAR_STEPS: return near_steps<S>(p, i, random);
        case LARGEST: {
            const Bits below = (Bits)((random >> 8) & ((1ull << p.stride) - 1));
            const Bits sign = (p.seed & 1 ? waves(p, i) < 0.0 : (random & 1) != 0) ? SIGN : 0;
            return T::value((T::EXPONENT - 1 - below) | sign);
        }
        case SUBNORMAL: return T::value((Bits)((random >> p.stride) & (MANTISSA << 1 | 1)) | (random & 1 ? SIGN : 0));
        case ANY_BITS: return T::value((Bits)random);
        default: return T::round(centred(mixed(p.seed + i / (u32)p.width)) * as_f64(p.scale));
    }
}

// What stands in a salted run.
template <class S>
__device__ __forceinline__ S salt(const Piece& p, u64 which, u64 random, S plain) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    constexpr Bits MANTISSA = ((Bits)1 << T::M) - 1, SIGN = (Bits)1 << (8 * T::W - 1);
    const Bits sign = random & 1 ? SIGN : 0;
    switch (which & 7) {
        // NaN of any payload but none.
        case 0: return T::value(T::EXPONENT | sign | ((Bits)(random >> 7) & MANTISSA) | 1);
        case 1: return T::value(T::EXPONENT | sign);
        case 2: return T::value((Bits)p.fill);
        // Beside the fill value, an ordinary value; of fill value 0 the smallest of all.
        case 3: return T::value((Bits)(p.fill + 1));
        case 4: return T::value(((Bits)(random >> 7) & MANTISSA) | sign);
        case 5: return T::value((T::EXPONENT - 1 - ((Bits)(random >> 7) & 255)) | sign);
        case 6: return T::value(sign);
        default: return T::mul(plain, (S)1000003);
    }
}

// One part of a chunk.
template <class S>
__device__ __forceinline__ void make(const Args& args) {
    using Bits = typename Traits<S>::Bits;
    const u32 chunk = blockIdx.x / (u32)args.parts, part = blockIdx.x - chunk * (u32)args.parts;
    const Piece& p = ((const Piece*)args.pieces)[chunk];
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 at = part * PART + 4 * (round * THREADS + threadIdx.x);
        Bits bits[4];
        for (u32 j = 0; j < 4; j++) {
            const u32 i = at + j;
            const u64 random = mixed(p.seed * 0x2545f4914f6cdd1dull + i);
            S x = unsalted<S>(p, i, random);
            if (p.salt) {
                const u64 run = mixed(~p.seed + (i >> p.run_log2));
                if ((u32)run < (u32)p.salt) x = salt(p, run >> 32, mixed(random), x);
            }
            bits[j] = Traits<S>::bits(x);
        }
        Bits* to = (Bits*)p.original + at;
        if (at + 4 <= args.count) {
            store4(to, bits);
        } else {
            for (u32 j = 0; j < 4 && at + j < args.count; j++) to[j] = bits[j];
        }
    }
}

}  // namespace values
