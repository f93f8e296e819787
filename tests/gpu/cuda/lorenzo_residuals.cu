// SPDX-License-Identifier: MIT OR Apache-2.0
// Residuals of lorenzo in device memory, by two decoders to compare; in no library.
//
// `coarse` has a thread a tile, as cuSZ has (Tian et al., PACT 2020, doi:10.1145/3410463.3414624). `sync` has a CTA a
// tile, whose threads find codewords' beginnings by themselves (Weissenberger & Schmidt, ICPP 2018,
// doi:10.1145/3225058.3225076). Tables are made beforehand by `lorenzo_decode_tables`.
#include "lorenzo/payload.cuh"
#include "prim/dependent.cuh"

namespace {

// Where a tile's residuals go, in the order of tiles: what comes before are whole layers, in this layer whole rows of
// tiles, and in this row whole tiles.
__device__ __forceinline__ int* residuals_of(const DecodeChunk& c, const Tile& t) {
    return (int*)c.output + ((u64)t.origin.z * c.extents[1] + (u64)t.extents.z * t.origin.y) * c.extents[2] +
           (u64)t.extents.z * t.extents.y * t.origin.x;
}

template <class S>
__device__ __forceinline__ void decode_fine(const DecodeArgs& args) {
    decode_tile<Traits<S>::W, false>(args,
                                     [](const DecodeChunk& c, Shared& sh, const u32*, const Parts&, Kind, int, int) {
                                         int* to = residuals_of(c, sh.tile);
                                         for (u32 i = threadIdx.x; i < sh.tile.values(); i += THREADS)
                                             to[i] = sh.values[i];
                                     });
}

// Writes every residual, zeros too, one after the other.
struct OneByOne {
    int* to;
    u32 n, next;
    __device__ __forceinline__ void operator()(u32 place, int residual) {
        if (place >= n || place < next) return;
        while (next < place) to[next++] = 0;
        to[next++] = residual;
    }
};

// The baseline: one thread a tile. Tiles of another chunk than the CTA's first look into tables that are farther away.
template <class S>
__device__ __forceinline__ void decode_coarse(const DecodeArgs& args, u32 threads) {
    __shared__ huffman::Tables shared;
    const int lane = threadIdx.x & 31;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 first = blockIdx.x * threads;
    const u32 home = frame::chunk_of(chunks, args.chunk_count, min(first, args.tiles - 1), lane);
    for (u32 i = threadIdx.x; i < sizeof(huffman::Tables) / 16; i += threads) {
        ((uint4*)&shared)[i] = ((const uint4*)&((const huffman::FrameTables*)args.tables)[home].tables)[i];
    }
    __syncthreads();
    const bool here = first + threadIdx.x < args.tiles;
    const u32 number = min(first + threadIdx.x, args.tiles - 1);
    u32 chunk = home;
    while (chunk + 1 < args.chunk_count && chunks[chunk + 1].first_tile <= number) chunk++;
    const DecodeChunk& c = chunks[chunk];
    const huffman::Tables& tables = chunk == home ? shared : ((const huffman::FrameTables*)args.tables)[chunk].tables;
    const u32 t = number - c.first_tile;
    u32 from = 0, words = 0;
    bool right = true;
    // A warp finds its lanes' tiles one by one.
    for (int k = 0; k < 32; k++) {
        const Span span(chunks[warp::from(chunk, k)], warp::from(t, k), lane);
        if (lane == k) from = span.from, words = span.to - span.from, right = span.right;
    }
    if (!here) return;
    const Kind kind = {((const u8*)(c.frame + c.kinds_at))[t]};
    const Tile tile = tiles::of(c.extents, c.tile, t);
    const u32 n = tile.values();
    const u32* payload = (const u32*)c.frame + c.payload_at / 4 + from;
    right = right && kind.allowed(c.mode == 3, tile.extents) && !tables.bad;
    if (right) {
        const Parts p = part<Traits<S>::W>(payload, words, kind, n, tables);
        right = p.right;
        OneByOne put = {residuals_of(c, tile), n, 0};
        if (right && kind.coding() == HUFFMAN) {
            huffman::Reader<false> r(payload + p.stream, 0);
            u32 place = 0;
            huffman::until<true, false>(tables, r, 32 * p.words, 32 * p.words, n, place, put);
            right = huffman::ended(r, 32 * p.words, n, place);
        } else if (right && kind.coding() == FIXED) {
            for (u32 i = 0; i < n; i++) put.to[put.next++] = fixed(payload + p.stream + 1, payload[p.stream], i);
        }
        while (right && put.next < n) put.to[put.next++] = 0;
    }
    ChunkState* state = (ChunkState*)args.states + chunk;
    if (frame::count(state, c.tiles, 1, 0, !right)) frame::verdict(args, chunk, false);
}

constexpr int COARSE = 64;

}  // namespace

#define ENTRIES(S, name)                                                                         \
    ENTRY(lorenzo_residuals_coarse_##name, DecodeArgs, (COARSE), decode_coarse<S>(args, COARSE)) \
    ENTRY(lorenzo_residuals_sync_##name, DecodeArgs, (THREADS, CTAS), decode_fine<S>(args))
ENTRIES(float, f32)
ENTRIES(double, f64)
