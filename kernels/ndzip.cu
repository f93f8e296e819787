// SPDX-License-Identifier: MIT OR Apache-2.0
// The room ndzip: src/codec/ndzip/FORMAT.md. One CTA codes one cube of 4096 words, or copies 4096 words of the border.
//
// Encoding: the cube comes into shared memory; every thread takes 32 consecutive words (of 8-byte words their upper or lower
// halves), differences them along all axes, transposes their bits in registers and knows which planes are not zero;
// a sum over the CTA places the planes, which leave in whole words. Decoding is the same backwards. The border follows
// the cubes, so its tiles look back like any other.
#include "base/frame.cuh"
#include "stage/planes.cuh"
#include "tuning.cuh"

namespace {

constexpr u32 CUBE = (u32)fmt::NDZIP_CUBE;

// 4- and 8-byte words. A thread works on 32 half or whole words of 32 bits.
template <class W>
struct Shape {
    static constexpr u32 BYTES = sizeof(W), BITS = 8 * BYTES;
    static constexpr u32 COLUMNS = CUBE / BITS;
    static constexpr int THREADS = CUBE / 32 * (BYTES / 4);
    // CTAs that should fit on one multiprocessor.
    static constexpr int CTAS = BYTES == 4 ? 8 : 3;
    static constexpr u32 SEGMENT = CUBE / THREADS;
    static constexpr u32 LONGEST = CUBE + COLUMNS;
    // A gap every 32 (or 16) words: threads that read their own runs meet different banks.
    static constexpr u32 GAP = BYTES == 4 ? 5 : 4;
    static constexpr u32 PADDED = CUBE + (CUBE >> GAP);
    static __device__ __forceinline__ u32 at(u32 i) { return i + (i >> GAP); }
};

// The grid: three extents, unit ones in front, and what follows from them.
struct Grid {
    u32 planes, rows, row;  // extents, slowest first
    u32 whole_z, whole_y, whole_x;  // in whole cubes
    u32 cubes;
    int rank;
};

template <class Chunk>
__device__ __forceinline__ Grid grid(const Chunk& c) {
    Grid g;
    g.planes = c.extents[0];
    g.rows = c.extents[1];
    g.row = c.extents[2];
    g.rank = (int)c.rank;
    const u32 sx = g.rank == 1 ? (u32)fmt::NDZIP_SIDE_1 : g.rank == 2 ? (u32)fmt::NDZIP_SIDE_2 : (u32)fmt::NDZIP_SIDE_3;
    const u32 sy = g.rank == 1 ? 1 : sx, sz = g.rank == 3 ? sx : 1;
    const u32 nz = g.planes / sz, ny = g.rows / sy, nx = g.row / sx;
    g.cubes = nz * ny * nx;
    const bool any = g.cubes > 0;
    g.whole_z = any ? nz * sz : 0;
    g.whole_y = any ? ny * sy : 0;
    g.whole_x = any ? nx * sx : 0;
    return g;
}

// Index in the array of the first value of a cube.
__device__ __forceinline__ u64 origin(const Grid& g, u32 cube) {
    const u32 sx = g.rank == 1 ? (u32)fmt::NDZIP_SIDE_1 : g.rank == 2 ? (u32)fmt::NDZIP_SIDE_2 : (u32)fmt::NDZIP_SIDE_3;
    const u32 sy = g.rank == 1 ? 1 : sx, sz = g.rank == 3 ? sx : 1;
    const u32 nx = g.whole_x / sx, ny = g.whole_y / sy;
    const u32 x = cube % nx, y = cube / nx % ny, z = cube / nx / ny;
    return ((u64)(z * sz) * g.rows + y * sy) * g.row + x * sx;
}

// Index in the array, from its cube's first value, of value i of a cube.
__device__ __forceinline__ u64 place_in(const Grid& g, u32 i) {
    if (g.rank == 1) return i;
    if (g.rank == 2) return (u64)(i / 64) * g.row + i % 64;
    return ((u64)(i / 256) * g.rows + i / 16 % 16) * g.row + i % 16;
}

// Index in the array of border value b.
__device__ __forceinline__ u64 border_at(const Grid& g, u64 b) {
    const u64 plane = (u64)g.rows * g.row;
    const u32 per_plane = (u32)(plane - (u64)g.whole_y * g.whole_x);
    const u64 inside = (u64)g.whole_z * per_plane;
    if (b >= inside) return g.whole_z * plane + (b - inside);
    const u32 z = (u32)(b / per_plane), r = (u32)(b % per_plane);
    const u32 tail = g.row - g.whole_x;
    if (r < g.whole_y * tail) return z * plane + (u64)(r / tail) * g.row + g.whole_x + r % tail;
    return z * plane + (u64)g.whole_y * g.row + (r - g.whole_y * tail);
}

template <class W>
__device__ __forceinline__ W rotl1(W x) {
    return x << 1 | x >> (8 * sizeof(W) - 1);
}
template <class W>
__device__ __forceinline__ W rotr1(W x) {
    return x >> 1 | x << (8 * sizeof(W) - 1);
}
// Sign and magnitude, its own inverse.
template <class W>
__device__ __forceinline__ W flipped(W x) {
    const W top = x >> (8 * sizeof(W) - 1);
    return x ^ ((W)(0 - top) >> 1);
}

template <class W>
struct Shared {
    // A cube's words with gaps, or a tile's payload.
    alignas(16) W words[Shape<W>::LONGEST > Shape<W>::PADDED ? Shape<W>::LONGEST : Shape<W>::PADDED];
    W totals[Shape<W>::THREADS / 32];
    u64 sums[Shape<W>::THREADS / 32];
    u32 tile, chunk, start, fault;
};

// Differences of the 32 words from index `first` of the cube, along all axes. `first` is a multiple of 32; lane `holder` has
// the words before them. Whole warp.
template <class W>
__device__ __forceinline__ void differences(const W* x, int rank, u32 first, int holder, W (&d)[32]) {
    using P = Shape<W>;
    if (rank == 1) {
        W before = first ? x[P::at(first - 1)] : W(0);
#pragma unroll
        for (u32 j = 0; j < 32; j++) {
            const W v = x[P::at(first + j)];
            d[j] = v - before;
            before = v;
        }
    } else if (rank == 2) {
        const u32 col = first % 64;
        const bool up = first >= 64;
        W before = 0;
        if (col) before = x[P::at(first - 1)] - (up ? x[P::at(first - 65)] : W(0));
#pragma unroll
        for (u32 j = 0; j < 32; j++) {
            const W v = x[P::at(first + j)] - (up ? x[P::at(first + j - 64)] : W(0));
            d[j] = v - before;
            before = v;
        }
    } else {
        // Two rows, each less the one in the plane before, then less its left neighbour; the row above them is that of
        // another lane, as a warp's first rows have none above.
        const bool back = first >= 256, up = first % 256 >= 16;
#pragma unroll
        for (u32 r = 0; r < 2; r++) {
            W before = 0;
#pragma unroll
            for (u32 j = 0; j < 16; j++) {
                const u32 i = first + 16 * r + j;
                const W v = x[P::at(i)] - (back ? x[P::at(i - 256)] : W(0));
                d[16 * r + j] = v - before;
                before = v;
            }
        }
#pragma unroll
        for (u32 j = 0; j < 16; j++) {
            const W above = __shfl_sync(warp::ALL, d[16 + j], holder);
            d[16 + j] -= d[j];
            d[j] -= up ? above : W(0);
        }
    }
}

// This thread's 32 values: first index, and which half of 8-byte words.
template <class W>
__device__ __forceinline__ void role(u32 thread, u32& first, bool& low, bool& second) {
    if (sizeof(W) == 4) {
        first = 32 * thread;
        low = second = false;
    } else {
        // Four neighbours share a column: upper halves of both runs, then lower halves.
        first = 64 * (thread / 4) + 32 * (thread & 1);
        low = thread >> 1 & 1;
        second = thread & 1;
    }
}

// Sum over this thread and those before it in the CTA; the CTA's sum in `total`. All threads.
template <class W, class T>
__device__ __forceinline__ T cta_inclusive(T x, W* totals, T& total, int lane, int w) {
    constexpr int WARPS = Shape<W>::THREADS / 32;
    T upto = warp::inclusive(x, lane);
    if (lane == 31) totals[w] = (W)upto;
    __syncthreads();
    T before = 0;
    total = 0;
#pragma unroll
    for (int k = 0; k < WARPS; k++) {
        const T t = (T)totals[k];
        if (k < w) before += t;
        total += t;
    }
    return upto + before;
}

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
                if (sizeof(W) == 4) {
                    keep(i, (W)v[k].x);
                    keep(i + 1, (W)v[k].y);
                    keep(i + 2, (W)v[k].z);
                    keep(i + 3, (W)v[k].w);
                } else {
                    keep(i, (W)(v[k].x | (u64)v[k].y << 32));
                    keep(i + 1, (W)(v[k].z | (u64)v[k].w << 32));
                }
            }
        } else {
#pragma unroll 8
            for (u32 i = threadIdx.x; i < CUBE; i += P::THREADS) keep(i, input[from + place_in(g, i)]);
        }
        __syncthreads();
        u32 first;
        bool low, second;
        role<W>(threadIdx.x, first, low, second);
        u32 plane[32];
        {
            W d[32];
            differences(sh.words, g.rank, first, lane - (sizeof(W) == 8 && !second ? 3 : 1), d);
#pragma unroll
            for (int j = 0; j < 32; j++) {
                const W f = flipped(d[j]);
                plane[j] = sizeof(W) == 4 || low ? (u32)f : (u32)((u64)f >> 32);
            }
        }
        planes::transpose(plane);
        u32 head = planes::nonzero(plane);
        u32 stored = (u32)__popc(head);
        if (sizeof(W) == 8) {
            head |= __shfl_xor_sync(warp::ALL, head, 1);
            stored = second ? 0 : (u32)__popc(head);
        }
        u32 total;
        // The barrier inside also ends all reading of the cube.
        const u32 upto = cta_inclusive<W, u32>(stored, sh.totals, total, lane, w);
        words = P::COLUMNS + total;
        if (threadIdx.x == 0) lookback::announce(places, t, words);
        u32* stage = (u32*)sh.words;
        u32 at = P::COLUMNS + upto - stored;
        if (sizeof(W) == 8) at = P::COLUMNS + (second ? upto - (u32)__popc(head) : upto - stored);
        if (sizeof(W) == 4) {
            stage[threadIdx.x] = head;
        } else if (!second) {
            stage[2 * (threadIdx.x / 4) + (low ? 0 : 1)] = head;
        }
#pragma unroll
        for (int p = 0; p < 32; p++) {
            if (head >> (31 - p) & 1) {
                if (sizeof(W) == 4) {
                    stage[at] = plane[p];
                } else {
                    stage[2 * at + (second ? 0 : 1)] = plane[p];
                }
                at++;
            }
        }
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
            sum += frame::square(start + words, entry);
        }
        ChunkState* state = (ChunkState*)args.states + sh.chunk;
        if (frame::last_of(state, c.tiles, 1, sum, 0, lane)) {
            const u64 payload = P::BYTES * (lookback::peek(places + c.tiles - 1) & lookback::SUM);
            frame::seal(c, state, payload, 0.0, (u64*)args.lengths + sh.chunk, lane);
        }
    }
}

// Running sums along one axis: lines of `len` words, `stride` apart in the cube, line k starting at `start(k)`.
// Threads share a line where there are fewer lines than threads. `put` is told a part's first index, how far from it, the
// index, and the sum. All threads.
template <class W, class Start, class Put>
__device__ __forceinline__ void integrate(W* x, W* carry, u32 lines, u32 len, u32 stride, Start start, Put put) {
    using P = Shape<W>;
    const u32 parts = lines >= P::THREADS ? 1 : P::THREADS / lines;
    const u32 own = len / parts;
    if (parts == 1) {
        for (u32 line = threadIdx.x; line < lines; line += P::THREADS) {
            W sum = 0;
            const u32 at = start(line);
#pragma unroll 16
            for (u32 k = 0; k < own; k++) {
                sum += x[P::at(at + k * stride)];
                put(at, k, at + k * stride, sum);
            }
        }
        return;
    }
    const u32 line = threadIdx.x % lines, part = threadIdx.x / lines;
    const u32 at = start(line) + part * own * stride;
    W sum = 0;
#pragma unroll 16
    for (u32 k = 0; k < own; k++) sum += x[P::at(at + k * stride)];
    carry[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (u32 k = 0; k < part; k++) sum += carry[line + k * lines];
#pragma unroll 16
    for (u32 k = 0; k < own; k++) {
        sum += x[P::at(at + k * stride)];
        put(at, k, at + k * stride, sum);
    }
}

template <class W>
struct DecodeShared : Shared<W> {
    W carry[Shape<W>::THREADS];
};

template <class W>
__device__ __forceinline__ void decode_cube(const DecodeChunk& c, const Grid& g, DecodeShared<W>& sh, u32 t, u32 words, int lane, int w) {
    using P = Shape<W>;
    u32* stage = (u32*)sh.words;
    u32 first;
    bool low, second;
    role<W>(threadIdx.x, first, low, second);
    u32 head = 0;
    if (sizeof(W) == 4) {
        head = stage[threadIdx.x];
    } else {
        head = stage[2 * (threadIdx.x / 4) + (low ? 0 : 1)];
    }
    const u32 stored = second ? 0 : (u32)__popc(head);
    u32 total;
    const u32 upto = cta_inclusive<W, u32>(stored, sh.totals, total, lane, w);
    if (P::COLUMNS + total != words) {
        // All threads see the same sum.
        if (threadIdx.x == 0) sh.fault = 1;
        __syncthreads();
        return;
    }
    u32 at = P::COLUMNS + upto - (u32)__popc(head);
    u32 plane[32];
#pragma unroll
    for (int p = 0; p < 32; p++) {
        plane[p] = 0;
        if (head >> (31 - p) & 1) {
            plane[p] = sizeof(W) == 4 ? stage[at] : stage[2 * at + (second ? 0 : 1)];
            at++;
        }
    }
    planes::transpose(plane);
    if constexpr (sizeof(W) == 4) {
        // A run is two rows of a cube, half a row of a square: its sums along the row need no shared memory.
#pragma unroll
        for (u32 j = 0; j < 32; j++) {
            plane[j] = flipped(plane[j]);
            if (j > 0 && (j != 16 || g.rank != 3)) plane[j] += plane[j - 1];
        }
        u32 before = 0;
        if (g.rank == 2) {
            before = __shfl_up_sync(warp::ALL, plane[31], 1);
            if ((lane & 1) == 0) before = 0;
        } else if (g.rank == 1) {
            u32 all;
            // The barrier before was the one inside the other sum.
            __syncthreads();
            before = cta_inclusive<W, u32>(plane[31], sh.totals, all, lane, w) - plane[31];
        }
#pragma unroll
        for (u32 j = 0; j < 32; j++) plane[j] += before;
    }
    __syncthreads();
    // Words into cube order, sign and magnitude undone as soon as both halves are there.
#pragma unroll
    for (u32 j = 0; j < 32; j++) {
        if (sizeof(W) == 4) {
            sh.words[P::at(first + j)] = (W)plane[j];
        } else {
            // The upper half's sign flips the lower half too.
            const u32 other = __shfl_xor_sync(warp::ALL, plane[j], 2);
            const u32 top = low ? other : plane[j];
            const u32 flip = (u32)((int)top >> 31);
            ((u32*)sh.words)[2 * P::at(first + j) + (low ? 0 : 1)] = plane[j] ^ (low ? flip : flip >> 1);
        }
    }
    __syncthreads();

    const u64 to = origin(g, t);
    W* output = (W*)c.output + to;
    const bool is_float = c.flags & FLAG_FLOAT, swap = c.flags & FLAG_SWAP;
    const u64 step = g.rank == 2 ? g.row : (u64)g.rows * g.row;
    auto store = [&](u32 at, u32 k, u32, W v) {
        if (is_float) v = rotr1(v);
        output[place_in(g, at) + k * step] = swap ? swapped(v) : v;
    };
    auto keep = [&](u32, u32, u32 i, W v) { sh.words[P::at(i)] = v; };
    constexpr bool SUMMED = sizeof(W) == 4;  // along rows
    if (g.rank == 1) {
        if (SUMMED) {
#pragma unroll 8
            for (u32 i = threadIdx.x; i < CUBE; i += P::THREADS) store(i, 0, i, sh.words[P::at(i)]);
            return;
        }
        // Every thread sums its run, then adds what is before it.
        const u32 at0 = threadIdx.x * P::SEGMENT;
        W sum = 0;
#pragma unroll
        for (u32 k = 0; k < P::SEGMENT; k++) {
            sum += sh.words[P::at(at0 + k)];
            sh.words[P::at(at0 + k)] = sum;
        }
        W all;
        sh.carry[threadIdx.x] = cta_inclusive<W, W>(sum, sh.totals, all, lane, w) - sum;
        __syncthreads();
#pragma unroll 8
        for (u32 i = threadIdx.x; i < CUBE; i += P::THREADS) store(i, 0, i, sh.words[P::at(i)] + sh.carry[i / P::SEGMENT]);
    } else if (g.rank == 2) {
        if (!SUMMED) {
            integrate<W>(sh.words, sh.carry, 64, 64, 1, [](u32 k) { return 64 * k; }, keep);
            __syncthreads();
        }
        integrate<W>(sh.words, sh.carry, 64, 64, 64, [](u32 k) { return k; }, store);
    } else {
        if (!SUMMED) {
            integrate<W>(sh.words, sh.carry, 256, 16, 1, [](u32 k) { return 16 * k; }, keep);
            __syncthreads();
        }
        integrate<W>(sh.words, sh.carry, 256, 16, 16, [](u32 k) { return k / 16 * 256 + k % 16; }, keep);
        __syncthreads();
        integrate<W>(sh.words, sh.carry, 256, 16, 256, [](u32 k) { return k; }, store);
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
            if (i != frame::CHECKSUM_WORD && i != frame::CHECKSUM_WORD + 1) sum += frame::square(in[i], i);
        }
        for (u64 i = table + g.cubes + lane; i < c.payload_at / 4; i += 32) sum += frame::square(in[i], i);
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
        if (lane == 0 && cube) sum += frame::square(in[table + t], table + t);
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
