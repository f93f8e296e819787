// SPDX-License-Identifier: MIT OR Apache-2.0
// Exceptions of tiles of class 0, while they are coded from registers: FORMAT.md §3.2, §8.2. And tiles of nothing but
// one value that is no number, as masked fields have many.
//
//   begin_odd   where plane 0's extremes are no normal values: whether the whole tile has the same bits (same_tile),
//               its few words are known then; else the base, of the first plane that has a normal value (base_range)
//   mark        a block where a lane has an exception: its mask, and each exception gets the quantum of its predecessor
//               in the row. Where few lanes have any, and in few rows, lanes share the work on one row of 32 values
//               after the other; else each looks at its own values, row after row. Values are read again: registers
//               have no number to loop over
//   put_mask    behind the block's bit planes its mask; a block without one has none to put
//   put_values  at the end: the one value that all have; else they are read again
//
// Level A has nibbles and bytes of masks only: they are made at the end, from the masks. All of it is short loops: code
// that most tiles do not need comes from far, and what is long costs more to fetch than to run.
#pragma once
#include "wide.cuh"

namespace planes {

// The chunk's rule, as the stage keeps it.
template <class S>
__device__ __forceinline__ Rule<S> rule_of(const Stage& s) {
    return {(S)s.chunk.step, (S)s.chunk.inverse, (S)s.chunk.most, s.chunk.usable};
}

// The extremes of the quanta of the first plane that has a normal value. False: none has. Whole warp.
template <class S>
__device__ __forceinline__ bool base_range(const Array& c, const Tile& p, bool swap, const Rule<S>& r, Int<S> fill,
                                           long long& lo, long long& hi) {
    using T = Traits<S>;
#pragma unroll 1
    for (int plane = 0; plane < 2 * (int)BLOCKS; plane++) {
        S least = T::infinity(), most = -T::infinity();
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
            S x[4];
            load_row(c, p, plane, k, swap, x);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const Judged<S> j(x[i], r, fill);
                if (j.within) least = T::least(least, j.number), most = T::most(most, j.number);
            }
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
__device__ __forceinline__ u32 same_tile(const Stage& s, u32* front, const Tile& p, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    constexpr u32 WORDS = 3 + T::W / 4, HIGHEST = (1u << T::E) - 1;
    static_assert(WORDS <= MOST_FRONT, "");
    // Mostly the first value tells.
    I one = ((const I*)s.chunk.array.values)[warp::from(p.first, 0)];
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
        u32* to = front + MOST_FRONT - WORDS;
        to[0] = head, to[1] = exponent << 20, to[2] = 0;
        put_value(to + 3, base);
    }
    return WORDS;
}

// A tile whose first plane's extremes are no normal values: finds out whether it is one of `same`, else its base. Of
// neither kind: false. What is found is kept in the stage. Whole warp.
template <class S>
__device__ __noinline__ bool begin_odd(Stage& s, u32* front, u32 first, u32 left, int lane) {
    const Tile p = {first, left};
    long long lo = 0, hi = 0;
    const u32 same = same_tile<S>(s, front, p, lane);
    const bool found =
        same != 0 || base_range(s.chunk.array, p, s.chunk.flags & FLAG_SWAP, rule_of<S>(s), fill_of<S>(s), lo, hi);
    if (lane == 0) s.same = same, s.least = lo, s.most_quantum = hi;
    __syncwarp();
    return found;
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
    // It is one. What u is where it is none, REACH added; the bits that it comes back with.
    bool gone;
    u32 u;
    Int<S> bits;
    __device__ __forceinline__ Look(S x, const Rule<S>& r, Int<S> fill, Int<S> base) {
        const Judged<S> j(x, r, fill);
        const Int<S> u = j.quantum - base + REACH;
        gone = !j.holds || u >= 2 * REACH;
        this->u = (u32)u;
        bits = j.settled(x, r);
    }
};

// Whether exceptions have all the same bits.
template <class I>
struct Same {
    bool none, differ = false;
    I one;
    // Those of some lanes. Whole warp.
    __device__ __forceinline__ void add(bool is, I bits) {
        const u32 lanes = __ballot_sync(warp::ALL, is);
        if (lanes == 0) return;
        if (none) one = warp::from(bits, __ffs((int)lanes) - 1), none = false;
        differ |= is && bits != one;
    }
};

// Lanes of a block, and rows of each, of which exceptions are found one row after the other.
constexpr int FEW_LANES = 3, FEW_ROWS = 2;

// Marks the exceptions of a block, which some of the lanes `bad` have, and puts their predecessors into its pairs, a
// and then b. Whole warp.
template <class S>
__device__ __noinline__ void mark(Stage& s, u32 first, u32 left, u32 bad, u32* pairs, Int<S> base, u32 block,
                                  int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    const Array& c = s.chunk.array;
    const Tile p = {first, left};
    const bool swap = s.chunk.flags & FLAG_SWAP;
    const I fill = fill_of<S>(s);
    const Rule<S> r = rule_of<S>(s);
    Same<I> same;
    same.none = s.exceptions == 0, same.one = (I)s.value;
    if (same.none) {
#pragma unroll
        for (u32 k = 0; k < BLOCKS; k++) s.masks[k][lane] = 0;
    }
    u32 mask = 0;
    bool few = __popc(bad) <= FEW_LANES && (p.left == 0 || (p.left & Tile::WHOLE));
    if (few) {
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
            u32 found = __ballot_sync(warp::ALL, look(warp::from(p.first, one) + own).gone);
            found |= found >> 2;
            found = (found | found >> 1) & 0x11111111;
            few = __popc(found) <= FEW_ROWS;
            if (!few) break;
            const u32 start = warp::from(p.first, one & 24);
#pragma unroll 1
            for (; found != 0; found &= found - 1) {
                // A value of its row each.
                const u32 k = (__ffs((int)found) - 1) / 4;
                const Look<S> x = look(start + k / 4 * c.plane + k % 4 * c.row + lane);
                const u32 gone = __ballot_sync(warp::ALL, x.gone), below = ~gone & ((1u << lane) - 1);
                const int before = below ? 31 - __clz((int)below) : __ffs((int)~gone) - 1;
                const u32 u = gone == warp::ALL ? REACH : warp::from(x.u, x.gone ? before : lane);
                const int first = 4 * (lane % 8);
                const u32 u0 = warp::from(u, first), u1 = warp::from(u, first + 1), u2 = warp::from(u, first + 2),
                          u3 = warp::from(u, first + 3);
                if (lane / 8 == one / 8) {
                    pairs[k] = pair(u0, u2), pairs[8 + k] = pair(u1, u3);
                    mask |= bits_of_row(gone >> first) << k;
                }
                same.add(x.gone, x.bits);
            }
        }
    }
    if (!few) {
        mask = 0;
        S next[4];
        load_row(c, p, 2 * (int)block, 0, swap, next);
#pragma unroll 1
        for (int k = 0; k < 8; k++) {
            const S x[4] = {next[0], next[1], next[2], next[3]};
            // The next row is on its way meanwhile.
            if (k < 7) load_row(c, p, 2 * (int)block + (k + 1) / 4, (k + 1) % 4, swap, next);
            const int inside = inside_row(c, p, 2 * (int)block + k / 4, k % 4);
            u32 v[4], gone = 0;
            I bits[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const Look<S> y(x[i], r, fill, base);
                v[i] = y.u, bits[i] = y.bits;
                gone |= (u32)y.gone << i;
            }
            if (!__any_sync(warp::ALL, gone != 0)) continue;
            const u32 here = inside >= 4 ? gone : inside <= 0 ? 0 : gone & ((1u << inside) - 1);
            mask |= bits_of_row(here) << k;
            if (same.none) {
                I one = bits[3];
#pragma unroll
                for (int i = 2; i >= 0; i--) one = here >> i & 1 ? bits[i] : one;
                same.add(here != 0, one);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) same.differ |= (here >> i & 1) != 0 & (bits[i] != same.one);
            if (__all_sync(warp::ALL, gone == 15)) {
                pairs[k] = pairs[8 + k] = ZEROS;
                continue;
            }
            bridge_row(v, gone, REACH, lane);
            pairs[k] = pair(v[0], v[2]), pairs[8 + k] = pair(v[1], v[3]);
        }
    }
    s.masks[block][lane] = mask;
    const u32 all = warp::total((u32)__popc(mask));
    const bool differ = __any_sync(warp::ALL, same.differ);
    __syncwarp();
    if (lane == 0) {
        s.exceptions += all;
        s.value = same.one;
        if (differ) s.differ = true;
    }
    __syncwarp();
}

// Puts the mask of a block, for which there is room of 32 words. False: there is none for its bytes. Whole warp.
template <bool DENSE>
__device__ __forceinline__ bool put_mask(Stage& s, u32* front, Parts& n, u32 block, int lane) {
    const u32 word = s.masks[block][lane], ballot = __ballot_sync(warp::ALL, word != 0);
    if (ballot == 0) return true;
    const Sparse sparse(word, ballot, lane);
    // In level B their bytes are beyond no limit, but shared memory has one.
    if (DENSE && sparse.pays() && n.bytes + sparse.bytes() > (u32)fmt::PLANES_BYTES) return false;
    u32 mode = 1;
    if (DENSE || !sparse.pays()) {
        bool full = false;
        mode = put_bytes(s, front, n, word, full, lane);
    } else {
        mode = 3;
        if (lane == 0) {
            front[MOST_FRONT + n.ballots] = ballot;
            s.mask_nibbles += sparse.words(), s.mask_bytes += sparse.bytes();
        }
        n.ballots++;
    }
    if (lane == 0) s.mask_modes |= mode << 2 * block;
    __syncwarp();
    return true;
}

// Whether a tile with these exceptions may be of class 0; how many of them are stored.
__device__ __forceinline__ bool allowed(const Stage& s, u32& stored) {
    stored = s.differ ? s.exceptions : 1;
    return stored <= (u32)fmt::PLANES_EXCEPTIONS && s.exceptions < s.inside;
}

// Puts the nibbles and bytes of level A's masks. Whole warp.
__device__ __forceinline__ void put_mask_bytes(const Stage& s, u32* nibbles, u32 nibble_words, u32 byte_words,
                                               int lane) {
    for (u32 k = lane; k < nibble_words + byte_words; k += 32) nibbles[k] = 0;
    __syncwarp();
    u32 taken = 0;
    u8* bytes = (u8*)(nibbles + nibble_words);
    // Of those in mode 3.
    u32 left = s.mask_modes;
    left &= left >> 1 & 0x55;
#pragma unroll 1
    for (; left != 0; left &= left - 1) {
        const u32 word = s.masks[(__ffs((int)left) - 1) / 2][lane];
        const Sparse sparse(word, __ballot_sync(warp::ALL, word != 0), lane);
        sparse.put(nibbles, taken, bytes);
        taken += sparse.words(), bytes += sparse.bytes();
    }
}

// Puts the values of exceptions, or that of all. Whole warp.
template <class S>
__device__ __forceinline__ void put_values(const Stage& s, u32* to, u32 stored, const Rule<S>& r, int lane) {
    using T = Traits<S>;
    if (stored == 1) {
        if (lane == 0) put_value(to, (Int<S>)s.value);
        return;
    }
    const bool swap = s.chunk.flags & FLAG_SWAP;
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
            S x =
                ((const S*)s.chunk.array
                     .values)[p.first + (2 * block + k / 4) * s.chunk.array.plane + k % 4 * s.chunk.array.row + column];
            if (swap) x = T::value(swapped(T::bits(x)));
            put_value(at, Judged<S>(x, r, fill).settled(x, r));
        }
    }
}

}  // namespace planes
