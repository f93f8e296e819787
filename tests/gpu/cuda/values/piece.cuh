// SPDX-License-Identifier: MIT OR Apache-2.0
// What `gpu_check --values` tells its kernels of a chunk, and what it is told: tests/gpu/inside/values.rs writes and
// reads the same words. All chunks of a launch have as many values, and `parts` CTAs each.
#pragma once
#include "prim/load.cuh"
#include "prim/warp.cuh"

namespace values {

// Threads of a CTA, and values of one: each thread takes four neighbours, `ROUNDS` times.
constexpr u32 THREADS = 256, ROUNDS = 4, PART = 4 * THREADS * ROUNDS;

struct Piece {
    // Addresses of the values and of what came back.
    u64 original, decoded;
    u64 kind, seed;
    // Bits of the first value and from one to the next, where they matter.
    u64 first, stride;
    // f64.
    u64 scale, step;
    // Values of a row, rows of a plane.
    u64 width, height;
    // In 2^-32 the probability of a salted run, and log2 of its values.
    u64 salt, run_log2;
    // The fill value's bits, and whether there is one.
    u64 fill, has_fill;
    // How the judge compares, and its limit, an f64.
    u64 rule, limit;
    // Or what is kept, the bits of words, and the range, f64.
    u64 keep, low, high;
};

struct Found {
    // Values compared by number, and by their bits.
    u64 finite, special;
    // Of the first those that miss the limit, and that came back as the fill value; of the second those of other bits.
    u64 broken, filled, moved;
    // Complement of the smallest index that is broken or moved.
    u64 first;
    // Extremes of the numbers in a range, as integers of the same order; the smallest as its complement. 0 for none.
    u64 high, low;
};

struct Args {
    // `Piece`s and `Found`s, values of a chunk, CTAs of a chunk.
    u64 pieces, found, count, parts;
};

__device__ __forceinline__ u64 mixed(u64 z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

__device__ __forceinline__ double as_f64(u64 bits) { return __longlong_as_double((long long)bits); }

}  // namespace values
