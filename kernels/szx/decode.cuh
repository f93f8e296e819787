// SPDX-License-Identifier: MIT OR Apache-2.0
// A tile's payload in shared memory: where each block's parts lie, and bytes put in and taken out by one warp.
#pragma once
#include "encode.cuh"

namespace szx {

// Offsets of one block's parts from the start of its tile's payload.
struct Parts {
    u32 base, bitmap, special, codes, mid;
};

// Counts of a block's fixed parts, 8 bits each: base, bitmap, codes.
template <bool POINTWISE>
__device__ __forceinline__ u32 fixed_parts(u32 kind) {
    const u32 low6 = kind & 63u;
    const u32 base = low6 == CONSTANT || (low6 > RAW && !POINTWISE);
    const u32 codes = low6 > RAW && (kind & UNIFORM) != NO_CODES;
    return base | (kind >> 7) << 8 | codes << 16;
}

// Where the parts of block `lane` start, from its counts and lengths; the tile's length in `end`. Whole warp, one block a
// lane; `lens` has the length of D in its lower half and that of F in its upper half.
template <int W>
__device__ __forceinline__ Parts place(u32 fixed, u32 lens, u32 blocks, int lane, u32& end) {
    const u32 f = warp::inclusive(fixed, lane), l = warp::inclusive(lens, lane);
    const u32 f_all = warp::from(f, 31), l_all = warp::from(l, 31);
    const u32 fx = f - fixed, lx = l - lens;
    Parts p;
    u32 at = (blocks + 3) & ~3u;
    p.base = at + W * (fx & 255u);
    at += W * (f_all & 255u);
    p.bitmap = at + 16 * (fx >> 8 & 255u);
    at += 16 * (f_all >> 8 & 255u);
    p.special = at + (lx & 0xffffu);
    at += l_all & 0xffffu;
    p.codes = at + 32 * (fx >> 16);
    at += 32 * (f_all >> 16);
    p.mid = at + (lx >> 16);
    end = at + (l_all >> 16);
    return p;
}

// W bytes at a multiple of 4.
__device__ __forceinline__ void put(u8* to, u32 x) { *(u32*)to = x; }
__device__ __forceinline__ void put(u8* to, u64 x) {
    ((u32*)to)[0] = (u32)x;
    ((u32*)to)[1] = (u32)(x >> 32);
}
template <class Bits>
__device__ __forceinline__ Bits get(const u8* at) {
    if (sizeof(Bits) == 4) return *(const u32*)at;
    return (Bits)(((const u32*)at)[0] | (u64)((const u32*)at)[1] << 32);
}

// Four bytes at any place; the array is 4-byte aligned and readable up to the next whole word.
__device__ __forceinline__ u32 four(const u8* stage, u32 at) {
    const u32* words = (const u32*)stage + (at >> 2);
    return __funnelshift_r(words[0], words[1], 8 * (at & 3));
}

// Byte `p` counted from the most significant of `bytes`.
template <class Bits>
__device__ __forceinline__ u8 plane_byte(Bits x, u32 bytes, u32 p) {
    return (u8)(x >> (8 * (bytes - 1 - p)));
}

// Writes block `block`'s parts B to F; `parts` is what `place` gave. `values` is asked for the block's values, only where
// bits of specials are stored. Whole warp.
template <class S, bool POINTWISE, class Values>
__device__ __forceinline__ void emit(u8* stage, const Block<S>& b, const Lane<S>& own, const Parts& parts, u32 block, int count,
                                     int lane, Values values) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    const u32 low6 = b.kind & 63u;
    const u32 mid = warp::from(parts.mid, (int)block), base = warp::from(parts.base, (int)block);
    if (low6 == RAW) {
        // The place is odd in general.
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (4 * lane + j < count) {
                u8* to = stage + mid + (4 * lane + j) * T::W;
                if ((mid & 3) == 0) {
                    put(to, own.word[j]);
                } else {
#pragma unroll
                    for (int k = 0; k < T::W; k++) to[k] = (u8)(own.word[j] >> (8 * k));
                }
            }
        }
        return;
    }
    const bool coded = low6 > RAW;
    if (lane == 0 && (low6 == CONSTANT || (coded && !POINTWISE))) put(stage + base, b.base);
    if (!coded && !(b.kind & SPECIALS)) return;
    const bool codes = coded && (b.kind & UNIFORM) != NO_CODES;
    const u32 pair = own.nibbles | __shfl_down_sync(warp::ALL, own.nibbles, 1) << 4;
    if (b.kind & SPECIALS) {
        const u32 special = own.nibbles & 15u;
        const u32 bitmap = warp::from(parts.bitmap, (int)block), stored = warp::from(parts.special, (int)block);
        if ((lane & 1) == 0) stage[bitmap + lane / 2] = (u8)pair;
        S x[4];
        values(x);
        const u32 mine = (u32)__popc(special);
        u32 rank = warp::inclusive(mine, lane) - mine;
        const bool uniform = (b.kind & UNIFORM) == UNIFORM;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (special >> j & 1) {
                if (!uniform || rank == 0) put(stage + stored + rank * T::W, T::bits(x[j]));
                rank++;
            }
        }
    }
    if (!coded) return;
    const u32 bytes = word_bytes(low6 - CODED);
    if (codes) {
        const u32 at = warp::from(parts.codes, (int)block);
        if ((lane & 1) == 0) {
            stage[at + lane / 2] = (u8)(pair >> 8);
            stage[at + 16 + lane / 2] = (u8)(pair >> 16);
        }
        const u32 most = min(bytes, 3u), dense = origin<S, POINTWISE>() ? 0 : bytes - most;
        u8* start = stage + mid;
#pragma unroll
        for (int p = 2; p >= 0; p--) {
            if (p < (int)most) {
                u8* to = start + (own.ranks >> (10 * p) & 1023u);
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    // What a word has besides its bytes is gone from differences.
                    const u32 top = (u32)(own.word[j] >> (8 * dense)) >> (8 * p);
                    if (top) {
                        *to = (u8)top;
                        to++;
                    }
                }
                start += b.counts >> (10 * p) & 1023u;
            }
        }
        for (u32 p = 3; p < bytes; p++) {
#pragma unroll
            for (int j = 0; j < 4; j++) start[4 * lane + j] = plane_byte(own.word[j], bytes, p);
            start += 128;
        }
    } else if ((mid & 3) == 0 && bytes <= 4) {
        for (u32 p = 0; p < bytes; p++) {
            const u32 s = bytes - 1 - p, two = s | (s + 4) << 4;
            const u32 a = __byte_perm((u32)own.word[0], (u32)own.word[1], two), c = __byte_perm((u32)own.word[2], (u32)own.word[3], two);
            *(u32*)(stage + mid + 128 * p + 4 * lane) = __byte_perm(a, c, 0x5410);
        }
    } else {
        for (u32 p = 0; p < bytes; p++) {
            u8* to = stage + mid + 128 * p + 4 * lane;
#pragma unroll
            for (int j = 0; j < 4; j++) to[j] = plane_byte(own.word[j], bytes, p);
        }
    }
}

// Checks kinds, bitmaps, codes and every length of a tile in `len` bytes before any is used, and keeps kinds and places. Block
// `lane` has `count` values. Whole warp, one block a lane.
template <class S, bool POINTWISE>
__device__ __forceinline__ bool layout(const u8* stage, Parts* parts, u32* kinds, const Rule<S>& r, u32 len, u32 blocks, int count, int lane) {
    using T = Traits<S>;
    const u32 heads = (blocks + 3) & ~3u;
    if (len < heads) return false;
    const u32 kind = lane < (int)heads ? stage[lane] : 0;
    const u32 low6 = kind & 63u, high2 = kind >> 6;
    const bool here = lane < (int)blocks, coded = low6 > RAW;
    const u32 q = low6 - CODED, bytes = word_bytes(q);
    bool good = here || kind == 0;
    if (coded) good = good && (POINTWISE ? q >= 1 + T::E && q <= 8 * T::W : r.usable && q <= T::M);
    if (high2 == 1) good = good && coded;
    if (high2 > 1) good = good && low6 != RAW;
    if (!__all_sync(warp::ALL, good)) return false;
    const u32 fixed = here ? fixed_parts<POINTWISE>(kind) : 0;
    u32 end;
    Parts p = place<T::W>(fixed, 0, blocks, lane, end);
    u32 d_len = 0;
    const bool specials = here && (kind & SPECIALS);
    const u32 bitmaps_end = warp::from(p.bitmap + (specials ? 16u : 0u), 31);
    if (bitmaps_end > len) return false;
    if (specials) {
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
    p = place<T::W>(fixed, d_len, blocks, lane, end);
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
    p = place<T::W>(fixed, d_len | f_len << 16, blocks, lane, end);
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
            const u32 low = stage[at.codes + lane / 2] >> shift & 15u, high = stage[at.codes + 16 + lane / 2] >> shift & 15u;
            const u32 mine = (u32)__popc(below_plane(low, high, 0)) | (u32)__popc(below_plane(low, high, 1)) << 10
                             | (u32)__popc(below_plane(low, high, 2)) << 20;
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
            const Bits upto = T::W == 8 && bytes <= 4 ? (Bits)warp::inclusive_xor((u32)x[3], lane)
                                                      : warp::inclusive_xor(x[3], lane);
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
    if (kind & SPECIALS) {
        const u32 special = stage[at.bitmap + lane / 2] >> (4 * (lane & 1)) & 15u;
        const u32 mine = (u32)__popc(special);
        u32 rank = warp::inclusive(mine, lane) - mine;
        const bool uniform = (kind & UNIFORM) == UNIFORM;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (special >> j & 1) {
                x[j] = get<Bits>(stage + at.special + (uniform ? 0 : rank * T::W));
                rank++;
            }
        }
    }
}

}  // namespace szx
