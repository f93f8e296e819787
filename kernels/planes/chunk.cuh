// SPDX-License-Identifier: MIT OR Apache-2.0
// What encoding kernels keep of a chunk in shared memory. Who takes one tile after the other keeps the next tile's
// chunk beside that of the growing one, and a waiting tile's `Place`: where chunks are small, hardly two of its tiles
// are of the same one, and it neither stops nor stands empty in between.
#pragma once
#include "../base/frame_writer.cuh"
#include "quantize.cuh"
#include "tile.cuh"

namespace planes {

// Where a chunk's tiles go: its number in the batch, and tiles of the batch before it; addresses of its state, of the
// look-back's words, of the table and of the payloads; the checksum's keys of the table and of the first payload.
struct Place {
    u32 chunk, first_tile;
    u64 state, offsets, table, table_key, payloads, key;
    // The chunk's slots: the first one's address, bytes of each.
    u64 work;
    u32 work_stride;

    // Writes tile `index`'s end into the table; returns what that adds to the checksum. One lane.
    __device__ __forceinline__ u64 put_end(u32 index, u32 end) const {
        ((u32*)table)[index] = end;
        return frame::term(end, index + table_key);
    }
    // Adds what each lane's words add to the checksum. Whole warp.
    __device__ __forceinline__ void add(u64 sum, int lane) const {
        sum = warp::sum(sum);
        if (lane == 0) atomicAdd(&((ChunkState*)state)->sum, sum);
    }
};

// Address of the slot of tile `number` of the batch.
__device__ __forceinline__ u64 slot_of(const Place& p, u32 number) {
    return p.work + (u64)(number - p.first_tile) * p.work_stride;
}

// A chunk: its values, flags and fill value; its rule, where it has a bound.
struct Chunk {
    Array array;
    u32 flags;
    bool usable;
    u64 fill;
    double step, inverse, most;
    // What else is kept, by the flags.
    double low, high, positive, negative;
    Place place;
};

// How a kernel codes values: without loss, under a bound, or under one beside which more is kept.
constexpr int LOSSLESS = 0, BOUNDED = 1, LIMITED = 2;

// What else than the bound is kept of a chunk.
template <class S>
__device__ __forceinline__ keep::Limits<S> limits_of(const Chunk& c) {
    return {(S)c.low, (S)c.high, (S)c.positive, (S)c.negative, c.flags & keep::ANY};
}

// Keeps chunk `number` of the batch, with its rule if LOSSY. Whole warp.
template <class S, int LOSSY>
__device__ __forceinline__ void open_chunk(Chunk& kept, const EncodeArgs& args, u32 number, int lane) {
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[number];
    const ChunkState* state = (const ChunkState*)args.states + number;
    Rule<S> r;
    if constexpr (LOSSY) r = rule<S>(frame::used_bound(c, state));
    __syncwarp();
    if (lane == 0) {
        kept.array = array_of(c, c.input);
        // A fill value of +0 counts as none. FORMAT.md §8.1.
        kept.flags = c.fill == 0 ? c.flags & ~FLAG_FILL : c.flags, kept.fill = c.fill;
        if constexpr (LOSSY) kept.step = r.step, kept.inverse = r.inverse, kept.most = r.most, kept.usable = r.usable;
        if constexpr (LOSSY) {
            if (c.flags & keep::ANY) {
                const keep::Limits<S> l = keep::limits_of<S>(c, state);
                kept.low = l.low, kept.high = l.high, kept.positive = l.positive, kept.negative = l.negative;
            }
        }
        kept.place = {number,
                      c.first_tile,
                      (u64)state,
                      (u64)frame::offsets(args, c),
                      c.frame + c.table_at,
                      c.table_at / 4,
                      c.frame + c.payload_at,
                      frame::key_of(c.payload_at / 4),
                      c.work,
                      c.work_stride};
    }
    __syncwarp();
}

}  // namespace planes
