// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of every class into words, where they are not of class 0 or have no room in shared memory: FORMAT.md §3.2, §8.
// A warp a tile, and no tile is too long.
//
//   plan_tile      the class (survey.cuh), then what the tile's parts would have; where that is not shorter than the
//                  values, class 3. Now the tile's place can be found
//   write_tile     the head; the parts again, which are written; exceptions' values. Then the words are read once more,
//                  for the checksum
//   code_quanta    class 0, block after block: quanta less the base, differences, bit planes
//   code_lengths   classes 1 and 2, the same: differences, classes of lengths, fields
//
// A lossy frame has few such tiles. Those of a lossless one have a kernel of their own, planes_lossless.cu.
#pragma once
#include "../base/checksum.cuh"
#include "survey.cuh"

namespace planes {

// Slices of a block of class 0, as its tile's head says.
__device__ __forceinline__ u32 slices_of(u32 head, u32 block) { return 1 + (head >> (4 + block) & 1); }
__device__ __forceinline__ u32 slices_of(u32 head) { return 4 + __popc(head & 0xf0); }

// Byte `slice` of a lane's values of a block, in order of bits.
template <class I>
__device__ __forceinline__ void bytes_of(const I (&v)[8][4], u32 slice, u32 (&x)[8]) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        x[k] = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) x[k] |= (u32)(u8)(v[k][i] >> 8 * slice) << 8 * byte_of(i);
    }
}

// The predictor of a class-0 tile with this first block.
template <class S>
__device__ __forceinline__ u32 choose(const Int<S> (&v)[8][4], u32 rank, int lane) {
    u32 least = ~0u, best = 0;
#pragma unroll 1
    for (u32 predictor = 0; predictor <= rank; predictor++) {
        Int<S> d[8][4], all = 0;
        Edge<Int<S>> none;
#pragma unroll
        for (int k = 0; k < 32; k++) d[k / 4][k % 4] = v[k / 4][k % 4];
        forward(d, predictor, rank, none, lane);
#pragma unroll
        for (int k = 16; k < 32; k++) all |= d[k / 4][k % 4] ^ minus(d[k / 4][k % 4]);
        const u32 cost = warp::total((u32)Traits<S>::length(all));
        if (cost < least) least = cost, best = predictor;
    }
    return best;
}

// Puts the mask of a block of a tile with exceptions.
template <class Source>
__device__ __forceinline__ void put_mask(Sink& out, const Source& in, u32 mask, u32 block, u32& masks, int lane) {
    bool alone = false;
    mask &= inside_block(in.array, in.p, block);
    masks |= out.put(mask, true, ~0u, alone, lane) << 2 * block;
}

// Codes a tile of class 0 as its plan says. The predictor, the slices and the masks' modes are found where nothing is
// written. Whole warp.
template <class S>
__device__ __forceinline__ void code_quanta(const Source<S, true>& in, Plan& plan, bool dense, Sink& out, int lane) {
    using I = Int<S>;
    const u32 rank = in.array.rank;
    const I base = (I)plan.base;
    u32 head = plan.head, masks = plan.masks & ~0xffu, first = 0;
    Edge<I> edge;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        I v[8][4];
        u32 mask = 0;
        {
            S x[8][4];
            in.load(block, x);
            if (plan.marked) mask = in.exceptions(x, 0, base, false);
            in.numbers(x, plan, v);
        }
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] -= base;
        if (plan.marked) bridge(v, mask, lane);
        if (!out.write && block == 0) head |= choose<S>(v, rank, lane) << 2;
        forward(v, head >> 2 & 3, rank, edge, lane);
        I folded = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) folded |= v[k / 4][k % 4] ^ minus(v[k / 4][k % 4]);
        const u32 slices = __any_sync(warp::ALL, folded >= 128) ? 2 : 1;
        const I sign_bit = (I)1 << (8 * slices - 1);
#pragma unroll
        for (int k = 0; k < 32; k++) {
            I& d = v[k / 4][k % 4];
            const I negative = minus(d);
            d = ((d ^ negative) & (sign_bit - 1)) | (negative & sign_bit);
        }
        // Bit planes: the signs, which are the highest one, at last.
        u32 sign = 0, upper = 0;
        bool full = false;
#pragma unroll 1
        for (int slice = (int)slices - 1; slice >= 0; slice--) {
            const bool top = slice == (int)slices - 1;
            u32 x[8], modes = 0;
            bytes_of(v, slice, x);
            transpose(x);
            if (top) sign = x[7];
            const Parts less = out.n;
#pragma unroll 1
            for (int p = 7; p >= 0; p--) {
                if (p < 7 || !top) {
                    modes |= out.put(x[7], dense, (u32)fmt::PLANES_BYTES, full, lane) << 2 * p;
                }
#pragma unroll
                for (int k = 7; k > 0; k--) x[k] = x[k - 1];
            }
            if (top) {
                upper = modes;
                continue;
            }
            if (out.write && modes == 0x5555u) {
                // All eight planes full: they stand as bytes, as they are in the residuals.
                bytes_of(v, slice, x);
#pragma unroll
                for (int k = 0; k < 8; k++)
                    out.words[less.words + 32 * k + lane] = x[k] ^ (sign >> k & 0x01010101u) * 255;
            }
            if (out.write && lane == 0) out.modes[first + slice] = (u16)modes;
        }
        upper |= out.put(sign, dense, (u32)fmt::PLANES_BYTES, full, lane) << 14;
        if (out.write && lane == 0) out.modes[first + slices - 1] = (u16)upper;
        first += slices;
        if (!out.write) head |= (slices - 1) << (4 + block);
        if (plan.marked) put_mask(out, in, mask, block, masks, lane);
    }
    plan.head = head, plan.masks = masks;
}

// The same of classes 1 and 2: the modes of planes are found.
template <class S>
__device__ __forceinline__ void code_lengths(const Source<S, true>& in, Plan& plan, const u16* table, Sink& out,
                                             int lane) {
    using I = Int<S>;
    const I zeros = (I)plan.classes.zeros;
    u32 modes = 0, masks = plan.masks & ~0xffu;
    Edge<I> edge;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        S x[8][4];
        I v[8][4];
        in.load(block, x);
        const u32 mask = numbers_of(in, plan, x, v, lane);
        forward(v, plan.head >> 2 & 3, in.array.rank, edge, lane);
        // The shift keeps the sign.
#pragma unroll
        for (int k = 0; k < 32; k++) {
            using Signed = typename SignedOf<I>::Type;
            v[k / 4][k % 4] = zigzag((I)((Signed)v[k / 4][k % 4] >> zeros));
        }
        modes |= put_lengths<S>(out, table, v, lane) << 6 * block;
        if (plan.marked) put_mask(out, in, mask, block, masks, lane);
    }
    plan.head |= modes << 8, plan.masks = masks;
}

// Words of a tile before its ballots.
template <class S>
__device__ __forceinline__ u32 front_of(const Plan& plan) {
    const u32 kind = plan.head & 3;
    return (kind == 0 ? 1 + (slices_of(plan.head) + 1) / 2 : 3 + Traits<S>::W / 4) + plan.marked;
}

// Words of exceptions' values.
template <class S>
__device__ __forceinline__ u32 values_of(const Plan& plan) {
    return Traits<S>::W / 4 * (plan.uniform ? 1 : plan.marked ? plan.masks >> 8 : 0);
}

// Words of all parts.
template <class S>
__device__ __forceinline__ u32 total_of(const Plan& plan) {
    return front_of<S>(plan) + plan.n.ballots + (plan.n.nibbles + 7) / 8 + plan.n.words + (plan.n.bytes + 3) / 4 +
           plan.bits + values_of<S>(plan);
}

// Writes what stands before a tile's modes and ballots. One lane.
template <class S>
__device__ __forceinline__ void put_front(u32* to, const Plan& plan) {
    const bool long_head = (plan.head & 3) != 0;
    const Classes& c = plan.classes;
    const u32 marks = plan.uniform ? 3 : plan.marked ? 1 : 0;
    *to++ = long_head ? plan.head : plan.head | marks << 9;
    if (long_head) {
        *to++ = c.least | c.top << 6 | c.zeros << 13 | (plan.head & SCALED ? (u32)plan.exponent << 20 : 0);
        *to++ = c.numbers | marks << 24;
        put_value(to, (Int<S>)plan.base);
        to += Traits<S>::W / 4;
    }
    if (plan.marked) *to = plan.masks;
}

// Writes a tile of class 3; returns what its words add to the checksum, the first under `key`. A warp a row, in a loop
// that is not unrolled: a frame has few of these, and fetching long code costs more than running it. Whole warps.
template <class S, bool LOSSY>
__device__ __forceinline__ u64 put_raw(const Source<S, LOSSY>& in, u32 tile, u32* to, u64 key, u32 thread,
                                       u32 threads = 32) {
    using T = Traits<S>;
    constexpr u32 W = T::W / 4;
    const RawRows rows(in.array, tile);
    const u32 x = thread % 32;
    u64 sum = 0;
    if (thread == 0) to[0] = RAW, sum = frame::keyed(RAW, key);
#pragma unroll 1
    for (u32 row = thread / 32; rows.width * row < rows.inside; row += threads / 32) {
        const u32 k = rows.width * row + x;
        if (x >= rows.width || k >= rows.inside) continue;
        S v = ((const S*)in.array.values)[rows.place(in.array, row) + x];
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

// Writes the values of exceptions that are not uniform. Whole warp.
template <class S>
__device__ __forceinline__ void put_values(const Source<S, true>& in, const Plan& plan, u32* to, int lane) {
    u32 before = 0;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        S x[8][4];
        in.load(block, x);
        const u32 found =
            in.exceptions(x, plan.head & 3, (Int<S>)plan.base, plan.low) & inside_block(in.array, in.p, block);
        const u32 count = (u32)__popc(found), upto = warp::inclusive(count, lane);
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const int bit = bit_of(k / 4, k % 4);
            if ((found >> bit & 1) == 0) continue;
            const u32 place = before + upto - count + __popc(found & ((1u << bit) - 1));
            put_value(to + Traits<S>::W / 4 * place, in.settled(x[k / 4][k % 4]));
        }
        before += warp::from(upto, 31);
    }
}

// Plans a tile of a lossy frame, whatever its class; returns the words that it will have. `raw`: it is known to be of
// class 3. Whole warp.
template <class S>
__device__ __noinline__ u32 plan_tile(const Source<S, true>& in, Plan& kept, u32 inside, bool raw, bool dense,
                                      Counts& counts, int lane) {
    const u32 all = 1 + Traits<S>::W / 4 * inside;
    Plan plan = {RAW};
    u32 total = all;
    if (!raw) {
        if (!survey(in, plan, inside, lane)) survey_bits(in, plan, inside, lane);
        Sink none;
        if ((plan.head & 3) == 0) {
            code_quanta(in, plan, dense, none, lane);
        } else {
            survey_lengths(in, plan, counts, lane);
            code_lengths(in, plan, counts.table, none, lane);
        }
        plan.n = none.n, plan.bits = none.bit_words;
        total = total_of<S>(plan);
        // One with nothing but absent planes is its head alone.
        if ((plan.head & 3) == 0 && !plan.marked && plan.n.ballots + plan.n.words == 0) plan.head &= ~0xf0u, total = 1;
        if (total >= all) plan = {RAW}, total = all;
    }
    __syncwarp();
    if (lane == 0) kept = plan;
    __syncwarp();
    return total;
}

// Writes `words` words behind those that `to` and `key` point behind; returns what they add to the checksum. One warp.
__device__ __forceinline__ u64 write_words(u32*& to, u64& key, const u32* from, u32 words, int lane) {
    constexpr int BATCH = 8;
    u64 sum = 0, mine = key + (u64)lane * frame::KEY_STEP;
    int left = (int)words - lane;
    const u32* in = from + lane;
    u32* out = to + lane;
#pragma unroll 1
    for (; left > 32 * (BATCH - 1); left -= 32 * BATCH) {
        u32 word[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++) word[k] = in[32 * k];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            out[32 * k] = word[k];
            sum += frame::keyed(word[k], mine);
            mine += 32 * frame::KEY_STEP;
        }
        in += 32 * BATCH, out += 32 * BATCH;
    }
#pragma unroll 1
    for (; left > 0; left -= 32, in += 32, out += 32) {
        *out = *in;
        sum += frame::keyed(*in, mine);
        mine += 32 * frame::KEY_STEP;
    }
    to += words;
    key += words * frame::KEY_STEP;
    return sum;
}

// Writes the tile that was planned; returns what its words add to the checksum, the first under `key`. Whole warp.
template <class S>
__device__ __noinline__ u64 write_tile(const Source<S, true>& in, u32 tile, u32 inside, const Plan& kept, bool dense,
                                       const Counts& counts, u32* to, u32 total, u64 key, int lane) {
    Plan plan = kept;
    const u32 kind = plan.head & 3;
    if (kind == RAW) {
        return put_raw(in, tile, to, key, lane);
    } else if (total == 1) {
        if (lane == 0) to[0] = plan.head;
    } else {
        if (lane == 0) put_front<S>(to, plan);
        Sink out;
        out.write = true;
        out.ballots = to + front_of<S>(plan), out.nibbles = out.ballots + plan.n.ballots;
        out.modes = (u16*)(to + 1 + plan.marked);
        out.words = out.nibbles + (plan.n.nibbles + 7) / 8;
        out.bytes = (u8*)(out.words + plan.n.words);
        out.bits = out.words + plan.n.words + (plan.n.bytes + 3) / 4;
        u32* values = out.bits + plan.bits;
        // What is not written in whole words is 0 first.
        if (lane == 0 && kind == 0) out.ballots[-1] = 0;
        if (lane == 0 && plan.n.bytes != 0) out.bits[-1] = 0;
        for (u32* k = out.nibbles + lane; k < out.words; k += 32) *k = 0;
        __syncwarp();
        if (kind == 0) {
            code_quanta(in, plan, dense, out, lane);
        } else {
            code_lengths(in, plan, counts.table, out, lane);
        }
        if (plan.uniform) {
            if (lane == 0) put_value(values, (Int<S>)plan.value);
        } else if (plan.marked) {
            put_values(in, plan, values, lane);
        }
    }
    __syncwarp();
    return frame::sum_words(to, key, total, lane);
}

}  // namespace planes
