// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of szx from bytes, the twin of codecs/src/codec/szx/decode.rs; FORMAT.md §4 and §7 there, SZx's paper in
// encode.cuh.
//
// `layout` checks a tile's kinds, bitmaps and codes, from which every length follows, before anything is read by them.
// `take` reads a block, one warp: the bytes that codes say are there, rank after rank; a prefix exclusive or over the
// warp makes words of differences (what the paper calls index propagation); words become values, and outliers go over
// them.
#pragma once
#include "format.cuh"

namespace szx {

template <class Bits>
__device__ __forceinline__ Bits get(const u8* at) {
    if (sizeof(Bits) == 4) return *(const u32*)at;
    return (Bits)(((const u32*)at)[0] | (u64)((const u32*)at)[1] << 32);
}

// Four bytes at any offset; the array is 4-byte aligned and readable up to the next whole word.
__device__ __forceinline__ u32 four(const u8* stage, u32 at) {
    const u32* words = (const u32*)stage + (at >> 2);
    return __funnelshift_r(words[0], words[1], 8 * (at & 3));
}

__device__ __forceinline__ u32 below_plane(u32 low, u32 high, int p) {
    // Values whose code is at most p.
    return p == 0 ? ~(low | high) & 15u : p == 1 ? ~high & 15u : p == 2 ? ~(low & high) & 15u : 15u;
}

// Checks kinds, bitmaps, codes and every length of a tile in `len` bytes before any is used, and keeps kinds and
// offsets. Block `lane` has `count` values. Whole warp, one block a lane.
template <class S, bool POINTWISE>
__device__ __forceinline__ bool layout(const u8* stage, Parts* parts, u32* kinds, const Rule<S>& r, u32 len, u32 blocks,
                                       int count, int lane) {
    using T = Traits<S>;
    const u32 heads = (blocks + 3) & ~3u;
    if (len < heads) return false;
    const u32 kind = lane < (int)heads ? stage[lane] : 0;
    const u32 low6 = kind & 63u, high2 = kind >> 6;
    const bool here = lane<(int)blocks, coded = low6> RAW;
    const u32 q = low6 - CODED, bytes = word_bytes(q);
    bool good = here || kind == 0;
    if (coded) good = good && (POINTWISE ? q >= 1 + T::E && q <= 8 * T::W : r.usable && q <= T::M);
    if (high2 == 1) good = good && coded;
    if (high2 > 1) good = good && low6 != RAW;
    if (!__all_sync(warp::ALL, good)) return false;
    const u32 fixed = here ? fixed_parts<POINTWISE>(kind) : 0;
    u32 end;
    Parts p = offsets<T::W>(fixed, 0, blocks, lane, end);
    u32 d_len = 0;
    const bool has_outliers = here && (kind & OUTLIERS);
    const u32 bitmaps_end = warp::from(p.bitmap + (has_outliers ? 16u : 0u), 31);
    if (bitmaps_end > len) return false;
    if (has_outliers) {
        const u32* map = (const u32*)(stage + p.bitmap);
        u32 stored = 0, beyond = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const u32 m = map[k];
            stored += (u32)__popc(m);
            const int left = count - 32 * k;
            beyond |= left >= 32 ? 0 : left <= 0 ? m : m >> left;
        }
        good = stored > 0 && beyond == 0;
        d_len = T::W * (high2 == 3 ? 1 : stored);
    }
    p = offsets<T::W>(fixed, d_len, blocks, lane, end);
    if (end > len) return false;
    u32 f_len = 0;
    if (here && low6 == RAW) f_len = (u32)count * T::W;
    if (here && coded) {
        f_len = 128 * bytes;
        if (high2 != 1) {
            const u32* codes = (const u32*)(stage + p.codes);
            u32 n[3] = {0, 0, 0};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const u32 low = codes[k], high = codes[k + 4];
                n[0] += (u32)__popc(~(low | high));
                n[1] += (u32)__popc(~high);
                n[2] += (u32)__popc(~(low & high));
            }
            f_len = bytes > 3 ? (bytes - 3) * 128 : 0;
#pragma unroll
            for (int k = 0; k < 3; k++) {
                if (k < (int)bytes) {
                    f_len += n[k];
                } else {
                    good = good && n[k] == 128;
                }
            }
        }
    }
    p = offsets<T::W>(fixed, d_len | f_len << 16, blocks, lane, end);
    good = good && (end + 3) / 4 * 4 == len;
    if (good && lane < 4 && end + lane < len) good = stage[end + lane] == 0;
    parts[lane] = p;
    kinds[lane] = kind;
    if (here && coded && !POINTWISE) {
        // The result of arithmetic with a base that is not finite has bits that machines disagree on.
        const auto base = get<typename T::Bits>(stage + min(p.base, len - T::W));
        good = good && (base & T::EXPONENT) != T::EXPONENT;
    }
    return __all_sync(warp::ALL, good);
}

// Reads one block whose parts were found right. Whole warp.
template <class S, bool POINTWISE>
__device__ __forceinline__ void take(const u8* stage, u32 kind, const Parts& at, const Rule<S>& r, int lane,
                                     typename Traits<S>::Bits (&x)[4]) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    const u32 low6 = kind & 63u;
    if (low6 <= CONSTANT) {
        const Bits base = low6 == CONSTANT ? get<Bits>(stage + at.base) : Bits(0);
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = base;
    } else if (low6 == RAW) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const u32 from = at.mid + (4 * lane + j) * T::W;
            x[j] = four(stage, from);
            if (T::W == 8) x[j] |= (Bits)((u64)four(stage, from + 4) << 32);
        }
    } else {
        const u32 q = low6 - CODED, bytes = word_bytes(q);
        const bool codes = (kind & UNIFORM) != NO_CODES;
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = 0;
        u32 start = at.mid;
        u32 first = 0;
        if (codes) {
            const u32 shift = 4 * (lane & 1);
            const u32 low = stage[at.codes + lane / 2] >> shift & 15u,
                      high = stage[at.codes + 16 + lane / 2] >> shift & 15u;
            const u32 mine = (u32)__popc(below_plane(low, high, 0)) | (u32)__popc(below_plane(low, high, 1)) << 10 |
                             (u32)__popc(below_plane(low, high, 2)) << 20;
            const u32 upto = warp::inclusive(mine, lane);
            const u32 ranks = upto - mine, counts = warp::from(upto, 31);
#pragma unroll
            for (int p = 0; p < 3; p++) {
                if (p < (int)bytes) {
                    const u32 mask = below_plane(low, high, p);
                    u32 w = four(stage, start + (ranks >> (10 * p) & 1023u));
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        x[j] <<= 8;
                        if (mask >> j & 1) {
                            x[j] |= w & 255u;
                            w >>= 8;
                        }
                    }
                    start += counts >> (10 * p) & 1023u;
                }
            }
            first = 3;
        }
        for (u32 p = first; p < bytes; p++) {
            const u32 w = four(stage, start + 4 * lane);
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] = x[j] << 8 | (w >> (8 * j) & 255u);
            start += 128;
        }
        if (codes) {
            x[1] ^= x[0];
            x[2] ^= x[1];
            x[3] ^= x[2];
            const Bits upto =
                T::W == 8 && bytes <= 4 ? (Bits)warp::inclusive_xor((u32)x[3], lane) : warp::inclusive_xor(x[3], lane);
            const Bits before = upto ^ x[3];
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] ^= before;
        }
        if (POINTWISE) {
            const u32 cut = 8 * T::W - q;
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] <<= cut;
        } else {
            const S base = T::value(get<Bits>(stage + at.base)), magic = T::value(T::MAGIC);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const S k = T::sub(T::value(x[j] + T::MAGIC), magic);
                x[j] = T::bits(T::add(base, T::mul(k, r.step)));
            }
        }
    }
    if (kind & OUTLIERS) {
        const u32 outliers = stage[at.bitmap + lane / 2] >> (4 * (lane & 1)) & 15u;
        const u32 mine = (u32)__popc(outliers);
        u32 rank = warp::inclusive(mine, lane) - mine;
        const bool uniform = (kind & UNIFORM) == UNIFORM;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (outliers >> j & 1) {
                x[j] = get<Bits>(stage + at.outliers + (uniform ? 0 : rank * T::W));
                rank++;
            }
        }
    }
}

}  // namespace szx
