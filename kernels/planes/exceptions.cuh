// SPDX-License-Identifier: MIT OR Apache-2.0
// Exceptions of tiles of class 0, while they are coded from registers: FORMAT.md §3.2, §8.2. A few values that are not finite,
// or the fill value, cost a tile little more than its other blocks.
//
//   base      of the first plane that has a normal value, where plane 0's extremes are of none
//   mark      a block where a lane has an exception: each of its values is looked at, the mask stays in shared memory,
//             and each exception gets the quantum of its predecessor in the row
//   put_mask  behind the block's bit planes its mask; a block without one has none to put
//   gather    at the end: how many, whether all have the same bits; else they are read again
//
// Level A has nibbles and bytes of masks only: they are made at the end, from the masks.
#pragma once
#include "coder.cuh"

namespace planes {

// The extremes of the quanta of the first plane of a block that has a normal value. False: neither has. Whole warp.
template <class S>
__device__ __forceinline__ bool base_range(const S (&x)[8][4], const Rule<S>& r, Int<S> fill, long long& lo,
                                           long long& hi) {
    using T = Traits<S>;
    bool found = false;
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
        S least = T::infinity(), most = -T::infinity();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const Judged<S> j(x[k + i / 4][i % 4], r, fill);
            if (j.within) least = T::least(least, j.number), most = T::most(most, j.number);
        }
        warp::range(least, most);
        if (!found && least <= most) found = true, lo = (long long)least, hi = (long long)most;
    }
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

// Marks the exceptions of a block, and puts their predecessors into the pairs. Whole warp.
template <class S>
__device__ __forceinline__ void mark(Stage& s, const Tile& p, const S (&x)[8][4], u32 (&a)[8], u32 (&b)[8],
                                     const Rule<S>& r, Int<S> fill, Int<S> base, u32 block, int lane) {
    if (s.exceptions == 0) {
#pragma unroll
        for (u32 k = 0; k < BLOCKS; k++) s.masks[k][lane] = 0;
        s.count[lane] = 0, s.differ[lane] = false;
    }
    const u32 inside = inside_block(s.array, p, block);
    u32 gone = 0, count = s.count[lane];
    Int<S> first = (Int<S>)s.value[lane];
    bool differ = s.differ[lane];
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const u32 bit = 1u << bit_of(k / 4, k % 4);
        const S value = x[k / 4][k % 4];
        const Judged<S> j(value, r, fill);
        if (j.holds && j.quantum - base + REACH < 2 * REACH) continue;
        gone |= bit;
        if ((inside & bit) == 0) continue;
        const Int<S> bits = j.settled(value, r);
        if (count++ == 0) first = bits;
        differ |= bits != first;
    }
    s.masks[block][lane] = gone & inside;
    s.count[lane] = count, s.value[lane] = first, s.differ[lane] = differ;
    const u32 all = warp::total((u32)__popc(gone & inside));
    __syncwarp();
    if (lane == 0) s.exceptions += all;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const u32 here = exceptions_of(gone, k);
        if (!__any_sync(warp::ALL, here != 0)) continue;
        u32 v[4] = {a[k] & 0xffff, b[k] & 0xffff, a[k] >> 16, b[k] >> 16};
        bridge_row(v, here, REACH, lane);
        a[k] = pair(v[0], v[2]), b[k] = pair(v[1], v[3]);
    }
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

// Whether a tile with these exceptions may be of class 0; how many of them are stored. Whole warp.
__device__ __forceinline__ bool allowed(const Stage& s, u32& stored, int lane) {
    const u32 some = __ballot_sync(warp::ALL, s.count[lane] != 0);
    const u64 one = warp::from(s.value[lane], some ? __ffs((int)some) - 1 : 0);
    const bool same = __all_sync(warp::ALL, s.count[lane] == 0 || (!s.differ[lane] && s.value[lane] == one));
    stored = same ? 1 : s.exceptions;
    return stored <= (u32)fmt::PLANES_EXCEPTIONS && s.exceptions < s.inside;
}

// Puts the nibbles and bytes of level A's masks. Whole warp.
__device__ __forceinline__ void put_mask_bytes(const Stage& s, u32* nibbles, u32 nibble_words, u32 byte_words, int lane) {
    for (u32 k = lane; k < nibble_words + byte_words; k += 32) nibbles[k] = 0;
    __syncwarp();
    u32 taken = 0;
    u8* bytes = (u8*)(nibbles + nibble_words);
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        const u32 word = (s.mask_modes >> 2 * block & 3) == 3 ? s.masks[block][lane] : 0;
        const Sparse sparse(word, __ballot_sync(warp::ALL, word != 0), lane);
        sparse.put(nibbles, taken, bytes);
        taken += sparse.words(), bytes += sparse.bytes();
    }
}

// Puts the values of exceptions that have not all the same bits, or that of all. Whole warp.
template <class S>
__device__ __forceinline__ void put_values(const Stage& s, u32* to, u32 stored, const Rule<S>& r, int lane) {
    using T = Traits<S>;
    const bool single = stored == 1, swap = s.flags & FLAG_SWAP;
    const Int<S> fill = fill_of<S>(s);
    const Tile p = tile_at(s.array, s.number - s.first_tile, lane);
    u32 before = 0;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        u32 left = s.masks[block][lane];
        const u32 upto = warp::inclusive((u32)__popc(left), lane), total = warp::from(upto, 31);
        u32 place = before + upto - __popc(left);
        before += total;
        if (single && place != 0) left = 0;
        while (left != 0) {
            const u32 bit = __ffs((int)left) - 1, k = bit % 8, c = bit / 8;
            left &= left - 1;
            // Bytes 1 and 2 of a mask's word are columns 2 and 1.
            const u32 column = c == 1 ? 2 : c == 2 ? 1 : c;
            S x = ((const S*)s.array.values)[p.first + (2 * block + k / 4) * s.array.plane + k % 4 * s.array.row + column];
            if (swap) x = T::value(swapped(T::bits(x)));
            put_value(to + T::W / 4 * place, Judged<S>(x, r, fill).settled(x, r));
            if (single) break;
            place++;
        }
    }
}

}  // namespace planes
