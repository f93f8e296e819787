// SPDX-License-Identifier: MIT OR Apache-2.0
// How many bits residuals will take, from a few counts: codecs/src/codec/lorenzo/FORMAT.md §8, on the CPU
// codecs/src/stage/estimate.rs.
//
// Residuals that are not zero are counted by the bits of their zigzag values: these classes' entropy, and the lower
// bits behind it, are the price of non-zeros. Where zero and not zero meet is counted too: a first-order chain of the
// two prices runs of zeros. One that follows another is a codeword of its own, so at least a bit. Logarithms come from
// a table of 256 entries, in 1/256 bits, so that CPU and GPU agree. A tile's numbers fit 32 bits.
#pragma once
#include "../prim/warp.cuh"

namespace estimate {

constexpr u32 CLASSES = 16;

// log2(1 + i/256) in 1/256 bits, rounded to nearest.
struct Fractions {
    u8 at[256];
};

constexpr Fractions fractions() {
    Fractions table{};
    for (u32 i = 0; i < 256; i++) {
        u64 m = (256ull + i) << 23;
        u32 bits = 0;
        for (int k = 0; k < 9; k++) {
            m = (m * m) >> 31;
            bits <<= 1;
            if (m >= 1ull << 32) {
                m >>= 1;
                bits |= 1;
            }
        }
        const u32 rounded = (bits + 1) >> 1;
        table.at[i] = rounded > 255 ? 255 : (u8)rounded;
    }
    return table;
}

constexpr Fractions FRACTIONS = fractions();
__constant__ Fractions fraction = FRACTIONS;
// The same where a warp's lanes look at different places.
__device__ const Fractions fractions_apart = FRACTIONS;

// Place of the highest bit of a number that is not 0.
__device__ __forceinline__ u32 highest(u32 z) { return 31 - (u32)__clz((int)z); }

__device__ __forceinline__ u32 zigzag(int r) { return (u32)r << 1 ^ (u32)(r >> 31); }

// Which of the classes of numbers that are not 0: bits of a zigzag value less one.
__device__ __forceinline__ u32 class_of(u32 z) { return min(highest(z), CLASSES - 1); }

// n · log2(n) in 1/256 bits.
__device__ __forceinline__ u32 weight(u32 n) {
    if (n == 0) return 0;
    const u32 zeros = (u32)__clz((int)n);
    return n * ((31 - zeros) << 8 | fraction.at[n << zeros >> 23 & 255u]);
}

__device__ __forceinline__ u32 less(u32 a, u32 b) { return a > b ? a - b : 0; }

// The cost of `n` residuals of which `classes` counts those that are not zero, and in which zero and not zero meet
// `changes` times. Whole warp; every lane has the answer.
__device__ __forceinline__ u32 cost(const u32* classes, u32 n, u32 changes, int lane) {
    const u32 mine = lane < (int)CLASSES ? classes[lane] : 0;
    const u32 others = warp::total(mine), below = warp::total(mine * (u32)lane), zeros = n - others;
    // Zeros that stay and others that do; a lane has one of six weights, or a class's.
    const u32 left = min(changes / 2, zeros), right = min(changes / 2, others);
    const u32 six = lane == 16   ? zeros
                    : lane == 17 ? zeros - left
                    : lane == 18 ? left
                    : lane == 19 ? others
                    : lane == 20 ? others - right
                                 : right;
    const u32 own = weight(lane < (int)CLASSES ? mine : six), weights = warp::total(lane < (int)CLASSES ? own : 0);
    auto of = [&](int k) { return warp::from(own, 16 + k); };
    const u32 alone = (others - right) << 8;
    return less(of(0), of(1) + of(2)) + max(less(of(3), of(4) + of(5)) + less(of(3), weights), alone) + (below << 8);
}

}  // namespace estimate
