// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of planes: where their values lie in the chunk, FORMAT.md §3.1. A tile has eight planes of 512 values, a lane
// of its warp four rows of four values of each. Two planes are a block.
//
// A tile that lies in the array with all its values, and whose rows are aligned, is read and written four values a
// lane. In any other the rows beyond the array are its last row again, and so are the values beyond a row's end.
#pragma once
#include "../prim/load.cuh"
#include "../prim/warp.cuh"
#include "shorts.cuh"

// The compiler puts the other case out of the way.
#define LIKELY(x) __builtin_expect(!!(x), 1)

namespace planes {

constexpr u32 TILE = (u32)fmt::PLANES_TILE, BLOCKS = 4, WARPS = 4, THREADS = 32 * WARPS;

// What kernels need of a chunk, in shared memory.
struct Array {
    u64 values;  // their address
    u32 rank, Z, Y, X;
    // Values from a lane's first row in a tile to the next one, and from a plane to the next.
    u32 row, plane;
    // Components of vectors: in the chunk they lie beside each other. FORMAT.md §3.1.
    u32 components;
    // What the integers are that stand for values; 0: there are none.
    u32 integer;

    // Where a place of the array lies in the chunk.
    __device__ __forceinline__ u32 at(u32 place) const {
        if (LIKELY(components == 1)) return place;
        const u32 each = X * Y * Z / components;
        return place % each * components + place / each;
    }
};

template <class Chunk>
__device__ __forceinline__ Array array_of(const Chunk& c, u64 values) {
    const u32 rank = c.rank, Y = c.extents[1], X = c.extents[2];
    return {
        values,       rank,     c.extents[0], Y, X, rank == 1 ? 128 : X, rank == 1 ? 512 : rank == 2 ? 16 * X : X * Y,
        c.components, c.integer};
}

// A lane's part of a tile. Places are counted in 32 bits: the CPU codes larger chunks.
struct Tile {
    // Place of the lane's first value, where it lies in the array.
    u32 first;
    // Values, rows and planes from the first one on to the array's end: 13 bits, 9 and 4, with 128 added to values and
    // 256 to rows, which may have ended before; 0 where the tile is read and written by 16 bytes. WHOLE: all of it lies
    // in the array.
    u32 left;
    static constexpr u32 WHOLE = 1u << 31;

    __device__ __forceinline__ int values() const { return (int)(left & 0x1fff) - 128; }
    __device__ __forceinline__ int rows() const { return (int)(left >> 13 & 0x1ff) - 256; }
    __device__ __forceinline__ int planes() const { return (int)(left >> 22 & 15); }
};

__device__ __forceinline__ Tile tile_at(const Array& c, u32 t, int lane) {
    if (c.rank == 1) {
        const u32 x = t * TILE + 4 * (u32)lane, left = c.X - t * TILE;
        const bool whole = left >= TILE && c.components == 1;
        return {x, whole ? 0 : (min(left, TILE) - 4 * (u32)lane + 128) | 384 << 13 | 8 << 22};
    }
    const u32 high = c.rank == 2 ? 128 : 16, nx = (c.X + 31) / 32, ny = (c.Y + high - 1) / high;
    const u32 line = t / nx, slab = line / ny, x0 = 32 * (t - line * nx), y0 = high * (line - slab * ny), z0 = 8 * slab;
    const u32 x = x0 + 4 * ((u32)lane % 8), y = y0 + 4 * ((u32)lane / 8);
    const u32 planes = c.rank == 2 ? 8 : min(c.Z - z0, 8u);
    const bool whole = c.X - x0 >= 32 && c.Y - y0 >= high && planes == 8;
    const u32 left = (min(c.X - x0, 32u) + x0 - x + 128) | (min(c.Y - y0, 128u) + y0 - y + 256) << 13 | planes << 22;
    return {(z0 * c.Y + y) * c.X + x, !whole || c.components != 1 ? left : c.X % 4 ? left | Tile::WHOLE : 0};
}

// Values of the tile that lie in the array, from lane 0's part of it.
__device__ __forceinline__ u32 inside_of(const Array& c, const Tile& p) {
    if (p.left == 0) return TILE;
    if (c.rank == 1) return (u32)p.values();
    return (u32)(min(p.values(), 32) * min(p.rows(), c.rank == 2 ? 128 : 16) * (c.rank == 2 ? 1 : p.planes()));
}

// Planes of the tile that hold values of the array.
__device__ __forceinline__ u32 held_of(const Array& c, const Tile& p, int lane) {
    if (LIKELY(p.left == 0)) return 8;
    if (c.rank == 3) return (u32)p.planes();
    if (c.rank == 2) return min(((u32)(p.rows() + 4 * (lane / 8)) + 15) / 16, 8u);
    return ((u32)(p.values() + 4 * lane) + 511) / 512;
}

// The value at a place of the chunk.
template <class S>
__device__ __forceinline__ S value_at(const Array& c, u32 place) {
    if constexpr (IS_SHORT<S>) return Traits<S>::value(shorts::load(c.values, place, c.integer));
    return ((const S*)c.values)[place];
}

// Four integers that lie beside each other; `place` is a multiple of 4.
template <class S>
__device__ __forceinline__ void load_shorts(const Array& c, const shorts::Unpacker& from, u32 place, S (&v)[4]) {
    u32 x[4];
    from.load4(c.values, place, x);
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = Traits<S>::value(x[i]);
}

// Four values of an array of components, those behind place `last` like that. Not inlined: it would be longer than the
// code around it.
template <class S>
__device__ __noinline__ void load_apart(const Array& c, u32 place, u32 last, S* v) {
#pragma unroll 1
    for (u32 i = 0; i < 4; i++) v[i] = value_at<S>(c, c.at(min(place + i, last)));
}

// A lane's row r of a plane, four values; beyond the array stands the last value of each axis.
template <class S>
__device__ __forceinline__ void load_row(const Array& c, const Tile& p, int plane, int r, bool swap, S (&v)[4]) {
    using T = Traits<S>;
    if (LIKELY(p.left == 0)) {
        const int step = plane * (int)c.plane + r * (int)c.row;
        if constexpr (IS_SHORT<S>) {
            load_shorts(c, shorts::Unpacker(c.integer), p.first + step, v);
        } else {
            load4((const S*)c.values + p.first + step, v);
        }
    } else {
        const int rank = (int)c.rank;
        int from = 512 * plane + 128 * r, to = (int)(c.X - 1 - p.first);
        if (rank > 1) {
            const int y = min(r + (rank == 2 ? 16 * plane : 0), p.rows() - 1),
                      z = rank == 2 ? 0 : min(plane, p.planes() - 1);
            from = z * (int)c.plane + y * (int)c.row, to = from + p.values() - 1;
        }
        if (LIKELY(c.components == 1)) {
#pragma unroll
            for (int i = 0; i < 4; i++) v[i] = value_at<S>(c, p.first + min(from + i, to));
        } else {
            S apart[4];
            load_apart(c, p.first + min(from, to), p.first + to, apart);
#pragma unroll
            for (int i = 0; i < 4; i++) v[i] = apart[i];
        }
    }
    if (swap) {
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = T::value(swapped(T::bits(v[i])));
    }
}

// Copies a lane's values of a block between registers and memory, where a loop that is not unrolled finds a row.
template <class S>
__device__ __forceinline__ void copy_block(S (*to)[4], const S (*from)[4]) {
#pragma unroll
    for (int k = 0; k < 32; k++) to[k / 4][k % 4] = from[k / 4][k % 4];
}

// The lane's rows of a block; four values a load, or of any tile.
template <class S>
__device__ __forceinline__ void load_block(const Array& c, const Tile& p, u32 block, S (&v)[8][4]) {
    if (LIKELY(p.left == 0)) {
        const u32 first = p.first + 2 * block * c.plane;
        const shorts::Unpacker from(IS_SHORT<S> ? c.integer : 0);
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const u32 step = k / 4 * c.plane + k % 4 * c.row;
            if constexpr (IS_SHORT<S>) {
                load_shorts(c, from, first + step, v[k]);
            } else {
                load4<true>((const S*)c.values + first + step, v[k]);
            }
        }
        return;
    }
    if (p.left & Tile::WHOLE) {
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const u32 first = p.first + (2 * block + k / 4) * c.plane + k % 4 * c.row;
            // One address of four: places of 32 bits would be added, and may wrap around.
            const S* from = (const S*)c.values + first;
#pragma unroll
            for (int i = 0; i < 4; i++) v[k][i] = IS_SHORT<S> ? value_at<S>(c, first + i) : from[i];
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) load_row(c, p, 2 * (int)block + k / 4, k % 4, false, v[k]);
}

// The same into memory.
template <class S>
__device__ __noinline__ void load_rows(const Array& c, u32 first, u32 left, u32 block, S (*rows)[4]) {
    S x[8][4];
    load_block(c, {first, left}, block, x);
    copy_block(rows, x);
}

// The same where the values are used at once: a tile that is not aligned costs a call, not its code once again.
template <class S>
__device__ __forceinline__ void load_block_now(const Array& c, const Tile& p, u32 block, S (&v)[8][4]) {
    if (LIKELY(p.left == 0)) {
        load_block(c, {p.first, 0}, block, v);
    } else {
        S rows[8][4];
        load_rows(c, p.first, p.left, block, rows);
        copy_block(v, rows);
    }
}

// The byte of a lane's word in which column c stands, and the bit of row k of a block there.
__device__ __forceinline__ int byte_of(int c) { return c == 1 ? 2 : c == 2 ? 1 : c; }
__device__ __forceinline__ int bit_of(int k, int c) { return 8 * byte_of(c) + k; }

// How many values of a lane's row lie in the array: none or less, four or more.
__device__ __forceinline__ int inside_row(const Array& c, const Tile& p, int plane, int r) {
    if (p.left == 0) return 4;
    if (c.rank == 1) return p.values() - 512 * plane - 128 * r;
    const int y = c.rank == 2 ? 16 * plane + r : r;
    return y < p.rows() && (c.rank == 2 || plane < p.planes()) ? p.values() : 0;
}

// The same of a block, in order of bits.
__device__ __forceinline__ u32 inside_block(const Array& c, const Tile& p, u32 block) {
    if (p.left == 0 || (p.left & Tile::WHOLE)) return warp::ALL;
    u32 inside = 0;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        const int n = inside_row(c, p, 2 * (int)block + k / 4, k % 4);
#pragma unroll
        for (int i = 0; i < 4; i++) inside |= (u32)(i < n) << bit_of(0, i) << k;
    }
    return inside;
}

// The rows of a tile as class 3 has them, at most 32 values each: those that lie in the array.
struct RawRows {
    Tile p;
    u32 inside, width, height, step;
    __device__ __forceinline__ RawRows(const Array& c, u32 tile) : p(tile_at(c, tile, 0)) {
        const bool single = c.rank == 1;
        inside = inside_of(c, p);
        width = single || p.left == 0 ? 32 : min((u32)p.values(), 32u);
        height = single || c.rank == 2 ? 128 : p.left ? min((u32)p.rows(), 16u) : 16;
        step = single ? 32 : c.row;
    }
    // Where one begins.
    __device__ __forceinline__ u32 place(const Array& c, u32 row) const {
        const u32 z = row / height;
        return p.first + z * c.plane + (row - z * height) * step;
    }
};

// Into the other byte order.
template <class S>
__device__ __forceinline__ void swap_block(S (&x)[8][4]) {
    using T = Traits<S>;
#pragma unroll
    for (int k = 0; k < 32; k++) x[k / 4][k % 4] = T::value(swapped(T::bits(x[k / 4][k % 4])));
}

// Where a lane puts its rows of a plane: where they belong, 16 bytes a time; or, of a tile whose rows are not aligned
// or not whole, into a buffer of 512 values, from which store_plane brings them in order.
template <class B>
struct Rows {
    B* to;
    u32 step;
    __device__ __forceinline__ Rows(const Array& c, const Tile& p, u32 plane, int lane, B* buffer) {
        const bool single = c.rank == 1;
        if (LIKELY(p.left == 0)) {
            to = (B*)c.values + (p.first + plane * c.plane), step = c.row;
        } else {
            to = buffer + (single ? 4 * lane : 128 * (lane / 8) + 4 * (lane % 8)), step = single ? 128 : 32;
        }
    }
};

// Writes a value's bits at a place of the chunk.
template <class S, class B>
__device__ __forceinline__ void store_at(const Array& c, u32 place, B bits) {
    if constexpr (IS_SHORT<S>) {
        shorts::store(c.values, place, c.integer, bits);
    } else {
        ((B*)c.values)[place] = bits;
    }
}

// Writes a plane's values that lie in the array, a row of the tile at a time. Whole warp.
template <class S, class B>
__device__ __forceinline__ void store_plane(const Array& c, const Tile& p, u32 plane, int lane, const B* buffer) {
    const bool single = c.rank == 1;
    // From the lane's first value to the tile's, and what lies in the array from there.
    const int x = single ? 4 * lane : 4 * (lane % 8), y = single ? 0 : 4 * (lane / 8);
    const int values = p.values() + x - (single ? (int)(512 * plane) : 0),
              rows = (int)plane >= p.planes() ? 0 : p.rows() + y - (c.rank == 2 ? (int)(16 * plane) : 0);
    const u32 step = single ? 32 : c.row;
    u32 place = p.first + plane * c.plane - x - y * c.row + lane;
    __syncwarp();
#pragma unroll 4
    for (int k = 0; k < 16; k++, place += step) {
        if (single ? 32 * k + lane < values : k < rows && lane < values)
            store_at<S>(c, c.at(place), buffer[32 * k + lane]);
    }
    __syncwarp();
}

}  // namespace planes
