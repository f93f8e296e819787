// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles under a bound, decoded by a warp each: the second half of ../planes_lossy.cu.
//
// A tile's payload comes into shared memory, summed on the way; lanes take their words of each plane, and everything
// goes backwards.
#pragma once
#include "../base/frame_reader.cuh"
#include "../tuning.cuh"
#include "decode_any.cuh"

namespace planes::lossy {

// A lane's rows that are stored, in the other byte order.
template <class B>
__device__ __forceinline__ void swap_rows(const Rows<B>& rows) {
#pragma unroll 1
    for (u32 r = 0; r < 4; r++) {
        B v[4];
        load4(rows.to + r * rows.step, v);
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = swapped(v[k]);
        store4(rows.to + r * rows.step, v);
    }
}

// Words of the longest tile of class 0 without exceptions, and of a plane's values.
constexpr u32 LONGEST = 2176;
template <class S>
constexpr u32 PLANE = 512 * sizeof(S) / 4;

// Finds the parts of a tile of class 0 that has these modes, `front` words before its ballots. False: they are not what
// the tile has.
__device__ __forceinline__ bool open_tile(Taker& t, const u32* stage, u32 words, u32 front, u32 modes, int lane) {
    const u32 upper = modes >> 1 & 0x55555555u, lower = modes & 0x55555555u;
    const u32 counts =
        warp::total((u32)__popc(upper) | (u32)__popc(lower & ~upper) << 8 | (u32)__popc(lower & upper) << 16);
    const u32 ballots = counts & 255, full = counts >> 8 & 255, bytes = counts >> 16;
    if (words < front + ballots + 32 * full) return false;
    t.ballots = stage + front;
    u32 of_ballots = 0;
    for (u32 i = lane; i < ballots; i += 32) of_ballots += __popc(t.ballots[i]);
    of_ballots = warp::total(of_ballots);
    t.nibble_words = t.words = t.ballots + ballots;
    if (bytes == 0) return words == front + ballots + 32 * full + of_ballots;
    // Both kinds in one tile are no writer's, but for masks.
    if (bytes != ballots) return false;
    const u32 nibbles = (of_ballots + 7) / 8, least = front + ballots + nibbles + 32 * full;
    if (words < least) return false;
    t.words += nibbles;
    t.bytes = (const u8*)(t.words + 32 * full);
    u32 of_nibbles = 0;
    for (u32 i = lane; i < nibbles; i += 32) of_nibbles += __popc(t.nibble_words[i]);
    of_nibbles = warp::total(of_nibbles);
    if (words != least + (of_nibbles + 3) / 4) return false;
    // Filling.
    const u32 over = of_ballots % 8 ? t.nibble_words[nibbles - 1] >> 4 * (of_ballots % 8) : 0,
              beyond = of_nibbles % 4 ? stage[words - 1] >> 8 * (of_nibbles % 4) : 0;
    return (over | beyond) == 0;
}

// The exceptions of a tile that is read: what its word of masks says, where their values stand, and how many there
// were.
struct Masked {
    u32 modes, count, values, found;
};

// Takes the mask of a block, whose values are written, and writes its exceptions over them. False: it has more
// exceptions than the tile. Whole warp.
template <class S>
__device__ __forceinline__ bool take_exceptions(Taker& t, Masked& m, const Array& c, const Tile& p, const u32* stage,
                                                bool uniform, bool swap, u32 block, int lane) {
    using Bits = typename Traits<S>::Bits;
    const u32 mode = m.modes >> 2 * block & 3;
    if (mode == 0) return true;
    const u32 mask = take_plane(t, mode, lane), count = (u32)__popc(mask), found = m.found,
              all = found + warp::total(count);
    const u32* values = stage + m.values;
    if (all > m.count) return false;
    if (!uniform) values += sizeof(Bits) / 4 * (found + warp::inclusive(count, lane) - count);
    __syncwarp();
    if (lane == 0) m.found = all;
    __syncwarp();
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        if (!__any_sync(warp::ALL, (mask >> k & 0x01010101u) != 0)) continue;
        const int plane = 2 * (int)block + k / 4, inside = inside_row(c, p, plane, k % 4);
        Bits* to = (Bits*)c.values + (p.first + plane * (int)c.plane + k % 4 * (int)c.row);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 bit = bit_of(0, i) + k;
            if ((mask >> bit & 1) == 0 || i >= inside) continue;
            Bits v;
            take_value(values + (uniform ? 0 : sizeof(Bits) / 4 * __popc(mask & ((1u << bit) - 1))), v);
            to[i] = swap ? swapped(v) : v;
        }
    }
    return true;
}

// A tile of class 2 without exceptions whose values are all its base, as same_tile makes it. False: it is another, or
// not right.
template <class S>
__device__ __forceinline__ bool take_same(const Array& c, bool swap, const Tile& p, const u32* stage, int lane) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    using Signed = typename SignedOf<Bits>::Type;
    constexpr u32 WORDS = 3 + T::W / 4;
    constexpr int BIAS = (1 << (T::E - 1)) - 1;
    const u32 second = stage[1];
    const int e = (int)second >> 20;
    const bool scaled = stage[0] & SCALED;
    if ((stage[0] & ~SCALED) != 2 || stage[2] != 0 || (second & 0xfffff) != 0) return false;
    if (scaled ? e < 1 - BIAS || e > BIAS : e != 0) return false;
    Bits one;
    take_value(stage + 3, one);
    one = scaled ? T::bits(T::mul((S)(Signed)one, T::power(e))) : ordered(one);
    if (swap) one = swapped(one);
    const Bits v[4] = {one, one, one, one};
    Bits* buffer = (Bits*)(stage + (WORDS + 3 & ~3u));
#pragma unroll 1
    for (u32 plane = 0; plane < 2 * BLOCKS; plane++) {
        const Rows<Bits> rows(c, p, plane, lane, buffer);
#pragma unroll
        for (u32 r = 0; r < 4; r++) store4(rows.to + r * rows.step, v);
        if (!LIKELY(p.left == 0)) store_plane(c, p, plane, lane, buffer);
    }
    return true;
}

// A tile of class 0. False: it is another, or not right.
template <class S>
__device__ __forceinline__ bool take_tile(const Array& c, const Rule<S>& r, bool swap, const Tile& p, u32* stage,
                                          u32 words, Masked& m, int lane) {
    using Bits = typename Traits<S>::Bits;
    Bits* buffer = (Bits*)(stage + (words + 3 & ~3u));
    const u32 head = stage[0], predictor = head >> 2 & 3, rank = c.rank;
    if (!LIKELY((head & 0x103) == 0)) return words == 3 + Traits<S>::W / 4 && take_same<S>(c, swap, p, stage, lane);
    if (predictor > rank || !r.usable) return false;
    Taker t;
    const bool zero = words == 1, wides = head & 0xf0, masked = head & (WITH_EXCEPTIONS | UNIFORM);
    if (zero) {
        if (masked || wides) return false;
    } else if (!LIKELY(!masked)) {
        Layout l;
        if ((head & WITH_EXCEPTIONS) == 0 || !open_any<S>(l, stage, words, lane)) return false;
        t = l.parts;
        if (lane == 0) m.modes = l.masks, m.count = l.count, m.values = (u32)(l.values - stage), m.found = 0;
        __syncwarp();
    } else {
        const u32 slices = 4 + __popc(head & 0xf0), front = 1 + (slices + 1) / 2;
        if (words < front) return false;
        // Lanes look at a word of modes each.
        const u32 modes = 1 + lane < (int)front ? stage[1 + lane] : 0;
        if (slices % 2 && __any_sync(warp::ALL, lane + 2 == (int)front && modes >> 16 != 0)) return false;
        if (!open_tile(t, stage, words, front, modes, lane)) return false;
    }
    const Scale<S> scale((long long)((int)head >> 11) * (1 << Quantizer<S>::UNIT_LOG2), r.step);
    Sums sums;
    u32 wrong = 0;
    const u16* next = (const u16*)(stage + (masked ? 2 : 1));
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        u32 a[8], b[8], modes = 0;
        const bool wide = head >> (4 + block) & 1;
        if (!zero) {
            modes = *next++;
            if (wide) modes |= (u32)*next++ << 16;
        }
        if (modes != 0) {
            take_block(t, a, b, wide, modes, lane);
        } else {
#pragma unroll
            for (int k = 0; k < 8; k++) a[k] = b[k] = 0;
        }
#pragma unroll 1
        for (u32 k = 0; k < 2; k++) {
            u32 pa[4], pb[4];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                pa[r] = a[r], pb[r] = b[r];
                a[r] = a[4 + r], b[r] = b[4 + r];
            }
            if (predictor > 2) {
                backward_z(pa, pb, sums);
                if (wides) {
#pragma unroll
                    for (int r = 0; r < 4; r++) wrong |= ((pa[r] + 0x40004000u) | (pb[r] + 0x40004000u)) & 0x80008000u;
                }
            }
            if (predictor > 1) {
                backward_y(pa, pb, rank, sums, lane);
                if (wides) {
#pragma unroll
                    for (int r = 0; r < 4; r++) wrong |= ((pa[r] + 0x20002000u) | (pb[r] + 0x20002000u)) & 0xc000c000u;
                }
            }
            if (predictor > 0) {
                backward_x(pa, pb, rank, sums, lane);
            } else {
#pragma unroll
                for (int r = 0; r < 4; r++) pa[r] += ZEROS, pb[r] += ZEROS;
            }
            const Rows<Bits> rows(c, p, 2 * block + k, lane, buffer);
#pragma unroll
            for (u32 r = 0; r < 4; r++) {
                wrong |= (pa[r] | pb[r]) & 0xe000e000u;
                Bits v[4] = {scale.value(pa[r], 0), scale.value(pb[r], 0), scale.value(pa[r], 1),
                             scale.value(pb[r], 1)};
                if (LIKELY(p.left == 0)) {
                    store4_once(rows.to + r * rows.step, v);
                } else {
                    store4(rows.to + r * rows.step, v);
                }
            }
            if (!LIKELY(!swap)) swap_rows(rows);
            if (!LIKELY(p.left == 0)) store_plane(c, p, 2 * block + k, lane, buffer);
        }
        if (!LIKELY(!masked) && !take_exceptions<S>(t, m, c, p, stage, head & UNIFORM, swap, block, lane)) return false;
    }
    return !__any_sync(warp::ALL, wrong != 0) && (!masked || m.found == m.count);
}

struct DecodeShared {
    alignas(16) u32 stages[WARPS][LONGEST];
    Masked masked[WARPS];
};

// Takes this warp's tile of a chunk as one of any class; its place in the frame was found right. What is not right goes
// into `fault`. `buffer`: of 512 values.
template <class S>
__device__ __noinline__ void take_other(const DecodeChunk& c, u32* buffer, u32* fault) {
    const int lane = threadIdx.x & 31;
    // Lanes may still be reading what stood in the buffer.
    __syncwarp();
    const u32 t = WARPS * blockIdx.x + threadIdx.x / 32 - c.first_tile;
    const u32* in = (const u32*)c.frame;
    const frame::Span span(in + c.table_at / 4, t, c.tiles, c.payload_len / 4);
    const Array array = array_of(c, c.output);
    const bool right = take_any<S>(array, t, tile_at(array, t, lane), rule<S>(c.bound), c.flags | FLAG_FLOAT,
                                   in + c.payload_at / 4 + span.from, span.to - span.from, (Int<S>*)buffer, lane);
    if (lane == 0 && !right) atomicOr(fault, 1u);
}

template <class S>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    __shared__ DecodeShared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 tile = WARPS * blockIdx.x + w;
    if (tile >= args.tiles) return;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, tile, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = tile - c.first_tile, tiles = c.tiles;
    const u32* in = (const u32*)c.frame;
    const u64 table = c.table_at / 4, word0 = c.payload_at / 4;
    const frame::Span span(in + table, t, tiles, c.payload_len / 4);
    const u32 words = span.to - span.from;
    u64 sum = lane == 0 ? frame::term(span.to, table + t) : 0;
    if (t == 0) sum += frame::sum_rest<32>(c, table, table + tiles, lane);
    const bool right = span.right && words > 0;
    // Of another class, or longer than shared memory, or not right.
    bool other = right;
    if (right) {
        const u64 at = word0 + span.from;
        if (LIKELY(words <= LONGEST)) {
            u32* stage = sh.stages[w];
            sum += fetch(stage, in + at, at, words, lane);
            __syncwarp();
            const Array array = array_of(c, c.output);
            const Tile p = tile_at(array, t, lane);
            other = (p.left != 0 && words + 3 + PLANE<S> > LONGEST) ||
                    !take_tile<S>(array, rule<S>(c.bound), c.flags & FLAG_SWAP, p, stage, words, sh.masked[w], lane);
        } else {
            sum += frame::sum_words(in + at, frame::key_of(at), words, lane);
        }
    }
    sum = warp::sum(sum);
    // Who is last gives the verdict elsewhere; here that would wait for every value to be written.
    ChunkState* state = (ChunkState*)args.states + chunk;
    if (lane == 0) {
        atomicAdd(&state->sum, sum);
        if (!right) atomicOr(&state->fault, 1u);
    }
    // At last: nothing is kept in registers meanwhile.
    if (!LIKELY(!other)) take_other<S>(c, sh.stages[w], &state->fault);
}

}  // namespace planes::lossy
