// SPDX-License-Identifier: MIT OR Apache-2.0
// Exceptions of tiles of class 0, while they are coded from registers: FORMAT.md §3.2, §8.2. And tiles of nothing but
// one value that is no number, as masked fields have many.
//
//   begin_odd   where plane 0's extremes are no normal values: whether the whole tile has the same bits (same_tile),
//               its few words are known then; else the base, of the first plane that has a normal value (base_range)
//   mark        a block where a lane has an exception: its mask, and each exception gets the quantum of its predecessor
//               in the row. Where few lanes have any, by a loop over their rows (mark_few)
//   put_mask    behind the block's bit planes its mask; a block without one has none to put
//   put_values  at the end: the one value that all have; else they are read again
//
// Most tiles run none of these, and what is long costs more to fetch than to run: they are calls, and short loops over
// values in memory and pairs in shared memory: what is in local memory leaves the first cache for the values that
// stream through it.
#pragma once
#include "wide_differences.cuh"

namespace planes {

// The chunk's rule, as the stage keeps it.
template <class S>
__device__ __forceinline__ Rule<S> rule_of(const Stage& s) {
    return {(S)s.chunk.step,      (S)s.chunk.inverse, (S)s.chunk.most, s.chunk.usable, (s.chunk.flags & keep::ANY) != 0,
            limits_of<S>(s.chunk)};
}

// The extremes of the quanta of the first plane that has a normal value. False: none has. Whole warp.
template <class S>
__device__ __forceinline__ bool base_range(const Array& c, const Tile& p, bool swap, const Rule<S>& r, Int<S> fill,
                                           long long& lo, long long& hi) {
    using T = Traits<S>;
#pragma unroll 1
    for (int plane = 0; plane < 2 * (int)BLOCKS; plane++) {
        S least = T::infinity(), most = -T::infinity();
        S x[4][4];
#pragma unroll
        for (int k = 0; k < 4; k++) load_row(c, p, plane, k, swap, x[k]);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const Judged<S> j(x[i / 4][i % 4], r, fill);
            if (j.within) least = T::least(least, j.number), most = T::most(most, j.number);
        }
        warp::range(least, most);
        if (__all_sync(warp::ALL, least <= most)) {
            lo = (long long)least, hi = (long long)most;
            return true;
        }
    }
    return false;
}

// Whether all values of a tile are NaN, infinite or fill, and have the same bits: a tile of class 2 without exceptions,
// residuals or lengths, whose head and base are put in front. How many words these are, or 0. Whole warp.
template <class S>
__device__ __forceinline__ u32 same_tile(Stage& s, const Tile& p, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    constexpr u32 WORDS = 3 + T::W / 4, HIGHEST = (1u << T::E) - 1;
    static_assert(WORDS <= MOST_FRONT, "");
    // Mostly the first value tells.
    I one = ((const I*)s.chunk.array.values)[s.chunk.array.at(warp::from(p.first, 0))];
    if (s.chunk.flags & FLAG_SWAP) one = swapped(one);
    if ((one & T::EXPONENT) != T::EXPONENT && one != fill_of<S>(s)) return 0;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        S x[8][4];
        load_block(s.chunk.array, p, block, x);
        if (s.chunk.flags & FLAG_SWAP) swap_block(x);
        I differ = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) differ |= T::bits(x[k / 4][k % 4]) ^ one;
        if (__any_sync(warp::ALL, differ != 0)) return 0;
    }
    u32 head = 2, exponent = 0;
    I base = ordered(one);
    // As survey_bits finds it: a fill value may be an integer of map 1.
    const I mantissa = (one & (((I)1 << T::M) - 1)) | (I)1 << T::M;
    const u32 power = (u32)(one >> T::M) & HIGHEST, zeros = (u32)T::length(mantissa & ((I)0 - mantissa)) - 1;
    if (power != 0 && power != HIGHEST && zeros > 0 && power + zeros > (u32)T::M) {
        const I sign = minus(one);
        head |= SCALED;
        exponent = power + zeros - (HIGHEST >> 1) - (u32)T::M;
        base = ((mantissa >> zeros) ^ sign) - sign;
    }
    if (lane == 0) {
        u32* to = s.front + MOST_FRONT - WORDS;
        to[0] = head, to[1] = exponent << 20, to[2] = SAME_NUMBERS;
        put_value(to + 3, base);
    }
    return WORDS;
}

// A tile whose first plane's extremes are no normal values: finds out whether it is one of `same`, else its base. Of
// neither kind: false. What is found is kept in the stage. Whole warp.
template <class S>
__device__ __noinline__ bool begin_odd(Stage& s, u32 first, u32 left, int lane) {
    const Tile p = {first, left};
    long long lo = 0, hi = 0;
    const u32 same = same_tile<S>(s, p, lane);
    const bool found =
        same != 0 || base_range(s.chunk.array, p, s.chunk.flags & FLAG_SWAP, rule_of<S>(s), fill_of<S>(s), lo, hi);
    if (lane == 0) s.same = same, s.least = lo, s.most_quantum = hi;
    __syncwarp();
    return found;
}

// Which of a lane's values of a block do not hold, by a short loop: bit_of(k, c) of row k, column c.
template <class S>
__device__ __forceinline__ u32 wrong_of(const S (*x)[4], const Rule<S>& r, Int<S> fill, bool halves) {
    u32 wrong = 0;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
#pragma unroll
        for (int c = 0; c < 4; c++) wrong |= (u32)!Judged<S, true>(x[k][c], r, fill, halves).holds << bit_of(0, c) << k;
    }
    return wrong;
}

// The exceptions of a lane's row k of a block, bit c for column c.
__device__ __forceinline__ u32 exceptions_of(u32 mask, int k) {
    u32 gone = 0;
#pragma unroll
    for (int c = 0; c < 4; c++) gone |= (mask >> bit_of(k, c) & 1) << c;
    return gone;
}

// Gives the exceptions of a row, of which eight lanes have four values each, the numbers that stand for them: that of
// the predecessor; the row's first one that is none, before that; `zero` in a row of exceptions only. Whole warp.
template <class I>
__device__ __forceinline__ void bridge_row(I (&v)[4], u32 gone, I zero, int lane) {
    I first = zero, last = zero;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        if ((gone >> c & 1) == 0) last = v[c];
        if ((gone >> (3 - c) & 1) == 0) first = v[3 - c];
    }
    // Lanes of the row that have others than exceptions.
    const u32 row = __ballot_sync(warp::ALL, gone != 15) & 0xffu << (lane & 24), below = row & ((1u << lane) - 1);
    const I before = warp::from(last, 31 - __clz((int)(below | 1)));
    first = warp::from(first, __ffs((int)(row | 1u << 31)) - 1);
    last = below ? before : row ? first : zero;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        if (gone >> c & 1) v[c] = last;
        last = v[c];
    }
}

// Four bits of a row, by columns, as they stand in row 0 of a mask's word.
__device__ __forceinline__ u32 bits_of_row(u32 columns) {
    return (columns & 1) | (columns & 2) << (bit_of(0, 1) - 1) | (columns & 4) << (bit_of(0, 2) - 2) |
           (columns & 8) << (bit_of(0, 3) - 3);
}

// A value while exceptions of class 0 are looked for.
template <class S>
struct Look {
    // It is one; it comes back within the bound. What u is where it is none, REACH added; the bits that it comes back
    // with.
    bool gone, holds;
    u32 u;
    Int<S> bits;
    __device__ __forceinline__ Look(S x, const Rule<S>& r, Int<S> fill, Int<S> base) {
        const Judged<S> j(x, r, fill);
        const Int<S> u = j.quantum - base + REACH;
        holds = j.holds, gone = !holds || u >= 2 * REACH;
        this->u = (u32)u;
        bits = j.settled(x, r);
    }
};

// Lanes of a block, and rows of each, of which exceptions are found one row after the other.
constexpr int FEW_LANES = 3, FEW_ROWS = 2;

// Adds a block's exceptions to the tile's: a lane's mask of them, and the extremes of their bits. Whether the tile has
// more of them than there may be. Whole warp.
template <class I>
__device__ __forceinline__ bool add_exceptions(Stage& s, u32 mask, I least, I most, u32 block, int lane) {
    const u32 count = warp::total((u32)__popc(mask));
    const bool some = count != 0, before = s.exceptions != 0;
    const bool differ = s.differ || (some && (least != most || (before && least != (I)s.value)));
    if (!before) {
#pragma unroll
        for (u32 k = 0; k < BLOCKS; k++) s.masks[k][lane] = 0;
    }
    __syncwarp();
    s.masks[block][lane] = mask;
    if (lane == 0 && some) {
        if (!before) s.value = least;
        s.exceptions += count, s.differ = differ;
    }
    __syncwarp();
    return differ && s.exceptions > (u32)fmt::PLANES_EXCEPTIONS;
}

// The same as `mark` where few lanes `bad` have exceptions, of a tile that lies in the array: lanes share the work on
// one row of 32 values after the other, which are read again. False: too many rows have any. Whole warp.
template <class S>
__device__ __noinline__ bool mark_few(Stage& s, u32 first, u32 bad, Int<S> base, u32 block, bool& many, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    const Array& c = s.chunk.array;
    const bool swap = s.chunk.flags & FLAG_SWAP;
    const I fill = fill_of<S>(s);
    const Rule<S> r = rule_of<S>(s);
    u32 mask = 0;
    I least = ~(I)0, most = 0;
    const S* from = (const S*)c.values + 2 * block * c.plane;
    // From a row's lowest value, or a lane's, that of this lane.
    const u32 own = lane / 16 * c.plane + lane / 4 % 4 * c.row + lane % 4;
    auto look = [&](u32 at) {
        S x = from[at];
        if (swap) x = T::value(swapped(T::bits(x)));
        return Look<S>(x, r, fill, base);
    };
#pragma unroll 1
    for (; bad != 0; bad &= bad - 1) {
        // A value of that lane each.
        const int one = __ffs((int)bad) - 1;
        u32 found = __ballot_sync(warp::ALL, look(warp::from(first, one) + own).gone);
        found |= found >> 2;
        found = (found | found >> 1) & 0x11111111;
        if (__popc(found) > FEW_ROWS) return false;
        const u32 start = warp::from(first, one & 24);
#pragma unroll 1
        for (; found != 0; found &= found - 1) {
            // A value of its row each.
            const u32 k = (__ffs((int)found) - 1) / 4;
            const Look<S> x = look(start + k / 4 * c.plane + k % 4 * c.row + lane);
            const u32 gone = __ballot_sync(warp::ALL, x.gone), below = ~gone & ((1u << lane) - 1);
            const int before = below ? 31 - __clz((int)below) : __ffs((int)~gone) - 1;
            const u32 u = gone == warp::ALL ? REACH : warp::from(x.u, x.gone ? before : lane);
            const int column = 4 * (lane % 8);
            const u32 u0 = warp::from(u, column), u1 = warp::from(u, column + 1), u2 = warp::from(u, column + 2),
                      u3 = warp::from(u, column + 3);
            if (lane / 8 == one / 8) {
                s.scratch[k][lane] = pair(u0, u2), s.scratch[8 + k][lane] = pair(u1, u3);
                mask |= bits_of_row(gone >> column) << k;
            }
            if (x.gone) least = min(least, x.bits), most = max(most, x.bits);
        }
    }
    warp::range(least, most);
    many = add_exceptions(s, mask, least, most, block, lane);
    return true;
}

// Whether more values of a tile do not come back within the bound than one of class 0 or 1 may have, and two are seen
// to differ. `wrong`: of the lane's values of a block, `first` the first of them. Whole warp.
template <class S>
__device__ __forceinline__ bool too_many(u32 wrong, S first, int lane) {
    if (warp::total((u32)__popc(wrong)) <= (u32)fmt::PLANES_EXCEPTIONS) return false;
    const u32 lanes = __ballot_sync(warp::ALL, wrong & 1);
    const Int<S> bits = Traits<S>::bits(first), one = warp::from(bits, lanes ? __ffs((int)lanes) - 1 : 0);
    return __any_sync(warp::ALL, (wrong & 1) && bits != one);
}

// Marks the exceptions of a block, whose values are `x`, and gives its pairs what stands for them. The lowest class
// that the tile may be of: above 0 where it has more exceptions than there may be. Whole warp.
template <class S>
__device__ __noinline__ u32 mark(Stage& s, u32 first, u32 left, const S (*x)[4], Int<S> base, u32 block, int lane) {
    using I = Int<S>;
    const Rule<S> r = rule_of<S>(s);
    const I fill = fill_of<S>(s);
    const u32 among = inside_block(s.chunk.array, {first, left}, block);
    u32 all = 0, wrong = 0;
    // The extremes of their bits.
    I least = ~(I)0, most = 0;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const Look<S> l(x[k][c], r, fill, base);
            const u32 bit = 1u << bit_of(0, c) << k;
            if (l.gone) all |= bit;
            if (!l.holds) wrong |= bit;
            if (l.gone && (among & bit)) least = min(least, l.bits), most = max(most, l.bits);
        }
    }
    warp::range(least, most);
    if (add_exceptions(s, all & among, least, most, block, lane)) return too_many(wrong & among, x[0][0], lane) ? 2 : 1;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        const u32 gone = exceptions_of(all >> k, 0);
        if (!__any_sync(warp::ALL, gone != 0)) continue;
        u32 &a = s.scratch[k][lane], &b = s.scratch[8 + k][lane];
        u32 v[4] = {a & 0xffff, b & 0xffff, a >> 16, b >> 16};
        bridge_row(v, gone, REACH, lane);
        a = pair(v[0], v[2]), b = pair(v[1], v[3]);
    }
    return 0;
}

// Puts the mask of a block. Whole warp.
__device__ __forceinline__ void put_mask(Stage& s, Parts& n, u32 block, int lane) {
    bool full = false;
    const u32 mode = put_plane(s, n, s.masks[block][lane], false, full, lane);
    if (lane == 0) s.mask_modes |= mode << 2 * block;
    __syncwarp();
}

// Whether a tile with these exceptions may be of class 0; how many of them are stored.
__device__ __forceinline__ bool allowed(const Stage& s, u32& stored) {
    stored = s.differ ? s.exceptions : 1;
    return stored <= (u32)fmt::PLANES_EXCEPTIONS && s.exceptions < s.inside;
}

// Puts the values of exceptions, or that of all. Whole warp.
template <class S>
__device__ __forceinline__ void put_values(const Stage& s, u32* to, u32 stored, int lane) {
    using T = Traits<S>;
    if (stored == 1) {
        if (lane == 0) put_value(to, (Int<S>)s.value);
        return;
    }
    const bool swap = s.chunk.flags & FLAG_SWAP;
    const Rule<S> r = rule_of<S>(s);
    const Int<S> fill = fill_of<S>(s);
    const Tile p = tile_at(s.chunk.array, s.number - s.chunk.place.first_tile, lane);
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        u32 left = s.masks[block][lane];
        const u32 upto = warp::inclusive((u32)__popc(left), lane);
        u32* at = to + T::W / 4 * (upto - __popc(left));
        to += T::W / 4 * warp::from(upto, 31);
        for (; left != 0; left &= left - 1, at += T::W / 4) {
            const u32 bit = __ffs((int)left) - 1, k = bit % 8;
            // What undoes itself.
            const u32 column = byte_of(bit / 8);
            const Array& c = s.chunk.array;
            S x = ((const S*)c.values)[c.at(p.first + (2 * block + k / 4) * c.plane + k % 4 * c.row + column)];
            if (swap) x = T::value(swapped(T::bits(x)));
            put_value(at, Judged<S>(x, r, fill).settled(x, r));
        }
    }
}

}  // namespace planes
