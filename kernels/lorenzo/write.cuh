// SPDX-License-Identifier: MIT OR Apache-2.0
// `write`: bytes become streams, at their places in the frame; the CTA that finishes a chunk seals it.
#pragma once
#include "../base/frame_writer.cuh"
#include "tile.cuh"

namespace {

// A tile to be written, and its chunk; none if `tile` is not below the number of all.
struct Next {
    u32 tile, chunk, values;
    Meta meta;
    // Words of values or outliers, and of what follows them.
    u32 front, words;
};

struct WriteShared {
    // The waiting tile's stream.
    alignas(16) u32 stage[TILE + 4];
    u32 kept[huffman::KEPT * THREADS];
    huffman::Tables tables;
    frame::Sums<THREADS> sums;
    u32 scan[THREADS / 32];
    // The waiting tile; whether there is one, and tiles of its chunk that are not yet counted.
    u32 old_tile, old_chunk, old_kind, old_outliers, old_front, old_words, old, done;
    u32 start, last;
    // The tile at work and the one to come.
    Next next[2];
};

// Values of a raw tile; or its outliers. Written into the frame as they come; returns what they add to the checksum.
template <class S>
__device__ __forceinline__ u64 write_front(const EncodeChunk& c, u32 tile, u32 kind, u32 outliers, u64 word0,
                                           u32* scan) {
    using T = Traits<S>;
    const Source<S> in(c, tiles::of(c.extents, c.tile, tile));
    u32* out = (u32*)c.frame + word0;
    u64 sum = 0;
    auto put = [&](u32 at, u32 word) {
        out[at] = word;
        sum += frame::term(word, word0 + at);
    };
    auto bits = [&](u32 at, u64 b) {
        put(at, (u32)b);
        if (T::W == 8) put(at + 1, (u32)(b >> 32));
    };
    auto value = [&](u32 at, S x) { bits(at, (u64)T::bits(x)); };
    if ((kind & CLASS) == RAW) {
        for (u32 i = threadIdx.x; i < in.n; i += THREADS) value(i * (T::W / 4), in.one(i));
        return sum;
    }
    const Work work(c, tile);
    if (outliers & MASK) {
        constexpr u32 RUNS = 1 + T::W / 4;
        if (threadIdx.x == 0) {
            put(0, outliers);
            bits(1, *work.alike());
        }
        const u32* runs = (const u32*)work.runs();
        for (u32 i = threadIdx.x; i < outlier_words<T::W>(outliers) - RUNS; i += THREADS) put(RUNS + i, runs[i]);
        return sum;
    }
    const u32 t = threadIdx.x, words = (in.n + 31) / 32;
    const u32* marks = work.marks();
    const u32* starts = work.starts();
    u32 left = t < words ? starts[t] : 0, total;
    u32 k = block::sum_before<THREADS>((u32)__popc(left), scan, total);
    if (t == 0) put(0, outliers);
    for (; left; left &= left - 1, k++) {
        const u32 i = (u32)__ffs((int)left) - 1, at = 32 * t + i;
        // Up to the next record, or the next value that is no outlier.
        u32 word = t, stops = (starts[t] | ~marks[t]) & ~((2u << i) - 1);
        while (!stops && ++word < words) stops = starts[word] | ~marks[word];
        const u32 end = word < words ? min(32 * word + (u32)__ffs((int)stops) - 1, in.n) : in.n;
        put(1 + k, at | (end - at - 1) << 16);
        value(1 + outliers + k * (T::W / 4), in.one(at));
    }
    return sum;
}

// Sums kinds and lengths, which were written in parts of words. All threads.
__device__ __forceinline__ u64 sum_tables(const EncodeChunk& c, const Codebook* codebook) {
    const u32* words = (const u32*)c.frame;
    u64 sum = 0;
    for (u64 i = codebook->kinds_at / 4 + threadIdx.x; i < codebook->starts_at / 4; i += THREADS) {
        sum += frame::term(*(const volatile u32*)(words + i), i);
    }
    return sum;
}

// Finds the place of the tile that waits and writes it. `finish`: the next tile is of another chunk, or there is none.
// `sum` is this thread's part of what the CTA's tiles add to the checksum.
template <class S>
__device__ __forceinline__ void flush(const EncodeArgs& args, WriteShared& sh, bool finish, u64& sum, int lane, int w) {
    if (!sh.old) return;
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[sh.old_chunk];
    const Codebook* codebook = (const Codebook*)args.shared + sh.old_chunk;
    const u32 t = sh.old_tile, front = sh.old_front, words = sh.old_words;
    if (w == 0) {
        const u32 start = lookback::place(frame::offsets(args, c), t, front + words, lane);
        if (lane == 0) {
            sh.start = start;
            ((u8*)c.frame)[codebook->kinds_at + t] = (u8)sh.old_kind;
            ((unsigned short*)(c.frame + codebook->lengths_at))[t] = (unsigned short)(front + words);
            constexpr u32 EVERY = (u32)fmt::LORENZO_START_EVERY;
            if (t && t % EVERY == 0) sum += frame::put(c, codebook->starts_at / 4 + t / EVERY - 1, start);
        }
    }
    __syncthreads();
    const u64 word0 = codebook->payload_at / 4 + sh.start;
    if (front) sum += write_front<S>(c, t, sh.old_kind, sh.old_outliers, word0, sh.scan);
    sum += frame::copy_summed<THREADS, 4>((u32*)c.frame + word0 + front, sh.stage, word0 + front, words);
    if (finish) {
        const u64 added = sh.sums.gather(sum, lane, w);
        sum = 0;
        if (w == 0) {
            const u32 done = sh.done;
            __syncwarp();
            const bool last = frame::last(args, c, sh.old_chunk, done, added, lane);
            if (lane == 0) {
                sh.done = 0;
                sh.last = last;
            }
        }
        __syncthreads();
        if (sh.last) {
            const u64 tables = sh.sums.gather(sum_tables(c, codebook), lane, w);
            if (w == 0) {
                // The length of the first section; that of the last one, the fourth, is the writer's to fill in.
                // Integers are kept without a bound.
                frame::seal(args, c, sh.old_chunk, codebook->payload_at, 4, c.integer ? 0.0 : codebook->used,
                            lane == 0 ? tables : 0, lane,
                            [&](u32 i, u32 word) { return i == c.payload_len_at - 6 ? codebook->head_len : word; });
                // One of them is too large.
                if (lane == 0 && ((const ChunkState*)args.states)[sh.old_chunk].fault)
                    ((u64*)args.lengths)[sh.old_chunk] = 0;
            }
        }
    }
}

// Tiles as they come, one after the other.
template <class S>
__device__ __forceinline__ void write(const EncodeArgs& args) {
    __shared__ WriteShared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 t = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    u64 sum = 0;
    u32 booked = 0xffffffffu;
    if (t == 0) sh.old = sh.old_chunk = sh.done = 0;
    // Takes the next tile, and announces its size: others wait for that. One warp.
    auto take_next = [&](Next& next) {
        const auto [tile, at] = frame::ticket(args, lane);
        if (lane == 0) next.tile = tile;
        if (tile >= args.tiles) return;
        const EncodeChunk& c = chunks[at];
        const u32 number = tile - c.first_tile, n = tiles::of(c.extents, c.tile, number).values();
        const Work work(c, number);
        Meta meta = *work.meta();
        u32 front = 0, words = 0;
        if ((meta.kind & CLASS) == RAW) front = n * (Traits<S>::W / 4);
        if (meta.kind & OUTLIERS) front = outlier_words<Traits<S>::W>(meta.outliers);
        if ((meta.kind & CLASS) == HUFFMAN) {
            const u32 bits = huffman::length(work.counts(), ((const Codebook*)args.shared + at)->codes, lane);
            const u32 fixed = huffman::fixed_len(n, meta.width) / 4;
            words = (bits + 31) / 32;
            if (words > fixed) {
                words = fixed;
                meta.kind ^= HUFFMAN ^ FIXED;
            }
        }
        if (lane == 0) {
            next.chunk = at;
            next.values = n;
            next.meta = meta;
            next.front = front;
            next.words = words;
            lookback::announce(frame::offsets(args, c), number, front + words);
        }
    };
    if (w == 0) take_next(sh.next[0]);
    for (u32 turn = 0;; turn ^= 1) {
        __syncthreads();
        const Next& now = sh.next[turn];
        if (now.tile >= args.tiles) break;
        const u32 chunk = now.chunk;
        const EncodeChunk& c = chunks[chunk];
        const u32 number = now.tile - c.first_tile, n = now.values;
        if (chunk != booked) {
            huffman::make_tables(sh.tables, ((const Codebook*)args.shared + chunk)->codes);
            booked = chunk;
        }
        const Meta meta = now.meta;
        const Work work(c, number);
        const u32* exact = work.exact(meta.kind & INTERPOLATED);
        const u32 kind = meta.kind, front = now.front, words = now.words;
        u32 mask = 0, begin = 0, end = 0, first = 0, bits = 0;
        bool far = false;
        if ((kind & CLASS) == HUFFMAN || (kind & CLASS) == FIXED) {
            const huffman::Mine mine = huffman::take(work.bytes(), n);
            huffman::keep(mine, sh.kept);
            mask = mine.mask;
            far = __any_sync(warp::ALL, huffman::any_far(mine));
            if ((kind & CLASS) == HUFFMAN) {
                begin = huffman::runs_begin<THREADS>(mine.mask, sh.scan, end);
                u32 own = huffman::length(mine, sh.kept, begin, sh.tables);
                if (t == (n - 1) / 32 && end < n) own += sh.tables.codes->lens[huffman::END];
                first = block::sum_before<THREADS>(own, sh.scan, bits);
            }
        }
        // While the first warp looks back, the last one looks for the next tile.
        if (w == THREADS / 32 - 1) take_next(sh.next[turn ^ 1]);
        flush<S>(args, sh, sh.old_chunk != chunk, sum, lane, w);
        __syncthreads();
        if (t == 0) {
            sh.old = 1;
            sh.old_tile = number;
            sh.old_chunk = chunk;
            sh.old_kind = kind;
            sh.old_outliers = meta.outliers;
            sh.old_front = front;
            sh.old_words = words;
            sh.done++;
        }
        if ((kind & CLASS) == HUFFMAN) {
            for (u32 i = t; i < words; i += THREADS) sh.stage[i] = 0;
            __syncthreads();
            huffman::Writer out(sh.stage, first);
            if (far) {
                huffman::write<true>(sh.kept, mask, (int)begin, exact, sh.tables, out);
            } else {
                huffman::write<false>(sh.kept, mask, (int)begin, exact, sh.tables, out);
            }
            if (t == (n - 1) / 32 && end < n) out.code(sh.tables.codes->symbols[huffman::END]);
            out.finish();
        } else if ((kind & CLASS) == FIXED) {
            if (t == 0) sh.stage[0] = meta.width;
            if (32 * t < n)
                huffman::write_fixed(huffman::kept_again(sh.kept, mask), exact, n, meta.width, sh.stage + 1);
        }
    }
    flush<S>(args, sh, true, sum, lane, w);
}

}  // namespace
