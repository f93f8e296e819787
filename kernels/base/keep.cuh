// SPDX-License-Identifier: MIT OR Apache-2.0
// Which values may stand for a value where more than the bound is kept: the twin of codecs/src/keep.rs.
#pragma once
#include "frame.cuh"

namespace keep {

constexpr u32 ANY = FLAG_SIGN | FLAG_ZERO | FLAG_RANGE;

template <class S>
struct Limits {
    using T = Traits<S>;
    // The ends of the range, infinite where it is not kept; from where on to the upper end a value may stand for a
    // positive one, and up to where from the lower end for a negative one.
    S low, high, positive, negative;
    u32 flags;

    __device__ __forceinline__ bool zero_is_exact() const { return flags & (FLAG_ZERO | FLAG_RANGE); }

    // Whether `back` may stand for x, which is finite.
    __device__ __forceinline__ bool allow(S x, S back) const {
        const bool zero = x == S(0), both = zero && (flags & FLAG_SIGN);
        const S least = both ? S(0) : x > S(0) ? positive : low, most = both ? S(0) : x < S(0) ? negative : high;
        const bool exact = x == low || x == high || (zero && zero_is_exact());
        return T::bits(x) == T::bits(back) || (!exact && back >= least && back <= most);
    }
    // What `planes` calls small under this step: it is kept on its side of 0 by half a step.
    __device__ __forceinline__ S small_of(S step) const { return T::mul((S)0.75, step); }
    __device__ __forceinline__ bool small(S x, S step) const {
        const S most = small_of(step);
        return (flags & FLAG_SIGN) && x != S(0) && x <= most && x >= -most;
    }
    // True where `allow` may not be of one of these values, for what is less than `step` off it; in `smalls`, whether
    // one is small. A few operations a value: extremes of the values, of their magnitudes but for zeros, of their bits
    // as integers with a sign, of which -0 has the least.
    template <int COUNT>
    __device__ __forceinline__ bool near(const S (&x)[COUNT][4], S step, bool& smalls) const {
        using Bits = typename T::Bits;
        constexpr Bits SIGN = (Bits)1 << (8 * T::W - 1);
        bool any = false;
        if (flags & FLAG_SIGN) {
            Bits least = ~(Bits)0;
#pragma unroll
            for (int k = 0; k < 4 * COUNT; k++) least = min(least, (Bits)((T::bits(x[k / 4][k % 4]) << 1) - 1));
            any = least < T::bits(step) << 1, smalls = least < T::bits(small_of(step)) << 1;
        }
        if (zero_is_exact()) {
            Bits least = ~(Bits)0;
#pragma unroll
            for (int k = 0; k < 4 * COUNT; k++) least = min(least, (Bits)(T::bits(x[k / 4][k % 4]) ^ SIGN));
            any |= least == 0;
        }
        if (flags & FLAG_RANGE) {
            S least = T::infinity(), most = -T::infinity();
#pragma unroll
            for (int k = 0; k < 4 * COUNT; k++)
                least = T::least(least, x[k / 4][k % 4]), most = T::most(most, x[k / 4][k % 4]);
            any |= least <= T::add(low, step) || most >= T::sub(high, step);
        }
        return any;
    }
};

// The limits of a chunk, whose range the host knows or a kernel has found.
template <class S>
__device__ __forceinline__ Limits<S> limits_of(const EncodeChunk& c, const ChunkState* state) {
    using T = Traits<S>;
    Limits<S> l;
    double low = c.low, high = c.high;
    if ((c.flags & FLAG_RANGE) && state->high && low > high) {
        // Of zeros the first met does not matter.
        low = __dadd_rn(exact::unordered(~state->low), 0.0), high = __dadd_rn(exact::unordered(state->high), 0.0);
    }
    l.flags = c.flags & ANY;
    l.low = low > high ? -T::infinity() : T::round(low), l.high = low > high ? T::infinity() : T::round(high);
    const S least = T::round(c.least);
    const bool sign = c.flags & FLAG_SIGN;
    l.positive = sign && least > l.low ? least : l.low;
    l.negative = sign && -least < l.high ? -least : l.high;
    return l;
}

}  // namespace keep
