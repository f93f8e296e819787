// SPDX-License-Identifier: MIT OR Apache-2.0
// What stands for a tile's values in classes 1 to 3: FORMAT.md §5, §8.1, §8.2.
//
//   Source     a tile's values: as they are (lossless), or as the bound makes them; each as a number of a class
//   Integers   whether a tile's values are integers times a power of two: map 1
//   put_raw    class 3
#pragma once
#include "../base/checksum.cuh"
#include "exceptions.cuh"
#include "lengths.cuh"

namespace planes {

// What is known of a tile of class 1 or 2 before it is written.
struct TilePlan {
    // The head's first word, but for modes; the word of masks.
    u32 head, masks;
    // e of map 1.
    int exponent;
    // There are exceptions; all have the bits `value`.
    bool marked, uniform;
    u64 base, value;
};

// A tile's values, and what the bound makes of them: FORMAT.md §8.1.
template <class S, int LOSSY>
struct Source {
    using T = Traits<S>;
    using I = Int<S>;
    const Array& array;
    Tile p;
    Rule<S> r;
    // The user's fill value; the bits of an infinity, which never holds, where there is none.
    I fill;
    bool fills, swap, is_float;

    __device__ __forceinline__ Source(const Array& array, const Tile& p, const Rule<S>& r, u32 flags, u64 fill)
        : array(array),
          p(p),
          r(r),
          fill(flags & FLAG_FILL ? (I)fill : T::EXPONENT),
          fills(flags & FLAG_FILL),
          swap(flags & FLAG_SWAP),
          is_float(!IS_SHORT<S> && (LOSSY || (flags & FLAG_FLOAT))) {}

    __device__ __forceinline__ void load(u32 block, S (&x)[8][4]) const {
        load_block(array, p, block, x);
        if (swap) swap_block(x);
    }

    __device__ __forceinline__ void load_row(int plane, int r, S (&x)[4]) const {
        planes::load_row(array, p, plane, r, swap, x);
    }

    // `halves`: of a tile in half steps.
    __device__ __forceinline__ Judged<S, LOSSY == LIMITED> judge(S x, bool halves = false) const {
        return {x, r, fill, halves};
    }

    // The bits of r(x).
    __device__ __forceinline__ I settled(S x) const {
        if constexpr (LOSSY) return judge(x).settled(x, r);
        return T::bits(x);
    }

    // Whether bits of class 2 are an exception's; `low`: those whose low 29 bits are not 0 too.
    __device__ __forceinline__ bool special(I y, bool low) const {
        constexpr I LOW = (I)(1u << 29) - 1;
        return (is_float && (y & T::EXPONENT) == T::EXPONENT) || (fills && y == fill) || (low && (y & LOW) != 0);
    }

    // Whether any of these, as they are, is special.
    __device__ __forceinline__ bool any_special(const S (&x)[8][4]) const {
        constexpr I SIGN = (I)1 << (8 * T::W - 1);
        I most = 0;
        bool any = false;
#pragma unroll
        for (int k = 0; k < 32; k++) most = max(most, T::bits(x[k / 4][k % 4]) & ~SIGN);
        if (fills) {
#pragma unroll
            for (int k = 0; k < 32; k++) any |= T::bits(x[k / 4][k % 4]) == fill;
        }
        return any || (is_float && most >= T::EXPONENT);
    }

    // False: more values of a block have low bits than a tile may have as exceptions, and not all the same ones.
    __device__ __forceinline__ bool few_low(const S (&x)[8][4], u32 among) const {
        const I first = settled(x[0][0]);
        const bool mine = special(first, true) && (among & 1);
        u32 found = 0;
        bool differ = false;
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const I y = settled(x[k][i]);
                const bool low = special(y, true) && (among >> bit_of(k, i) & 1);
                found += low, differ |= low && mine && y != first;
            }
            // Mostly after three rows.
            if (__any_sync(warp::ALL, differ) && warp::total(found) > (u32)fmt::PLANES_EXCEPTIONS) return false;
        }
        return true;
    }

    // An integer of map 1: bits over a power of two, which is `most` less the mantissa's length.
    static __device__ __forceinline__ I integer(I y, int most) {
        const I mantissa = (y & (((I)1 << T::M) - 1)) | (I)1 << T::M;
        const u32 less = (u32)most - ((u32)(y >> T::M) & ((1u << T::E) - 1));
        const I number = mantissa >> (less & (8 * T::W - 1)), sign = minus(y);
        return y == 0 ? 0 : (number ^ sign) - sign;
    }

    // Map 0.
    __device__ __forceinline__ void bits(const S (&x)[8][4], I (&v)[8][4]) const {
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] = settled(x[k / 4][k % 4]);
        if (is_float) {
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] = ordered(v[k / 4][k % 4]);
        }
    }
};

// Gives a block's exceptions the numbers that stand for them. Whole warp.
template <class I>
__device__ __forceinline__ void bridge(I (&v)[8][4], u32 mask, int lane) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const u32 gone = exceptions_of(mask, k);
        if (__any_sync(warp::ALL, gone != 0)) bridge_row(v[k], gone, (I)0, lane);
    }
}

// What map 1 asks of a tile: FORMAT.md §8.2, rule 6.
template <class S>
struct Integers {
    using T = Traits<S>;
    using I = Int<S>;
    // The exponents of the lowest bit that is one, and of the values, as they stand in bits.
    u32 lo = ~0u, hi = 0;
    bool can = true;

    // A row, its exceptions in `gone`. Whole warp.
    __device__ __forceinline__ void add_row(const I (&bits)[4], u32 gone) {
        bool wrong = false;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const I y = bits[i], mantissa = (y & (((I)1 << T::M) - 1)) | (I)1 << T::M;
            const u32 power = (u32)(y >> T::M) & ((1u << T::E) - 1);
            if (y == 0 || (gone >> i & 1)) continue;
            wrong |= power == 0 || power == (1u << T::E) - 1;
            lo = min(lo, power + T::length(mantissa & ((I)0 - mantissa)) - 1), hi = max(hi, power);
        }
        lo = warp::least(lo), hi = ~warp::least(~hi);
        can = !__any_sync(warp::ALL, wrong) && (hi == 0 || hi < lo);
    }
    // A block: mostly the first row tells.
    template <class Source>
    __device__ __forceinline__ void add(const Source& in, const S (&x)[8][4], u32 mask) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            I y[4];
#pragma unroll
            for (int i = 0; i < 4; i++) y[i] = in.settled(x[k][i]);
            add_row(y, exceptions_of(mask, k));
            if (!can) return;
        }
    }
    __device__ __forceinline__ int exponent() const { return (int)lo - ((1 << (T::E - 1)) - 1) - T::M; }
    __device__ __forceinline__ bool some() const { return can && hi > 0 && (int)lo > T::M; }
};

// A class-2 tile's base: of the first plane that has a number which is no exception. False: neither of this block's.
template <class S>
__device__ __forceinline__ bool base_of(const Int<S> (&v)[8][4], u32 mask, Int<S>& base) {
    using I = Int<S>;
    constexpr I TOP = (I)1 << (8 * sizeof(I) - 1);
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
        I least = ~(I)0, most = 0;
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const I m = v[k + i / 4][i % 4] ^ TOP;
            if (mask >> bit_of(k + i / 4, i % 4) & 1) continue;
            least = min(least, m), most = max(most, m);
        }
        warp::range(least, most);
        if (least <= most) {
            base = (least + (most - least) / 2) ^ TOP;
            return true;
        }
    }
    return false;
}

// Writes a tile of class 3; returns what its words add to the checksum, the first under `key`. A warp a row, in a loop
// that is not unrolled: a frame has few of these, and fetching long code costs more than running it. Whole CTA.
template <class S, int LOSSY>
__device__ __forceinline__ u64 put_raw(const Source<S, LOSSY>& in, u32 tile, u32* to, u64 key, u32 thread) {
    using T = Traits<S>;
    constexpr u32 W = T::W / 4;
    const RawRows rows(in.array, tile);
    const u32 x = thread % 32;
    u64 sum = 0;
    if (thread == 0) to[0] = RAW, sum = frame::keyed(RAW, key);
#pragma unroll 1
    for (u32 row = thread / 32; rows.width * row < rows.inside; row += THREADS / 32) {
        const u32 k = rows.width * row + x;
        if (x >= rows.width || k >= rows.inside) continue;
        S v = value_at<S>(in.array, in.array.at(rows.place(in.array, row) + x));
        if (in.swap) v = T::value(swapped(T::bits(v)));
        u32 words[2];
        put_value(words, in.settled(v));
#pragma unroll
        for (u32 i = 0; i < W; i++) {
            to[1 + W * k + i] = words[i];
            sum += frame::keyed(words[i], key + (1 + W * k + i) * frame::KEY_STEP);
        }
    }
    return sum;
}

}  // namespace planes
