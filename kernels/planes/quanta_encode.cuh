// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of class 0 under a bound, encoded by a warp each: the first step of ../planes_lossy.cu.
//
//   values   quanta, two in a register     bit planes of a block        slot in working memory
//   x  ----> q - base, differences -------> full    ------------------> words, as they come
//                                           sparse  --> shared memory -> ballots, nibbles, bytes at the tile's end
//
// A warp takes its tiles from a ticket, one after another. A lane reads 32 values, 16 bytes at a time, and makes quanta
// of them, two in a register; the next 32 are on their way meanwhile. Prediction is a difference of registers, with a
// neighbour lane where needed. A tile that turns out to be of another class is listed for wide_encode.cuh, and its slot
// is written over there: the warp goes on at once.
#pragma once
#include "../tuning.cuh"
#include "exceptions.cuh"
#include "slots.cuh"

namespace planes::quanta {

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
    load_block_now(s.fetched, now.p, 0, now.x);
}

// Whether a tile whose first block has the values `x` is of class 2 or 3: too_many. Whole warp.
template <class S>
__device__ __noinline__ bool many_wrong(const Stage& s, u32 first, u32 left, const S (*x)[4], int lane) {
    const u32 wrong = wrong_of<S>(x, rule_of<S>(s), fill_of<S>(s), false);
    return too_many(wrong & inside_block(s.chunk.array, {first, left}, 0), x[0][0], lane);
}

// Begins the tile whose first block is in `now`: its base, and what the stage counts. False where it is of another
// class, or one whose payload is known.
template <class S>
__device__ __forceinline__ bool begin_tile(u32 next, Next<S>& now, Stage& s, int lane) {
    using T = Traits<S>;
    constexpr long long LIMIT = Quantizer<S>::LIMIT;
    const u32 flags = s.chunk.flags;
    __syncwarp();
    if (lane == 0) {
        s.number = now.tile, s.next = next, s.inside = inside_of(s.chunk.array, now.p);
        s.slot = slot_of(s.chunk.place, now.tile);
        s.exceptions = s.mask_modes = s.same = 0;
        s.differ = false;
    }
    auto& x = now.x;
    const Rule<S> r = rule_of<S>(s);
    bool good = r.usable;
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
        S kept[8][4];
        copy_block(kept, x);
        if (__any_sync(warp::ALL, many_wrong<S>(s, now.p.first, now.p.left, kept, lane))) {
            __syncwarp();
            s.kind = 2;
            return false;
        }
        // Values are read again, so that they need not be kept meanwhile.
        good = __all_sync(warp::ALL, begin_odd<S>(s, now.p.first, now.p.left, lane));
        first = s.least, last = s.most_quantum;
        load_block_now(s.chunk.array, now.p, 0, x);
        if (flags & FLAG_SWAP) swap_block(x);
    }
    const long long base = good ? middle<S>(first, last) : 0;
    good = good && narrow<S>(base);
    // The head grows in the stage, and so do its slices: registers are short.
    if (lane == 0) s.base = base, s.head = (u32)(base >> Quantizer<S>::UNIT_LOG2) << 11, s.slices = 0;
    s.kind = good ? 0 : r.usable ? 1 : 2;
    __syncwarp();
    return good && s.same == 0;
}

// Differences of a block by the tile's predictor, made clean pairs. Whether any is not 0, and whether any does not fit
// 8 bits.
__device__ __forceinline__ void difference(Stage& s, u32 (&a)[8], u32 (&b)[8], Before& before, u32 block, bool& some,
                                           bool& wide, int lane) {
    const u32 rank = s.chunk.array.rank, predictor = s.predictor;
    if (predictor != 0) {
        forward_x(a, b, rank, before, lane);
        if (predictor > 1) {
            forward_y(a, b, rank, before, lane);
            if (predictor > 2) forward_z(a, b, s.back, block == 0, lane);
        }
    }
    const u32 bias = predictor == 0 ? 0x00800080u - ZEROS : 0x00800080u;
    u32 all = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        a[k] += bias, b[k] += bias;
        all |= a[k] ^ 0x00800080u;
        all |= b[k] ^ 0x00800080u;
    }
    some = __any_sync(warp::ALL, all != 0), wide = __any_sync(warp::ALL, (all & 0xff00ff00u) != 0);
}

// Codes a block of the growing tile, whose values are in `now`, and leaves those of the next one there: of this tile,
// or of the next one. False: the tile is of another class, and nothing is left there.
template <class S>
__device__ __forceinline__ bool put_block(const EncodeArgs& args, Next<S>& now, Stage& s, Parts& n, Before& before,
                                          u32 block, int lane) {
    auto& x = now.x;
    u32 a[8], b[8];
    {
        // From shared memory each time: registers are short.
        const u32 flags = s.chunk.flags;
        const Rule<S> r = rule_of<S>(s);
        const long long base = s.base;
        if ((flags & FLAG_SWAP) && block > 0) swap_block(x);
        Quantizer<S> quantizer(Quantizer<S>::magic_of(base));
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const u32 q0 = quantizer.one(x[k][0], r), q1 = quantizer.one(x[k][1], r), q2 = quantizer.one(x[k][2], r),
                      q3 = quantizer.one(x[k][3], r);
            a[k] = pair(q0, q2);
            b[k] = pair(q1, q3);
        }
        bool fine = quantizer.good(r), signs = false, smalls = false;
        if (flags & (FLAG_FILL | keep::ANY)) {
            if (flags & FLAG_FILL) fine = fine && !near_fill<32>(x, s.chunk.fill, r.step);
            // First, so that small values are looked for in any case.
            if (flags & keep::ANY)
                fine = !limits_of<S>(s.chunk).near(x, r.step, r.step, r.step, signs, smalls) && !signs && fine;
        }
        // By votes, here and below, of what calls return too: so the compiler knows that lanes stay together.
        const u32 bad = __ballot_sync(warp::ALL, !fine);
        if (!LIKELY(bad == 0)) {
            // In half steps: of class 1.
            if (__any_sync(warp::ALL, smalls)) {
                s.kind = 1;
                return false;
            }
            const bool inside = now.p.left == 0 || (now.p.left & Tile::WHOLE);
#pragma unroll
            for (int k = 0; k < 8; k++) s.scratch[k][lane] = a[k], s.scratch[8 + k][lane] = b[k];
            bool few = false, many = false;
            if (__popc(bad) <= FEW_LANES && __all_sync(warp::ALL, inside))
                few = mark_few<S>(s, now.p.first, bad, (Int<S>)base, block, many, lane);
            u32 kind = many;
            if (!__any_sync(warp::ALL, few)) {
                S kept[8][4];
                copy_block(kept, x);
                kind = mark<S>(s, now.p.first, now.p.left, kept, (Int<S>)base, block, lane);
            }
            kind = warp::from(kind, 0);
            if (__any_sync(warp::ALL, kind != 0)) {
                s.kind = kind;
                return false;
            }
#pragma unroll
            for (int k = 0; k < 8; k++) a[k] = s.scratch[k][lane], b[k] = s.scratch[8 + k][lane];
        }
    }
    if (block == 0) {
        u32 ta[8], tb[8];
#pragma unroll
        for (int k = 0; k < 8; k++) ta[k] = a[k], tb[k] = b[k];
        const u32 best = select(ta, tb, s.chunk.array.rank, held_of(s.chunk.array, now.p, lane), lane);
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
    bool some, wide;
    difference(s, a, b, before, block, some, wide, lane);
    u32 modes = 0;
    if (some) modes = put_planes(s, n, a, b, wide, lane);
    if (!LIKELY(s.exceptions == 0)) put_mask(s, n, block, lane);
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
    return true;
}

// Lists the growing tile as one of the classes from `kind` on. Whole warp.
__device__ __forceinline__ void give_up(const EncodeArgs& args, Stage& s, const Parts& n, u32 kind, int lane) {
    for (u32 k = lane; k < (n.nibbles + 7) / 8; k += 32) s.nibbles[k] = 0;
    if (lane == 0) slots::Board(args).list_tile(s.number, kind);
}

// Brings the growing tile's first piece into its slot, and tells its lengths; of one that is of another class, lists
// it. Whole warp.
template <class S>
__device__ __forceinline__ void end_tile(const EncodeArgs& args, Stage& s, const Parts& n, int lane) {
    constexpr u32 W = Traits<S>::W / 4;
    __syncwarp();
    if (!LIKELY(s.kind == 0)) {
        give_up(args, s, n, s.kind, lane);
        return;
    }
    const u32 same = s.same, slices = s.slices;
    u32 head = s.head, values = 0, stored = 0, front = same;
    const bool masked = same == 0 && s.exceptions != 0;
    if (!LIKELY(!masked)) {
        if (!allowed(s, stored)) {
            give_up(args, s, n, 1, lane);
            return;
        }
        values = W * stored;
        head |= stored == 1 ? WITH_EXCEPTIONS | UNIFORM : WITH_EXCEPTIONS;
    }
    if (LIKELY(same == 0)) {
        if (lane == 0 && slices % 2) ((u16*)s.modes)[slices] = 0;
        __syncwarp();
        u32 mode_words = (slices + 1) / 2;
        const u32 modes = lane < (int)mode_words ? s.modes[lane] : 0;
        // One with nothing but absent planes is its head alone.
        if (!__any_sync(warp::ALL, modes != 0) && !masked) mode_words = 0, head &= ~0xf0u;
        front = 1 + masked + mode_words;
        if (lane < (int)mode_words) s.front[MOST_FRONT - mode_words + lane] = modes;
        if (lane == 0) {
            s.front[MOST_FRONT - front] = head | s.predictor << 2;
            if (masked) s.front[MOST_FRONT - front + 1] = s.mask_modes | s.exceptions << 8;
        }
    }
    const u32 ballots = front + n.ballots, nibbles = (n.nibbles + 7) / 8, before = ballots + nibbles,
              bytes = (n.bytes + 3) / 4, total = before + n.words + bytes + values;
    if (n.bytes % 4 + lane < 4 && n.bytes % 4 != 0) ((u8*)s.bytes)[n.bytes + lane] = 0;
    __syncwarp();
    if (LIKELY(total <= s.inside * W)) {
        u32* to = (u32*)s.slot;
        for (u32 k = lane; k < ballots; k += 32) to[k] = s.front[MOST_FRONT - front + k];
        to += ballots;
        // Nibbles are added to zeros.
        for (u32 k = lane; k < nibbles; k += 32) to[k] = s.nibbles[k], s.nibbles[k] = 0;
        to += nibbles;
        for (u32 k = lane; k < bytes; k += 32) to[k] = s.bytes[k];
        if (!LIKELY(!masked)) put_values<S>(s, to + bytes, stored, lane);
        if (lane == 0) slots::Board(args).tell(s.number, total, before, n.words);
    } else {
        give_up(args, s, n, RAW, lane);
    }
}

// Codes the tile whose first block is in `now`, and leaves the first block of the next one there.
template <class S>
__device__ __forceinline__ void put_tile(const EncodeArgs& args, u32 next, Next<S>& now, Stage& s, int lane) {
    Parts n = {0};
    if (LIKELY(begin_tile<S>(next, now, s, lane))) {
        Before before(s.chunk.array.rank);
        bool good = true;
#pragma unroll 1
        for (u32 block = 0; block < BLOCKS && good; block++) good = put_block<S>(args, now, s, n, before, block, lane);
        if (!LIKELY(good)) fetch_next(args, s, now, lane);
    } else {
        fetch_next(args, s, now, lane);
    }
    end_tile<S>(args, s, n, lane);
}

// Tiles by tickets, one after the other, each warp by itself. The ticket behind the next one is drawn while a tile is
// coded.
template <class S>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    __shared__ Stage stages[WARPS];
    const int lane = threadIdx.x & 31;
    Stage& s = stages[threadIdx.x / 32];
    for (u32 k = lane; k < STAGE_NIBBLES; k += 32) s.nibbles[k] = 0;
    frame::Ticket next = frame::ticket(args, lane);
    if (next.tile >= args.tiles) return;
    open_chunk<S, true>(s.next_chunk, args, next.chunk, lane);
    if (lane == 0) s.chunk = s.next_chunk, s.fetched = s.chunk.array;
    __syncwarp();
    Next<S> now;
    now.tile = next.tile, now.p = tile_at(s.chunk.array, next.tile - s.chunk.place.first_tile, lane);
    load_block_now(s.chunk.array, now.p, 0, now.x);
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    u32 drawn = 0;
    if (lane == 0) drawn = atomicAdd((u32*)args.ticket, 1u);
    while (now.tile < args.tiles) {
        drawn = warp::from(drawn, 0);
        if (drawn < args.tiles) {
            const u32 chunk = frame::chunk_of(chunks, args.chunk_count, drawn, lane);
            if (chunk != s.chunk.place.chunk) open_chunk<S, true>(s.next_chunk, args, chunk, lane);
        }
        u32 after = 0;
        if (lane == 0 && drawn < args.tiles) after = atomicAdd((u32*)args.ticket, 1u);
        put_tile<S>(args, drawn, now, s, lane);
        drawn = after;
        if (now.tile < args.tiles && s.next_chunk.place.chunk != s.chunk.place.chunk) {
            __syncwarp();
            if (lane == 0) s.chunk = s.next_chunk;
            __syncwarp();
        }
    }
}

}  // namespace planes::quanta
