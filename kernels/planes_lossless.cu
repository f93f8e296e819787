// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec planes without a bound: src/codec/planes/FORMAT.md. A CTA of four warps codes a tile of 4096 values, a warp
// each of its blocks: twice as many warps fit into shared memory as if each had a tile, and the four fetch the same code
// at about the same time.
//
// Encoding: a CTA takes its tiles from a ticket, one after another.
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
//
// Decoding: a tile's payload comes into shared memory, summed on the way. Each warp finds where its block's planes
// begin, and looks up how long its fields are; sums of that say where these begin. Differences are summed up within the
// block, then come the sums of the blocks before.
#include "base/frame_reader.cuh"
#include "base/frame_writer.cuh"
#include "planes/decode_any.cuh"
#include "planes/encode_any.cuh"
#include "tuning.cuh"

namespace {

using namespace planes;

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

// A CTA's work, in shared memory.
template <class S>
struct Stage {
    using I = Int<S>;
    // The chunk: its values, tiles of the batch before it; addresses of the look-back's words, of the table and of the
    // payloads; the place of the payloads' first word.
    Array array;
    u32 flags, first_tile;
    u64 fill, offsets, table, table_key, payloads, first_word;
    // Its tiles that are written and not yet counted; what they add to its checksum.
    u32 done;
    u64 sum;
    // The tile after the one that grows.
    frame::Ticket next;
    // The place of the payload that waits.
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

// The tile that waits, as each thread knows it: its number in the chunk; its words, none where none waits; whether it
// is of class 3.
struct Pending {
    u32 index, total;
    bool raw;
};

// A tile's values.
template <class S>
__device__ __forceinline__ Source<S, false> source(const Stage<S>& s, u32 index, int lane) {
    return {s.array, tile_at(s.array, index, lane), {}, s.flags, s.fill};
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
    const u32 among = inside_block(s.array, in.p, block);
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
__device__ __forceinline__ void try_predictor(Stage<S>& s, u32 zeros, int predictor, int lane) {
    using I = Int<S>;
    const u32 rank = s.array.rank;
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
__device__ __noinline__ void survey_special(Stage<S>& s, u32* image, u32 index, u32 specials, int block, int lane) {
    using I = Int<S>;
    const Source<S, false> in = source(s, index, lane);
    const u32 inside = warp::from(inside_of(s.array, in.p), 0);
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
        try_predictor(s, zeros_of<S>(any), block, lane);
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
__device__ __noinline__ void put_special(const Stage<S>& s, u32 index, u32* to, int block, int lane) {
    const Source<S, false> in = source(s, index, lane);
    const u32 mask = s.masks[block][lane] & inside_block(s.array, in.p, block), count = (u32)__popc(mask);
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

// Places and writes a tile that waits; returns what it adds to the checksum. Whole CTA.
template <class S>
__device__ __forceinline__ u64 flush(Stage<S>& s, Pending& waiting, const u32* image, u32 thread, int w, int lane) {
    const u32 total = waiting.total, index = waiting.index;
    if (total == 0) return 0;
    waiting.total = 0;
    if (w == 1) {
        const u32 start = lookback::place((u64*)s.offsets, index, total, lane);
        if (lane == 0) s.start = start;
    }
    __syncthreads();
    const u32 start = s.start;
    u64 sum = 0;
    if (thread == 0) {
        ((u32*)s.table)[index] = start + total;
        sum += frame::term(start + total, index + s.table_key);
        s.done++;
    }
    u32* to = (u32*)s.payloads + start;
    const u64 at = s.first_word + start;
    if (LIKELY(!waiting.raw)) {
        sum += frame::copy_summed<THREADS, 4>(to, image, at, total);
    } else {
        sum += put_raw(source(s, index, lane), index, to, frame::key_of(at), thread, THREADS);
    }
    __syncthreads();
    return sum;
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

// Codes the tile `next`, draws the next one, and writes the oldest that waits; returns what that one adds to the
// checksum. Whole CTA.
template <class S>
__device__ __forceinline__ u64 put_tile(const EncodeArgs& args, Stage<S>& s, frame::Ticket& next,
                                        Pending (&waiting)[PlanesTuning<S>::IMAGES], u32& turn, u32 thread, int w,
                                        int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    constexpr u32 W = sizeof(S) / 4;
    const u32 index = next.tile - s.first_tile;
    const Source<S, false> in = source(s, index, lane);
    const u32 rank = s.array.rank;
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
                if (T::W == 8 && in.few_low(x, inside_block(s.array, in.p, 0))) specials |= LOW;
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
            const frame::Ticket after = frame::ticket(args, lane);
            if (lane == 0) s.next = after;
        }
        if (specials && lane == 0) atomicOr(&s.specials, specials);
    }
    if (thread < LENGTHS) s.counts[thread] = 0;
    __syncthreads();
    const u32 specials = s.specials;
    u32 predictor;
    u64 sum = 0;
    if (LIKELY(specials == 0)) {
        try_predictor(s, 0, w, lane);
        const I base = (I)s.plan.base;
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] -= base;
        __syncthreads();
        u32 cost;
        predictor = best_predictor(s, cost);
    } else {
        // The image is needed.
        sum = flush(s, waiting[0], image, thread, w, lane);
#pragma unroll
        for (int k = 0; k < 8; k++) store4(numbers_at<I>(image, w, k, lane), v[k]);
        survey_special(s, image, index, specials, w, lane);
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
        mask = s.masks[w][lane] & inside_block(s.array, in.p, w);
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
    const u32 inside = in.p.left == 0 ? TILE : warp::from(inside_of(s.array, in.p), 0);
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
    if (w == 1 && lane == 0) lookback::announce((u64*)s.offsets, index, total);
    sum += flush(s, waiting[0], image, thread, w, lane);
    constexpr int LAST = PlanesTuning<S>::IMAGES - 1;
    waiting[0] = waiting[LAST], waiting[LAST] = {index, total, raw};
    // Where sparse planes go, bits are added.
    if (thread < NIBBLES) image[thread] = 0;
    turn ^= LAST;
    __syncthreads();
    if (!LIKELY(!raw)) return sum;
    Target to = {image + front + (before.x & 31), to_words + 32 * (before.x >> 5 & 31), to_nibbles,
                 to_bytes + (before.x >> 20), before.x >> 10 & 1023};
#pragma unroll
    for (int p = 2; p >= 0; p--) to.put(planes[p], modes >> 2 * p & 3, lane);
    if (!LIKELY(!marked)) {
        to.put(mask, modes >> 6, lane);
        if (!uniform) put_special(s, index, values, w, lane);
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
    return sum;
}

template <class S>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    __shared__ Stage<S> s;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 thread = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    if (w == 0) {
        const frame::Ticket first = frame::ticket(args, lane);
        if (lane == 0) s.next = first;
    }
    __syncthreads();
    frame::Ticket next = s.next;
    while (next.tile < args.tiles) {
        const u32 chunk = next.chunk;
        const EncodeChunk& c = chunks[chunk];
        if (thread == 0) {
            s.array = array_of(c, c.input);
            s.flags = flags_of(c), s.first_tile = c.first_tile;
            s.fill = c.fill;
            s.offsets = (u64)frame::offsets(args, c);
            s.table = c.frame + c.table_at;
            s.table_key = c.table_at / 4;
            s.payloads = c.frame + c.payload_at;
            s.first_word = c.payload_at / 4;
            s.done = s.specials = 0, s.sum = 0;
        }
        __syncthreads();
        u64 sum = 0;
        Pending waiting[PlanesTuning<S>::IMAGES] = {};
        u32 turn = 0;
        do {
            sum += put_tile(args, s, next, waiting, turn, thread, w, lane);
        } while (next.tile < args.tiles && next.chunk == chunk);
#pragma unroll
        for (int k = 0; k < PlanesTuning<S>::IMAGES; k++) {
            sum += flush(s, waiting[k], s.images[turn ^ k], thread, w, lane);
        }
        sum = warp::sum(sum);
        if (lane == 0) atomicAdd(&s.sum, sum);
        __syncthreads();
        if (w == 0 && frame::last(args, c, chunk, s.done, s.sum, lane)) frame::seal(args, c, chunk, 4, 0.0, lane);
        __syncthreads();
    }
}

// A tile that is read, in shared memory.
template <class S>
struct DecodeStage {
    using I = Int<S>;
    // By blocks: words of fields, exceptions. What each warp's words add to the checksum.
    u32 words[BLOCKS], exceptions[BLOCKS];
    frame::Sums<THREADS> sums;
    // What goes from one block to the next ones, in grids of rank 1, 2 and 3; a plane's values on their way.
    union {
        I left[BLOCKS];
        alignas(16) I up[BLOCKS][8][4];
        alignas(16) I back[BLOCKS - 1][4][32][4];
        alignas(16) I buffer[512];
    };
    // No writer's tile is longer; one word more is read. At last, planes' values on their way.
    alignas(16) u32 image[VALUES<S> + 4];
};

// Where a block's parts begin in a tile of class 2, whose planes are absent, whole or sparse by bytes.
struct Parts2 {
    Taker parts;
    const u32 *bits, *values;
    u32 modes, masks, count;
    bool uniform;
};

// Finds the parts of a block, checking those of the tile, as open_any does: lane k looks at plane k, the masks' among
// them.
template <class S>
__device__ __forceinline__ bool open_block(Parts2& l, const u32* in, u32 words, int block, int lane) {
    constexpr u32 W = Traits<S>::W / 4;
    if (words < 3 + W) return false;
    const u32 head = in[0], marks = in[2] >> 24 & 3, front = 3 + W + (marks & 1);
    if (words < front) return false;
    l.masks = marks & 1 ? in[3 + W] : 0;
    l.count = l.masks >> 8, l.uniform = marks == 3;
    if ((marks & 1) && (l.count < 1 || l.count > TILE)) return false;
    const u32 k = lane % 4, mode = lane >= (int)PLANES ? 0
                                                       : 3 & (k == 3 ? l.masks >> lane / 4 * 2
                                                                     : head >> (8 + lane / 4 * 6 + 4 - 2 * k));
    const u32 lower = (1u << lane) - 1, sparse = __ballot_sync(warp::ALL, mode == 3),
              whole = __ballot_sync(warp::ALL, mode == 1), ballots = __popc(sparse), whole_words = 32 * __popc(whole);
    u32 least = front + ballots + whole_words;
    if (words < least) return false;
    const u32 count = mode == 3 ? __popc(in[front + __popc(sparse & lower)]) : 0, upto = warp::inclusive(count, lane);
    const u32 nibbles = warp::from(upto, 31), nibble_words = (nibbles + 7) / 8;
    least += nibble_words;
    if (words < least) return false;
    const u32* nibble = in + front + ballots;
    const u32 even = 2 * lane < (int)nibble_words ? nibble[2 * lane] : 0,
              odd = 2 * lane + 1 < (int)nibble_words ? nibble[2 * lane + 1] : 0;
    const u32 here = __popc(even) + __popc(odd), bytes_upto = warp::inclusive(here, lane),
              bytes = warp::from(bytes_upto, 31);
    const u32 values = W * (l.uniform ? 1 : l.count);
    least += (bytes + 3) / 4;
    if (words < least + values) return false;
    l.bits = in + least, l.values = in + words - values;
    // Filling.
    const u32 over = nibbles % 8 ? nibble[nibble_words - 1] >> 4 * (nibbles % 8) : 0,
              beyond = bytes % 4 ? l.bits[-1] >> 8 * (bytes % 4) : 0;
    // Of the block's first plane: nibbles and bytes before it.
    const u32 first = 4 * block, before = (1u << first) - 1, at = warp::from(upto - count, first), from = at / 16 & 31;
    const u64 both = (u64)warp::from(odd, from) << 32 | warp::from(even, from);
    const u32 bytes_before = warp::from(bytes_upto - here, from) + __popcll(both & ((1ull << 4 * (at % 16)) - 1));
    l.parts.ballots = in + front + __popc(sparse & before);
    l.parts.nibble_words = nibble, l.parts.nibbles = at;
    l.parts.words = nibble + nibble_words + 32 * __popc(whole & before);
    l.parts.bytes = (const u8*)(nibble + nibble_words + whole_words) + bytes_before;
    l.modes = head >> (8 + 6 * block) & 63, l.masks = l.masks >> 2 * block & 3;
    return (over | beyond) == 0;
}

// Whether a tile of class 2 has planes of mode 2, which no writer makes.
template <class S>
__device__ __forceinline__ bool has_words(const u32* in, u32 words) {
    constexpr u32 W = sizeof(S) / 4;
    const u32 modes = in[0] >> 8, masks = words > 3 + W && (in[2] >> 24 & 1) ? in[3 + W] : 0;
    return ((modes >> 1 & ~modes & 0x555555u) | (masks >> 1 & ~masks & 0x55u)) != 0;
}

// Takes a tile of class 2. False: it is not right. Whole CTA.
template <class S>
__device__ __forceinline__ bool take_tile(DecodeStage<S>& s, const Array& c, const Tile& p, u32 flags, u32 words, int w,
                                          int lane) {
    using I = Int<S>;
    const u32* in = s.image;
    const bool is_float = flags & FLAG_FLOAT;
    const u32 rank = c.rank;
    WideHead<S> h;
    Parts2 l;
    // All warps see the same.
    if (!open_block<S>(l, in, words, w, lane) || !h.read(in, rank, is_float, false)) return false;
    u32 planes[3];
#pragma unroll
    for (int k = 2; k >= 0; k--) planes[k] = take_plane(l.parts, l.modes >> 2 * k & 3, lane);
    const u32 mask = take_plane(l.parts, l.masks, lane), gone = (u32)__popc(mask);
    Fields fields;
    const u32 mine = fields.look_up(planes, ByNumber(h.classes, lane));
    const u32 upto = warp::inclusive(mine, lane), all = warp::from(upto, 31), block_words = (all + 31) / 32;
    const u32 gone_upto = l.count == 0 ? 0 : warp::inclusive(gone, lane);
    if (lane == 31) s.words[w] = block_words, s.exceptions[w] = gone_upto;
    __syncthreads();
    u32 before = 0, total = 0, first = gone_upto - gone, exceptions = 0;
#pragma unroll
    for (int k = 0; k < (int)BLOCKS; k++) {
        if (k == w) before = total, first += exceptions;
        total += s.words[k], exceptions += s.exceptions[k];
    }
    if (total != (u32)(l.values - l.bits) || exceptions != l.count) return false;
    const u32* bits = l.bits + before;
    const bool filled = all % 32 == 0 || bits[block_words - 1] >> all % 32 == 0;
    I v[8][4];
    fields.take(bits, upto - mine, h.classes.zeros, v);
    Edge<I> edge;
    backward(v, h.predictor, rank, edge, lane);
    // What the blocks before add.
    if (h.predictor == rank) {
        if (rank == 1) {
            if (lane == 31) s.left[w] = v[7][3];
            __syncthreads();
            I less = 0;
            for (int k = 0; k < w; k++) less += s.left[k];
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] += less;
        } else if (rank == 2) {
            if (lane >= 24) store4(s.up[w][lane - 24], v[7]);
            __syncthreads();
            I less[4] = {};
            for (int k = 0; k < w; k++) {
                I more[4];
                load4(s.up[k][lane % 8], more);
#pragma unroll
                for (int i = 0; i < 4; i++) less[i] += more[i];
            }
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] += less[k % 4];
        } else {
            if (w < (int)BLOCKS - 1) {
#pragma unroll
                for (int k = 0; k < 4; k++) store4(s.back[w][k][lane], v[4 + k]);
            }
            __syncthreads();
#pragma unroll 1
            for (int b = 0; b < w; b++) {
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    I more[4];
                    load4(s.back[b][k][lane], more);
#pragma unroll
                    for (int i = 0; i < 4; i++) v[k][i] += more[i], v[4 + k][i] += more[i];
                }
            }
        }
    }
    I base;
    take_value(in + 3, base);
    h.finish(v, base, {}, is_float);
    if (!LIKELY(l.count == 0)) put_exceptions(mask, l.values, l.uniform, first, v);
    // All have read the tile: its place is free.
    if (!LIKELY(p.left == 0)) __syncthreads();
    store_rows(c, p, (u32)w, flags & FLAG_SWAP, v, (I*)s.image + 512 * w, lane);
    return filled;
}

// Takes a tile of class 2 that no writer makes: with planes of mode 2, or longer than its values. Whole warp.
template <class S>
__device__ __noinline__ bool take_odd(DecodeStage<S>& s, const Array& c, const Tile& p, u32 flags, const u32* in,
                                      u32 words, int lane) {
    return take_wide<S>(c, p, {}, flags, in, words, s.buffer, lane);
}

template <class S>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    __shared__ DecodeStage<S> s;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 thread = threadIdx.x;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const u32* in = (const u32*)c.frame;
    const u64 table = c.table_at / 4, word0 = c.payload_at / 4;
    const frame::Span span(in + table, t, c.tiles, c.payload_len / 4);
    const u32 words = span.to - span.from;
    u64 sum = thread == 0 ? frame::term(span.to, table + t) : 0;
    if (t == 0) sum += frame::sum_rest<THREADS>(c, table, table + c.tiles, thread);
    bool right = span.right && words > 0;
    if (right) {
        const u64 at = word0 + span.from;
        const u32* from = in + at;
        const bool fits = words <= VALUES<S> + 1;
        if (LIKELY(fits)) {
            sum += frame::copy_summed<THREADS, 8>(s.image, from, at, words);
            from = s.image;
        } else if (w == 0) {
            sum += sum_words(from, frame::key_of(at), words, lane);
        }
        __syncthreads();
        const Array array = array_of(c, c.output);
        const u32 kind = from[0] & 3;
        if (LIKELY(fits && kind == 2 && !has_words<S>(from, words))) {
            right = take_tile(s, array, tile_at(array, t, lane), c.flags, words, w, lane);
        } else if (kind == RAW) {
            right = take_raw<S>(array, t, c.flags & FLAG_SWAP, from, words, thread, THREADS);
        } else if (w == 0) {
            right = kind == 2 && take_odd(s, array, tile_at(array, t, lane), c.flags, from, words, lane);
        }
    }
    ChunkState* state = (ChunkState*)args.states + chunk;
    sum = s.sums.gather(sum, lane, w);
    if (thread == 0) atomicAdd(&state->sum, sum);
    if (lane == 0 && !right) atomicOr(&state->fault, 1u);
}

}  // namespace

#define ENTRIES(S, name)                                                                                 \
    extern "C" __global__ __launch_bounds__(                                                             \
        THREADS, PlanesTuning<S>::LOSSLESS_ENCODE) void planes_lossless_encode_##name(EncodeArgs args) { \
        encode<S>(args);                                                                                 \
    }                                                                                                    \
    extern "C" __global__ __launch_bounds__(                                                             \
        THREADS, PlanesTuning<S>::LOSSLESS_DECODE) void planes_lossless_decode_##name(DecodeArgs args) { \
        decode<S>(args);                                                                                 \
    }                                                                                                    \
    extern "C" __global__ __launch_bounds__(32) void planes_lossless_verdict_##name(DecodeArgs args) {   \
        if (threadIdx.x == 0) frame::verdict(args, blockIdx.x);                                          \
    }
ENTRIES(float, f32)
ENTRIES(double, f64)
