// SPDX-License-Identifier: MIT OR Apache-2.0
// Decoupled look-back over the tiles of one chunk: where does a tile's payload start? D. Merrill and M. Garland,
// "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA technical report NVR-2016-002, 2016.
//
// Every tile owns a word of 64 bits: a state and a sum, nothing at first. `announce` publishes the tile's own length,
// state PARTIAL. `place` walks back over the tiles before, 32 a step, and adds up their lengths until it meets one in
// state INCLUSIVE, whose sum holds all before it too; then the tile's own sum is inclusive. Tiles begin in the order of
// their tickets, so those before run or are done, and the walk ends. The sums do not depend on who is first. Loads of
// more steps in flight were slower.
#pragma once
#include "warp.cuh"

namespace lookback {

constexpr u64 PARTIAL = 1ull << 62, INCLUSIVE = 2ull << 62, SUM = PARTIAL - 1;

__device__ __forceinline__ u64 peek(const u64* at) { return *(const volatile u64*)at; }
__device__ __forceinline__ void publish(u64* at, u64 word) { *(volatile u64*)at = word; }

// Tells the length of tile `t` of the chunk whose words start at `tiles`. One lane.
__device__ __forceinline__ void announce(u64* tiles, u32 t, u32 size) {
    publish(tiles + t, (t == 0 ? INCLUSIVE : PARTIAL) | size);
}

// Sum of the lengths of all tiles before `t`, which was announced with `size`. Whole warp.
__device__ __forceinline__ u32 place(u64* tiles, u32 t, u32 size, int lane) {
    if (t == 0) return 0;
    u32 before = 0, inclusive;
    int at = (int)t - 1 - lane;
    do {
        u64 word = at >= 0 ? peek(tiles + at) : INCLUSIVE;
        u32 reach;
        for (;;) {
            inclusive = __ballot_sync(warp::ALL, (word & INCLUSIVE) != 0);
            const u32 missing = __ballot_sync(warp::ALL, word < PARTIAL);
            // Lanes up to and with the nearest inclusive sum.
            reach = inclusive ? (inclusive & (0u - inclusive)) * 2u - 1u : warp::ALL;
            if ((missing & reach) == 0) break;
            if (at >= 0) word = peek(tiles + at);
        }
        before += warp::sum(reach >> lane & 1 ? (u32)(word & SUM) : 0u);
        at -= 32;
    } while (!inclusive);
    if (lane == 0) publish(tiles + t, INCLUSIVE | (u64)(before + size));
    return before;
}

}  // namespace lookback
