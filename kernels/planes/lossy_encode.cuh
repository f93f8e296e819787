// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles under a bound, encoded by a warp each: the first half of ../planes_lossy.cu.
//
// A warp takes its tiles from a ticket, one after another. A lane reads 32 values, 16 bytes at a time, and makes quanta
// of them, two in a register; the next 32 are on their way meanwhile. Prediction is a difference of registers, with a
// neighbour lane where needed. Residuals become bit planes (coder.cuh), which wait in the warp's part of shared memory;
// the warp announces their length and goes on. When its next tile is announced too, a look-back finds the place of the
// one that waits, and it leaves in whole words, summed for the checksum on the way.
#pragma once
#include "../base/frame_writer.cuh"
#include "../tuning.cuh"
#include "encode_any.cuh"

namespace planes::lossy {

// Whether the fill value is among the first values of a block, or what would come back as the fill value.
template <int COUNT, class S>
__device__ __forceinline__ bool near_fill(const S (&x)[8][4], u64 fill, S step) {
    using T = Traits<S>;
    const typename T::Bits bits = (typename T::Bits)fill;
    const S low = T::sub(T::value(bits), step), high = T::add(T::value(bits), step);
    bool any = false;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const S y = x[k / 4][k % 4];
        any |= T::bits(y) == bits || (y >= low && y <= high);
    }
    return any;
}

// A warp's tile, of which the next block's values are on their way.
template <class S>
struct Next {
    // Its number in the batch; none where it is not below that of tiles.
    u32 tile;
    Tile p;
    S x[8][4];
};

// Adds to its chunk's checksum what was summed, and begins with the chunk that has this state. Whole warp.
__device__ __forceinline__ void begin_sum(Stage& s, u64 state, int lane) {
    const u64 sum = warp::sum(s.sum[lane]);
    if (lane == 0 && s.summed) atomicAdd(&((ChunkState*)s.summed)->sum, sum);
    s.sum[lane] = 0;
    __syncwarp();
    if (lane == 0) s.summed = state;
    __syncwarp();
}

// Places and writes the tile that waits.
__device__ __forceinline__ void flush(Stage& s, u32 turn, int lane) {
    const Waiting& t = s.waiting;
    const u32 total = t.total;
    __syncwarp();
    if (total == 0) return;
    const u32 index = t.tile - t.place.first_tile, words = t.words, nibbles = t.nibbles;
    const u32 start = lookback::place((u64*)t.place.offsets, index, total, lane);
    if (!LIKELY(t.place.state == s.summed)) begin_sum(s, t.place.state, lane);
    u64 sum = s.sum[lane];
    if (lane == 0) sum += t.place.put_end(index, start + total);
    u32* to = (u32*)t.place.payloads + start;
    u64 key = t.place.key + start * frame::KEY_STEP;
    const u32* from = s.words + t.start;
    sum += write_words(to, key, s.front[turn] + MOST_FRONT - t.before, t.front, lane);
    if (nibbles) sum += write_words(to, key, from + words, nibbles, lane);
    sum += write_words(to, key, from, words, lane);
    if (t.bytes) sum += write_words(to, key, from + words + nibbles, t.bytes, lane);
    s.sum[lane] = sum;
    __syncwarp();
    if (lane == 0) s.waiting.total = 0;
    __syncwarp();
}

// Makes room for more words of the growing tile: the other one leaves, and it moves to the front. Where its words end
// then.
__device__ __noinline__ u32 move_words(Stage& s, u32 end, bool dense, u32 turn, int lane) {
    flush(s, turn ^ 1, lane);
    const u32 start = s.start, words = end - start;
    __syncwarp();
    for (u32 k = 0; k < words; k += 32) {
        const u32 word = k + lane < words ? s.words[start + k + lane] : 0;
        __syncwarp();
        if (k + lane < words) s.words[k + lane] = word;
        __syncwarp();
    }
    if (lane == 0) s.start = 0, s.limit = dense ? NIBBLES_AT : STAGE;
    __syncwarp();
    return words;
}

// Whether the growing tile has room for `more` words.
__device__ __forceinline__ bool make_room(Stage& s, Parts& n, bool dense, u32 turn, u32 more, int lane) {
    if (LIKELY(n.words + more <= s.limit)) return true;
    n.words = move_words(s, n.words, dense, turn, lane);
    return n.words + more <= s.limit;
}

// Codes the growing tile as one of any class, or of class 3 where that is known to be its class. The one before leaves
// first: its part of the stage is needed.
template <class S>
__device__ __noinline__ void other_tile(Stage& s, u32 turn, bool raw, int lane) {
    flush(s, turn ^ 1, lane);
    const Place& place = s.chunk.place;
    if (s.summed != place.state) begin_sum(s, place.state, lane);
    const u32 index = s.number - place.first_tile;
    const Source<S, true> in(s.chunk.array, tile_at(s.chunk.array, index, lane), rule_of<S>(s), s.chunk.flags,
                             s.chunk.fill);
    Counts& counts = *(Counts*)s.words;
    const bool dense = s.chunk.flags & FLAG_DENSE;
    u32 total = 1;
    if constexpr (PLANES_OTHER_TILES) total = plan_tile(in, s.plan, s.inside, raw, dense, counts, lane);
    if (lane == 0) lookback::announce((u64*)place.offsets, index, total);
    const u32 start = lookback::place((u64*)place.offsets, index, total, lane);
    u64 sum = s.sum[lane];
    if constexpr (PLANES_OTHER_TILES) {
        u32* to = (u32*)place.payloads + start;
        sum += write_tile(in, index, s.inside, s.plan, dense, counts, to, total, place.key + start * frame::KEY_STEP,
                          lane);
    } else if (lane == 0) {
        // The chunk is the CPU's.
        atomicOr(&((ChunkState*)place.state)->fault, 1u);
    }
    if (lane == 0) sum += place.put_end(index, start + total);
    s.sum[lane] = sum;
    __syncwarp();
}

// The tile that is fetched next.
__device__ __forceinline__ Tile next_tile(Stage& s, int lane) {
    if (!LIKELY(s.next_chunk.place.chunk == s.chunk.place.chunk)) {
        __syncwarp();
        if (lane == 0) s.fetched = s.next_chunk.array;
        __syncwarp();
    }
    return tile_at(s.fetched, s.next - s.next_chunk.place.first_tile, lane);
}

// Leaves the first block of the next tile in `now`.
template <class S>
__device__ __forceinline__ void fetch_next(const EncodeArgs& args, Stage& s, Next<S>& now, int lane) {
    now.tile = s.next;
    if (now.tile >= args.tiles) return;
    now.p = next_tile(s, lane);
    load_block(s.fetched, now.p, 0, now.x);
}

// Puts the tile whose first block is in `now` into the stage, places the one before, and leaves the first block of the
// next one in `now`.
template <class S, bool dense>
__device__ __forceinline__ void put_tile(const EncodeArgs& args, Rule<S>& r, u32 next, Next<S>& now, Stage& s, u32 turn,
                                         u32& drawn, int lane) {
    using T = Traits<S>;
    constexpr long long LIMIT = Quantizer<S>::LIMIT;
    const u32 flags = s.chunk.flags;
    // All of the tile's values that lie in the array, as lane 0 counts them.
    __syncwarp();
    if (lane == 0) {
        s.number = now.tile, s.next = next, s.inside = inside_of(s.chunk.array, now.p);
        s.exceptions = s.mask_modes = s.mask_nibbles = s.mask_bytes = s.same = 0;
        s.differ = false;
    }
    auto& x = now.x;
    u32* front = s.front[turn];
    Parts n = begin_tile(s, dense, lane);
    bool good = r.usable;
    long long base = 0;
    if (flags & FLAG_SWAP) swap_block(x);
    S lo = x[0][0], hi = x[0][0];
#pragma unroll
    for (int k = 1; k < 16; k++) lo = T::least(lo, x[k / 4][k % 4]), hi = T::most(hi, x[k / 4][k % 4]);
    // A lane may have nothing but NaN.
    lo = T::least(lo, T::infinity()), hi = T::most(hi, -T::infinity());
    warp::range(lo, hi);
    long long first = Quantizer<S>::quantum(lo, r), last = Quantizer<S>::quantum(hi, r);
    bool normal = first >= -LIMIT && first <= LIMIT && last >= -LIMIT && last <= LIMIT;
    if (flags & FLAG_FILL) normal = normal && !near_fill<16>(x, s.chunk.fill, r.step);
    if (!LIKELY(!__any_sync(warp::ALL, good && !normal))) {
        // Values are read again, so that they need not be kept meanwhile.
        good = __all_sync(warp::ALL, begin_odd<S>(s, front, now.p.first, now.p.left, lane));
        first = s.least, last = s.most_quantum;
        r = rule_of<S>(s);
        load_block(s.chunk.array, now.p, 0, x);
        if (flags & FLAG_SWAP) swap_block(x);
    }
    base = good ? middle<S>(first, last) : 0;
    good = good && narrow<S>(base);
    if (dense) {
        for (u32 k = lane; k < STAGE_NIBBLES; k += 32) s.words[NIBBLES_AT + k] = 0;
        __syncwarp();
    }
    const auto magic = Quantizer<S>::magic_of(base);
    Before before(s.chunk.array.rank);
    // The head grows in the stage, and so do its slices: registers are short.
    if (lane == 0) s.head = (u32)(base >> Quantizer<S>::UNIT_LOG2) << 11, s.slices = 0;
    s.good = good;
    __syncwarp();
    // None of one that is coded already, or another way.
    const bool coded = !s.good || s.same != 0;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS && !coded; block++) {
        // From shared memory each time: registers are short.
        const u32 rank = s.chunk.array.rank, flags = s.chunk.flags;
        u32 a[8], b[8];
        if ((flags & FLAG_SWAP) && block > 0) swap_block(x);
        Quantizer<S> quantizer(magic);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const u32 q0 = quantizer.one(x[k][0], r), q1 = quantizer.one(x[k][1], r), q2 = quantizer.one(x[k][2], r),
                      q3 = quantizer.one(x[k][3], r);
            a[k] = pair(q0, q2);
            b[k] = pair(q1, q3);
        }
        bool fine = quantizer.good(r);
        if (flags & FLAG_FILL) fine = fine && !near_fill<32>(x, s.chunk.fill, r.step);
        // By votes, here and below: so the compiler knows that lanes stay together.
        const u32 bad = __ballot_sync(warp::ALL, s.good && !fine);
        const bool marked = bad != 0;
        if (!LIKELY(!marked)) {
            // In memory pairs are found by their number. What must not change goes there meanwhile too: else the
            // compiler keeps some of it there all the time.
            u32 kept[40];
            int at = 0;
            auto each = [&](auto f) {
#pragma unroll
                for (int k = 0; k < 8; k++) f(a[k]);
#pragma unroll
                for (int k = 0; k < 8; k++) f(b[k]);
#pragma unroll
                for (int k = 0; k < 4; k++) f(before.back_a[k]), f(before.back_b[k]);
                f(now.tile), f(now.p.first), f(now.p.left);
                f(n.words), f(n.ballots), f(n.nibbles), f(n.bytes), f(block), f(turn);
            };
            each([&](u32& word) { kept[at++] = word; });
            mark<S>(s, now.p.first, now.p.left, bad, kept, (Int<S>)base, block, lane);
            at = 0;
            each([&](u32& word) { word = kept[at++]; });
            r = rule_of<S>(s);
        }
        if (block == 0) {
            u32 ta[8], tb[8];
#pragma unroll
            for (int k = 0; k < 8; k++) ta[k] = a[k], tb[k] = b[k];
            const u32 best = select(ta, tb, rank, lane);
            if (lane == 0) s.predictor = best;
            __syncwarp();
        }
        u32 fetched = block + 1;
        if (fetched == BLOCKS) {
            now.tile = s.next;
            if (now.tile < args.tiles) now.p = next_tile(s, lane);
            fetched = 0;
        }
        if (now.tile < args.tiles) load_block(s.fetched, now.p, fetched, x);
        const u32 predictor = s.predictor;
        // One branch after the other would move registers.
        if (predictor > 2) {
            forward_x(a, b, rank, before, lane);
            forward_y(a, b, rank, before, lane);
            forward_z(a, b, before);
        } else if (predictor == 2) {
            forward_x(a, b, rank, before, lane);
            forward_y(a, b, rank, before, lane);
        } else if (predictor == 1) {
            forward_x(a, b, rank, before, lane);
        }
        const u32 bias = predictor == 0 ? 0x00800080u - ZEROS : 0x00800080u;
        u32 all = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            a[k] += bias, b[k] += bias;
            all |= a[k] ^ 0x00800080u;
            all |= b[k] ^ 0x00800080u;
        }
        const bool some = __any_sync(warp::ALL, all != 0), wide = __any_sync(warp::ALL, (all & 0xff00ff00u) != 0);
        u32 modes = 0;
        if (some) {
            const bool room = make_room(s, n, dense, turn, wide ? 512 : 256, lane);
            if (room) {
                modes = put_block<dense>(s, front, n, a, b, wide, lane);
            } else {
                s.good = false;
            }
        }
        if (!LIKELY(!marked)) {
            const bool room = make_room(s, n, dense, turn, 32, lane) && put_mask<dense>(s, front, n, block, lane);
            if (!room) s.good = false;
        }
        // Halves of words, in the order of slices.
        if (lane == 0) {
            const u32 slices = s.slices;
            ((u16*)s.modes)[slices] = (u16)modes;
            if (wide) {
                ((u16*)s.modes)[slices + 1] = (u16)(modes >> 16);
                s.head |= 16u << block;
            }
            s.slices = slices + (wide ? 2 : 1);
        }
    }
    __syncwarp();
    const u32 same = s.same;
    if (!LIKELY(same == 0)) fetch_next(args, s, now, lane);
    const bool draw = lane == 0 && now.tile < args.tiles;
    const u32 slices = s.slices;
    u32 head = s.head;
    good = s.good;
    if (lane == 0 && slices % 2) ((u16*)s.modes)[slices] = 0;
    u32 mode_words = (slices + 1) / 2, nibbles = (n.nibbles + 7) / 8, bytes = (n.bytes + 3) / 4, values = 0, stored = 0;
    const bool masked = __any_sync(warp::ALL, s.exceptions != 0);
    if (!LIKELY(!masked)) {
        const bool may = allowed(s, stored);
        good = good && may;
        if (good) values = T::W / 4 * stored;
        if (!dense) nibbles = (s.mask_nibbles + 7) / 8, bytes = (s.mask_bytes + 3) / 4;
        head |= stored == 1 ? WITH_EXCEPTIONS | UNIFORM : WITH_EXCEPTIONS;
    }
    good = make_room(s, n, dense, turn, nibbles + bytes + values, lane) && good;
    __syncwarp();
    const u32 modes = lane < (int)mode_words ? s.modes[lane] : 0;
    // One with nothing but absent planes is its head alone.
    if (!__any_sync(warp::ALL, modes != 0) && !masked) {
        mode_words = 0;
        head &= ~0xf0u;
    }
    const u32 before_ballots = same ? same : 1 + (masked ? 1 : 0) + mode_words;
    const u32 number = s.number, start = s.start;
    const u32 total = before_ballots + n.ballots + nibbles + n.words - start + bytes + values;
    if (!LIKELY(__all_sync(warp::ALL, good && total <= s.inside * (T::W / 4)))) {
        // What is in the stage is dropped. Nothing is kept in registers meanwhile, values neither.
#pragma unroll
        for (int k = 0; k < 32; k++) x[k / 4][k % 4] = 0;
        other_tile<S>(s, turn, __all_sync(warp::ALL, good), lane);
        r = rule_of<S>(s);
        fetch_next(args, s, now, lane);
        if (lane == 0 && now.tile < args.tiles) drawn = atomicAdd((u32*)args.ticket, 1u);
        return;
    }
    if (lane < (int)mode_words) front[MOST_FRONT - mode_words + lane] = modes;
    if (!LIKELY(!masked)) {
        u32* to = s.words + n.words;
        if (!dense) put_mask_bytes(s, to, nibbles, bytes, lane);
        put_values<S>(s, to + nibbles + bytes, stored, r, lane);
        if (lane == 0) front[MOST_FRONT + 1 - before_ballots] = s.mask_modes | s.exceptions << 8;
    }
    if (dense) {
        if (n.bytes % 4 + lane < 4 && n.bytes % 4 != 0) ((u8*)(s.words + BYTES_AT))[n.bytes + lane] = 0;
        __syncwarp();
        for (u32 k = lane; k < nibbles; k += 32) s.words[n.words + k] = s.words[NIBBLES_AT + k];
        for (u32 k = lane; k < bytes; k += 32) s.words[n.words + nibbles + k] = s.words[BYTES_AT + k];
    }
    if (lane == 0) {
        if (LIKELY(same == 0)) front[MOST_FRONT - before_ballots] = head | s.predictor << 2;
        lookback::announce((u64*)s.chunk.place.offsets, number - s.chunk.place.first_tile, total);
        if (draw) drawn = atomicAdd((u32*)args.ticket, 1u);
    }
    // The one before is on its way by now.
    flush(s, turn ^ 1, lane);
    if (lane == 0) {
        Waiting& t = s.waiting;
        t.tile = number, t.total = total, t.start = start, t.words = n.words - start;
        t.nibbles = nibbles, t.bytes = bytes + values, t.before = before_ballots, t.front = before_ballots + n.ballots;
    }
    if (lane < (int)sizeof(Place) / 4) ((u32*)&s.waiting.place)[lane] = ((const u32*)&s.chunk.place)[lane];
    __syncwarp();
}

// The warp's tiles from ticket `next` on, as long as their chunks are of one level; leaves the first ticket behind
// them.
template <class S, bool DENSE>
__device__ __forceinline__ void encode_level(const EncodeArgs& args, frame::Ticket& next, Stage& s, int lane) {
    Next<S> now;
    if (lane == 0) s.chunk = s.next_chunk, s.fetched = s.chunk.array;
    __syncwarp();
    Rule<S> r = rule_of<S>(s);
    now.tile = next.tile, now.p = tile_at(s.chunk.array, next.tile - s.chunk.place.first_tile, lane);
    load_block(s.chunk.array, now.p, 0, now.x);
    next = frame::ticket(args, lane);
    u32 turn = 0;
    for (;;) {
        u32 drawn = 0, after = next.tile;
        if (after < args.tiles && next.chunk != s.chunk.place.chunk) {
            open_chunk<S>(s.next_chunk, args, next.chunk, lane);
            if (((s.next_chunk.flags & FLAG_DENSE) != 0) != DENSE) after = args.tiles;
        }
        put_tile<S, DENSE>(args, r, after, now, s, turn, drawn, lane);
        turn ^= 1;
        if (now.tile >= args.tiles) break;
        if (s.next_chunk.place.chunk != s.chunk.place.chunk) {
            __syncwarp();
            if (lane == 0) s.chunk = s.next_chunk;
            __syncwarp();
            r = rule_of<S>(s);
        }
        const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
        drawn = warp::from(drawn, 0);
        next = {drawn, drawn < args.tiles ? frame::chunk_of(chunks, args.chunk_count, drawn, lane) : 0};
    }
    flush(s, turn ^ 1, lane);
}

// Tiles by tickets, one after the other, each warp by itself. A tile waits in shared memory until the next one is
// announced, be it of another chunk: by then those before it are, and it finds its place without a stop.
template <class S>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    __shared__ Stage stages[WARPS];
    const int lane = threadIdx.x & 31;
    Stage& s = stages[threadIdx.x / 32];
    if (lane == 0) s.waiting.total = 0, s.summed = 0;
    s.sum[lane] = 0;
    frame::Ticket next = frame::ticket(args, lane);
    while (next.tile < args.tiles) {
        open_chunk<S>(s.next_chunk, args, next.chunk, lane);
        if (s.next_chunk.flags & FLAG_DENSE) {
            encode_level<S, true>(args, next, s, lane);
        } else {
            encode_level<S, false>(args, next, s, lane);
        }
    }
    begin_sum(s, 0, lane);
}

}  // namespace planes::lossy
