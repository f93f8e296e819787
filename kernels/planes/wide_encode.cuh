// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of classes 1 to 3, encoded by a CTA each: all of a frame without a bound, and under a bound those that
// quanta_encode.cuh listed.
//
//   survey         a block's values come into registers as numbers of the tile's class, less its base; predictors are
//                  tried on the first block's. Class 1 (survey_quanta) is tried before class 2 (survey_bits), whose
//                  tiles with exceptions, integers or low zeros are planned by short loops (wide_special.cuh)
//   difference     in registers; what goes from one block to the next, through shared memory
//   classify       lengths are counted; one warp finds the cheapest classes
//   put_payload    each warp finds how much of each part its block has. Sums of that say where everything goes: the
//                  payload is put together in shared memory as it will stand in the frame
//
// Under a bound it goes to the tile's slot (slots.cuh). Without one it waits in shared memory until the CTA's next tile
// is announced, or the one after that (IMAGES in tuning.cuh): by then those before it mostly are, its place is found
// without a stop, and it leaves in whole words, summed for the checksum on the way.
#pragma once
#include "slots.cuh"
#include "wide_special.cuh"

namespace planes::wide {

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
        sum += put_raw(source<S, false>(c, t.index, lane), t.index, to, key, thread);
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
        open_chunk<S, false>(s.chunks[slot], args, next.chunk, lane);
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
        return SPARSE;
    }
    full = true;
    parts += WHOLE;
    return FULL;
}

// Where a block's parts stand.
struct Target {
    u32 *ballots, *words, *nibbles;
    u8* bytes;
    u32 nibble;

    __device__ __forceinline__ void put(u32 word, u32 mode, int lane) {
        if (mode == 0) return;
        if (mode == FULL) {
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

// Class 1: quanta less a base, exceptions bridged, in `v`; the rest in the stage's plan. False: the tile is of another
// class. FORMAT.md §8.2, rule 4. Whole CTA.
template <class S, int LOSSY>
__device__ __forceinline__ bool survey_quanta(Stage<S>& s, u32 slot, u32 index, Int<S> (&v)[8][4], int w, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    const Chunk& c = s.chunks[slot];
    Source<S, LOSSY> in = source<S, LOSSY>(c, index, lane);
    if (!in.r.usable) return false;
    Special<S>& here = s.special[w];
    u32 mask = 0, count = 0;
    I first = 0;
    bool same = true, halves = false, near = false;
    {
        S x[8][4];
        in.load(w, x);
        if constexpr (LOSSY == LIMITED) {
            // Multiples are on the value's side of 0, and other limits mostly far: values are asked again where not.
            const keep::Limits<S>& l = in.r.limits;
            const S step = in.r.step, half = T::mul(step, (S)0.5);
            bool signs = false, small = false;
            near = l.near(x, step, step, step, signs, small) || (signs && half < T::most(l.positive, -l.negative));
            halves = __syncthreads_or(small);
            in.r.limited = false;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            S least = T::infinity(), most = -T::infinity();
#pragma unroll
            for (int k = 16 * h; k < 16 * h + 16; k++) {
                const S one = x[k / 4][k % 4];
                const auto j = in.judge(one, halves);
                v[k / 4][k % 4] = j.quantum;
                if (j.within) least = T::least(least, j.number), most = T::most(most, j.number);
                mask |= (u32)!j.holds << bit_of(k / 4, k % 4);
            }
            warp::range(least, most);
            if (lane == 0) here.least[h] = T::bits(least), here.most[h] = T::bits(most);
        }
        if (LOSSY == LIMITED && __any_sync(warp::ALL, near)) {
            S kept[8][4];
            copy_block(kept, x);
            in.r.limited = true;
            mask |= wrong_of<S>(kept, in.r, in.fill, halves);
        }
        if (!LIKELY(!__any_sync(warp::ALL, mask != 0))) {
            const u32 inside = mask & inside_block(c.array, in.p, w);
            count = (u32)__popc(inside);
#pragma unroll
            for (int k = 31; k >= 0; k--)
                if (inside >> bit_of(k / 4, k % 4) & 1) first = T::bits(x[k / 4][k % 4]);
#pragma unroll
            for (int k = 0; k < 32; k++)
                same = same && ((inside >> bit_of(k / 4, k % 4) & 1) == 0 || T::bits(x[k / 4][k % 4]) == first);
        }
    }
    tell_exceptions(s, mask, count, first, same, w, lane);
    __syncthreads();
    TilePlan plan = {halves ? 1 | HALVES : 1};
    bool found = false;
#pragma unroll 1
    for (u32 k = 0; k < 2 * BLOCKS && !found; k++) {
        const S lo = T::value(s.special[k / 2].least[k % 2]), hi = T::value(s.special[k / 2].most[k % 2]);
        found = lo <= hi;
        if (found) plan.base = (u64)(((long long)lo + (long long)hi) >> 1);
    }
    if (!found || !sum_exceptions(s, plan, warp::from(inside_of(c.array, in.p), 0))) return false;
    I any = 0;
#pragma unroll
    for (int k = 0; k < 32; k++) v[k / 4][k % 4] -= (I)plan.base;
    if (plan.marked) bridge(v, mask, lane);
#pragma unroll
    for (int k = 0; k < 32; k++) any |= v[k / 4][k % 4];
    any = warp::any(any);
    if (lane == 0) here.any = any;
    if (w == 0) {
#pragma unroll
        for (int k = 0; k < 8; k++) store4(s.first[k][lane], v[k]);
    }
    __syncthreads();
    any = 0;
#pragma unroll
    for (u32 k = 0; k < BLOCKS; k++) any |= s.special[k].any;
    try_predictor(s, c.array.rank, held_of(c.array, in.p, lane), zeros_of<S>(any), w, lane);
    __syncthreads();
    u32 cost;
    plan.head |= best_predictor(s, cost) << 2;
    if (w == 0 && lane == 0) s.plan = plan;
    __syncthreads();
    return true;
}

// Class 2: numbers less a base in `v`; the rest in the stage's plan. `image`: working memory, for which a tile that
// waits there leaves. FORMAT.md §8.2, rules 5 and 6. Whole CTA.
template <class S, int LOSSY>
__device__ __forceinline__ void survey_bits(Stage<S>& s, u32 slot, u32 index, u32 turn, Int<S> (&v)[8][4], int w,
                                            int lane) {
    using I = Int<S>;
    const Chunk& c = s.chunks[slot];
    const Source<S, LOSSY> in = source<S, LOSSY>(c, index, lane);
    u32* const image = s.images[turn];
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
                if (sizeof(S) == 8 && in.few_low(x, inside_block(c.array, in.p, 0))) specials |= LOW;
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
            if (lane == 0) s.plan = {2}, s.plan.base = base;
        }
        if (specials && lane == 0) atomicOr(&s.specials, specials);
    }
    __syncthreads();
    const u32 specials = s.specials;
    if (LIKELY(specials == 0)) {
        try_predictor(s, c.array.rank, held_of(c.array, in.p, lane), 0, w, lane);
        const I base = (I)s.plan.base;
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] -= base;
        __syncthreads();
        u32 cost;
        const u32 best = best_predictor(s, cost);
        if (w == 0 && lane == 0) s.plan.head |= best << 2;
    } else {
        if constexpr (!LOSSY) flush(s, turn, 32 * w + lane, w, lane);
#pragma unroll
        for (int k = 0; k < 8; k++) store4(numbers_at<I>(image, w, k, lane), v[k]);
        survey_special<S, LOSSY>(s, slot, image, index, specials, w, lane);
#pragma unroll
        for (int k = 0; k < 8; k++) load4(numbers_at<I>(image, w, k, lane), v[k]);
    }
    __syncthreads();
    if (w == 0 && lane == 0) s.specials = 0;
}

// Differences of the tile's numbers by its predictor. Whole CTA.
template <class S>
__device__ __forceinline__ void difference(Stage<S>& s, Int<S> (&v)[8][4], u32 predictor, u32 rank, int w, int lane) {
    Edge<Int<S>> edge;
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
}

// Makes u of residuals, and finds the classes of their lengths: into the stage's table. Whole CTA.
template <class S>
__device__ __forceinline__ Classes classify(Stage<S>& s, Int<S> (&v)[8][4], int w, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
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
    const u32 zeros = zeros_of<S>(s.any);
    if (w == 2) {
        const u32 top = (u32)T::length(s.longest) - zeros;
        sum_lengths(s.counts, s.upto, zeros, lane);
        const Classes found = classes_of(cheapest_of(s.upto, top, lane), s.upto, zeros, top, lane);
        fill_table(s.by_length, found, lane);
        if (lane == 0) s.classes = found;
    }
    if (!LIKELY(zeros == 0)) {
#pragma unroll
        for (int k = 0; k < 32; k++) {
            I& u = v[k / 4][k % 4];
            u = (u >> zeros & ~(I)1) | (u & 1);
        }
    }
    __syncthreads();
    return s.classes;
}

// Writes what stands before a tile's ballots. One lane.
template <class S>
__device__ __forceinline__ void put_front(Stage<S>& s, u32* to, const Classes& c) {
    TilePlan plan = s.plan;
#pragma unroll
    for (u32 k = 0; k < BLOCKS; k++)
        plan.head |= (s.modes[k] & 63) << (8 + 6 * k), plan.masks |= s.modes[k] >> 6 << 2 * k;
    const u32 marks = plan.uniform ? 3 : plan.marked ? 1 : 0;
    *to++ = plan.head;
    *to++ = c.least | c.top << 6 | c.zeros << 13 | (plan.head & SCALED ? (u32)plan.exponent << 20 : 0);
    *to++ = c.numbers | marks << 24;
    put_value(to, (Int<S>)plan.base);
    if (plan.marked) to[sizeof(S) / 4] = plan.masks;
}

// Puts the payload of a tile together in image `turn`; the words that it has, `raw` where it is of class 3. Whole CTA.
template <class S, int LOSSY>
__device__ __forceinline__ u32 put_payload(Stage<S>& s, u32 slot, u32 index, u32 turn, const Tile& p,
                                           const Int<S> (&v)[8][4], const Classes& classes, bool& raw, int w,
                                           int lane) {
    constexpr u32 W = sizeof(S) / 4;
    const Chunk& c = s.chunks[slot];
    const u32 thread = 32 * w + lane;
    u32* const image = s.images[turn];
    const bool marked = s.plan.marked, uniform = s.plan.uniform;
    u32 planes[3], widths[8], mask = 0, parts = 0, modes = 0;
    const u32 own = look_up<S>(s.by_length, v, planes, widths);
    bool full = false, alone = false;
#pragma unroll
    for (int k = 2; k >= 0; k--) modes |= mode_of(planes[k], parts, full, lane) << 2 * k;
    if (!LIKELY(!marked)) {
        mask = s.masks[w][lane] & inside_block(c.array, p, w);
        modes |= mode_of(mask, parts, alone, lane) << 6;
    }
    const u32 upto_lane = warp::inclusive(own, lane), words = (warp::from(upto_lane, 31) + 31) / 32;
    if (lane == 0) s.parts[w] = make_uint2(parts, words), s.modes[w] = modes;
    __syncthreads();
    uint2 before = make_uint2(0, 0), all = before;
#pragma unroll
    for (int k = 0; k < (int)BLOCKS; k++) {
        const uint2 n = s.parts[k];
        if (k == w) before = all;
        all.x += n.x, all.y += n.y;
    }
    const u32 inside = p.left == 0 ? TILE : warp::from(inside_of(c.array, p), 0);
    const u32 front = 3 + W + marked, ballots = all.x & 31, whole = all.x >> 5 & 31, nibbles = all.x >> 10 & 1023,
              bytes = all.x >> 20;
    u32* const to_nibbles = image + front + ballots;
    u32* const to_words = to_nibbles + (nibbles + 7) / 8;
    u8* const to_bytes = (u8*)(to_words + 32 * whole);
    u32* const to_bits = to_words + 32 * whole + (bytes + 3) / 4;
    u32* const values = to_bits + all.y;
    u32 total = (u32)(values - image) + W * (uniform ? 1 : marked ? s.plan.masks >> 8 : 0);
    raw = total >= 1 + W * inside;
    if (raw) total = 1 + W * inside;
    if constexpr (!LOSSY) {
        // By the warp that places it next.
        if (w == 1 && lane == 0) lookback::announce((u64*)c.place.offsets, index, total);
        flush(s, turn, thread, w, lane);
    }
    // Where sparse planes go, bits are added.
    if (thread < NIBBLES) image[thread] = 0;
    __syncthreads();
    if (!LIKELY(!raw)) return total;
    Target to = {image + front + (before.x & 31), to_words + 32 * (before.x >> 5 & 31), to_nibbles,
                 to_bytes + (before.x >> 20), before.x >> 10 & 1023};
#pragma unroll
    for (int k = 2; k >= 0; k--) to.put(planes[k], modes >> 2 * k & 3, lane);
    if (!LIKELY(!marked)) {
        to.put(mask, modes >> 6, lane);
        if (!uniform) put_special<S, LOSSY>(s, slot, index, values, w, lane);
    }
    put_fields<IS_SHORT<S>>(to_bits + before.y, words, upto_lane - own, v, widths, classes.top, lane);
    if (bytes % 4 + thread < 4 && bytes % 4 != 0) to_bytes[bytes + thread] = 0;
    if (thread == 0) {
        put_front<S>(s, image, classes);
        if (uniform) put_value(values, (Int<S>)s.plan.value);
    }
    return total;
}

// Codes a tile of one of the classes from `kind` on, whose chunk is in `slot`, into image `turn`; the words that it
// has, `raw` where it is of class 3, which is not written. Whole CTA.
template <class S, int LOSSY>
__device__ __forceinline__ u32 code_tile(Stage<S>& s, u32 slot, u32 index, u32 kind, u32 turn, bool& raw, int w,
                                         int lane) {
    const Chunk& c = s.chunks[slot];
    const Tile p = tile_at(c.array, index, lane);
    const u32 thread = 32 * w + lane;
    if (thread < LENGTHS) s.counts[thread] = 0;
    if (thread == 0) s.any = s.longest = 0;
    Int<S> v[8][4];
    bool quanta = false;
    if constexpr (LOSSY) quanta = kind < 2 && survey_quanta<S, LOSSY>(s, slot, index, v, w, lane);
    if (!quanta) survey_bits<S, LOSSY>(s, slot, index, turn, v, w, lane);
    __syncthreads();
    difference(s, v, s.plan.head >> 2 & 3, c.array.rank, w, lane);
    const Classes classes = classify<S>(s, v, w, lane);
    return put_payload<S, LOSSY>(s, slot, index, turn, p, v, classes, raw, w, lane);
}

// Without a bound: tiles by tickets, one after the other. A payload waits while the next one is coded. Whole CTA.
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
    while (next.tile < args.tiles) {
        const u32 slot = next.slot, index = next.tile - s.chunks[slot].place.first_tile;
        if (w == 1) draw(args, s, slot, lane);
        bool raw = false;
        const u32 total = code_tile<S, LOSSLESS>(s, slot, index, 2, turn, raw, w, lane);
        if (thread == 0) s.pending[turn] = {index, total, slot, raw};
        turn ^= PlanesTuning<S>::IMAGES - 1;
        __syncthreads();
        next = s.next;
        __syncthreads();
    }
#pragma unroll
    for (u32 k = 0; k < PlanesTuning<S>::IMAGES; k++) flush(s, turn ^ k, thread, w, lane);
}

// No entry of the list.
constexpr u32 NONE = ~0u;

// Under a bound: tiles that are listed, one after the other, into their slots. Whole CTA.
template <class S, int LOSSY>
__device__ __forceinline__ void encode_listed(const EncodeArgs& args) {
    __shared__ Stage<S> s;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 thread = threadIdx.x;
    const slots::Board board(args);
    const u32 listed = *board.listed;
    if (thread == 0) {
        s.specials = 0, s.chunks[0].place.chunk = ~0u;
        const u32 k = listed ? atomicAdd(board.listed + 1, 1u) : 0;
        s.start = k < listed ? board.list[k] : NONE;
    }
    __syncthreads();
#pragma unroll 1
    for (u32 entry = s.start; entry != NONE; entry = s.start) {
        const u32 tile = entry & (1u << 30) - 1, kind = entry >> 30;
        // The next one is drawn while this one is coded.
        u32 next = 0;
        if (thread == 0) next = atomicAdd(board.listed + 1, 1u);
        if (w == 0) {
            const u32 chunk = frame::chunk_of((const EncodeChunk*)args.chunks, args.chunk_count, tile, lane);
            if (chunk != s.chunks[0].place.chunk) open_chunk<S, true>(s.chunks[0], args, chunk, lane);
        }
        __syncthreads();
        const Chunk& c = s.chunks[0];
        const u32 index = tile - c.place.first_tile;
        u32* const slot = (u32*)slot_of(c.place, tile);
        bool raw = kind == RAW;
        u32 total = 0;
        if (LIKELY(!raw)) {
            total = code_tile<S, LOSSY>(s, 0, index, kind, 0, raw, w, lane);
            __syncthreads();
        }
        if (LIKELY(!raw)) {
            for (u32 i = thread; i < total; i += THREADS) slot[i] = s.images[0][i];
        } else {
            const Source<S, LOSSY> in = source<S, LOSSY>(c, index, lane);
            total = 1 + sizeof(S) / 4 * inside_of(c.array, in.p);
            put_raw(in, index, slot, 0, thread);
        }
        if (thread == 0) {
            board.tell(tile, total, total, 0);
            s.start = next < listed ? board.list[next] : NONE;
        }
        __syncthreads();
    }
}

}  // namespace planes::wide
