// SPDX-License-Identifier: MIT OR Apache-2.0
// The bytes of ndzip, the twin of codecs/src/codec/ndzip/format.rs: the shape of a CTA's cube, the grid, where cubes
// and border values are.
#pragma once
#include "../base/scalar.cuh"

namespace ndzip {

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

// A cube's side.
__device__ __forceinline__ u32 side(int rank) {
    return (u32)(rank == 1 ? fmt::NDZIP_SIDE_1 : rank == 2 ? fmt::NDZIP_SIDE_2 : fmt::NDZIP_SIDE_3);
}

template <class Chunk>
__device__ __forceinline__ Grid grid(const Chunk& c) {
    Grid g;
    g.planes = c.extents[0];
    g.rows = c.extents[1];
    g.row = c.extents[2];
    g.rank = (int)c.rank;
    const u32 sx = side(g.rank), sy = g.rank == 1 ? 1 : sx, sz = g.rank == 3 ? sx : 1;
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
    const u32 sx = side(g.rank), sy = g.rank == 1 ? 1 : sx, sz = g.rank == 3 ? sx : 1;
    const u32 nx = g.whole_x / sx, ny = g.whole_y / sy;
    const u32 x = cube % nx, y = cube / nx % ny, z = cube / nx / ny;
    return ((u64)(z * sz) * g.rows + y * sy) * g.row + x * sx;
}

// Index in the array, from its cube's first value, of value i of a cube.
__device__ __forceinline__ u64 offset_in(const Grid& g, u32 i) {
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

}  // namespace ndzip
