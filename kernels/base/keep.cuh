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
    // True where `allow` may not be of one of these values, for -0 or an end of the range: within `end` of the lower
    // one, `step` of the other. `sign` becomes true where one is within `zero` of 0; `small`: one is small.
    template <int COUNT>
    __device__ __forceinline__ bool near(const S (&x)[COUNT][4], S step, S zero, S end, bool& sign, bool& small) const {
        using Bits = typename T::Bits;
        bool any = false;
        if (flags & FLAG_SIGN) {
            Bits least = ~(Bits)0;
#pragma unroll
            for (int k = 0; k < 4 * COUNT; k++) least = min(least, (Bits)((T::bits(x[k / 4][k % 4]) << 1) - 1));
            sign = sign || least < T::bits(T::add(zero, T::most(positive, -negative))) << 1;
            small = least < T::bits(small_of(step)) << 1;
        }
        if (zero_is_exact()) {
            int least = 0;
#pragma unroll
            for (int k = 0; k < 4 * COUNT; k++) least = min(least, T::upper(x[k / 4][k % 4]));
            any = least == (int)0x80000000u;
        }
        if (flags & FLAG_RANGE) {
            auto least = T::rough(T::infinity()), most = T::rough(-T::infinity());
#pragma unroll
            for (int k = 0; k < 4 * COUNT; k++)
                least = min(least, T::rough(x[k / 4][k % 4])), most = max(most, T::rough(x[k / 4][k % 4]));
            any |= least <= T::rough(T::add(low, end)) || most >= T::rough(T::sub(high, step));
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
