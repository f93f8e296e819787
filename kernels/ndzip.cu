// SPDX-License-Identifier: MIT OR Apache-2.0
// The room ndzip: src/codec/ndzip/FORMAT.md. One CTA codes one cube of 4096 words, or copies 4096 words of the border.
//
// Encoding: the cube comes into shared memory; every thread takes 32 consecutive words (of 8-byte words their upper or lower
// halves), differences them along all axes, transposes their bits in registers and knows which planes are not zero;
// a sum over the CTA places the planes, which leave in whole words. Decoding is the same backwards. The border follows
// the cubes, so its tiles look back like any other.
#include "base/frame.cuh"
#include "prim/load.cuh"
#include "stage/ndzip_cube.cuh"
#include "tuning.cuh"

namespace {

using namespace ndzip;

template <class W>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    using P = Shape<W>;
    __shared__ Shared<W> sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    if (w == 0) {
        u32 tile = 0;
        if (lane == 0) tile = atomicAdd((u32*)args.ticket, 1u);
        tile = warp::from(tile, 0);
        const u32 at = frame::chunk_of(chunks, args.chunk_count, tile, lane);
        if (lane == 0) {
            sh.tile = tile;
            sh.chunk = at;
        }
    }
    __syncthreads();
    const EncodeChunk& c = chunks[sh.chunk];
    const u32 t = sh.tile - c.first_tile, flags = c.flags;
    const Grid g = grid(c);
    const W* input = (const W*)c.input;
    u64* places = (u64*)args.places + c.first_tile;
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
            for (u32 k = 0; k < LOADS; k++) v[k] = *(const uint4*)(input + from + place_in(g, WIDE * (k * P::THREADS + threadIdx.x)));
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
            for (u32 i = threadIdx.x; i < CUBE; i += P::THREADS) keep(i, input[from + place_in(g, i)]);
        }
        __syncthreads();
        Planes mine;
        words = planes_of(mine, sh, g.rank, lane, w);
        if (threadIdx.x == 0) lookback::announce(places, t, words);
        keep_planes(sh, mine);
    } else {
        const u64 b0 = (u64)(t - g.cubes) * CUBE, border = c.values - (u64)g.cubes * CUBE;
        words = (u32)(border - b0 < CUBE ? border - b0 : CUBE);
        if (threadIdx.x == 0) lookback::announce(places, t, words);
        for (u32 i = threadIdx.x; i < words; i += P::THREADS) {
            W v = input[border_at(g, b0 + i)];
            sh.words[i] = flags & FLAG_SWAP ? swapped(v) : v;
        }
    }
    if (w == 0) {
        const u32 start = lookback::start(places, t, words, lane);
        if (lane == 0) sh.start = start;
    }
    __syncthreads();

    const u32 start = sh.start;
    const u64 word0 = c.payload_at / 4 + (u64)start * (P::BYTES / 4);
    u32* out = (u32*)c.frame + word0;
    const u32* stage = (const u32*)sh.words;
    u64 sum = frame::copy_summed<P::THREADS, 8>(out, stage, word0, words * (P::BYTES / 4));
    sum = warp::sum(sum);
    if (lane == 0) sh.sums[w] = sum;
    __syncthreads();
    if (w == 0) {
        sum = warp::sum(lane < P::THREADS / 32 ? sh.sums[lane] : 0ull);
        if (lane == 0 && cube) {
            const u64 entry = c.table_at / 4 + t;
            ((u32*)c.frame)[entry] = start + words;
            sum += frame::term(start + words, entry);
        }
        ChunkState* state = (ChunkState*)args.states + sh.chunk;
        if (frame::last_of(state, c.tiles, 1, sum, 0, lane)) {
            const u64 payload = P::BYTES * (lookback::peek(places + c.tiles - 1) & lookback::SUM);
            frame::seal(c, state, payload, 0.0, (u64*)args.lengths + sh.chunk, lane);
        }
    }
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
        from = t ? in[table + t - 1] : 0;
        to = in[table + t];
        right = from <= to && to + border <= most && to - from <= P::LONGEST && to - from >= P::COLUMNS
                && (t + 1 < g.cubes || to + border == most);
    } else {
        const u64 b0 = (u64)(t - g.cubes) * CUBE;
        const u64 start = g.cubes ? in[table + g.cubes - 1] : 0;
        right = start + border == most;
        from = start + b0;
        to = from + (border - b0 < CUBE ? border - b0 : CUBE);
    }
    const u32 words = right ? (u32)(to - from) : 0;
    const u64 word0 = c.payload_at / 4 + from * (P::BYTES / 4);
    u32* stage = (u32*)sh.words;
    u64 sum = frame::copy_summed<P::THREADS, 11>(stage, in + word0, word0, words * (P::BYTES / 4));
    if (t == 0 && w == 1) {
        // Header and grid, and what fills up the table.
        for (u64 i = lane; i < table; i += 32) {
            if (i != frame::CHECKSUM_WORD && i != frame::CHECKSUM_WORD + 1) sum += frame::term(in[i], i);
        }
        for (u64 i = table + g.cubes + lane; i < c.payload_at / 4; i += 32) sum += frame::term(in[i], i);
    }
    sum = warp::sum(sum);
    if (lane == 0) {
        sh.sums[w] = sum;
        if (w == 0) sh.fault = !right;
    }
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
        sum = warp::sum(lane < P::THREADS / 32 ? sh.sums[lane] : 0ull);
        if (lane == 0 && cube) sum += frame::term(in[table + t], table + t);
        ChunkState* state = (ChunkState*)args.states + chunk;
        if (frame::last_of(state, c.tiles, 1, sum, sh.fault, lane) && lane == 0) {
            const bool same = atomicAdd(&state->sum, 0ull) == c.checksum && atomicOr(&state->fault, 0u) == 0;
            ((u64*)args.verdicts)[chunk] = same ? 1 : 2;
        }
    }
}

}  // namespace

#define ENTRIES(W, name)                                                                                              \
    extern "C" __global__ __launch_bounds__(Shape<W>::THREADS, (AT_ONCE<Shape<W>::CTAS, Shape<W>::THREADS>)) void ndzip_encode_##name(EncodeArgs args) { encode<W>(args); } \
    extern "C" __global__ __launch_bounds__(Shape<W>::THREADS, (AT_ONCE<Shape<W>::CTAS, Shape<W>::THREADS>)) void ndzip_decode_##name(DecodeArgs args) { decode<W>(args); }
ENTRIES(u32, f32)
ENTRIES(u64, f64)
