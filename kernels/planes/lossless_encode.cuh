// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles without a bound, encoded by a CTA each: the first half of ../planes_lossless.cu.
//
// A CTA takes its tiles from a ticket, one after another.
//
//   look           a block's values come into registers; the first warp finds the base and the predictor
//   special tiles  those with exceptions, integers or low zeros are planned by short loops, through shared memory
//                  (lossless_special.cuh)
//   differences    in registers; what goes from one block to the next, through shared memory
//   classes        lengths are counted; the warps try the shapes of classes, each some of them
//   put            each warp finds how much of each part its block has. Sums of that say where everything goes: the
//                  payload is put together in shared memory as it will stand in the frame
//
// There it waits until the CTA's next tile is announced, or the one after that (IMAGES in tuning.cuh): by then those
// before it mostly are, its place is found without a stop, and it leaves in whole words, summed for the checksum on the
// way.
#pragma once
#include "lossless_special.cuh"

namespace planes::lossless {

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
