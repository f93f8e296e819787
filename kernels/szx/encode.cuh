// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks of szx into bytes, the twin of codecs/src/codec/szx/encode.rs; FORMAT.md §8.1 there. After SZx: X. Yu, S. Di,
// K. Zhao et al., "Ultrafast Error-Bounded Lossy Compression for Scientific Datasets", HPDC '22,
// doi:10.1145/3502181.3531473, Algorithm 1.
//
// A block is 128 values on one warp: lane l holds values 4l to 4l + 3.
//
//   find_regular       the range of the values that are finite and not the fill value
//   are_zeros          zeros stand for them all: the block is zero
//   classify           one value within the bound of all makes it constant (one_pattern, or the middle of the range);
//                      else words: whole steps above the least value, point-wise the value's own upper bits; values
//                      that the decoder's arithmetic would bring back outside the bound are outliers
//   repeat_words       an outlier gets the word before it
//   difference_words   each word's exclusive or with the word before, less its leading zero bytes, whose number is a
//                      code of two bits; the bytes of one rank stand together
//   emit               puts the parts at their offsets, once all lengths of the tile are known
//
// `analyse` runs all but the last, and leaves raw what gains nothing.
// What belongs to four neighbouring values is a nibble of one lane; two lanes' nibbles are a byte of a bitmap.
#pragma once
#include "../base/keep.cuh"
#include "format.cuh"

namespace szx {

// What one lane keeps of a block it has looked at.
template <class S>
struct LaneWords {
    typename Traits<S>::Bits word[4];  // differences of words, words, or raw bits
    u32 nibbles;  // bytes: values whose bits part D holds; low and high bits of the leading-byte codes
    u32 ranks;  // bytes before this lane's in the sparse planes, the least significant first: 10 bits each
};

// What all lanes know of it.
template <class S>
struct Block {
    typename Traits<S>::Bits base;
    u32 kind;
    u32 counts;  // bytes of the sparse planes, the least significant first: 10 bits each
    u32 lens;  // bytes of part D, and of part F from bit 16 on
};

// Whether a value of the block holds with reconstruction y, point-wise.
template <class S>
__device__ __forceinline__ bool holds_pointwise(S x, S y, double r) {
    using T = Traits<S>;
    if (T::bits(x) == T::bits(y)) return true;
    const double d = fabs(__dsub_rn((double)x, (double)y));
    const double p = __dmul_rn(r, fabs((double)x));
    return p > 0.0 && d < exact::below(p);
}

// The regular values of a block: those that are finite and not the fill value.
template <class S>
struct Regular {
    S lo, hi;  // of all lanes; lo above hi where there is none
    u32 which;  // a bit for each of this lane's four
    bool all;
};

// Finds the regular values and their range. Whole warp.
template <class S>
__device__ __forceinline__ Regular<S> find_regular(const S (&x)[4], const Rule<S>& r) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    u32 regular = 15;
    S lo = x[0], hi = x[0];
    // Zero times a finite number is a zero; times any other it is NaN.
    S finite = T::mul(x[0], S(0));
#pragma unroll
    for (int j = 1; j < 4; j++) {
        finite = T::fma(x[j], S(0), finite);
        lo = T::least(lo, x[j]);
        hi = T::most(hi, x[j]);
    }
    const bool all = !r.fill_on && __all_sync(warp::ALL, finite == S(0));
    if (!all) {
        regular = 0;
        lo = T::infinity();
        hi = -T::infinity();
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const Bits bits = T::bits(x[j]);
            const bool is = (bits & T::EXPONENT) != T::EXPONENT && !(r.fill_on && bits == r.fill);
            regular |= (u32)is << j;
            if (is) {
                lo = T::least(lo, x[j]);
                hi = T::most(hi, x[j]);
            }
        }
    }
    warp::range(lo, hi);
    return {T::add(lo, S(0)), T::add(hi, S(0)), regular, all};
}

// Nothing but the bound is kept.
struct Free {
    template <class S>
    __device__ __forceinline__ bool allow(S, S) const {
        return true;
    }
};
template <class Limits>
constexpr bool IS_FREE = false;
template <>
constexpr bool IS_FREE<Free> = true;

// Whether one value may stand for all regular ones, as far as that is not the bound's matter. Whole warp.
template <class S, class Limits>
__device__ __forceinline__ bool allow_all(const S (&x)[4], const Regular<S>& regular, const Limits& limits, S back) {
    if (IS_FREE<Limits>) return true;
    bool all = true;
#pragma unroll
    for (int j = 0; j < 4; j++) all = all && (!(regular.which >> j & 1) || limits.allow(x[j], back));
    return __all_sync(warp::ALL, all);
}

// Whether those of this lane's values that `which` names all have these bits.
template <class S>
__device__ __forceinline__ bool all_are(const S (&x)[4], u32 which, typename Traits<S>::Bits bits) {
    bool same = true;
#pragma unroll
    for (int j = 0; j < 4; j++) same = same && (!(which >> j & 1) || Traits<S>::bits(x[j]) == bits);
    return same;
}

// Bits of the block's first value that `which` names; there is one. Whole warp.
template <class S>
__device__ __forceinline__ typename Traits<S>::Bits first_bits(const S (&x)[4], u32 which) {
    const u32 holders = __ballot_sync(warp::ALL, which != 0);
    const int j0 = __ffs((int)which) - 1;
    const auto mine = Traits<S>::bits(j0 <= 0 ? x[0] : j0 == 1 ? x[1] : j0 == 2 ? x[2] : x[3]);
    return warp::from(mine, __ffs((int)holders) - 1);
}

// Whether zeros stand for all regular values. Whole warp.
template <class S, bool POINTWISE>
__device__ __forceinline__ bool are_zeros(const S (&x)[4], const Regular<S>& regular, const Rule<S>& r) {
    const S lo = regular.lo, hi = regular.hi;
    const bool any = lo <= hi;
    if (!POINTWISE && r.bound > 0.0) return any && -lo <= r.zero && hi <= r.zero;
    const bool zeros = lo == S(0) && hi == S(0) && all_are(x, regular.which, 0);
    return any && __all_sync(warp::ALL, zeros);
}

// Whether one bit pattern stands for all values, or with bound 0 for all regular ones: then it is the base. Only
// possible where nothing is regular, or nothing but one value. Whole warp.
template <class S, bool POINTWISE>
__device__ __forceinline__ bool one_pattern(const S (&x)[4], const Regular<S>& regular, const Rule<S>& r,
                                            typename Traits<S>::Bits& base, u32& outliers) {
    const bool any = regular.lo <= regular.hi;
    const auto first = warp::from(Traits<S>::bits(x[0]), 0);
    if (__all_sync(warp::ALL, all_are(x, 15, first))) {
        base = first;
        outliers = 0;
        return true;
    }
    if (any && !POINTWISE && !(r.bound > 0.0)) {
        const auto mine = first_bits(x, regular.which);
        if (__all_sync(warp::ALL, all_are(x, regular.which, mine))) {
            base = mine;
            return true;
        }
    }
    return false;
}

// Gives every outlier the word of the nearest value before it that is none, or `origin`. Whole warp.
template <class Bits>
__device__ __forceinline__ void repeat_words(Bits (&word)[4], u32 outliers, Bits origin, int lane) {
    Bits carry = 0;
    bool have = false;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (!(outliers >> j & 1)) {
            carry = word[j];
            have = true;
        }
    }
    const u32 before = __ballot_sync(warp::ALL, have) & ((1u << lane) - 1u);
    Bits last = warp::from(carry, before ? 31 - __clz((int)before) : 0);
    if (!before) last = origin;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (outliers >> j & 1) word[j] = last;
        last = word[j];
    }
}

// Counts the bytes of the words' differences, and takes the differences for words unless whole words are shorter: then
// the kind says so. Returns the length of part F. Whole warp.
template <class S, bool POINTWISE>
__device__ __forceinline__ u32 difference_words(Block<S>& b, LaneWords<S>& own, u32 bytes, bool has_outliers, u32& kind,
                                                u32& low, u32& high, int lane) {
    using Bits = typename Traits<S>::Bits;
    Bits last = __shfl_up_sync(warp::ALL, own.word[3], 1);
    if (lane == 0) last = origin<S, POINTWISE>();
    // Bytes of a difference up to its leading one, in the (at most three) most significant bytes: 10 bits for each.
    const u32 most = min(bytes, 3u), dense = origin<S, POINTWISE>() ? 0 : bytes - most;
    Bits diff[4];
    u32 held[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        diff[j] = own.word[j] ^ last;
        last = own.word[j];
    }
    if (bytes == 1) {
#pragma unroll
        for (int j = 0; j < 4; j++) held[j] = diff[j] != 0;
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const u32 top = (u32)(diff[j] >> (8 * dense));
            held[j] = (u32)(top != 0) + (top > 0xffu ? 1u << 10 : 0u) + (top > 0xffffu ? 1u << 20 : 0u);
        }
    }
    // One bit a value in each field.
    const u32 set = held[0] + 2 * held[1] + 4 * held[2] + 8 * held[3];
    low = (set ^ set >> 10 ^ set >> 20 ^ (most & 1 ? 15u : 0u)) & 15u;
    high = most == 1 ? 0u : ~(set >> (10 * (most - 2))) & 15u;
    const u32 mine = held[0] + held[1] + held[2] + held[3];
    const u32 upto = warp::inclusive(mine, lane);
    own.ranks = upto - mine;
    b.counts = warp::from(upto, 31);
    const u32 len = (b.counts & 1023u) + (b.counts >> 10 & 1023u) + (b.counts >> 20) + dense * 128;
    if (!has_outliers && 128 * bytes <= 32 + len) {
        kind |= NO_CODES;
        return 128 * bytes;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) own.word[j] = diff[j];
    return len;
}

// Finds whether a block that is not all zeros is constant, coded or raw; makes its base, and the words of a coded one.
// Outliers so far are the values that are not regular. Nested ifs: with returns the compiler spills more. Whole warp.
template <class S, bool POINTWISE, class Limits>
__device__ __forceinline__ void classify(const S (&x)[4], const Regular<S>& regular, const Rule<S>& r,
                                         const Limits& limits, Block<S>& b, LaneWords<S>& own, bool& constant,
                                         bool& coded, u32& kind, u32& q, u32& outliers) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    const S lo = regular.lo, hi = regular.hi;
    const bool any = lo <= hi;
    if (!any || lo == hi) constant = one_pattern<S, POINTWISE>(x, regular, r, b.base, outliers);
    if (!constant && any) {
        if (POINTWISE || (r.bound > 0.0 && !(T::sub(hi, lo) > r.apart))) {
            const double a = (double)lo, z = (double)hi;
            S m;
            if (T::W == 4) {
                m = T::round(__dmul_rn(__dadd_rn(a, z), 0.5));
            } else {
                m = T::round(__dadd_rn(__dmul_rn(0.5, a), __dmul_rn(0.5, z)));
            }
            m = T::add(m, S(0));
            bool fits;
            if (POINTWISE) {
                const double p = __dmul_rn(r.bound, fmin(fabs(a), fabs(z)));
                const double c = exact::below(p);
                fits =
                    (a > 0.0 || z < 0.0) && p > 0.0 && exact::within(a, (double)m, c) && exact::within(z, (double)m, c);
            } else {
                fits = T::sub(m, lo) <= r.surely && T::sub(hi, m) <= r.surely;
                if (!fits) fits = exact::within(a, (double)m, r.bound) && exact::within(z, (double)m, r.bound);
            }
            if (fits && allow_all(x, regular, limits, m)) {
                constant = true;
                b.base = T::bits(m);
            }
        }
        if (!constant) {
            if (POINTWISE) {
                coded = true;
                q = r.q;
                const Bits half = r.cut ? Bits(1) << (r.cut - 1) : Bits(0);
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const Bits t = (Bits)(T::bits(x[j]) + half) >> r.cut;
                    own.word[j] = t;
                    outliers |= (u32)!holds_pointwise(x[j], T::value(t << r.cut), r.bound) << j;
                }
            } else {
                // All values up to 2^M - 1 are whole numbers once 2^M is added.
                const S span = T::mul(T::sub(hi, lo), r.inverse);
                const S magic = T::value(T::MAGIC), most = T::sub(magic, S(1));
                coded = r.usable && span <= most;
                if (coded) {
                    q = max(T::length(T::bits(T::add(span, magic)) - T::MAGIC), 1);
                    b.base = T::bits(lo);
                    S back[4], worst = 0;
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        // This product is exact or of no weight, so fusing it changes no bit. The one below may
                        // overflow.
                        const S k = T::fma(T::sub(x[j], lo), r.inverse, magic);
                        own.word[j] = T::bits(k) - (T::MAGIC - origin<S, POINTWISE>());
                        back[j] = T::add(lo, T::mul(T::sub(k, magic), r.step));
                        worst = T::most(worst, fabs(T::sub(x[j], back[j])));
                    }
                    // Differences of regular values are never NaN.
                    if (!(worst <= r.surely) || !IS_FREE<Limits>) {
#pragma unroll
                        for (int j = 0; j < 4; j++) {
                            const bool sure = !IS_FREE<Limits> && worst <= r.surely;
                            const bool holds = sure || exact::within((double)x[j], (double)back[j], r.bound);
                            const bool bad = (regular.which >> j & 1) && !(holds && limits.allow(x[j], back[j]));
                            outliers |= (u32)bad << j;
                        }
                    }
                }
            }
            if (coded) kind = CODED + q;
        }
    }
}

// Decides how the block is coded and makes its words. `x` holds the values, copies of the last one beyond `count`.
// A raw block's bits are in `own.word`. False when nothing of `own` is needed. Whole warp.
template <class S, bool POINTWISE, class Limits>
__device__ __forceinline__ bool analyse(Block<S>& b, LaneWords<S>& own, const S (&x)[4], const Rule<S>& r,
                                        const Limits& limits, int count, int lane) {
    using T = Traits<S>;
    u32 valid = 15;
    if (count < 128) valid = count >= 4 * lane + 4 ? 15u : count <= 4 * lane ? 0u : (1u << (count - 4 * lane)) - 1u;
    const Regular<S> regular = find_regular(x, r);
    u32 outliers = ~regular.which & 15u;
    b.base = 0;
    b.counts = 0;
    own.ranks = 0;
    u32 low = 0, high = 0, d_len = 0, f_len = 0, q = 1;
    u32 kind = RAW;
    bool coded = false;
    if (are_zeros<S, POINTWISE>(x, regular, r) && allow_all(x, regular, limits, S(0))) {
        kind = ZERO;
        if (regular.all) {
            b.kind = kind;
            b.lens = 0;
            return false;
        }
    } else {
        bool constant = false;
        classify<S, POINTWISE>(x, regular, r, limits, b, own, constant, coded, kind, q, outliers);
        if (constant) {
            kind = CONSTANT;
            if (regular.all && count > 1) {
                b.kind = kind;
                b.lens = 0;
                return false;
            }
        }
    }
    const bool has_outliers = kind != RAW && __any_sync(warp::ALL, outliers & valid);
    if (coded) {
        if (__any_sync(warp::ALL, outliers)) repeat_words(own.word, outliers, origin<S, POINTWISE>(), lane);
        f_len = difference_words<S, POINTWISE>(b, own, word_bytes(q), has_outliers, kind, low, high, lane);
    }
    outliers &= valid;
    if (has_outliers) {
        const bool uniform = __all_sync(warp::ALL, all_are(x, outliers, first_bits(x, outliers)));
        kind |= uniform ? UNIFORM : OUTLIERS;
        d_len = T::W * (uniform ? 1u : warp::sum((u32)__popc(outliers)));
    }
    const u32 low6 = kind & 63u;
    const bool has_base = low6 == CONSTANT || (low6 > RAW && !POINTWISE);
    const bool has_codes = low6 > RAW && (kind & UNIFORM) != NO_CODES;
    const u32 whole = (has_base ? T::W : 0) + (has_outliers ? 16 : 0) + d_len + (has_codes ? 32 : 0) + f_len;
    // A raw block itself needs its raw bytes.
    if (low6 == RAW || whole >= (u32)count * T::W) {
        kind = RAW;
        d_len = 0;
        f_len = (u32)count * T::W;
#pragma unroll
        for (int j = 0; j < 4; j++) own.word[j] = T::bits(x[j]);
    }
    b.kind = kind;
    b.lens = d_len | f_len << 16;
    own.nibbles = outliers | low << 8 | high << 16;
    return true;
}

// W bytes at a multiple of 4.
__device__ __forceinline__ void put(u8* to, u32 x) { *(u32*)to = x; }
__device__ __forceinline__ void put(u8* to, u64 x) {
    ((u32*)to)[0] = (u32)x;
    ((u32*)to)[1] = (u32)(x >> 32);
}

// Byte `p` counted from the most significant of `bytes`.
template <class Bits>
__device__ __forceinline__ u8 plane_byte(Bits x, u32 bytes, u32 p) {
    return (u8)(x >> (8 * (bytes - 1 - p)));
}

// Writes block `block`'s parts B to F, at their offsets in `stage`. `values` is asked for the block's values where it
// has outliers. Whole warp.
template <class S, bool POINTWISE, class Values>
__device__ __forceinline__ void emit(u8* stage, const Block<S>& b, const LaneWords<S>& own, const Parts& parts,
                                     u32 block, int count, int lane, Values values) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    const u32 low6 = b.kind & 63u;
    const u32 mid = warp::from(parts.mid, (int)block), base = warp::from(parts.base, (int)block);
    if (low6 == RAW) {
        // Not at a whole word in general.
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
    if (!coded && !(b.kind & OUTLIERS)) return;
    const bool codes = coded && (b.kind & UNIFORM) != NO_CODES;
    const u32 pair = own.nibbles | __shfl_down_sync(warp::ALL, own.nibbles, 1) << 4;
    if (b.kind & OUTLIERS) {
        const u32 outliers = own.nibbles & 15u;
        const u32 bitmap = warp::from(parts.bitmap, (int)block), stored = warp::from(parts.outliers, (int)block);
        if ((lane & 1) == 0) stage[bitmap + lane / 2] = (u8)pair;
        S x[4];
        values(x);
        const u32 mine = (u32)__popc(outliers);
        u32 rank = warp::inclusive(mine, lane) - mine;
        const bool uniform = (b.kind & UNIFORM) == UNIFORM;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (outliers >> j & 1) {
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
            const u32 a = __byte_perm((u32)own.word[0], (u32)own.word[1], two),
                      c = __byte_perm((u32)own.word[2], (u32)own.word[3], two);
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

}  // namespace szx
