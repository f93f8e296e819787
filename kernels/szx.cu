// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec szx: codecs/src/codec/szx/FORMAT.md, the paper in szx/encode.cuh. A CTA codes a tile of 4096 values; a warp
// takes a few of its 32 blocks.
//
// Encoding: values are read once, 16 bytes a lane; every block is decided and turned into words; the blocks' lengths
// give the offsets of the tile's parts; its payload is put together in shared memory. There it waits until the CTA has
// announced its next tile: by then the tiles before it are done, and its offset in the frame is found without a stop
// (base/frame_writer.cuh). It leaves in whole words, summed for the checksum on the way. 8-byte values fill the
// registers: one tile a CTA.
// Decoding: the payload comes in whole words, summed on the way; one warp checks every length before any is used.
#include "base/frame_reader.cuh"
#include "base/frame_writer.cuh"
#include "base/range.cuh"
#include "prim/dependent.cuh"
#include "szx/decode.cuh"
#include "szx/encode.cuh"
#include "tuning.cuh"

namespace {

constexpr u32 BLOCK = (u32)fmt::SZX_BLOCK, BLOCKS = (u32)fmt::SZX_TILE_BLOCKS, TILE = BLOCK * BLOCKS;
static_assert(BLOCK == 128 && BLOCKS == 32, "a block is four values a lane, a tile one block a lane");

template <class S>
constexpr int THREADS = 32 * (int)BLOCKS / SzxTuning<S>::BLOCKS_PER_WARP;

// Bytes of a tile's longest payload.
template <class S>
constexpr u32 LONGEST = BLOCKS + TILE * Traits<S>::W;

template <class S>
__device__ __forceinline__ void load(const S* from, u32 flags, int count, int lane, S (&x)[4]) {
    using T = Traits<S>;
    if (count == (int)BLOCK) {
        load4(from + 4 * lane, x);
    } else {
        // Copies of the last value fill a partial block up.
        for (int j = 0; j < 4; j++) x[j] = from[min(4 * lane + j, count - 1)];
    }
    if (flags & FLAG_SWAP) {
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = T::value(swapped(T::bits(x[j])));
    }
}

// Values of a tile; of a block of it, 0 or less after the tile's end.
__device__ __forceinline__ u32 tile_values(u64 values, u64 first) {
    return values - first < TILE ? (u32)(values - first) : TILE;
}
__device__ __forceinline__ int block_values(u32 here, u32 block) {
    return min((int)here - (int)(block * BLOCK), (int)BLOCK);
}

template <class S>
struct EncodeShared {
    alignas(16) u8 stage[LONGEST<S> + 16];
    // Values, then words, 16 bytes a lane; and what else a lane keeps of its part of a block.
    uint4 slots[SzxTuning<S>::SLOTS ? TILE / 4 : 1];
    uint2 kept[SzxTuning<S>::SLOTS ? TILE / 4 : 1];
    szx::Block<S> blocks[BLOCKS];
    frame::Sums<THREADS<S>> sums;
    // The tile that waits in `stage`, none while it has no words; tiles of its chunk that are not yet counted.
    alignas(16) u32 old_tile;
    u32 old_chunk, old_words, done;
    u32 tile, chunk;
    double bound;
    u32 start;
};

// Places and writes the tile that waits in `stage`. `finish`: the next tile is of another chunk, or there is none.
// `sum` is this thread's part of what the CTA's tiles add to the checksum.
template <class S>
__device__ __forceinline__ void flush(const EncodeArgs& args, EncodeShared<S>& sh, bool finish, u64& sum, int lane,
                                      int w) {
    const u32 words = sh.old_words, t = sh.old_tile;
    if (words == 0) return;
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[sh.old_chunk];
    if (w == 0) {
        const u32 start = lookback::place(frame::offsets(args, c), t, words, lane);
        if (lane == 0) {
            sh.start = start;
            sum += frame::put(c, c.table_at / 4 + t, start + words);
        }
    }
    __syncthreads();
    const u64 word0 = c.payload_at / 4 + sh.start;
    sum += frame::copy_summed<THREADS<S>, 4>((u32*)c.frame + word0, (const u32*)sh.stage, word0, words);
    if (finish) {
        const u64 added = sh.sums.gather(sum, lane, w);
        sum = 0;
        if (w == 0) {
            const u32 done = sh.done;
            __syncwarp();
            if (lane == 0) sh.done = 0;
            if (frame::last(args, c, sh.old_chunk, done, added, lane)) {
                const double bound = frame::used_bound(c, (const ChunkState*)args.states + sh.old_chunk);
                frame::seal(args, c, sh.old_chunk, 4, bound, lane);
            }
        }
    }
}

template <class S, bool POINTWISE, class Limits>
__device__ __forceinline__ void encode_tile(const EncodeArgs& args, const EncodeChunk& c, const Limits& limits,
                                            EncodeShared<S>& sh, u64& sum, int lane, int w) {
    using T = Traits<S>;
    constexpr int PER_WARP = SzxTuning<S>::BLOCKS_PER_WARP;
    const u32 t = sh.tile - c.first_tile;
    const u32 here = tile_values(c.values, (u64)t * TILE), flags = c.flags;
    const S* input = (const S*)c.input + (u64)t * TILE;
    const u32 blocks = (here + BLOCK - 1) / BLOCK;
    constexpr bool SLOTS = SzxTuning<S>::SLOTS;
    szx::LaneWords<S> own[SLOTS ? 1 : PER_WARP];
    {
        S x[PER_WARP][4];
#pragma unroll
        for (int k = 0; k < PER_WARP; k++) {
            const u32 block = (u32)(w * PER_WARP + k);
            const int count = block_values(here, block);
            if (count > 0) load(input + block * BLOCK, flags, count, lane, x[k]);
        }
        const szx::Rule<S> r = szx::rule<S>(sh.bound, POINTWISE, c.fill, flags & FLAG_FILL);
        if constexpr (SLOTS) {
            uint4* slot = sh.slots + w * PER_WARP * 32 + lane;
#pragma unroll
            for (int k = 0; k < PER_WARP; k++) {
                slot[32 * k] = make_uint4(T::bits(x[k][0]), T::bits(x[k][1]), T::bits(x[k][2]), T::bits(x[k][3]));
            }
#pragma unroll 1
            for (u32 block = w * PER_WARP; block < (u32)(w + 1) * PER_WARP; block++, slot += 32) {
                const int count = block_values(here, block);
                szx::Block<S> b = {};
                if (count > 0) {
                    const uint4 v = *slot;
                    const S y[4] = {T::value(v.x), T::value(v.y), T::value(v.z), T::value(v.w)};
                    if (szx::analyse<S, POINTWISE>(b, own[0], y, r, limits, count, lane)) {
                        *slot = make_uint4(own[0].word[0], own[0].word[1], own[0].word[2], own[0].word[3]);
                        sh.kept[32 * block + lane] = make_uint2(own[0].nibbles, own[0].ranks);
                    }
                }
                if (lane == 0) sh.blocks[block] = b;
            }
        } else {
#pragma unroll
            for (int k = 0; k < PER_WARP; k++) {
                const u32 block = (u32)(w * PER_WARP + k);
                const int count = block_values(here, block);
                szx::Block<S> b = {};
                if (count > 0) szx::analyse<S, POINTWISE>(b, own[k], x[k], r, limits, count, lane);
                if (lane == 0) sh.blocks[block] = b;
            }
        }
    }
    __syncthreads();

    const u32 kind = sh.blocks[lane].kind;
    u32 end;
    const szx::Parts parts =
        szx::offsets<T::W>(szx::fixed_parts<POINTWISE>(kind), sh.blocks[lane].lens, blocks, lane, end);
    const u32 words = (end + 3) / 4;
    if (threadIdx.x == 0) lookback::announce(frame::offsets(args, c), t, words);
    if constexpr (SLOTS) {
        flush(args, sh, sh.old_chunk != sh.chunk, sum, lane, w);
        __syncthreads();
    }
    if (w == 0) {
        if (lane == 0) {
            sh.old_tile = t;
            sh.old_chunk = sh.chunk;
            sh.old_words = words;
            sh.done++;
        }
        // Kinds, filled up; the last word's filling before anything else is put there.
        if (lane < (int)((blocks + 3) & ~3u)) sh.stage[lane] = lane < (int)blocks ? (u8)kind : (u8)0;
        if (lane < 4 && end + lane < 4 * words) sh.stage[end + lane] = 0;
    }
    auto put = [&](u32 block, const szx::LaneWords<S>& mine) {
        const int count = block_values(here, block);
        if (count > 0) {
            szx::emit<S, POINTWISE>(sh.stage, sh.blocks[block], mine, parts, block, count, lane,
                                    [&](S(&x)[4]) { load(input + block * BLOCK, flags, count, lane, x); });
        }
    };
    if constexpr (SLOTS) {
#pragma unroll 1
        for (u32 block = w * PER_WARP; block < (u32)(w + 1) * PER_WARP; block++) {
            const uint4 words4 = sh.slots[32 * block + lane];
            const uint2 more = sh.kept[32 * block + lane];
            put(block, szx::LaneWords<S>{{words4.x, words4.y, words4.z, words4.w}, more.x, more.y});
        }
    } else {
#pragma unroll
        for (int k = 0; k < PER_WARP; k++) put((u32)(w * PER_WARP + k), own[k]);
    }
}

// Tiles by tickets: one after the other, or one. LIMITED: of chunks of which more than the bound is kept.
template <class S, bool LIMITED>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    __shared__ EncodeShared<S> sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    u64 sum = 0;
    if (threadIdx.x == 0) sh.old_words = sh.old_chunk = sh.done = 0;
    do {
        if (w == 0) {
            const frame::Ticket next = frame::ticket(args, lane);
            if (lane == 0) {
                sh.tile = next.tile;
                sh.chunk = next.chunk;
                sh.bound = frame::used_bound(chunks[next.chunk], (const ChunkState*)args.states + next.chunk);
            }
        }
        __syncthreads();
        if (sh.tile >= args.tiles) break;
        const EncodeChunk& c = chunks[sh.chunk];
        if constexpr (LIMITED) {
            const auto limits = keep::limits_of<S>(c, (const ChunkState*)args.states + sh.chunk);
            encode_tile<S, false>(args, c, limits, sh, sum, lane, w);
        } else if (c.bound_kind == BOUND_POINTWISE) {
            encode_tile<S, true>(args, c, szx::Free(), sh, sum, lane, w);
        } else {
            encode_tile<S, false>(args, c, szx::Free(), sh, sum, lane, w);
        }
        // Where words wait in registers there are none left to do this.
    } while (SzxTuning<S>::SLOTS);
    if (!SzxTuning<S>::SLOTS) __syncthreads();
    flush(args, sh, true, sum, lane, w);
}

template <class S>
struct DecodeShared {
    alignas(16) u8 stage[LONGEST<S> + 16];
    szx::Parts parts[BLOCKS];
    u32 kinds[BLOCKS];
    frame::Sums<THREADS<S>> sums;
    u32 fault;
};

template <class S, bool POINTWISE>
__device__ __forceinline__ void decode_tile(const DecodeChunk& c, DecodeShared<S>& sh, bool right, u32 len, u64 first,
                                            int lane, int w) {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    constexpr int PER_WARP = SzxTuning<S>::BLOCKS_PER_WARP;
    const u32 here = tile_values(c.values, first), blocks = (here + BLOCK - 1) / BLOCK;
    const szx::Rule<S> r = szx::rule<S>(c.bound, POINTWISE, 0, false);
    if (w == 0) {
        const bool good = right && szx::layout<S, POINTWISE>(sh.stage, sh.parts, sh.kinds, r, len, blocks,
                                                             max(block_values(here, (u32)lane), 0), lane);
        if (lane == 0) sh.fault = !good;
    }
    __syncthreads();
    if (sh.fault) return;
    const bool swap = c.flags & FLAG_SWAP;
    Bits* output = (Bits*)c.output + first + 4 * lane;
#pragma unroll 1
    for (int k = 0; k < PER_WARP; k++) {
        const u32 block = (u32)(w * PER_WARP + k);
        const int count = block_values(here, block);
        if (count <= 0) break;
        Bits x[4];
        szx::take<S, POINTWISE>(sh.stage, sh.kinds[block], sh.parts[block], r, lane, x);
        if (swap) {
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] = swapped(x[j]);
        }
        if (count == (int)BLOCK) {
            store4(output + block * BLOCK, x);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (4 * lane + j < count) output[block * BLOCK + j] = x[j];
            }
        }
    }
}

template <class S>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    __shared__ DecodeShared<S> sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const u32* in = (const u32*)c.frame;
    const u64 table = c.table_at / 4;
    const frame::Span span(in + table, t, c.tiles, c.payload_len / 4);
    const bool right = span.right && (span.to - span.from) * 4ull <= LONGEST<S>;
    const u32 words = right ? span.to - span.from : 0;
    const u64 word0 = c.payload_at / 4 + span.from;
    u64 sum = frame::copy_summed<THREADS<S>, 4>((u32*)sh.stage, in + word0, word0, words);
    if (t == 0 && w == 1) sum += frame::sum_rest<32>(c, table, table + c.tiles, lane);
    sh.sums.put(sum, lane, w);
    __syncthreads();
    const u64 first = (u64)t * TILE;
    if (c.mode == 3) {
        decode_tile<S, true>(c, sh, right, words * 4, first, lane, w);
    } else {
        decode_tile<S, false>(c, sh, right, words * 4, first, lane, w);
    }
    if (w == 0) {
        sum = sh.sums.all(lane);
        ChunkState* state = (ChunkState*)args.states + chunk;
        if (lane == 0 && frame::count(state, c.tiles, 1, sum + frame::term(span.to, table + t), sh.fault))
            frame::verdict(args, chunk);
    }
}

}  // namespace

#define BOUNDS(S, CTAS) (THREADS<S>, (AT_ONCE<SzxTuning<S>::CTAS, THREADS<S>>))
#define ENTRIES(S, name)                                                                            \
    ENTRY(szx_range_##name, EncodeArgs, (THREADS<S>), frame::find_range<S, THREADS<S>, TILE>(args)) \
    ENTRY(szx_encode_##name, EncodeArgs, BOUNDS(S, ENCODE_CTAS), encode<S, false>(args))            \
    ENTRY(szx_encode_limited_##name, EncodeArgs, BOUNDS(S, ENCODE_CTAS), encode<S, true>(args))     \
    ENTRY(szx_decode_##name, DecodeArgs, BOUNDS(S, DECODE_CTAS), decode<S>(args))
ENTRIES(float, f32)
ENTRIES(double, f64)
