// SPDX-License-Identifier: MIT OR Apache-2.0
// Integers as f64, and back: the codec lorenzo keeps integers so (codecs/src/FORMAT.md §5). A CTA takes as large a part
// of a chunk as it has tiles; what it reads and writes is in the chunk's order.
#pragma once
#include "frame.cuh"

namespace integers {

// No integer is larger: interpolated ones would not come back.
constexpr double LARGEST = 1ull << 40;

// An integer of either byte order.
__device__ __forceinline__ u8 turned(u8 x) { return x; }
__device__ __forceinline__ u16 turned(u16 x) { return (u16)__byte_perm(x, 0, 0x4401); }
__device__ __forceinline__ u32 turned(u32 x) { return swapped(x); }
__device__ __forceinline__ u64 turned(u64 x) { return swapped(x); }

// The part of a chunk that a tile's CTA takes.
struct Part {
    u64 first, end;
    template <class Chunk>
    __device__ __forceinline__ Part(const Chunk& c, u32 tile) {
        const u64 each = (c.values / c.tiles + 32) & ~31ull;
        first = each * (tile - c.first_tile);
        end = min(first + each, c.values);
    }
};

// The integers of type `N`, which are words `Bits`, as f64. True where one is too large, and not the special one, which
// is an outlier.
template <class N, class Bits, int THREADS>
__device__ __forceinline__ bool widen(const EncodeChunk& c, Part part) {
    const Bits* from = (const Bits*)c.integers;
    double* to = (double*)c.input;
    const bool swap = c.integer & INTEGER_SWAP;
    const double special = c.flags & FLAG_FILL ? __longlong_as_double((long long)c.fill) : 0.0;
    bool large = false;
#pragma unroll 4
    for (u64 i = part.first + threadIdx.x; i < part.end; i += THREADS) {
        const double x = (double)(N)(swap ? turned(from[i]) : from[i]);
        large |= (x > LARGEST || x < -LARGEST) && x != special;
        to[i] = x;
    }
    return large;
}

// The integers nearest to values, of two the even one; the lowest bytes of them. What is no number is 0.
template <class Bits, int THREADS>
__device__ __forceinline__ void narrow(const DecodeChunk& c, Part part) {
    const double* from = (const double*)c.output;
    Bits* to = (Bits*)c.integers;
    const bool swap = c.integer & INTEGER_SWAP;
#pragma unroll 4
    for (u64 i = part.first + threadIdx.x; i < part.end; i += THREADS) {
        const double y = from[i];
        const Bits x = (Bits)(y == y ? __double2ll_rn(y) : 0);
        to[i] = swap ? turned(x) : x;
    }
}

template <int THREADS>
__device__ __forceinline__ void widen_all(const EncodeArgs& args) {
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    const u32 at = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, threadIdx.x & 31);
    const EncodeChunk& c = chunks[at];
    const Part part(c, blockIdx.x);
    bool large = false;
    switch (c.integer & ~INTEGER_SWAP) {
        case 1: widen<u8, u8, THREADS>(c, part); break;
        case 1 | INTEGER_SIGNED: widen<signed char, u8, THREADS>(c, part); break;
        case 2: widen<u16, u16, THREADS>(c, part); break;
        case 2 | INTEGER_SIGNED: widen<short, u16, THREADS>(c, part); break;
        case 4: widen<u32, u32, THREADS>(c, part); break;
        case 4 | INTEGER_SIGNED: widen<int, u32, THREADS>(c, part); break;
        case 8: large = widen<u64, u64, THREADS>(c, part); break;
        default: large = widen<long long, u64, THREADS>(c, part);
    }
    if (__any_sync(warp::ALL, large) && (threadIdx.x & 31) == 0) atomicOr(&((ChunkState*)args.states)[at].fault, 1u);
}

template <int THREADS>
__device__ __forceinline__ void narrow_all(const DecodeArgs& args) {
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 at = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, threadIdx.x & 31);
    const DecodeChunk& c = chunks[at];
    // Not all of a damaged chunk's values were written.
    if (((const ChunkState*)args.states)[at].fault) return;
    const Part part(c, blockIdx.x);
    switch (c.integer & 15) {
        case 1: narrow<u8, THREADS>(c, part); break;
        case 2: narrow<u16, THREADS>(c, part); break;
        case 4: narrow<u32, THREADS>(c, part); break;
        default: narrow<u64, THREADS>(c, part);
    }
}

}  // namespace integers
