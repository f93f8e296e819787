// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of every class out of words: FORMAT.md §4, §7. A warp a tile, whose words are in shared memory or in the frame.
//
//   open_any       all lengths, from what stands in front: nothing read later is beyond the tile
//   take_quanta    class 0, block after block: bit planes, sums, values, exceptions
//   take_wide      classes 1 and 2, the same: lengths and fields, sums, values, exceptions
//   take_raw       class 3
//
// A lossy frame has few such tiles. Those of a lossless one have a kernel of their own, planes_lossless.cu.
#pragma once
#include "../base/frame_reader.cuh"
#include "exceptions.cuh"
#include "lengths.cuh"

namespace planes {

// Moves words of the frame, the first at its place `word0`, into shared memory; returns what they add to the checksum.
// Half of the loads are on their way while the others are summed. One warp.
__device__ __forceinline__ u64 fetch(u32* to, const u32* from, u64 word0, u32 words, int lane) {
    constexpr int BATCH = 8;
    u64 sum = 0, key = frame::key_of(word0 + lane);
    u32 word[BATCH];
    int left = (int)words - lane;
    to += lane, from += lane;
#pragma unroll
    for (int k = 0; k < BATCH; k++) word[k] = left > 32 * k ? from[32 * k] : 0;
#pragma unroll 1
    while (left > 0) {
        from += 32 * BATCH;
        u32 more[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++) more[k] = left > 32 * (BATCH + k) ? from[32 * k] : 0;
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            if (left > 32 * k) to[32 * k] = word[k];
            sum += frame::keyed(word[k], key + k * (32 * frame::KEY_STEP));
            word[k] = more[k];
        }
        key += BATCH * (32 * frame::KEY_STEP);
        to += 32 * BATCH;
        left -= 32 * BATCH;
    }
    return sum;
}

// A tile whose lengths were found right.
struct Layout {
    Taker parts;
    const u16* modes;
    const u32 *base, *bits, *values;
    u32 masks, count;
    bool uniform;
};

// How many lanes have words in planes of mode 3, where a tile has planes of mode 2 as well. `of_masks`: of mode 3 are
// masks alone, as level A has them, whose ballots are found without a look at each plane.
__device__ __forceinline__ u32 count_nibbles(const Layout& l, u32 head, bool of_masks) {
    u32 nibbles = 0;
    const u32* ballots = l.parts.ballots;
    auto see = [&](u32 mode) {
        if ((mode & 3) == 3) nibbles += __popc(*ballots);
        ballots += mode >> 1 & 1;
    };
    const u16* modes = l.modes;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        const u32 top = head >> (4 + block) & 1;
        if (head & 3) {
            for (int p = 2; p >= 0; p--) see(head >> (8 + 6 * block + 2 * p));
        } else if (LIKELY(of_masks)) {
            for (u32 k = 0; k <= top; k++) ballots += __popc(modes[k] & 0xaaaau);
        } else {
#pragma unroll 1
            for (int k = 8 * (int)top + 6; k >= 0; k--) see((u32)modes[k / 8] >> 2 * (k % 8));
            see((u32)modes[top] >> 14);
        }
        modes += top + 1;
        see(l.masks >> 2 * block);
    }
    return nibbles;
}

// Finds and checks the parts of a tile of class 0, 1 or 2, whose head is right. FORMAT.md §7, P8 to P11. Whole warp.
template <class S>
__device__ __forceinline__ bool open_any(Layout& l, const u32* in, u32 words, int lane) {
    constexpr u32 W = Traits<S>::W / 4;
    const u32 head = in[0], kind = head & 3, slices = kind ? 0 : 4 + __popc(head & 0xf0);
    if (kind && words < 3) return false;
    const u32 marks = kind ? in[2] >> 24 & 3 : head >> 9 & 3;
    const u32 *at = in + (kind ? 3 : 1), front = (kind ? 3 + W : 1) + (marks & 1) + (slices + 1) / 2;
    if (words < front) return false;
    l.base = at;
    if (kind) at += W;
    l.masks = 0, l.uniform = marks == 3;
    if (marks) {
        l.masks = *at++;
        if (l.masks >> 8 < 1 || l.masks >> 8 > TILE) return false;
    }
    l.count = l.masks >> 8;
    l.modes = (const u16*)at;
    if (slices % 2 && l.modes[slices] != 0) return false;
    // A word of modes a lane, those of masks too.
    const u32 modes = lane == 31                       ? l.masks & 0xff
                      : kind                           ? (lane == 0 ? head >> 8 : 0)
                      : lane < (int)((slices + 1) / 2) ? at[lane]
                                                       : 0;
    const u32 upper = modes >> 1 & 0x55555555u, lower = modes & 0x55555555u;
    const u32 counts =
        warp::total((u32)__popc(upper & ~lower) | (u32)__popc(lower & ~upper) << 10 | (u32)__popc(upper & lower) << 20);
    const u32 of_words = counts & 1023, full = counts >> 10 & 1023, of_bytes = counts >> 20,
              ballots = of_words + of_bytes;
    u32 least = front + ballots + 32 * full;
    if (words < least) return false;
    Taker& t = l.parts;
    t.ballots = in + front;
    t.nibble_words = t.ballots + ballots;
    u32 some = 0;
    for (u32 k = lane; k < ballots; k += 32) some += __popc(t.ballots[k]);
    some = warp::total(some);
    u32 nibbles = of_words ? 0 : some;
    if (of_words != 0 && of_bytes != 0) {
        nibbles = count_nibbles(l, head, of_bytes == (u32)__popc(l.masks & l.masks >> 1 & 0x55));
    }
    const u32 sparse = some - nibbles;
    const u32 nibble_words = (nibbles + 7) / 8;
    least += nibble_words + sparse;
    if (words < least) return false;
    t.words = t.nibble_words + nibble_words;
    t.bytes = (const u8*)(t.words + 32 * full + sparse);
    u32 bytes = 0;
    for (u32 k = lane; k < nibble_words; k += 32) bytes += __popc(t.nibble_words[k]);
    bytes = warp::total(bytes);
    const u32 values = W * (l.uniform ? 1 : l.count);
    least += (bytes + 3) / 4;
    if (words < least + values || (kind == 0 && words != least + values)) return false;
    l.bits = in + least, l.values = in + words - values;
    // Filling.
    const u32 over = nibbles % 8 ? t.nibble_words[nibble_words - 1] >> 4 * (nibbles % 8) : 0,
              beyond = bytes % 4 ? l.bits[-1] >> 8 * (bytes % 4) : 0;
    return (over | beyond) == 0;
}

// Puts the exceptions of a lane's mask among its values; the first one's value is the tile's `first`, or all have the
// same.
template <class I>
__device__ __forceinline__ void put_exceptions(u32 mask, const u32* values, bool uniform, u32 first, I (&v)[8][4]) {
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const int bit = bit_of(k / 4, k % 4);
        if ((mask >> bit & 1) == 0) continue;
        const u32 place = uniform ? 0 : first + __popc(mask & ((1u << bit) - 1));
        take_value(values + sizeof(I) / 4 * place, v[k / 4][k % 4]);
    }
}

// The exceptions of a tile that were found so far.
struct Found {
    u32 count = 0;

    // Takes a block's mask, and puts its exceptions among the values. False: there are more than the tile has. Whole
    // warp.
    template <class I>
    __device__ __forceinline__ bool take(Layout& l, u32 block, I (&v)[8][4], int lane) {
        const u32 mask = take_plane(l.parts, l.masks >> 2 * block & 3, lane), mine = (u32)__popc(mask);
        const u32 upto = warp::inclusive(mine, lane), first = count + upto - mine;
        count += warp::from(upto, 31);
        if (count > l.count) return false;
        put_exceptions(mask, l.values, l.uniform, first, v);
        return true;
    }
};

// Class 0, whose head is right. Whole warp.
template <class S>
__device__ __forceinline__ bool take_quanta(const Array& c, const Tile& p, const Rule<S>& r, bool swap, const u32* in,
                                            u32 words, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    using Signed = typename SignedOf<I>::Type;
    const u32 head = in[0];
    const bool zero = words == 1;
    Layout l;
    l.masks = l.count = 0;
    if (zero ? (head & 0x7f0) != 0 : !open_any<S>(l, in, words, lane)) return false;
    const I base = (I)((long long)((int)head >> 11) * (1 << Quantizer<S>::UNIT_LOG2));
    const u16* modes = l.modes;
    u32 wrong = 0;
    Found found;
    Edge<I> edge;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        I v[8][4];
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] = 0;
        const u32 slices = zero ? 0 : 1 + (head >> (4 + block) & 1);
        // The bits that the sign's plane turns.
        I turned = ~(I)0;
#pragma unroll 1
        for (int slice = (int)slices - 1; slice >= 0; slice--) {
            const u32 m = modes[slice];
            const bool top = slice == (int)slices - 1;
            u32 x[8];
            if (!top && m == 0x5555u) {
#pragma unroll
                for (int k = 0; k < 8; k++) x[k] = l.parts.words[32 * k + lane];
                l.parts.words += 256;
                turned &= ~((I)0xff << 8 * slice);
            } else {
#pragma unroll
                for (int k = 0; k < 8; k++) x[k] = 0;
#pragma unroll 1
                for (int p = top ? 6 : 7; p >= 0; p--) {
#pragma unroll
                    for (int k = 7; k > 0; k--) x[k] = x[k - 1];
                    x[0] = take_plane(l.parts, m >> 2 * p & 3, lane);
                }
                transpose(x);
            }
#pragma unroll
            for (int k = 0; k < 32; k++) {
                v[k / 4][k % 4] |= (I)(x[k / 4] >> 8 * byte_of(k % 4) & 0xff) << 8 * slice;
            }
        }
        if (slices > 0) {
            const u32 sign = take_plane(l.parts, (u32)modes[slices - 1] >> 14, lane);
#pragma unroll
            for (int k = 0; k < 32; k++) {
                if (sign >> bit_of(k / 4, k % 4) & 1) v[k / 4][k % 4] ^= turned;
            }
        }
        modes += slices;
        backward(v, head >> 2 & 3, c.rank, edge, lane);
#pragma unroll
        for (int k = 0; k < 32; k++) {
            I& d = v[k / 4][k % 4];
            wrong |= d + REACH >= 2 * REACH;
            d = T::bits(T::mul((S)(Signed)(d + base), r.step));
        }
        if (l.count != 0 && !found.take(l, block, v, lane)) return false;
        store_block(c, p, block, swap, v);
    }
    return found.count == l.count && !__any_sync(warp::ALL, wrong != 0);
}

// What the head of a tile of class 1 or 2 says: FORMAT.md §7, P5 to P7, P14 to P16.
template <class S>
struct WideHead {
    using T = Traits<S>;
    u32 kind, predictor;
    bool scaled;
    int exponent;
    Classes classes;
    // Of at least three words. False: it is not right.
    __device__ __forceinline__ bool read(const u32* in, u32 rank, bool is_float, bool usable) {
        constexpr int BIAS = (1 << (T::E - 1)) - 1;
        const u32 head = in[0], second = in[1], third = in[2], marks = third >> 24;
        kind = head & 3, predictor = head >> 2 & 3, scaled = head & SCALED, exponent = (int)second >> 20;
        classes = {head >> 5 & 7, second & 63, second >> 6 & 127, second >> 13 & 63, third & 0xffffffu};
        if (predictor > rank || classes.shape >= SHAPE_COUNT || (kind == 1 && !usable)) return false;
        if (classes.top + classes.zeros > 8 * T::W || classes.zeros >= 8 * T::W || (second & 1u << 19)) return false;
        if (marks == 2 || marks > 3) return false;
        return scaled ? kind == 2 && is_float && exponent >= 1 - BIAS && exponent <= BIAS : exponent == 0;
    }
    // Residuals' sums to bits, map 1's times `power`.
    template <class I>
    __device__ __forceinline__ void finish(I (&v)[8][4], I base, const Rule<S>& r, bool is_float) const {
        using Signed = typename SignedOf<I>::Type;
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] += base;
        if (kind == 1 || scaled) {
            const S step = kind == 1 ? r.step : T::power(exponent);
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] = T::bits(T::mul((S)(Signed)v[k / 4][k % 4], step));
        } else if (is_float) {
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] = ordered(v[k / 4][k % 4]);
        }
    }
};

// Puts a block's values where they belong; of a tile whose rows are not aligned or not whole, through a buffer of 512
// values. Whole warp.
template <class I>
__device__ __forceinline__ void store_rows(const Array& c, const Tile& p, u32 block, bool swap, I (&v)[8][4], I* buffer,
                                           int lane) {
    if (swap) {
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] = swapped(v[k / 4][k % 4]);
    }
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
        const u32 plane = 2 * block + k / 4;
        const Rows<I> rows(c, p, plane, lane, buffer);
#pragma unroll
        for (int q = 0; q < 4; q++) store4(rows.to + q * rows.step, v[k + q]);
        if (p.left != 0) store_plane(c, p, plane, lane, buffer);
    }
}

// Classes 1 and 2. `buffer`: of 512 values. Whole warp.
template <class S>
__device__ __forceinline__ bool take_wide(const Array& c, const Tile& p, const Rule<S>& r, u32 flags, const u32* in,
                                          u32 words, Int<S>* buffer, int lane) {
    using I = Int<S>;
    const bool is_float = flags & FLAG_FLOAT;
    const u32 head = in[0];
    WideHead<S> h;
    Layout l;
    if (!open_any<S>(l, in, words, lane) || !h.read(in, c.rank, is_float, r.usable)) return false;
    I base;
    take_value(l.base, base);
    const ByNumber of(h.classes, lane);
    const u32* bits = l.bits;
    Found found;
    Edge<I> edge;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        I v[8][4];
        if (!take_lengths(l.parts, head >> (8 + 6 * block) & 63, of, h.classes.zeros, bits, l.values, v, lane))
            return false;
        backward(v, h.predictor, c.rank, edge, lane);
        h.finish(v, base, r, is_float);
        if (l.count != 0 && !found.take(l, block, v, lane)) return false;
        store_rows(c, p, block, flags & FLAG_SWAP, v, buffer, lane);
    }
    return found.count == l.count && bits == l.values;
}

// Class 3: a warp a row. Whole warps.
template <class S>
__device__ __forceinline__ bool take_raw(const Array& c, u32 tile, bool swap, const u32* in, u32 words, u32 thread,
                                         u32 threads = 32) {
    using I = Int<S>;
    constexpr u32 W = Traits<S>::W / 4;
    const RawRows rows(c, tile);
    if (in[0] != RAW || words != 1 + W * rows.inside) return false;
    const u32 x = thread % 32;
#pragma unroll 1
    for (u32 row = thread / 32; rows.width * row < rows.inside; row += threads / 32) {
        const u32 k = rows.width * row + x;
        if (x >= rows.width || k >= rows.inside) continue;
        I v;
        take_value(in + 1 + W * k, v);
        ((I*)c.values)[rows.place(c, row) + x] = swap ? swapped(v) : v;
    }
    return true;
}

// Takes a tile of a lossy frame, of any class. `buffer`: of 512 values. False: it is not right. Whole warp.
template <class S>
__device__ __forceinline__ bool take_any(const Array& c, u32 tile, const Tile& p, const Rule<S>& r, u32 flags,
                                         const u32* in, u32 words, Int<S>* buffer, int lane) {
    const u32 head = in[0], kind = head & 3;
    const bool swap = flags & FLAG_SWAP;
    if (kind == RAW) return take_raw<S>(c, tile, swap, in, words, lane);
    if (kind != 0) return take_wide<S>(c, p, r, flags, in, words, buffer, lane);
    const bool right = (head >> 2 & 3) <= c.rank && (head >> 9 & 3) != 2 && (head & 0x100) == 0 && r.usable;
    return right && take_quanta<S>(c, p, r, swap, in, words, lane);
}

}  // namespace planes
