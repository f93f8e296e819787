// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of class 0, decoded by a warp each: the first step of ../planes_lossy.cu's decoding. And tiles of nothing but
// one value that is no number.
//
// A tile's payload comes into shared memory, summed on the way, where it has room there; lanes take their words of each
// plane, and everything goes backwards. A tile of another class is listed for wide_decode.cuh.
#pragma once
#include "../tuning.cuh"
#include "wide_decode.cuh"

namespace planes::quanta {

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

// Words that a warp keeps of a tile; of a plane's values.
constexpr u32 KEPT = 2176;
template <class S>
constexpr u32 PLANE = 512 * sizeof(S) / 4;

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
        const u32 row = p.first + plane * c.plane + k % 4 * c.row;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u32 bit = bit_of(0, i) + k;
            if ((mask >> bit & 1) == 0 || i >= inside) continue;
            Bits v;
            take_value(values + (uniform ? 0 : sizeof(Bits) / 4 * __popc(mask & ((1u << bit) - 1))), v);
            ((Bits*)c.values)[c.at(row + i)] = swap ? swapped(v) : v;
        }
    }
    return true;
}

// Finds the parts of a tile of class 0 that has more than its head. False: they are not what the tile has. FORMAT.md
// §7, P8 to P11. Whole warp.
template <class S>
__device__ __forceinline__ bool open_tile(Taker& t, Masked& m, const u16*& modes_at, const u32* in, u32 words,
                                          int lane) {
    const u32 head = in[0], masked = head >> 9 & 1, slices = 4 + __popc(head & 0xf0), mode_words = (slices + 1) / 2,
              front = 1 + masked + mode_words;
    if (words < front) return false;
    const u32 masks = masked ? in[1] : 0, count = masks >> 8, values = Traits<S>::W / 4 * (head & UNIFORM ? 1 : count);
    if (masked && (count < 1 || count > TILE)) return false;
    modes_at = (const u16*)(in + 1 + masked);
    // A word of modes a lane, those of masks too.
    const u32 modes = lane == 31 ? masks & 0xff : lane < (int)mode_words ? in[1 + masked + lane] : 0;
    if (slices % 2 && __any_sync(warp::ALL, lane + 1 == (int)mode_words && modes >> 16 != 0)) return false;
    const u32 upper = modes >> 1 & 0x55555555u, lower = modes & 0x55555555u;
    if (__any_sync(warp::ALL, (upper & lower) != 0)) return false;
    const u32 counts = warp::total((u32)__popc(upper) | (u32)__popc(lower) << 16);
    const u32 ballots = counts & 0xffff, full = counts >> 16;
    u32 least = front + ballots + 32 * full + values;
    if (words < least) return false;
    t.ballots = in + front;
    u32 nibbles = 0;
    for (u32 k = lane; k < ballots; k += 32) nibbles += __popc(t.ballots[k]);
    nibbles = warp::total(nibbles);
    const u32 nibble_words = (nibbles + 7) / 8;
    least += nibble_words;
    if (words < least) return false;
    t.nibble_words = t.ballots + ballots, t.words = t.nibble_words + nibble_words;
    t.bytes = (const u8*)(t.words + 32 * full);
    u32 bytes = 0;
    for (u32 k = lane; k < nibble_words; k += 32) bytes += __popc(t.nibble_words[k]);
    bytes = warp::total(bytes);
    if (words != least + (bytes + 3) / 4) return false;
    if (masked && lane == 0) m.modes = masks, m.count = count, m.values = words - values, m.found = 0;
    __syncwarp();
    // Filling.
    const u32 over = nibbles % 8 ? t.nibble_words[nibble_words - 1] >> 4 * (nibbles % 8) : 0,
              beyond = bytes % 4 ? in[words - values - 1] >> 8 * (bytes % 4) : 0;
    return (over | beyond) == 0;
}

// Whether a tile, which has as many words, is one of class 2 without exceptions whose values are all its base, as
// same_tile makes it.
__device__ __forceinline__ bool is_same(const u32* in) {
    return (in[0] & ~SCALED) == 2 && (in[1] & 0xfffff) == 0 && in[2] == SAME_NUMBERS;
}

// Takes such a tile. False: it is not right.
template <class S>
__device__ __forceinline__ bool take_same(const Array& c, bool swap, const Tile& p, const u32* stage,
                                          typename Traits<S>::Bits* buffer, int lane) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    constexpr int BIAS = (1 << (T::E - 1)) - 1;
    const u32 second = stage[1];
    const int e = (int)second >> 20;
    const bool scaled = stage[0] & SCALED;
    if (scaled ? e < 1 - BIAS || e > BIAS : e != 0) return false;
    Bits one;
    take_value(stage + 3, one);
    if (scaled && (one + ((Bits)1 << T::M)) >> (T::M + 1)) return false;
    one = scaled ? T::bits(T::mul((S)with_sign(one), T::power(e))) : ordered(one);
    if (swap) one = swapped(one);
    const Bits v[4] = {one, one, one, one};
#pragma unroll 1
    for (u32 plane = 0; plane < 2 * BLOCKS; plane++) {
        const Rows<Bits> rows(c, p, plane, lane, buffer);
#pragma unroll
        for (u32 r = 0; r < 4; r++) store4(rows.to + r * rows.step, v);
        if (!LIKELY(p.left == 0)) store_plane<S>(c, p, plane, lane, buffer);
    }
    return true;
}

// A tile of class 0. False: it is not right. `buffer`: of 512 values.
template <class S>
__device__ __forceinline__ bool take_tile(const Array& c, const Rule<S>& r, bool swap, const Tile& p, const u32* stage,
                                          u32 words, typename Traits<S>::Bits* buffer, Masked& m, int lane) {
    using Bits = typename Traits<S>::Bits;
    const u32 head = stage[0], predictor = head >> 2 & 3, rank = c.rank;
    if ((head & 0x100) || predictor > rank || !r.usable) return false;
    Taker t;
    const u16* next = nullptr;
    const bool zero = words == 1, wides = head & 0xf0, masked = head & WITH_EXCEPTIONS;
    if ((head & (WITH_EXCEPTIONS | UNIFORM)) == UNIFORM) return false;
    if (zero ? masked || wides : !open_tile<S>(t, m, next, stage, words, lane)) return false;
    const Scale<S> scale((long long)((int)head >> 11) * (1 << Quantizer<S>::UNIT_LOG2), r.step);
    Sums sums;
    u32 wrong = 0;
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
                    store4<true>(rows.to + r * rows.step, v);
                } else {
                    store4(rows.to + r * rows.step, v);
                }
            }
            if (!LIKELY(!swap)) swap_rows(rows);
            if (!LIKELY(p.left == 0)) store_plane<S>(c, p, 2 * block + k, lane, buffer);
        }
        if (!LIKELY(!masked) && !take_exceptions<S>(t, m, c, p, stage, head & UNIFORM, swap, block, lane)) return false;
    }
    return !__any_sync(warp::ALL, wrong != 0) && (!masked || m.found == m.count);
}

// The array of a warp's tile: in shared memory where registers are short.
template <class S>
__device__ __forceinline__ decltype(auto) keep_array(Array& kept, const DecodeChunk& c, int lane) {
    if constexpr (sizeof(S) == 4) {
        if (lane == 0) kept = array_of(c, c.output);
        __syncwarp();
        return (kept);
    } else {
        return array_of(c, c.output);
    }
}

struct DecodeShared {
    alignas(16) u32 stages[WARPS][KEPT];
    Masked masked[WARPS];
    Array arrays[WARPS];
};

template <class S>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    using Bits = typename Traits<S>::Bits;
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
    bool right = span.right && words > 0;
    if (right) {
        const u64 at = word0 + span.from;
        const u32* from = in + at;
        const Array& array = keep_array<S>(sh.arrays[w], c, lane);
        const Tile p = tile_at(array, t, lane);
        u32* const stage = sh.stages[w];
        // What has no room beside the values of a plane that are on their way is read where it is.
        const bool fits = words + 3 + (LIKELY(p.left == 0) ? 0 : PLANE<S>) <= KEPT;
        Bits* const buffer = (Bits*)(fits ? stage + (words + 3 & ~3u) : stage);
        u64 more = 0;
        if (LIKELY(fits)) {
            more = fetch(stage, from, at, words, lane);
            __syncwarp();
            from = stage;
        }
        const bool same = words == 3 + Traits<S>::W / 4 && is_same(from), swap = c.flags & FLAG_SWAP;
        if (LIKELY((from[0] & 3) == 0 || same)) {
            sum += LIKELY(fits) ? more : frame::sum_words(from, frame::key_of(at), words, lane);
            right = LIKELY(!same)
                        ? take_tile<S>(array, rule<S>(c.bound), swap, p, from, words, buffer, sh.masked[w], lane)
                        : take_same<S>(array, swap, p, from, buffer, lane);
        } else if (lane == 0) {
            const wide::List list(args);
            list.tiles[atomicAdd(list.count, 1u)] = tile;
        }
    }
    sum = warp::sum(sum);
    // Who is last gives the verdict elsewhere; here that would wait for every value to be written.
    ChunkState* state = (ChunkState*)args.states + chunk;
    if (lane == 0) {
        atomicAdd(&state->sum, sum);
        if (!right) atomicOr(&state->fault, 1u);
    }
}

}  // namespace planes::quanta
