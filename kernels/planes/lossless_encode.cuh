// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles without a bound, encoded by a CTA each: the first half of ../planes_lossless.cu.
//
// A CTA takes its tiles from a ticket, one after another.
//
//   look           a block's values come into registers; the first warp finds the base and the predictor
//   special tiles  those with exceptions, integers or low zeros are planned by short loops, through shared memory
//   differences    in registers; what goes from one block to the next, through shared memory
//   classes        lengths are counted; the warps try the shapes of classes, each some of them
//   put            each warp finds how much of each part its block has. Sums of that say where everything goes: the
//                  payload is put together in shared memory as it will stand in the frame
//
// There it waits until the CTA's next tile is announced, or the one after that (IMAGES in tuning.cuh): by then those
// before it mostly are, its place is found without a stop, and it leaves in whole words, summed for the checksum on the
// way.
#pragma once
#include "../tuning.cuh"
#include "encode_any.cuh"
#include "lossless.cuh"

namespace planes::lossless {

// Words of a payload before its nibbles at most, and with them.
constexpr u32 FRONT = 6 + PLANES, NIBBLES = FRONT + PLANES * 32 / 8;

// How much of each part a block has, or a tile, in one word: ballots, whole planes, nibbles, bytes.
constexpr u32 BALLOT = 1, WHOLE = 1 << 5, NIBBLE = 1 << 10, BYTE = 1 << 20;

// What the first look at a tile finds: values that are exceptions in any tile; it may be one of integers, or one where
// values with low bits are exceptions; it may have low zeros.
constexpr u32 SOME = 1, INTEGERS = 2, LOW = 4, EVEN = 8;

// What a block tells of the rest of a tile that has specials: exceptions, and whether all have the same bits; exponents
// of map 1; the extremes of its planes, their highest bits turned; all bits of numbers.
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

// A tile of the batch, and the slot of its chunk.
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
    Plan plan;
    u32 specials;
    Special<S> special[BLOCKS];
    // What each predictor costs in its first block.
    u32 costs[BLOCKS];
    // By blocks: parts and words of fields; modes of planes; masks.
    uint2 parts[BLOCKS];
    u32 modes[BLOCKS], masks[BLOCKS][32];
    // All bits of differences, and of their lengths; lengths counted, and summed up by each warp; the best choice of
    // classes of each.
    I any, longest;
    u32 counts[LENGTHS], best[BLOCKS];
    u16 by_length[LENGTHS];
    // One after the other: the numbers of its first block; what goes from one block to the next; the sums of lengths of
    // each warp.
    union {
        alignas(16) I first[8][32][4];
        I left[BLOCKS];
        alignas(16) I up[BLOCKS][8][4];
        alignas(16) I back[BLOCKS - 1][4][32][4];
        u32 upto[BLOCKS][LENGTHS];
    };
    // Payloads that wait, one of them numbers of the tile that grows where it has specials, then its payload.
    alignas(16) u32 images[PlanesTuning<S>::IMAGES][VALUES<S> + 8];
};

// A tile's values.
template <class S>
__device__ __forceinline__ Source<S, false> source(const Chunk& c, u32 index, int lane) {
    return {c.array, tile_at(c.array, index, lane), {}, c.flags, c.fill};
}

// Where a lane's row of a block's numbers stands in shared memory.
template <class I>
__device__ __forceinline__ I* numbers_at(u32* image, int block, int k, int lane) {
    return (I*)image + 4 * (32 * (8 * block + k) + lane);
}

// A row of a block: its bits; numbers of the plan's map. `ordered` bits stand in shared memory.
template <class S>
__device__ __forceinline__ void load_bits(u32* image, const Source<S, false>& in, int block, int k, int lane,
                                          Int<S> (&y)[4]) {
    using I = Int<S>;
    load4(numbers_at<I>(image, block, k, lane), y);
#pragma unroll
    for (int i = 0; i < 4; i++) y[i] = in.is_float ? ordered(y[i]) : y[i];
}

// Finds a block's exceptions; `low`: those with low bits too. Whole warp.
template <class S>
__device__ __forceinline__ void find_exceptions(Stage<S>& s, u32* image, const Source<S, false>& in, bool low,
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
    s.masks[block][lane] = mask;
    const u32 some = __ballot_sync(warp::ALL, count != 0);
    const I one = warp::from(first, some ? __ffs((int)some) - 1 : 0);
    same = __all_sync(warp::ALL, count == 0 || (same && first == one));
    count = warp::total(count);
    if (lane == 0) s.special[block].count = count, s.special[block].same = same, s.special[block].first = one;
}

// Adds up the exceptions of all blocks; whether a tile may have them.
template <class S>
__device__ __forceinline__ bool sum_exceptions(const Stage<S>& s, Plan& plan, u32 inside) {
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
template <class S>
__device__ __forceinline__ void find_integers(Stage<S>& s, u32* image, const Source<S, false>& in, bool marked,
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
template <class S>
__device__ __forceinline__ void put_integers(u32* image, const Source<S, false>& in, int exponent, int block,
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
template <class S>
__device__ __forceinline__ void put_bits(u32* image, const Source<S, false>& in, int block, int lane) {
    using I = Int<S>;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        S x[4];
        I y[4];
        in.load_row(2 * block + k / 4, k % 4, x);
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = in.is_float ? ordered(Traits<S>::bits(x[i])) : Traits<S>::bits(x[i]);
        store4(numbers_at<I>(image, block, k, lane), y);
    }
}

// Finds the base of the tile's numbers; takes it off a block's, and bridges exceptions. Whole CTA.
template <class S>
__device__ __forceinline__ void settle_numbers(Stage<S>& s, u32* image, Plan& plan, int block, int lane) {
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
__device__ __forceinline__ void try_predictor(Stage<S>& s, u32 rank, u32 zeros, int predictor, int lane) {
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
template <class S>
__device__ __noinline__ void survey_special(Stage<S>& s, u32 slot, u32* image, u32 index, u32 specials, int block,
                                            int lane) {
    using I = Int<S>;
    const Source<S, false> in = source<S>(s.chunks[slot], index, lane);
    const u32 inside = warp::from(inside_of(in.array, in.p), 0);
    Plan plan = {2};
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
    // Map 0; map 1 where it can be; map 0 once more where it was shorter.
    const bool both = integers.some();
    const Plan bits = plan;
    u32 least = ~0u;
#pragma unroll 1
    for (u32 turn = 0; turn < 3; turn++) {
        Plan p = bits;
        if (turn > 0) put_bits(image, in, block, lane);
        if (turn == 1) {
            p.head |= SCALED, p.exponent = integers.exponent();
            put_integers(image, in, p.exponent, block, lane);
        }
        settle_numbers(s, image, p, block, lane);
        I any = 0;
#pragma unroll 1
        for (u32 k = 0; k < BLOCKS; k++) any |= s.special[k].any;
        try_predictor(s, in.array.rank, zeros_of<S>(any), block, lane);
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
template <class S>
__device__ __noinline__ void put_special(const Stage<S>& s, u32 slot, u32 index, u32* to, int block, int lane) {
    const Source<S, false> in = source<S>(s.chunks[slot], index, lane);
    const u32 mask = s.masks[block][lane] & inside_block(in.array, in.p, block), count = (u32)__popc(mask);
    u32 first = warp::inclusive(count, lane) - count;
    for (int k = 0; k < block; k++) first += s.special[k].count;
#pragma unroll 1
    for (u32 left = mask; left != 0; left &= left - 1) {
        const u32 bit = __ffs((int)left) - 1, k = bit % 8;
        S x[4];
        in.load_row(2 * block + k / 4, k % 4, x);
        const int c = byte_of(bit / 8);
        put_value(to + Traits<S>::W / 4 * first++, Traits<S>::bits(c == 0   ? x[0]
                                                                   : c == 1 ? x[1]
                                                                   : c == 2 ? x[2]
                                                                            : x[3]));
    }
}

// Places and writes the tile that waits in image `turn`, if one does. Whole CTA.
template <class S>
__device__ __forceinline__ void flush(Stage<S>& s, u32 turn, u32 thread, int w, int lane) {
    const Pending t = s.pending[turn];
    if (t.total == 0) return;
    const Chunk& c = s.chunks[t.slot];
    if (w == 1) {
        const u32 start = lookback::place((u64*)c.place.offsets, t.index, t.total, lane);
        if (lane == 0) s.start = start;
    }
    __syncthreads();
    const u32 start = s.start;
    u64 sum = 0;
    if (thread == 0) {
        sum = c.place.put_end(t.index, start + t.total);
        s.pending[turn].total = 0;
    }
    u32* to = (u32*)c.place.payloads + start;
    const u64 key = c.place.key + start * frame::KEY_STEP;
    if (LIKELY(!t.raw)) {
        sum += frame::copy_keyed<THREADS, 4>(to, s.images[turn], key, t.total);
    } else {
        sum += put_raw(source<S>(c, t.index, lane), t.index, to, key, thread, THREADS);
    }
    c.place.add(sum, lane);
    __syncthreads();
}

// Draws the tile after the one whose chunk is in `slot`. By one warp.
template <class S>
__device__ __forceinline__ void draw(const EncodeArgs& args, Stage<S>& s, u32 slot, int lane) {
    const frame::Ticket next = frame::ticket(args, lane);
    if (next.tile < args.tiles && next.chunk != s.chunks[slot].place.chunk) {
        slot = (slot + 1) % SLOTS;
        open_chunk<S>(s.chunks[slot], args, next.chunk, lane);
    }
    if (lane == 0) s.next = {next.tile, slot};
}

// Finds the mode of a bit plane. `full`: it and what comes after it in the block is stored whole. FORMAT.md §8.3. Whole
// warp.
__device__ __forceinline__ u32 mode_of(u32 word, u32& parts, bool& full, int lane) {
    const u32 ballot = __ballot_sync(warp::ALL, word != 0);
    if (ballot == 0) return 0;
    const Sparse sparse(word, ballot, lane);
    if (!full && sparse.pays()) {
        parts += BALLOT + NIBBLE * sparse.words() + BYTE * sparse.bytes();
        return 3;
    }
    full = true;
    parts += WHOLE;
    return 1;
}

// Where a block's parts stand.
struct Target {
    u32 *ballots, *words, *nibbles;
    u8* bytes;
    u32 nibble;

    __device__ __forceinline__ void put(u32 word, u32 mode, int lane) {
        if (mode == 0) return;
        if (mode == 1) {
            words[lane] = word;
            words += 32;
            return;
        }
        const Sparse sparse(word, __ballot_sync(warp::ALL, word != 0), lane);
        sparse.put(nibbles, nibble, bytes);
        if (lane == 0) *ballots = sparse.ballot;
        ballots++, nibble += sparse.words(), bytes += sparse.bytes();
    }
};

// Codes the tile `next`, draws the next one, and writes the oldest that waits. Whole CTA.
template <class S>
__device__ __forceinline__ void put_tile(const EncodeArgs& args, Stage<S>& s, Next& next, u32& turn, u32 thread, int w,
                                         int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    constexpr u32 W = sizeof(S) / 4;
    const u32 slot = next.slot;
    const Chunk& c = s.chunks[slot];
    const u32 index = next.tile - c.place.first_tile, rank = c.array.rank;
    const Source<S, false> in = source<S>(c, index, lane);
    u32* const image = s.images[turn];
    I v[8][4];
    {
        S x[8][4];
        in.load(w, x);
        u32 specials = __any_sync(warp::ALL, in.any_special(x)) ? SOME : 0;
        in.bits(x, v);
        if (w == 0) {
            if (in.is_float) {
                Integers<S> integers;
                integers.add(in, x, 0);
                if (integers.can) specials |= INTEGERS;
                if (T::W == 8 && in.few_low(x, inside_block(c.array, in.p, 0))) specials |= LOW;
            }
            I base = 0, any = 0;
            base_of<S>(v, 0, base);
#pragma unroll
            for (int k = 0; k < 8; k++) {
                I d[4];
#pragma unroll
                for (int i = 0; i < 4; i++) any |= d[i] = v[k][i] - base;
                store4(s.first[k][lane], d);
            }
            if (!__any_sync(warp::ALL, any & 1)) specials |= EVEN;
            if (lane == 0) s.plan = {2}, s.plan.base = base, s.any = s.longest = 0;
        } else if (w == 1) {
            draw(args, s, slot, lane);
        }
        if (specials && lane == 0) atomicOr(&s.specials, specials);
    }
    if (thread < LENGTHS) s.counts[thread] = 0;
    __syncthreads();
    const u32 specials = s.specials;
    u32 predictor;
    if (LIKELY(specials == 0)) {
        try_predictor(s, rank, 0, w, lane);
        const I base = (I)s.plan.base;
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] -= base;
        __syncthreads();
        u32 cost;
        predictor = best_predictor(s, cost);
    } else {
        // The image is needed.
        flush(s, turn, thread, w, lane);
#pragma unroll
        for (int k = 0; k < 8; k++) store4(numbers_at<I>(image, w, k, lane), v[k]);
        survey_special(s, slot, image, index, specials, w, lane);
#pragma unroll
        for (int k = 0; k < 8; k++) load4(numbers_at<I>(image, w, k, lane), v[k]);
        predictor = s.plan.head >> 2 & 3;
        __syncthreads();
    }
    if (thread == 0) s.specials = 0;
    // What is read of the stage from now on, other warps may not change before they are through with the tile.
    next = s.next;
    const u32 value_words = values_of<S>(s.plan);
    const bool marked = s.plan.marked, uniform = s.plan.uniform;

    // Differences.
    Edge<I> edge;
    if (predictor > 0) {
        if (rank == 1) {
            if (lane == 31) s.left[w] = v[7][3];
            __syncthreads();
            if (w > 0) edge.left = s.left[w - 1];
        }
        forward_x(v, rank, edge, lane);
    }
    if (predictor > 1) {
        if (rank == 2) {
            if (lane >= 24) store4(s.up[w][lane - 24], v[7]);
            __syncthreads();
            if (w > 0 && lane < 8) load4(s.up[w - 1][lane], edge.up);
        }
        forward_y(v, rank, edge, lane);
    }
    if (predictor > 2) {
        if (w < (int)BLOCKS - 1) {
#pragma unroll
            for (int k = 0; k < 4; k++) store4(s.back[w][k][lane], v[4 + k]);
        }
        __syncthreads();
        if (w > 0) {
#pragma unroll
            for (int k = 0; k < 4; k++) load4(s.back[w - 1][k][lane], edge.back[k]);
        }
        forward_z(v, edge);
    }

    // Classes of lengths.
    I any = 0, longest = 0;
#pragma unroll
    for (int k = 0; k < 32; k++) {
        I& u = v[k / 4][k % 4];
        any |= u, u = zigzag(u), longest |= u;
        if (k / 4 % 4 == 1) atomicAdd(&s.counts[T::length(u)], 1u);
    }
    any = warp::any(any), longest = warp::any(longest);
    if (lane == 0) atomicOr(&s.any, any), atomicOr(&s.longest, longest);
    __syncthreads();
    const u32 zeros = zeros_of<S>(s.any), top = (u32)T::length(s.longest) - zeros;
    u32* upto = s.upto[w];
    sum_lengths(s.counts, upto, zeros, lane);
    u32 best;
    if (w == 0) {
        best = cheapest_of<5>(upto, top, lane);
    } else if (w == 1) {
        best = cheapest_of<6>(upto, top, lane);
    } else if (w == 2) {
        best = min(cheapest_of<3>(upto, top, lane), cheapest_of<4>(upto, top, lane));
    } else {
        best =
            min(cheapest_of<2>(upto, top, lane), min(cheapest_of<0>(upto, top, lane), cheapest_of<1>(upto, top, lane)));
    }
    best = warp::least(best);
    if (lane == 0) s.best[w] = best;
    __syncthreads();
    const Classes classes =
        classes_of(min(min(s.best[0], s.best[1]), min(s.best[2], s.best[3])), upto, zeros, top, lane);
    if (w < (int)LENGTHS / 32) fill_table(s.by_length, classes, lane, w, LENGTHS / 32);
    if (!LIKELY(zeros == 0)) {
#pragma unroll
        for (int k = 0; k < 32; k++) {
            I& u = v[k / 4][k % 4];
            u = (u >> zeros & ~(I)1) | (u & 1);
        }
    }
    __syncthreads();

    // What the block has of each part.
    u32 planes[3], widths[8], mask = 0, parts = 0, modes = 0;
    const u32 mine = look_up<S>(s.by_length, v, planes, widths);
    bool full = false, alone = false;
#pragma unroll
    for (int p = 2; p >= 0; p--) modes |= mode_of(planes[p], parts, full, lane) << 2 * p;
    if (!LIKELY(!marked)) {
        mask = s.masks[w][lane] & inside_block(c.array, in.p, w);
        modes |= mode_of(mask, parts, alone, lane) << 6;
    }
    const u32 upto_lane = warp::inclusive(mine, lane), words = (warp::from(upto_lane, 31) + 31) / 32;
    if (lane == 0) s.parts[w] = make_uint2(parts, words), s.modes[w] = modes;
    __syncthreads();
    uint2 before = make_uint2(0, 0), all = before;
#pragma unroll
    for (int k = 0; k < (int)BLOCKS; k++) {
        const uint2 n = s.parts[k];
        if (k == w) before = all;
        all.x += n.x, all.y += n.y;
    }
    const u32 inside = in.p.left == 0 ? TILE : warp::from(inside_of(c.array, in.p), 0);
    const u32 front = 3 + W + marked, ballots = all.x & 31, whole = all.x >> 5 & 31, nibbles = all.x >> 10 & 1023,
              bytes = all.x >> 20;
    u32* const to_nibbles = image + front + ballots;
    u32* const to_words = to_nibbles + (nibbles + 7) / 8;
    u8* const to_bytes = (u8*)(to_words + 32 * whole);
    u32* const to_bits = to_words + 32 * whole + (bytes + 3) / 4;
    u32* const values = to_bits + all.y;
    u32 total = (u32)(values - image) + value_words;
    const bool raw = total >= 1 + W * inside;
    if (raw) total = 1 + W * inside;
    // By the warp that places it next.
    if (w == 1 && lane == 0) lookback::announce((u64*)c.place.offsets, index, total);
    flush(s, turn, thread, w, lane);
    // Where sparse planes go, bits are added.
    if (thread < NIBBLES) image[thread] = 0;
    __syncthreads();
    if (thread == 0) s.pending[turn] = {index, total, slot, raw};
    turn ^= PlanesTuning<S>::IMAGES - 1;
    if (!LIKELY(!raw)) return;
    Target to = {image + front + (before.x & 31), to_words + 32 * (before.x >> 5 & 31), to_nibbles,
                 to_bytes + (before.x >> 20), before.x >> 10 & 1023};
#pragma unroll
    for (int p = 2; p >= 0; p--) to.put(planes[p], modes >> 2 * p & 3, lane);
    if (!LIKELY(!marked)) {
        to.put(mask, modes >> 6, lane);
        if (!uniform) put_special(s, slot, index, values, w, lane);
    }
    put_fields<true>(to_bits + before.y, words, upto_lane - mine, v, widths, lane);
    if (bytes % 4 + thread < 4 && bytes % 4 != 0) to_bytes[bytes + thread] = 0;
    if (thread == 0) {
        Plan plan = s.plan;
        plan.classes = classes, plan.head |= predictor << 2 | classes.shape << 5;
#pragma unroll
        for (u32 k = 0; k < BLOCKS; k++)
            plan.head |= (s.modes[k] & 63) << (8 + 6 * k), plan.masks |= s.modes[k] >> 6 << 2 * k;
        put_front<S>(image, plan);
        if (plan.uniform) put_value(values, (I)plan.value);
    }
}

template <class S>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    __shared__ Stage<S> s;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 thread = threadIdx.x;
    if (thread < PlanesTuning<S>::IMAGES) s.pending[thread].total = 0;
    if (thread == 0) s.specials = 0;
    if (w == 1) {
        // That of none.
        if (lane == 0) s.chunks[0].place.chunk = ~0u;
        __syncwarp();
        draw(args, s, 0, lane);
    }
    __syncthreads();
    Next next = s.next;
    __syncthreads();
    u32 turn = 0;
    while (next.tile < args.tiles) put_tile(args, s, next, turn, thread, w, lane);
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < PlanesTuning<S>::IMAGES; k++) flush(s, turn ^ k, thread, w, lane);
}

}  // namespace planes::lossless
