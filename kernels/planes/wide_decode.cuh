// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of classes 1 to 3, decoded by a CTA each: all of a frame without a bound, and under a bound those that
// quanta_decode.cuh listed.
//
// A tile's payload comes into shared memory, summed on the way. Each warp finds where its block's planes begin, and
// looks up how long its fields are; sums of that say where these begin. Differences are summed up within the block,
// then come the sums of the blocks before. The CPU reads tiles that are longer than their
// values; no writer makes them.
#pragma once
#include "../base/frame_reader.cuh"
#include "numbers.cuh"

namespace planes::wide {

// Words of a tile's values; bit planes of a tile: numbers of classes, and masks.
template <class S>
constexpr u32 TAKEN = TILE * sizeof(S) / 4;
constexpr u32 TAKEN_PLANES = BLOCKS * (3 + 1);

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

// What the head of a tile of class 1, which is LOSSY's, or 2 says: FORMAT.md §7, P5, P14 and P15.
template <class S, bool LOSSY>
struct WideHead {
    using T = Traits<S>;
    u32 kind, predictor;
    bool scaled, halves;
    int exponent;
    Classes classes;
    // Of at least three words. False: it is not right.
    __device__ __forceinline__ bool read(const u32* in, u32 rank, bool is_float, bool usable) {
        constexpr int BIAS = (1 << (T::E - 1)) - 1;
        const u32 head = in[0], second = in[1], third = in[2], marks = third >> 24;
        kind = head & 3, predictor = head >> 2 & 3, scaled = head & SCALED, exponent = (int)second >> 20;
        halves = LOSSY && kind == 1 && (head & HALVES);
        classes = {second & 63, second >> 6 & 127, second >> 13 & 63, third & 0xffffffu};
        if (predictor > rank || (head & 0xe0) != (halves ? HALVES : 0) || (kind == 1 && !usable)) return false;
        if (classes.top + classes.zeros > 8 * T::W || classes.zeros >= 8 * T::W || (second & 1u << 19)) return false;
        if (marks == 2 || marks > 3) return false;
        return scaled ? kind == 2 && is_float && exponent >= 1 - BIAS && exponent <= BIAS : exponent == 0;
    }
    // Residuals' sums to bits, map 1's times `power`. False: no mantissa holds one of map 1. Whole warp.
    template <class I>
    __device__ __forceinline__ bool finish(I (&v)[8][4], I base, const Rule<S>& r, bool is_float) const {
        bool held = true;
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] += base;
        if constexpr (!IS_SHORT<S>) {
            if (scaled) {
                I any = 0;
#pragma unroll
                for (int k = 0; k < 32; k++) any |= v[k / 4][k % 4] + ((I)1 << T::M);
                held = __all_sync(warp::ALL, any >> (T::M + 1) == 0);
            }
            if (kind == 1 || scaled) {
                const S step = kind != 1 ? T::power(exponent) : halves ? T::mul((S)0.5, r.step) : r.step;
#pragma unroll
                for (int k = 0; k < 32; k++) v[k / 4][k % 4] = T::bits(T::mul((S)with_sign(v[k / 4][k % 4]), step));
            } else if (is_float) {
#pragma unroll
                for (int k = 0; k < 32; k++) v[k / 4][k % 4] = ordered(v[k / 4][k % 4]);
            }
        }
        return held;
    }
};

// Puts a block's values where they belong; of a tile whose rows are not aligned or not whole, through a buffer of 512
// values. Whole warp.
template <class S, class I>
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
        for (int q = 0; q < 4; q++) {
            if constexpr (IS_SHORT<S>) {
                if (p.left == 0) {
                    shorts::store4(c.values, p.first + plane * c.plane + q * c.row, c.integer, v[k + q]);
                    continue;
                }
            }
            store4(rows.to + q * rows.step, v[k + q]);
        }
        if (p.left != 0) store_plane<S>(c, p, plane, lane, buffer);
    }
}

// Class 3: a warp a row. Whole CTA.
template <class S>
__device__ __forceinline__ bool take_raw(const Array& c, u32 tile, bool swap, const u32* in, u32 words, u32 thread) {
    using I = Int<S>;
    constexpr u32 W = Traits<S>::W / 4;
    const RawRows rows(c, tile);
    if (in[0] != RAW || words != 1 + W * rows.inside) return false;
    const u32 x = thread % 32;
#pragma unroll 1
    for (u32 row = thread / 32; rows.width * row < rows.inside; row += THREADS / 32) {
        const u32 k = rows.width * row + x;
        if (x >= rows.width || k >= rows.inside) continue;
        I v;
        take_value(in + 1 + W * k, v);
        store_at<S>(c, c.at(rows.place(c, row) + x), swap ? swapped(v) : v);
    }
    return true;
}

// Tiles of a batch that are of classes 1 to 3 under a bound, which one kernel lists for the next one.
struct List {
    u32 *count, *taken, *tiles;
    __device__ __forceinline__ explicit List(const DecodeArgs& args)
        : count((u32*)args.list), taken(count + 1), tiles(count + 2) {}
};

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
    alignas(16) u32 image[TAKEN<S> + 4];
};

// Where a block's parts begin in a tile of class 1 or 2.
struct BlockParts {
    Taker parts;
    const u32 *bits, *values;
    u32 modes, masks, count;
    bool uniform;
};

// Finds the parts of a block, checking those of the tile: lane k looks at plane k, the masks' among them. FORMAT.md §7,
// P8 to P11.
template <class S>
__device__ __forceinline__ bool open_block(BlockParts& l, const u32* in, u32 words, int block, int lane) {
    constexpr u32 W = Traits<S>::W / 4;
    if (words < 3 + W) return false;
    const u32 head = in[0], marks = in[2] >> 24 & 3, front = 3 + W + (marks & 1);
    if (words < front) return false;
    l.masks = marks & 1 ? in[3 + W] : 0;
    l.count = l.masks >> 8, l.uniform = marks == 3;
    if ((marks & 1) && (l.count < 1 || l.count > TILE)) return false;
    const u32 k = lane % 4, mode = lane >= (int)TAKEN_PLANES ? 0
                                                             : 3 & (k == 3 ? l.masks >> lane / 4 * 2
                                                                           : head >> (8 + lane / 4 * 6 + 4 - 2 * k));
    const u32 lower = (1u << lane) - 1, sparse = __ballot_sync(warp::ALL, mode == SPARSE),
              whole = __ballot_sync(warp::ALL, mode == FULL), ballots = __popc(sparse),
              whole_words = 32 * __popc(whole);
    u32 least = front + ballots + whole_words;
    if (words < least || __any_sync(warp::ALL, mode == 3)) return false;
    const u32 count = mode == SPARSE ? __popc(in[front + __popc(sparse & lower)]) : 0,
              upto = warp::inclusive(count, lane);
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

// Takes a tile of class 1 or 2. False: it is not right. Whole CTA.
template <class S, bool LOSSY>
__device__ __forceinline__ bool take_tile(DecodeStage<S>& s, const Array& c, const Tile& p, const Rule<S>& r, u32 flags,
                                          u32 words, int w, int lane) {
    using I = Int<S>;
    const u32* in = s.image;
    const bool is_float = flags & FLAG_FLOAT;
    const u32 rank = c.rank;
    WideHead<S, LOSSY> h;
    BlockParts l;
    // All warps see the same.
    if (!open_block<S>(l, in, words, w, lane) || !h.read(in, rank, is_float, r.usable)) return false;
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
    const bool sound = !__any_sync(warp::ALL, fields.any_empty),
               filled = all % 32 == 0 || bits[block_words - 1] >> all % 32 == 0;
    I v[8][4];
    // Where no field is long, short integers come two or four at a time.
    if (IS_SHORT<S> && h.classes.top <= 8) {
        if constexpr (IS_SHORT<S>) fields.take_joined<4>(bits, upto - mine, h.classes.zeros, v);
    } else if (IS_SHORT<S> && h.classes.top <= 16) {
        if constexpr (IS_SHORT<S>) fields.take_joined<2>(bits, upto - mine, h.classes.zeros, v);
    } else {
        fields.take(bits, upto - mine, h.classes.zeros, v);
    }
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
    const bool held = h.finish(v, base, r, is_float);
    if (!LIKELY(l.count == 0)) put_exceptions(mask, l.values, l.uniform, first, v);
    // All have read the tile: its place is free.
    if (!LIKELY(p.left == 0)) __syncthreads();
    store_rows<S>(c, p, (u32)w, flags & FLAG_SWAP, v, (I*)s.image + 512 * w, lane);
    return sound && filled && held;
}

// Takes tile `t` of a chunk, whose words `from` on are `words`; the tile's place in the frame was found right. Adds to
// `sum` what its words add to the checksum, where nobody has summed them. Whole CTA.
template <class S, int LOSSY>
__device__ __forceinline__ bool take(DecodeStage<S>& s, const DecodeChunk& c, u32 t, const frame::Span& span, u64& sum,
                                     int w, int lane) {
    const u32 thread = 32 * w + lane, words = span.to - span.from;
    const u64 at = c.payload_at / 4 + span.from;
    const u32* from = (const u32*)c.frame + at;
    const u32 flags = LOSSY ? c.flags | FLAG_FLOAT : c.flags;
    const bool fits = words <= TAKEN<S> + 1;
    if (LIKELY(fits)) {
        sum += frame::copy_summed<THREADS, 8>(s.image, from, at, words);
        from = s.image;
    } else if (w == 0) {
        sum += frame::sum_words(from, frame::key_of(at), words, lane);
    }
    __syncthreads();
    const Array array = array_of(c, c.output);
    const u32 kind = fits ? from[0] & 3 : 0;
    if (LIKELY(kind == 2 || (LOSSY && kind == 1))) {
        Rule<S> r = {};
        if constexpr (LOSSY) r = rule<S>(c.bound);
        return take_tile<S, LOSSY>(s, array, tile_at(array, t, lane), r, flags, words, w, lane);
    }
    return kind == RAW && take_raw<S>(array, t, flags & FLAG_SWAP, from, words, thread);
}

// Without a bound: a CTA for each tile.
template <class S>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    __shared__ DecodeStage<S> s;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 thread = threadIdx.x;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const u64 table = c.table_at / 4;
    const frame::Span span((const u32*)c.frame + table, t, c.tiles, c.payload_len / 4);
    u64 sum = thread == 0 ? frame::term(span.to, table + t) : 0;
    if (t == 0) sum += frame::sum_rest<THREADS>(c, table, table + c.tiles, thread);
    bool right = span.right && span.to > span.from;
    if (right) right = take<S, false>(s, c, t, span, sum, w, lane);
    ChunkState* state = (ChunkState*)args.states + chunk;
    sum = s.sums.gather(sum, lane, w);
    if (thread == 0) atomicAdd(&state->sum, sum);
    if (lane == 0 && !right) atomicOr(&state->fault, 1u);
}

// Under a bound: the tiles that are listed, whose words and places were looked at before.
template <class S>
__device__ __forceinline__ void decode_listed(const DecodeArgs& args) {
    __shared__ DecodeStage<S> s;
    __shared__ u32 drawn;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const List list(args);
    const u32 count = *list.count;
    if (threadIdx.x == 0) drawn = count ? atomicAdd(list.taken, 1u) : 0;
    __syncthreads();
    for (u32 k = drawn; k < count; k = drawn) {
        // The next one is drawn while this one is decoded.
        u32 next = 0;
        if (threadIdx.x == 0) next = atomicAdd(list.taken, 1u);
        const u32 tile = list.tiles[k];
        const u32 chunk = frame::chunk_of(chunks, args.chunk_count, tile, lane);
        const DecodeChunk& c = chunks[chunk];
        const u32 t = tile - c.first_tile;
        const frame::Span span((const u32*)c.frame + c.table_at / 4, t, c.tiles, c.payload_len / 4);
        u64 sum = 0;
        const bool right = take<S, true>(s, c, t, span, sum, w, lane);
        ChunkState* state = (ChunkState*)args.states + chunk;
        sum = s.sums.gather(sum, lane, w);
        if (threadIdx.x == 0) atomicAdd(&state->sum, sum);
        if (lane == 0 && !right) atomicOr(&state->fault, 1u);
        if (threadIdx.x == 0) drawn = next;
        __syncthreads();
    }
}

}  // namespace planes::wide
