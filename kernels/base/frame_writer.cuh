// SPDX-License-Identifier: MIT OR Apache-2.0
// How the CTAs of an encoding kernel write frames together: in one pass, tiles of any lengths, bytes that do not depend
// on who is first.
//
//   ticket     frame::ticket gives the next tile of the batch, and its chunk. CTAs begin tiles in this order, so who
//              waits for a tile waits for a CTA that runs.
//   announce   lookback::announce tells a tile's length as soon as it is known. Later tiles wait for nothing else.
//   place      lookback::place finds where its payload starts (decoupled look-back, ../prim/lookback.cuh). The words
//              leave with frame::copy_summed, the tile's end goes into the table with frame::put; both return their
//              part of the checksum.
//   seal       frame::last counts tiles as done. The CTA that is last with a chunk writes header and checksum:
//              frame::seal. Or a kernel of its own does, a warp a chunk: then nobody waits for what was written, which
//              is faster where chunks are small.
//
// A tile that waits in shared memory until the next one is announced is placed without a stop: those before it are done
// by then. Lengths are in a unit of the codec's, of 4 or 8 bytes.
#pragma once
#include "frame.cuh"

namespace frame {

// A tile of the batch and its chunk; no tile is left where `tile` is not below `args.tiles`.
struct Ticket {
    u32 tile, chunk;
};

// The next tile. Whole warp.
__device__ __forceinline__ Ticket ticket(const EncodeArgs& args, int lane) {
    u32 tile = 0;
    if (lane == 0) tile = atomicAdd((u32*)args.ticket, 1u);
    tile = warp::from(tile, 0);
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    return {tile, tile < args.tiles ? chunk_of(chunks, args.chunk_count, tile, lane) : 0};
}

// The look-back's words of a chunk's tiles.
__device__ __forceinline__ u64* offsets(const EncodeArgs& args, const EncodeChunk& c) {
    return (u64*)args.offsets + c.first_tile;
}

// Writes word `i` of a frame; returns what it adds to the checksum.
__device__ __forceinline__ u64 put(const EncodeChunk& c, u64 i, u32 word) {
    ((u32*)c.frame)[i] = word;
    return term(word, i);
}

// Counts `tiles` tiles of a chunk as done, which add `sum` to the checksum. True in the one warp that is last: it sees
// what all CTAs wrote. Whole warp.
__device__ __forceinline__ bool last(const EncodeArgs& args, const EncodeChunk& c, u32 chunk, u32 tiles, u64 sum,
                                     int lane) {
    u32 last = 0;
    if (lane == 0) {
        last = count((ChunkState*)args.states + chunk, c.tiles, tiles, sum, 0);
        __threadfence();
    }
    return warp::from(last, 0) != 0;
}

// Word `i` of a frame's header, which is `word` but where only the device knows it: the frame's stored length, the
// bound used, and what the payloads add to the last section.
__device__ __forceinline__ u32 head_word(const EncodeChunk& c, u32 i, u32 word, u64 stored, u64 used, u64 payload) {
    const u32 at = c.payload_len_at;
    if (i == 6) return (u32)stored;
    if (i == 7) return (u32)(stored >> 32);
    if (i == 8) return (u32)used;
    if (i == 9) return (u32)(used >> 32);
    if (i != at && i != at + 1) return word;
    const u64 length = (c.head[at] | (u64)c.head[at + 1] << 32) + payload;
    return (u32)(length >> (i == at ? 0 : 32));
}

// Writes a frame's header, checksum and length. Its payloads begin at byte `payload_at` and are counted in `unit`
// bytes, its values hold with `bound`, `sum` is of the words that no tile has summed. `patch(i, word)` makes of word i
// of the header, which is `word` on the host, what only the device knows. Whole warp.
template <class Patch>
__device__ __forceinline__ void seal(const EncodeArgs& args, const EncodeChunk& c, u32 chunk, u64 payload_at, u32 unit,
                                     double bound, u64 sum, int lane, Patch patch) {
    const u64 payload = unit * (lookback::peek(offsets(args, c) + c.tiles - 1) & lookback::SUM),
              stored = payload_at + payload;
    const u64 used = (u64)__double_as_longlong(bound);
    for (u32 i = lane; i < c.head_words; i += 32) {
        if (i == CHECKSUM_WORD || i == CHECKSUM_WORD + 1) continue;
        sum += put(c, i, head_word(c, i, patch(i, c.head[i]), stored, used, payload));
    }
    sum = warp::sum(sum);
    if (lane == 0) {
        sum += atomicAdd(&((ChunkState*)args.states + chunk)->sum, 0ull);
        put(c, CHECKSUM_WORD, (u32)sum);
        put(c, CHECKSUM_WORD + 1, (u32)(sum >> 32));
        ((u64*)args.lengths)[chunk] = stored;
    }
}

// The same where a table of `table_words` and zeros up to `payload_at` are all that lies between header and payloads.
__device__ __forceinline__ void seal(const EncodeArgs& args, const EncodeChunk& c, u32 chunk, u32 unit, double bound,
                                     int lane) {
    for (u64 i = (c.table_at + 4ull * c.table_words) / 4 + lane; i < c.payload_at / 4; i += 32) put(c, i, 0);
    seal(args, c, chunk, c.payload_at, unit, bound, 0, lane, [](u32, u32 word) { return word; });
}

// Bytes of the payloads of chunk `number`, as the look-back placed them by kernels before, in `unit` bytes.
__device__ __forceinline__ u64 placed(const EncodeArgs& args, u32 number, u32 unit) {
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[number];
    return unit * (offsets(args, c)[c.tiles - 1] & lookback::SUM);
}

// The same for chunk `number`, all of whose tiles were written by kernels before, their payloads `payload` bytes; the
// CPU's where there was a fault. What it needs is asked for at once. Whole warp.
__device__ __forceinline__ void seal(const EncodeArgs& args, u32 number, u64 payload, int lane) {
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[number];
    const ChunkState state = ((const ChunkState*)args.states)[number];
    const u64 used = (u64)__double_as_longlong(used_bound(c, &state));
    const u64 stored = c.payload_at + payload;
    u64 sum = 0;
    for (u32 i = lane; i < c.head_words; i += 32) {
        if (i == CHECKSUM_WORD || i == CHECKSUM_WORD + 1) continue;
        sum += put(c, i, head_word(c, i, c.head[i], stored, used, payload));
    }
    for (u64 i = (c.table_at + 4ull * c.table_words) / 4 + lane; i < c.payload_at / 4; i += 32) put(c, i, 0);
    sum = warp::sum(sum) + state.sum;
    if (lane == 0) {
        put(c, CHECKSUM_WORD, (u32)sum);
        put(c, CHECKSUM_WORD + 1, (u32)(sum >> 32));
        ((u64*)args.lengths)[number] = state.fault ? 0 : stored;
    }
}

}  // namespace frame
