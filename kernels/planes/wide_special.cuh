// SPDX-License-Identifier: MIT OR Apache-2.0
// What a CTA keeps in shared memory while it encodes a tile of classes 1 to 3, and the steps for tiles of class 2 with
// exceptions, integers or low zeros: they are planned by short loops, a predictor at a time. See wide_encode.cuh.
#pragma once
#include "../tuning.cuh"
#include "numbers.cuh"

namespace planes::wide {

// Words of a tile's values.
template <class S>
constexpr u32 VALUES = TILE * sizeof(S) / 4;

// Bit planes of a tile: numbers of classes, and masks.
constexpr u32 PLANES = BLOCKS * (3 + 1);

// Words of a payload before its nibbles at most, and with them.
constexpr u32 FRONT = 6 + PLANES, NIBBLES = FRONT + PLANES * 32 / 8;

// How much of each part a block has, or a tile, in one word: ballots, whole planes, nibbles, bytes.
constexpr u32 BALLOT = 1, WHOLE = 1 << 5, NIBBLE = 1 << 10, BYTE = 1 << 20;

// What the first look at a tile finds: values that are exceptions in any tile; it may be one of integers, or one where
// values with low bits are exceptions; it may have low zeros.
constexpr u32 SOME = 1, INTEGERS = 2, LOW = 4, EVEN = 8;

// What a block tells of the rest of its tile: exceptions, and whether all have the same bits; exponents of map 1; the
// extremes of its planes, in class 2 their highest bits turned; all bits of numbers.
template <class S>
struct Special {
    u32 count;
    bool same, can;
    Int<S> first;
    u32 lo, hi;
    Int<S> least[2], most[2], any;
};

// Chunks that a CTA keeps.
constexpr u32 SLOTS = 4;

// A tile of the batch, none where it is not below that of tiles, and the slot of its chunk.
struct Next {
    u32 tile, slot;
};

// A tile that waits: its number in its chunk; its words, none where none waits; the chunk's slot; whether it is of
// class 3.
struct Pending {
    u32 index, total, slot;
    bool raw;
};

// A CTA's work, in shared memory.
template <class S>
struct Stage {
    static_assert(PlanesTuning<S>::IMAGES + 2 <= SLOTS, "");
    using I = Int<S>;
    // Chunks of the tiles that wait, of the one that grows, and of the next one.
    Chunk chunks[SLOTS];
    // The tile after the one that grows.
    Next next;
    // The tiles that wait in the images. The place of the one that leaves.
    Pending pending[PlanesTuning<S>::IMAGES];
    u32 start;
    // The tile that grows: its plan; which specials it may have.
    TilePlan plan;
    u32 specials;
    Special<S> special[BLOCKS];
    // What each predictor costs in its first block.
    u32 costs[BLOCKS];
    // By blocks: parts and words of fields; modes of planes; masks.
    uint2 parts[BLOCKS];
    u32 modes[BLOCKS], masks[BLOCKS][32];
    // All bits of differences, and of their lengths; lengths counted; classes of them.
    I any, longest;
    u32 counts[LENGTHS];
    Classes classes;
    u16 by_length[LENGTHS];
    // One after the other: the numbers of its first block; what goes from one block to the next; the sums of lengths.
    union {
        alignas(16) I first[8][32][4];
        I left[BLOCKS];
        alignas(16) I up[BLOCKS][8][4];
        alignas(16) I back[BLOCKS - 1][4][32][4];
        u32 upto[LENGTHS];
    };
    // Payloads that wait, one of them numbers of the tile that grows where it has specials, then its payload.
    alignas(16) u32 images[PlanesTuning<S>::IMAGES][VALUES<S> + 8];
};

// A tile's values.
template <class S, int LOSSY>
__device__ __forceinline__ Source<S, LOSSY> source(const Chunk& c, u32 index, int lane) {
    Rule<S> rule = {};
    if constexpr (LOSSY) rule = {(S)c.step, (S)c.inverse, (S)c.most, c.usable, false, {}};
    if constexpr (LOSSY == LIMITED) rule.limited = true, rule.limits = limits_of<S>(c);
    return {c.array, tile_at(c.array, index, lane), rule, c.flags, c.fill};
}

// Where a lane's row of a block's numbers stands in shared memory.
template <class I>
__device__ __forceinline__ I* numbers_at(u32* image, int block, int k, int lane) {
    return (I*)image + 4 * (32 * (8 * block + k) + lane);
}

// A row of a block: its bits; numbers of the plan's map. `ordered` bits stand in shared memory.
template <class S, int LOSSY>
__device__ __forceinline__ void load_bits(u32* image, const Source<S, LOSSY>& in, int block, int k, int lane,
                                          Int<S> (&y)[4]) {
    using I = Int<S>;
    load4(numbers_at<I>(image, block, k, lane), y);
#pragma unroll
    for (int i = 0; i < 4; i++) y[i] = in.is_float ? ordered(y[i]) : y[i];
}

// Keeps a block's exceptions: a lane's mask of them, how many lie in the array, the first one's bits, and whether all
// of the lane have these. Whole warp.
template <class S>
__device__ __forceinline__ void tell_exceptions(Stage<S>& s, u32 mask, u32 count, Int<S> first, bool same, int block,
                                                int lane) {
    s.masks[block][lane] = mask;
    const u32 some = __ballot_sync(warp::ALL, count != 0);
    const Int<S> one = warp::from(first, some ? __ffs((int)some) - 1 : 0);
    same = __all_sync(warp::ALL, count == 0 || (same && first == one));
    count = warp::total(count);
    if (lane == 0) s.special[block].count = count, s.special[block].same = same, s.special[block].first = one;
}

// Finds a block's exceptions of class 2; `low`: those with low bits too. Whole warp.
template <class S, int LOSSY>
__device__ __forceinline__ void find_exceptions(Stage<S>& s, u32* image, const Source<S, LOSSY>& in, bool low,
                                                int block, int lane) {
    using I = Int<S>;
    const u32 among = inside_block(in.array, in.p, block);
    u32 mask = 0, count = 0;
    I first = 0;
    bool same = true;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        I y[4];
        load_bits(image, in, block, k, lane, y);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 bit = 1u << bit_of(k, i);
            if (!in.special(y[i], low)) continue;
            mask |= bit;
            if ((among & bit) == 0) continue;
            if (count++ == 0) first = y[i];
            same = same && y[i] == first;
        }
    }
    tell_exceptions(s, mask, count, first, same, block, lane);
}

// Adds up the exceptions of all blocks; whether a tile may have them.
template <class S>
__device__ __forceinline__ bool sum_exceptions(const Stage<S>& s, TilePlan& plan, u32 inside) {
    u32 count = 0;
    Int<S> first = 0;
    bool same = true;
#pragma unroll
    for (u32 k = 0; k < BLOCKS; k++) {
        const Special<S>& e = s.special[k];
        if (e.count == 0) continue;
        if (count == 0) first = e.first;
        count += e.count;
        same = same && e.same && e.first == first;
    }
    if ((!same && count > (u32)fmt::PLANES_EXCEPTIONS) || count >= inside) return false;
    plan.masks = count << 8;
    plan.value = first;
    plan.marked = count != 0;
    plan.uniform = same && count != 0;
    return true;
}

// What map 1 asks of a block. Whole warp.
template <class S, int LOSSY>
__device__ __forceinline__ void find_integers(Stage<S>& s, u32* image, const Source<S, LOSSY>& in, bool marked,
                                              int block, int lane) {
    using I = Int<S>;
    Integers<S> integers;
    const u32 mask = marked ? s.masks[block][lane] : 0;
#pragma unroll 1
    for (int k = 0; k < 8 && integers.can; k++) {
        I y[4];
        load_bits(image, in, block, k, lane, y);
        integers.add_row(y, exceptions_of(mask, k));
    }
    Special<S>& here = s.special[block];
    if (lane == 0) here.lo = integers.lo, here.hi = integers.hi, here.can = integers.can;
}

// Makes numbers of map 1 of a block's bits, in shared memory.
template <class S, int LOSSY>
__device__ __forceinline__ void put_integers(u32* image, const Source<S, LOSSY>& in, int exponent, int block,
                                             int lane) {
    using T = Traits<S>;
    using I = Int<S>;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        I y[4];
        load_bits(image, in, block, k, lane, y);
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = in.integer(y[i], exponent + (1 << (T::E - 1)) - 1 + T::M);
        store4(numbers_at<I>(image, block, k, lane), y);
    }
}

// Puts a block's bits into shared memory, ordered where they are a float's.
template <class S, int LOSSY>
__device__ __forceinline__ void put_bits(u32* image, const Source<S, LOSSY>& in, int block, int lane) {
    using I = Int<S>;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        S x[4];
        I y[4];
        in.load_row(2 * block + k / 4, k % 4, x);
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = in.is_float ? ordered(in.settled(x[i])) : in.settled(x[i]);
        store4(numbers_at<I>(image, block, k, lane), y);
    }
}

// Finds the base of the tile's numbers; takes it off a block's, and bridges exceptions. Whole CTA.
template <class S>
__device__ __forceinline__ void settle_numbers(Stage<S>& s, u32* image, TilePlan& plan, int block, int lane) {
    using I = Int<S>;
    constexpr I TOP = (I)1 << (8 * sizeof(I) - 1);
    const u32 mask = plan.marked ? s.masks[block][lane] : 0;
    Special<S>& here = s.special[block];
    I v[4], base = 0, any = 0;
#pragma unroll 1
    for (int h = 0; h < 2; h++) {
        I least = ~(I)0, most = 0;
#pragma unroll 1
        for (int k = 4 * h; k < 4 * h + 4; k++) {
            load4(numbers_at<I>(image, block, k, lane), v);
            const u32 gone = exceptions_of(mask, k);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const I m = v[i] ^ TOP;
                if (gone >> i & 1) continue;
                least = min(least, m), most = max(most, m);
            }
        }
        warp::range(least, most);
        if (lane == 0) here.least[h] = least, here.most[h] = most;
    }
    __syncthreads();
    // The base is of the first plane that has a number which is no exception.
#pragma unroll 1
    for (int k = 2 * BLOCKS - 1; k >= 0; k--) {
        const I least = s.special[k / 2].least[k % 2], most = s.special[k / 2].most[k % 2];
        if (least <= most) base = (least + (most - least) / 2) ^ TOP;
    }
    plan.base = base;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        load4(numbers_at<I>(image, block, k, lane), v);
        const u32 gone = exceptions_of(mask, k);
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] -= base;
        if (__any_sync(warp::ALL, gone != 0)) bridge_row(v, gone, (I)0, lane);
#pragma unroll
        for (int i = 0; i < 4; i++) any |= v[i];
        store4(numbers_at<I>(image, block, k, lane), v);
        if (block == 0) store4(s.first[k][lane], v);
    }
    any = warp::any(any);
    if (lane == 0) here.any = any;
    __syncthreads();
}

// Low zeros of numbers that have these bits.
template <class S>
__device__ __forceinline__ u32 zeros_of(Int<S> any) {
    return any == 0 ? 0 : (u32)Traits<S>::length(any & ((Int<S>)0 - any)) - 1;
}

// What the predictor of a warp's number costs in plane 1 of the first block, whose numbers are in shared memory.
// `zeros`: low zeros of all numbers of the tile. FORMAT.md §8.2. Whole warp.
template <class S>
__device__ __forceinline__ void try_predictor(Stage<S>& s, u32 rank, u32 held, u32 zeros, int predictor, int lane) {
    using I = Int<S>;
    u32 cost = 0, some = 0;
    if (predictor <= (int)rank) {
        I v[8][4];
        Edge<I> none;
#pragma unroll
        for (int k = 0; k < 8; k++) load4(s.first[k][lane], v[k]);
        if (predictor > 0) forward_x(v, rank, none, lane);
        if (predictor > 1) forward_y(v, rank, none, lane);
        if (predictor > 2) forward_z(v, none);
#pragma unroll
        for (int k = 16; k < 32; k++) {
            const I one = v[k / 4][k % 4];
            cost += (u32)Traits<S>::length(zigzag(one));
            some += one != 0;
        }
    }
    cost = warp::total(cost - zeros * some);
    cost *= predictor == (int)rank ? held : 8;
    if (lane == 0) s.costs[predictor] = predictor <= (int)rank ? cost : ~0u;
}

// The cheapest predictor; the least cost.
template <class S>
__device__ __forceinline__ u32 best_predictor(const Stage<S>& s, u32& least) {
    u32 best = 0;
    least = s.costs[0];
#pragma unroll
    for (u32 k = 1; k < 4; k++) {
        if (s.costs[k] < least) least = s.costs[k], best = k;
    }
    return best;
}

// Plans a tile that may have specials, whose bits are in shared memory: exceptions, map, base and predictor. Leaves its
// numbers there. Whole CTA.
template <class S, int LOSSY>
__device__ __noinline__ void survey_special(Stage<S>& s, u32 slot, u32* image, u32 index, u32 specials, int block,
                                            int lane) {
    using I = Int<S>;
    const Source<S, LOSSY> in = source<S, LOSSY>(s.chunks[slot], index, lane);
    const u32 inside = warp::from(inside_of(in.array, in.p), 0);
    TilePlan plan = {2};
    bool low = specials & LOW;
    while (low || (specials & SOME)) {
        find_exceptions(s, image, in, low, block, lane);
        __syncthreads();
        const bool may = sum_exceptions(s, plan, inside);
        __syncthreads();
        if (may || !low) break;
        low = false;
    }
    Integers<S> integers;
    integers.can = in.is_float && (plan.marked || (specials & INTEGERS));
    if (integers.can) {
        find_integers(s, image, in, plan.marked, block, lane);
        __syncthreads();
#pragma unroll 1
        for (u32 k = 0; k < BLOCKS; k++) {
            const Special<S>& one = s.special[k];
            integers.lo = min(integers.lo, one.lo), integers.hi = max(integers.hi, one.hi), integers.can &= one.can;
        }
        integers.can &= integers.hi == 0 || integers.hi < integers.lo;
    }
    // Map 0; map 1 where it can be; map 0 again where it was shorter.
    const bool both = integers.some();
    const TilePlan bits = plan;
    u32 least = ~0u;
#pragma unroll 1
    for (u32 turn = 0; turn < 3; turn++) {
        TilePlan p = bits;
        if (turn > 0) put_bits(image, in, block, lane);
        if (turn == 1) {
            p.head |= SCALED, p.exponent = integers.exponent();
            put_integers(image, in, p.exponent, block, lane);
        }
        settle_numbers(s, image, p, block, lane);
        I any = 0;
#pragma unroll 1
        for (u32 k = 0; k < BLOCKS; k++) any |= s.special[k].any;
        try_predictor(s, in.array.rank, held_of(in.array, in.p, lane), zeros_of<S>(any), block, lane);
        __syncthreads();
        u32 cost;
        p.head |= best_predictor(s, cost) << 2;
        if (turn == 2 || cost <= least) least = cost, plan = p;
        if (!both || (turn == 1 && (plan.head & SCALED))) break;
    }
    if (block == 0 && lane == 0) s.plan = plan;
    __syncthreads();
}

// Puts the values of exceptions that have not all the same bits. Whole warp.
template <class S, int LOSSY>
__device__ __noinline__ void put_special(const Stage<S>& s, u32 slot, u32 index, u32* to, int block, int lane) {
    const Source<S, LOSSY> in = source<S, LOSSY>(s.chunks[slot], index, lane);
    const u32 mask = s.masks[block][lane] & inside_block(in.array, in.p, block), count = (u32)__popc(mask);
    u32 first = warp::inclusive(count, lane) - count;
    for (int k = 0; k < block; k++) first += s.special[k].count;
#pragma unroll 1
    for (u32 left = mask; left != 0; left &= left - 1) {
        const u32 bit = __ffs((int)left) - 1, k = bit % 8;
        S x[4];
        in.load_row(2 * block + k / 4, k % 4, x);
        const int c = byte_of(bit / 8);
        put_value(to + Traits<S>::W / 4 * first++, in.settled(c == 0 ? x[0] : c == 1 ? x[1] : c == 2 ? x[2] : x[3]));
    }
}

}  // namespace planes::wide
