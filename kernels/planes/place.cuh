// SPDX-License-Identifier: MIT OR Apache-2.0
// Payloads from their slots to their places in the frame, and the table of ends: the last step of encoding under a
// bound. See slots.cuh.
//
// A CTA has some tiles of a group. Where the group's first payload begins is the sum of all lengths before it in the
// chunk: of groups of groups, of groups, of the chunk's tiles in its first group. A scan over the group says the rest.
// Then each warp copies its tiles, and sums the words for the checksum on the way.
#pragma once
#include "../base/frame_writer.cuh"
#include "slots.cuh"

namespace planes::slots {

// This thread's part of the sum of the lengths of tiles from `first` up to `end`, which is a group's first one.
__device__ __forceinline__ u32 sum_before(const Board& board, u32 first, u32 end, u32 thread, u32 threads) {
    u32 sum = 0;
    const u32 g0 = (first + GROUP - 1) / GROUP, g1 = end / GROUP;
    // The chunk's tiles in a group that it shares with the chunk before.
    for (u32 t = first + thread; t < min(g0 * GROUP, end); t += threads) sum += Record(board.records[t]).total;
    const u32 s0 = min((g0 + GROUP - 1) / GROUP, g1 / GROUP), s1 = g1 / GROUP;
    if (s0 >= s1) {
        for (u32 g = g0 + thread; g < g1; g += threads) sum += board.groups[g];
        return sum;
    }
    for (u32 g = g0 + thread; g < s0 * GROUP; g += threads) sum += board.groups[g];
    for (u32 s = s0 + thread; s < s1; s += threads) sum += board.supers[s];
    for (u32 g = s1 * GROUP + thread; g < g1; g += threads) sum += board.groups[g];
    return sum;
}

// Tiles that a CTA copies, and CTAs of a group.
constexpr u32 COPIED = 8, CTAS = GROUP / COPIED;

// A group's tiles, in shared memory.
struct Group {
    u32 parts[WARPS];
    u64 records[GROUP];
    u32 starts[GROUP], chunks[GROUP];
};

// Finds where each tile of the group begins. First warp; `before`: the lengths of tiles before the group in its first
// tile's chunk.
__device__ __forceinline__ void find_starts(const EncodeArgs& args, const Board& board, Group& s, u32 chunk, u32 before,
                                            int lane) {
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    const u32 first = GROUP * (blockIdx.x / CTAS), tile = first + lane;
    const u64 record = tile < args.tiles ? board.records[tile] : 0;
    // Chunks follow each other.
    u32 mine = chunk;
    if (tile < args.tiles) {
        while (tile - chunks[mine].first_tile >= chunks[mine].tiles) mine++;
    }
    const u32 length = Record(record).total, upto = warp::inclusive(length, lane) + before;
    // Less what stands before the chunk's first tile, where that is of this group.
    const bool begins = tile < args.tiles && chunks[mine].first_tile >= first;
    const u32 at = begins ? chunks[mine].first_tile - first : 0;
    const u32 less = __shfl_sync(warp::ALL, upto - length, (int)at);
    s.records[lane] = record;
    s.starts[lane] = upto - length - (begins ? less : 0);
    s.chunks[lane] = mine;
}

// Copies a tile's payload from its slot; returns what its words and its end add to the checksum. Whole warp.
__device__ __forceinline__ u64 place_tile(const EncodeChunk& c, u32 index, u64 word, u32 start, int lane) {
    constexpr int BATCH = 8;
    const Record r(word);
    const u32* slot = (const u32*)(c.work + (u64)index * c.work_stride);
    u32* to = (u32*)(c.frame + c.payload_at) + start;
    const u64 key = frame::key_of(c.payload_at / 4 + start);
    u64 sum = 0;
#pragma unroll 1
    for (u32 k = lane; k < r.total; k += 32 * BATCH) {
        u32 words[BATCH];
#pragma unroll
        for (u32 i = 0; i < BATCH; i++) {
            const u32 at = k + 32 * i;
            const u32 from = at < r.before ? at : at < r.before + r.whole ? WHOLE_AT + at - r.before : at - r.whole;
            words[i] = at < r.total ? slot[from] : 0;
        }
#pragma unroll
        for (u32 i = 0; i < BATCH; i++) {
            const u32 at = k + 32 * i;
            if (at < r.total) to[at] = words[i];
            sum += frame::keyed(words[i], key + at * frame::KEY_STEP);
        }
    }
    if (lane == 0) {
        const u32 end = start + r.total;
        ((u32*)(c.frame + c.table_at))[index] = end;
        sum += frame::term(end, c.table_at / 4 + index);
    }
    return sum;
}

__device__ __forceinline__ void place(const EncodeArgs& args) {
    __shared__ Group s;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    ChunkState* states = (ChunkState*)args.states;
    const Board board(args);
    const u32 first = GROUP * (blockIdx.x / CTAS);
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, first, lane);
    const u32 part = warp::total(sum_before(board, chunks[chunk].first_tile, first, threadIdx.x, THREADS));
    if (lane == 0) s.parts[w] = part;
    __syncthreads();
    if (w == 0) {
        find_starts(args, board, s, chunk, warp::total(lane < (int)WARPS ? s.parts[lane] : 0), lane);
    }
    __syncthreads();
    u64 sum = 0;
    u32 summed = chunk;
#pragma unroll 1
    for (u32 k = COPIED * (blockIdx.x % CTAS) + w, n = 0; n < COPIED / WARPS && first + k < args.tiles;
         n++, k += WARPS) {
        const u32 mine = s.chunks[k];
        if (mine != summed) {
            sum = warp::sum(sum);
            if (lane == 0) atomicAdd(&states[summed].sum, sum);
            sum = 0, summed = mine;
        }
        const EncodeChunk& c = chunks[mine];
        const u32 index = first + k - c.first_tile;
        sum += place_tile(c, index, s.records[k], s.starts[k], lane);
        // Words of the chunk's payload.
        if (lane == 0 && index + 1 == c.tiles) states[mine].done = s.starts[k] + Record(s.records[k]).total;
    }
    sum = warp::sum(sum);
    if (lane == 0 && sum != 0) atomicAdd(&states[summed].sum, sum);
}

}  // namespace planes::slots
