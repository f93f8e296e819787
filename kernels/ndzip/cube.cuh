// SPDX-License-Identifier: MIT OR Apache-2.0
// The steps on one cube of ndzip, 4096 words, and back: one CTA. The twin of codecs/src/codec/ndzip/cube.rs; FORMAT.md
// §4 there. After F. Knorr, P. Thoman, T. Fahringer: "ndzip", DCC '21, doi:10.1109/DCC50243.2021.00018, and
// "ndzip-gpu", SC '21, doi:10.1145/3458817.3476224, sections 3 and 4.
//
// Words are differenced along every axis (integer Lorenzo transform) and become sign and magnitude. A column, 32 words
// or 64, is turned: plane p has bit p of each. A head says which planes of its column are not zero; those are stored,
// heads first. Here a thread has 32 consecutive words in registers, of 8-byte words one half of each, so its planes are
// a transposition in registers, not the paper's votes of a warp; a scan over the CTA places them. Back, heads tell
// where planes are, and running sums along each axis undo the differences, of 4-byte words along the rows in registers.
#pragma once
#include "../base/checksum.cuh"
#include "../prim/transpose.cuh"
#include "format.cuh"

namespace ndzip {

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
    frame::Sums<Shape<W>::THREADS> sums;
    u32 tile, chunk, start, fault;
};

// Differences of the 32 words from index `first` of the cube, along all axes. `first` is a multiple of 32; lane
// `holder` has the words before them. Whole warp.
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

// A 4-byte word, or the lower or upper half of an 8-byte one.
template <class W>
__device__ __forceinline__ u32& half_of(W* words, u32 at, bool upper) {
    return ((u32*)words)[sizeof(W) == 4 ? at : 2 * at + (upper ? 1 : 0)];
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

// One thread's planes: which of them are not zero (of 8-byte words in either half), and the offset of the first.
struct Planes {
    u32 plane[32];
    u32 head, at;
};

// From a cube's words, in `sh.words` with gaps, to planes; returns the words that the cube will have. All threads, and
// all have then read the cube.
template <class W>
__device__ __forceinline__ u32 planes_of(Planes& mine, Shared<W>& sh, int rank, int lane, int w) {
    using P = Shape<W>;
    u32 first;
    bool low, second;
    role<W>(threadIdx.x, first, low, second);
    {
        W d[32];
        differences(sh.words, rank, first, lane - (sizeof(W) == 8 && !second ? 3 : 1), d);
#pragma unroll
        for (int j = 0; j < 32; j++) {
            const W f = flipped(d[j]);
            mine.plane[j] = sizeof(W) == 4 || low ? (u32)f : (u32)((u64)f >> 32);
        }
    }
    bits::transpose(mine.plane);
    mine.head = bits::nonzero(mine.plane);
    u32 stored = (u32)__popc(mine.head);
    if (sizeof(W) == 8) {
        mine.head |= __shfl_xor_sync(warp::ALL, mine.head, 1);
        stored = second ? 0 : (u32)__popc(mine.head);
    }
    u32 total;
    // The barrier inside also ends all reading of the cube.
    const u32 upto = cta_inclusive<W, u32>(stored, sh.totals, total, lane, w);
    mine.at = P::COLUMNS + upto - stored;
    if (sizeof(W) == 8) mine.at = P::COLUMNS + (second ? upto - (u32)__popc(mine.head) : upto - stored);
    return P::COLUMNS + total;
}

// Puts heads and planes where the cube was.
template <class W>
__device__ __forceinline__ void keep_planes(Shared<W>& sh, const Planes& mine) {
    u32 first;
    bool low, second;
    role<W>(threadIdx.x, first, low, second);
    if (!second) half_of(sh.words, sizeof(W) == 4 ? threadIdx.x : threadIdx.x / 4, !low) = mine.head;
    u32 at = mine.at;
#pragma unroll
    for (int p = 0; p < 32; p++) {
        if (mine.head >> (31 - p) & 1) {
            half_of(sh.words, at, !second) = mine.plane[p];
            at++;
        }
    }
}

// Running sums along one axis: lines of `len` words, `stride` apart in the cube, line k starting at `start(k)`.
// Threads share a line where there are fewer lines than threads. `put` is told a part's first index, how far from it,
// the index, and the sum. All threads.
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
__device__ __forceinline__ void decode_cube(const DecodeChunk& c, const Grid& g, DecodeShared<W>& sh, u32 t, u32 words,
                                            int lane, int w) {
    using P = Shape<W>;
    u32 first;
    bool low, second;
    role<W>(threadIdx.x, first, low, second);
    const u32 head = half_of(sh.words, sizeof(W) == 4 ? threadIdx.x : threadIdx.x / 4, !low);
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
            plane[p] = half_of(sh.words, at, !second);
            at++;
        }
    }
    bits::transpose(plane);
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
            half_of(sh.words, P::at(first + j), !low) = plane[j] ^ (low ? flip : flip >> 1);
        }
    }
    __syncthreads();

    const u64 to = origin(g, t);
    W* output = (W*)c.output + to;
    const bool is_float = c.flags & FLAG_FLOAT, swap = c.flags & FLAG_SWAP;
    const u64 step = g.rank == 2 ? g.row : (u64)g.rows * g.row;
    auto store = [&](u32 at, u32 k, u32, W v) {
        if (is_float) v = rotr1(v);
        output[offset_in(g, at) + k * step] = swap ? swapped(v) : v;
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
        for (u32 i = threadIdx.x; i < CUBE; i += P::THREADS)
            store(i, 0, i, sh.words[P::at(i)] + sh.carry[i / P::SEGMENT]);
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

}  // namespace ndzip
