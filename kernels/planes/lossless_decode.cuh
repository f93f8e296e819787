// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles without a bound, decoded by a CTA each: the second half of ../planes_lossless.cu.
//
// A tile's payload comes into shared memory, summed on the way. Each warp finds where its block's planes
// begin, and looks up how long its fields are; sums of that say where these begin. Differences are summed up within the
// block, then come the sums of the blocks before.
#pragma once
#include "decode_any.cuh"
#include "lossless.cuh"

namespace planes::lossless {

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
struct BlockParts {
    Taker parts;
    const u32 *bits, *values;
    u32 modes, masks, count;
    bool uniform;
};

// Finds the parts of a block, checking those of the tile, as open_any does: lane k looks at plane k, the masks' among
// them.
template <class S>
__device__ __forceinline__ bool open_block(BlockParts& l, const u32* in, u32 words, int block, int lane) {
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
    BlockParts l;
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
            sum += frame::sum_words(from, frame::key_of(at), words, lane);
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

}  // namespace planes::lossless
