// SPDX-License-Identifier: MIT OR Apache-2.0
// One block of szx, 128 values, on one warp: lane l holds values 4l to 4l + 3. src/codec/szx/FORMAT.md.
//
// Everything that belongs to four neighbouring values is a nibble of one lane; two lanes' nibbles are a byte of a bitmap.
#pragma once
#include "../prim/warp.cuh"

namespace szx {

constexpr u32 ZERO = 0, CONSTANT = 1, RAW = 2, CODED = 2;  // a coded block's kind is CODED + q
constexpr u32 NO_CODES = 1u << 6, SPECIALS = 2u << 6, UNIFORM = 3u << 6;

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

// What one lane keeps of a block it has looked at.
template <class S>
struct Lane {
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

__device__ __forceinline__ u32 below_plane(u32 low, u32 high, int p) {
    // Values whose code is at most p.
    return p == 0 ? ~(low | high) & 15u : p == 1 ? ~high & 15u : p == 2 ? ~(low & high) & 15u : 15u;
}

// What a word's bits hold besides the word, the same in all words: of 4-byte words in the absolute modes the exponent, which
// lies above their three bytes.
template <class S, bool POINTWISE>
__device__ __forceinline__ constexpr typename Traits<S>::Bits origin() {
    return Traits<S>::W == 4 && !POINTWISE ? Traits<S>::MAGIC : 0;
}

// Whether a value of the block holds with reconstruction y, point-wise.
template <class S>
__device__ __forceinline__ bool holds_pointwise(S x, S y, double r) {
    using T = Traits<S>;
    if (T::bits(x) == T::bits(y)) return true;
    const double d = fabs(__dsub_rn((double)x, (double)y));
    const double p = __dmul_rn(r, fabs((double)x));
    return p > 0.0 && d < exact::below(p);
}

// Decides how the block is coded and makes its words. `x` holds the values, copies of the last one beyond `count`.
// The block's raw bits are in `word` when it is raw. False when nothing of `own` is needed. Whole warp.
template <class S, bool POINTWISE>
__device__ __forceinline__ bool analyse(Block<S>& b, Lane<S>& own, const S (&x)[4], const Rule<S>& r, int count, int lane) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    constexpr u32 ALL = warp::ALL;
    u32 valid = 15;
    if (count < 128) valid = count >= 4 * lane + 4 ? 15u : count <= 4 * lane ? 0u : (1u << (count - 4 * lane)) - 1u;

    u32 normal = 15;
    S lo = x[0], hi = x[0];
    bool zeros = true;  // all normal values have the bits of +0
    // Zero times a finite number is a zero; times any other it is NaN.
    S finite = T::mul(x[0], S(0));
#pragma unroll
    for (int j = 1; j < 4; j++) {
        finite = T::fma(x[j], S(0), finite);
        lo = T::least(lo, x[j]);
        hi = T::most(hi, x[j]);
    }
    const bool clean = !r.fill_on && __all_sync(ALL, finite == S(0));
    if (!clean) {
        normal = 0;
        lo = T::infinity();
        hi = -T::infinity();
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const Bits bits = T::bits(x[j]);
            const bool n = (bits & T::EXPONENT) != T::EXPONENT && !(r.fill_on && bits == r.fill);
            normal |= (u32)n << j;
            if (n) {
                lo = T::least(lo, x[j]);
                hi = T::most(hi, x[j]);
            }
        }
    }
    warp::range(lo, hi);
    lo = T::add(lo, S(0));
    hi = T::add(hi, S(0));
    const bool any = lo <= hi;
    u32 special = ~normal & 15u;

    b.base = 0;
    b.counts = 0;
    own.ranks = 0;
    u32 low = 0, high = 0, d_len = 0, f_len = 0;
    u32 kind = RAW;
    bool coded = false;
    u32 q = 1;

    bool zero;
    if (POINTWISE || !(r.bound > 0.0)) {
        if (lo == S(0) && hi == S(0)) {
#pragma unroll
            for (int j = 0; j < 4; j++) zeros = zeros && (!(normal >> j & 1) || T::bits(x[j]) == 0);
        } else {
            zeros = false;
        }
        zero = any && __all_sync(ALL, zeros);
    } else {
        zero = any && -lo <= r.zero && hi <= r.zero;
    }
    if (zero) {
        kind = ZERO;
        if (clean) {
            b.kind = kind;
            b.lens = 0;
            return false;
        }
    } else {
        bool constant = false;
        // Equal bit patterns: only possible when there is nothing normal or nothing else than one value.
        if (!any || lo == hi) {
            const Bits first = warp::from(T::bits(x[0]), 0);
            bool same = true, same_normal = true;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                same = same && T::bits(x[j]) == first;
            }
            if (__all_sync(ALL, same)) {
                constant = true;
                b.base = first;
                special = 0;
            } else if (any && !POINTWISE && !(r.bound > 0.0)) {
                // Bound 0: all normal values have the same bits?
                const u32 holders = __ballot_sync(ALL, normal != 0);
                const int j0 = __ffs((int)normal) - 1;
                Bits mine = T::bits(j0 <= 0 ? x[0] : j0 == 1 ? x[1] : j0 == 2 ? x[2] : x[3]);
                mine = warp::from(mine, __ffs((int)holders) - 1);
#pragma unroll
                for (int j = 0; j < 4; j++) same_normal = same_normal && (!(normal >> j & 1) || T::bits(x[j]) == mine);
                if (__all_sync(ALL, same_normal)) {
                    constant = true;
                    b.base = mine;
                }
            }
        }
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
                    fits = (a > 0.0 || z < 0.0) && p > 0.0 && exact::within(a, (double)m, c) && exact::within(z, (double)m, c);
                } else {
                    fits = T::sub(m, lo) <= r.surely && T::sub(hi, m) <= r.surely;
                    if (!fits) fits = exact::within(a, (double)m, r.bound) && exact::within(z, (double)m, r.bound);
                }
                if (fits) {
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
                        special |= (u32)!holds_pointwise(x[j], T::value(t << r.cut), r.bound) << j;
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
                            // This product is exact or of no weight, so fusing it changes no bit. The one below may overflow.
                            const S k = T::fma(T::sub(x[j], lo), r.inverse, magic);
                            own.word[j] = T::bits(k) - (T::MAGIC - origin<S, POINTWISE>());
                            back[j] = T::add(lo, T::mul(T::sub(k, magic), r.step));
                            worst = T::most(worst, fabs(T::sub(x[j], back[j])));
                        }
                        // Differences of normal values are never NaN.
                        if (!(worst <= r.surely)) {
#pragma unroll
                            for (int j = 0; j < 4; j++) {
                                const bool bad = (normal >> j & 1) && !exact::within((double)x[j], (double)back[j], r.bound);
                                special |= (u32)bad << j;
                            }
                        }
                    }
                }
                if (coded) kind = CODED + q;
            }
        }
        if (constant) {
            kind = CONSTANT;
            if (clean && count > 1) {
                b.kind = kind;
                b.lens = 0;
                return false;
            }
        }
    }

    const u32 bytes = word_bytes(q);
    const bool specials = kind != RAW && __any_sync(ALL, special & valid);
    if (coded) {
        if (__any_sync(ALL, special)) {
            // The word of a special is that of the nearest value before it that is none.
            Bits carry = 0;
            bool have = false;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (!(special >> j & 1)) {
                    carry = own.word[j];
                    have = true;
                }
            }
            const u32 before = __ballot_sync(ALL, have) & ((1u << lane) - 1u);
            Bits word = warp::from(carry, before ? 31 - __clz((int)before) : 0);
            if (!before) word = origin<S, POINTWISE>();
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (special >> j & 1) own.word[j] = word;
                word = own.word[j];
            }
        }
        Bits last = __shfl_up_sync(ALL, own.word[3], 1);
        if (lane == 0) last = origin<S, POINTWISE>();
        // Bytes of a difference up to its leading one, in the (at most three) most significant places: 10 bits for each.
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
        u32 len = (b.counts & 1023u) + (b.counts >> 10 & 1023u) + (b.counts >> 20) + dense * 128;
        if (!specials && 128 * bytes <= 32 + len) {
            kind |= NO_CODES;
            len = 128 * bytes;
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) own.word[j] = diff[j];
        }
        f_len = len;
    }
    special &= valid;
    if (specials) {
        // All the same?
        const u32 holders = __ballot_sync(ALL, special != 0);
        const int j0 = __ffs((int)special) - 1;
        Bits first = T::bits(j0 <= 0 ? x[0] : j0 == 1 ? x[1] : j0 == 2 ? x[2] : x[3]);
        first = warp::from(first, __ffs((int)holders) - 1);
        bool same = true;
#pragma unroll
        for (int j = 0; j < 4; j++) same = same && (!(special >> j & 1) || T::bits(x[j]) == first);
        const bool uniform = __all_sync(ALL, same);
        kind |= uniform ? UNIFORM : SPECIALS;
        d_len = T::W * (uniform ? 1u : warp::sum((u32)__popc(special)));
    }
    const u32 low6 = kind & 63u;
    const bool has_base = low6 == CONSTANT || (low6 > RAW && !POINTWISE);
    const bool has_codes = low6 > RAW && (kind & UNIFORM) != NO_CODES;
    const u32 whole = (has_base ? T::W : 0) + (specials ? 16 : 0) + d_len + (has_codes ? 32 : 0) + f_len;
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
    own.nibbles = special | low << 8 | high << 16;
    return true;
}

}  // namespace szx
