// SPDX-License-Identifier: MIT OR Apache-2.0
// Decoupled look-back over the tiles of one chunk: where does my tile's payload start?
//
// Every tile owns a 64-bit word: two flag bits and a sum. A CTA publishes its own size as soon as it knows it, then walks
// back over its predecessors, 32 a step, until one already knows its end. More steps' loads in flight were slower. Tiles
// are handed out by a ticket, so a predecessor is always running or done, and the walk ends. The sums do not depend
// on who arrives first.
#pragma once
#include "warp.cuh"

namespace lookback {

constexpr u64 SIZE = 1ull << 62, END = 2ull << 62, SUM = SIZE - 1;

__device__ __forceinline__ u64 peek(const u64* place) { return *(const volatile u64*)place; }
__device__ __forceinline__ void publish(u64* place, u64 word) { *(volatile u64*)place = word; }

// Announces the size of tile `t` of its chunk, whose words start at `places`. One lane.
__device__ __forceinline__ void announce(u64* places, u32 t, u32 size) {
    publish(places + t, (t == 0 ? END : SIZE) | size);
}

// Sum of the sizes of all tiles before `t`, which was announced; publishes the tile's end. Whole warp.
__device__ __forceinline__ u32 place(u64* places, u32 t, u32 size, int lane) {
    if (t == 0) return 0;
    u32 before = 0, ends;
    int at = (int)t - 1 - lane;
    do {
        u64 word = at >= 0 ? peek(places + at) : END;
        u32 reach;
        for (;;) {
            ends = __ballot_sync(warp::ALL, (word & END) != 0);
            const u32 missing = __ballot_sync(warp::ALL, word < SIZE);
            // Lanes up to and with the nearest end.
            reach = ends ? (ends & (0u - ends)) * 2u - 1u : warp::ALL;
            if ((missing & reach) == 0) break;
            if (at >= 0) word = peek(places + at);
        }
        before += warp::sum(reach >> lane & 1 ? (u32)(word & SUM) : 0u);
        at -= 32;
    } while (!ends);
    if (lane == 0) publish(places + t, END | (u64)(before + size));
    return before;
}

}  // namespace lookback
