// SPDX-License-Identifier: MIT OR Apache-2.0
// szx as fields, the twin of codecs/src/codec/szx/format.rs: kinds of blocks, what a bound means to a value, where a
// tile's parts lie.
#pragma once
#include "../prim/warp.cuh"

namespace szx {

constexpr u32 ZERO = 0, CONSTANT = 1, RAW = 2, CODED = 2;  // a coded block's kind is CODED + q
constexpr u32 NO_CODES = 1u << 6, OUTLIERS = 2u << 6, UNIFORM = 3u << 6;

// What the header's bound means to every value, the same for all tiles of a chunk.
template <class S>
struct Rule {
    double bound;
    S step, inverse, surely;
    S zero;  // the largest magnitude that holds with 0
    S apart;  // a rounded difference above it is more than twice the bound
    bool usable, fill_on;
    u32 q, cut;  // point-wise: required bits, and those cut off
    typename Traits<S>::Bits fill;
};

template <class S>
__device__ __forceinline__ Rule<S> rule(double bound, bool pointwise, u64 fill, bool fill_on) {
    using T = Traits<S>;
    Rule<S> r;
    r.bound = bound;
    r.fill = (typename T::Bits)fill;
    r.fill_on = fill_on;
    const int field = (int)((u64)__double_as_longlong(bound) >> 52 & 0x7ff);
    const int e = field - 1023;
    r.usable = field >= 1 && field <= 2046 && e + 1 >= T::LEAST && e + 1 <= T::MOST;
    r.step = r.usable ? T::power(e + 1) : S(0);
    r.inverse = r.usable ? T::power(-e - 1) : S(0);
    r.surely = T::surely(bound);
    r.zero = T::down(bound);
    r.apart = T::round(__dmul_rn(bound, 2.0 + 0x1p-18));
    // A relative bound is normal unless it is absurdly small; then every bit is required.
    const int fraction = min(max(field == 0 ? T::M : -e - 1, 0), T::M);
    r.q = pointwise ? (u32)min(1 + T::E + fraction, 61) : 0;
    r.q = min(r.q, 8u * T::W);
    r.cut = 8 * T::W - r.q;
    return r;
}

// Bytes of a word of q bits.
__device__ __forceinline__ u32 word_bytes(u32 q) { return (q + 7) / 8; }

// What a word's bits hold besides the word, the same in all words: of 4-byte words in the absolute modes the exponent,
// which lies above their three bytes.
template <class S, bool POINTWISE>
__device__ __forceinline__ constexpr typename Traits<S>::Bits origin() {
    return Traits<S>::W == 4 && !POINTWISE ? Traits<S>::MAGIC : 0;
}

// Offsets of one block's parts from the start of its tile's payload.
struct Parts {
    u32 base, bitmap, outliers, codes, mid;
};

// Counts of a block's fixed parts, 8 bits each: base, bitmap, codes.
template <bool POINTWISE>
__device__ __forceinline__ u32 fixed_parts(u32 kind) {
    const u32 low6 = kind & 63u;
    const u32 base = low6 == CONSTANT || (low6 > RAW && !POINTWISE);
    const u32 codes = low6 > RAW && (kind & UNIFORM) != NO_CODES;
    return base | (kind >> 7) << 8 | codes << 16;
}

// Where the parts of block `lane` start, from its counts and lengths; the tile's length in `end`. Whole warp, one block
// a lane; `lens` has the length of D in its lower half and that of F in its upper half.
template <int W>
__device__ __forceinline__ Parts offsets(u32 fixed, u32 lens, u32 blocks, int lane, u32& end) {
    const u32 f = warp::inclusive(fixed, lane), l = warp::inclusive(lens, lane);
    const u32 f_all = warp::from(f, 31), l_all = warp::from(l, 31);
    const u32 fx = f - fixed, lx = l - lens;
    Parts p;
    u32 at = (blocks + 3) & ~3u;
    p.base = at + W * (fx & 255u);
    at += W * (f_all & 255u);
    p.bitmap = at + 16 * (fx >> 8 & 255u);
    at += 16 * (f_all >> 8 & 255u);
    p.outliers = at + (lx & 0xffffu);
    at += l_all & 0xffffu;
    p.codes = at + 32 * (fx >> 16);
    at += 32 * (f_all >> 16);
    p.mid = at + (lx >> 16);
    end = at + (l_all >> 16);
    return p;
}

}  // namespace szx
