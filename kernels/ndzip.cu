// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec ndzip: codecs/src/codec/ndzip/FORMAT.md, papers in ndzip/cube.cuh. A CTA codes a cube of 4096 words, or
// copies 4096 words of the border.
//
// Encoding: the cube comes into shared memory; every thread takes 32 consecutive words (of 8-byte words their upper or
// lower halves), differences them along all axes, transposes their bits in registers and knows which planes are not
// zero; a scan over the CTA places the planes, which leave in whole words. Decoding is the same backwards. The border
// follows the cubes, so its tiles are announced and placed like any other.
#include "base/frame_reader.cuh"
#include "base/frame_writer.cuh"
#include "ndzip/cube.cuh"
#include "prim/dependent.cuh"
#include "prim/load.cuh"
#include "tuning.cuh"

namespace {

using namespace ndzip;

template <class W>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    using P = Shape<W>;
    __shared__ Shared<W> sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    if (w == 0) {
        const frame::Ticket next = frame::ticket(args, lane);
        if (lane == 0) {
            sh.tile = next.tile;
            sh.chunk = next.chunk;
        }
    }
    __syncthreads();
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[sh.chunk];
    u64* offsets = frame::offsets(args, c);
    const u32 t = sh.tile - c.first_tile, flags = c.flags;
    const Grid g = grid(c);
    const W* input = (const W*)c.input;
    const bool cube = t < g.cubes;
    u32 words;
    if (cube) {
        const u64 from = origin(g, t);
        const bool is_float = flags & FLAG_FLOAT, swap = flags & FLAG_SWAP;
        auto keep = [&](u32 i, W v) {
            if (swap) v = swapped(v);
            sh.words[P::at(i)] = is_float ? rotl1(v) : v;
        };
        constexpr u32 WIDE = 16 / P::BYTES;
        if (g.rank == 1 || g.row % WIDE == 0) {
            // All of a thread's loads are in flight at once.
            constexpr u32 LOADS = CUBE / WIDE / P::THREADS;
            uint4 v[LOADS];
#pragma unroll
            for (u32 k = 0; k < LOADS; k++)
                v[k] = *(const uint4*)(input + from + offset_in(g, WIDE * (k * P::THREADS + threadIdx.x)));
#pragma unroll
            for (u32 k = 0; k < LOADS; k++) {
                const u32 i = WIDE * (k * P::THREADS + threadIdx.x);
                W x[WIDE];
                unpack(v[k], x);
                keep(i, x[0]);
                keep(i + 1, x[1]);
                if (WIDE == 4) {
                    keep(i + 2, x[WIDE - 2]);
                    keep(i + 3, x[WIDE - 1]);
                }
            }
        } else {
#pragma unroll 8
            for (u32 i = threadIdx.x; i < CUBE; i += P::THREADS) keep(i, input[from + offset_in(g, i)]);
        }
        __syncthreads();
        Planes mine;
        words = planes_of(mine, sh, g.rank, lane, w);
        if (threadIdx.x == 0) lookback::announce(offsets, t, words);
        keep_planes(sh, mine);
    } else {
        const u64 b0 = (u64)(t - g.cubes) * CUBE, border = c.values - (u64)g.cubes * CUBE;
        words = (u32)(border - b0 < CUBE ? border - b0 : CUBE);
        if (threadIdx.x == 0) lookback::announce(offsets, t, words);
        for (u32 i = threadIdx.x; i < words; i += P::THREADS) {
            W v = input[border_at(g, b0 + i)];
            sh.words[i] = flags & FLAG_SWAP ? swapped(v) : v;
        }
    }
    if (w == 0) {
        const u32 start = lookback::place(offsets, t, words, lane);
        if (lane == 0) sh.start = start;
    }
    __syncthreads();

    const u32 start = sh.start;
    const u64 word0 = c.payload_at / 4 + (u64)start * (P::BYTES / 4);
    u64 sum =
        frame::copy_summed<P::THREADS, 8>((u32*)c.frame + word0, (const u32*)sh.words, word0, words * (P::BYTES / 4));
    if (threadIdx.x == 0 && cube) sum += frame::put(c, c.table_at / 4 + t, start + words);
    sum = sh.sums.gather(sum, lane, w);
    if (w == 0 && frame::last(args, c, sh.chunk, 1, sum, lane)) frame::seal(args, c, sh.chunk, P::BYTES, 0.0, lane);
}

template <class W>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    using P = Shape<W>;
    __shared__ DecodeShared<W> sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const Grid g = grid(c);
    const u32* in = (const u32*)c.frame;
    const u64 table = c.table_at / 4;
    const bool cube = t < g.cubes;
    const u64 border = c.values - (u64)g.cubes * CUBE;
    // Words of the stream, as 4- or 8-byte words.
    const u64 most = c.payload_len / P::BYTES;
    u64 from, to;
    bool right;
    if (cube) {
        const frame::Span span(in + table, t, g.cubes, most - border);
        from = span.from, to = span.to;
        right = span.right && border <= most && to - from <= P::LONGEST && to - from >= P::COLUMNS;
    } else {
        const u64 b0 = (u64)(t - g.cubes) * CUBE;
        const u64 start = g.cubes ? in[table + g.cubes - 1] : 0;
        right = start + border == most;
        from = start + b0;
        to = from + (border - b0 < CUBE ? border - b0 : CUBE);
    }
    const u32 words = right ? (u32)(to - from) : 0;
    const u64 word0 = c.payload_at / 4 + from * (P::BYTES / 4);
    u64 sum = frame::copy_summed<P::THREADS, 11>((u32*)sh.words, in + word0, word0, words * (P::BYTES / 4));
    if (t == 0 && w == 1) sum += frame::sum_rest<32>(c, table, table + g.cubes, lane);
    sh.sums.put(sum, lane, w);
    if (threadIdx.x == 0) sh.fault = !right;
    __syncthreads();
    if (right && cube) {
        decode_cube<W>(c, g, sh, t, words, lane, w);
    } else if (right) {
        const u64 b0 = (u64)(t - g.cubes) * CUBE;
        W* output = (W*)c.output;
        for (u32 i = threadIdx.x; i < words; i += P::THREADS) {
            const W v = sh.words[i];
            output[border_at(g, b0 + i)] = c.flags & FLAG_SWAP ? swapped(v) : v;
        }
    }
    if (w == 0) {
        sum = sh.sums.all(lane);
        if (lane == 0 && cube) sum += frame::term(in[table + t], table + t);
        ChunkState* state = (ChunkState*)args.states + chunk;
        if (lane == 0 && frame::count(state, c.tiles, 1, sum, sh.fault)) frame::verdict(args, chunk);
    }
}

}  // namespace

#define BOUNDS(W) (Shape<W>::THREADS, (AT_ONCE<Shape<W>::CTAS, Shape<W>::THREADS>))
#define ENTRIES(W, name)                                               \
    ENTRY(ndzip_encode_##name, EncodeArgs, BOUNDS(W), encode<W>(args)) \
    ENTRY(ndzip_decode_##name, DecodeArgs, BOUNDS(W), decode<W>(args))
ENTRIES(u32, f32)
ENTRIES(u64, f64)
