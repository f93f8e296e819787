// SPDX-License-Identifier: MIT OR Apache-2.0
// A chunk of three extents cut into tiles, and a tile's values in the chunk. The host says the extents of both.
#pragma once
#include "../prim/warp.cuh"

namespace tiles {

// Values of the largest tile.
constexpr u32 MOST = (u32)fmt::LORENZO_TILE;

// Quotients by a number known late, of numbers up to 2^16.
struct Divisor {
    u32 d, inverse;
    __device__ __forceinline__ explicit Divisor(u32 by) : d(by), inverse(0xffffffffu / by + 1) {}
    __device__ __forceinline__ Divisor(u32 by, u32 known) : d(by), inverse(known) {}
    __device__ __forceinline__ u32 of(u32 i) const { return d == 1 ? i : __umulhi(i, inverse); }
};

// Extents, or a place, slowest axis first.
struct Three {
    u32 z, y, x;
    __device__ __forceinline__ u32 product() const { return z * y * x; }
};

struct Tile {
    // Place in the chunk of the first value.
    u64 start;
    Three extents, origin;
    __device__ __forceinline__ u32 values() const { return extents.product(); }
};

// Tile number `i` of a chunk of the given extents, cut by `tile`.
__device__ __forceinline__ Tile of(const u32* extents, const u32* tile, u32 i) {
    const u32 b = (extents[1] + tile[1] - 1) / tile[1], c = (extents[2] + tile[2] - 1) / tile[2];
    const u32 row = i / c, z = row / b * tile[0], y = row % b * tile[1], x = (i - row * c) * tile[2];
    return {((u64)z * extents[1] + y) * extents[2] + x,
            {min(tile[0], extents[0] - z), min(tile[1], extents[1] - y), min(tile[2], extents[2] - x)},
            {z, y, x}};
}

// Place in the chunk of the tile's row (z, y).
__device__ __forceinline__ u64 row(const u32* extents, const Tile& t, u32 z, u32 y) {
    return t.start + ((u64)z * extents[1] + y) * extents[2];
}

}  // namespace tiles
