// SPDX-License-Identifier: MIT OR Apache-2.0
// Integer Lorenzo prediction of one tile, and the choice of its axes: src/stage/lorenzo.rs, src/codec/lorenzo/encode.rs.
#pragma once
#include "estimate.cuh"
#include "tiles.cuh"

namespace lorenzo {

constexpr u32 X = 1, Y = 2, Z = 4, SETS = 6;

// Axes of set `k`, in the order in which they are tried.
__device__ __forceinline__ u32 axes_of(u32 k) { return 0x743210u >> (4 * k) & 7u; }

// The sets that a tile of these extents allows, a bit each.
__device__ __forceinline__ u32 sets_of(const tiles::Three& e) {
    const bool x = e.x > 1, y = e.y > 1, z = e.z > 1;
    return 1u | (x ? 2u : 0u) | (y ? 4u : 0u) | (x && y ? 8u : 0u) | (z ? 16u : 0u) | (x && y && z ? 32u : 0u);
}

// Rows that axes are chosen by, out of 64; all of a tile with fewer than eight.
constexpr u64 SAMPLED = 1 | 0x1842184218421842ull;
constexpr u32 OF = 64, OF_THEM = 17;
__device__ __forceinline__ u32 sampled_row(u32 k, bool whole) {
    if (whole) return k;
    const u32 round = k / OF_THEM, i = k - round * OF_THEM;
    return OF * round + (i == 0 ? 0 : (i - 1) / 4 * 16 + (0xcb61u >> (4 * ((i - 1) & 3)) & 15u));
}
__device__ __forceinline__ u32 sampled_rows(u32 rows, bool whole) {
    return whole ? rows : rows / OF * OF_THEM + (u32)__popcll(SAMPLED & ((1ull << rows % OF) - 1));
}

// Words of bits for each set.
constexpr u32 MASKS = tiles::MOST / 32;

// Counts residuals of the sampled rows for every set of axes: how many are of each class, and which are not zero.
template <int THREADS>
__device__ __forceinline__ void sample(const int* q, const tiles::Three& e, const tiles::Divisor& by_x, const tiles::Divisor& by_y,
                                       u32 sets, u32 count, bool whole, u32* classes, u32* masks, int lane) {
    const u32 rise = e.x, plane = e.x * e.y;
    for (u32 s = threadIdx.x; s < (count + 31) / 32 * 32; s += THREADS) {
        u32 d[SETS] = {0, 0, 0, 0, 0, 0};
        if (s < count) {
            const u32 k = by_x.of(s), x = s - k * e.x, row = sampled_row(k, whole), z = by_y.of(row), y = row - z * e.y;
            const u32* at = (const u32*)q + row * e.x + x;
            const bool left = x > 0, up = y > 0, back = z > 0;
            // The place itself, the one above it, the ones behind those; and of each the one to its left.
            u32 a = *at, u = 0, k0 = 0, k1 = 0, al = 0, ul = 0, kl = 0;
            if (left) al = *(at - 1);
            if (up) {
                u = *(at - rise);
                if (left) ul = *(at - rise - 1);
            }
            if (back) {
                k0 = *(at - plane);
                if (left) kl = *(at - plane - 1);
                if (up) {
                    k1 = *(at - plane - rise);
                    if (left) kl -= *(at - plane - rise - 1);
                }
            }
            d[0] = a;
            d[1] = a - al;
            d[2] = a - u;
            d[3] = d[1] - (u - ul);
            d[4] = a - k0;
            d[5] = d[3] - (k0 - k1 - kl);
        }
#pragma unroll
        for (u32 i = 0; i < SETS; i++) {
            if (sets >> i & 1) {
                const u32 z = estimate::zigzag((int)d[i]);
                if (z) atomicAdd(classes + estimate::CLASSES * i + estimate::class_of(z), 1u);
                const u32 others = __ballot_sync(warp::ALL, z != 0);
                if (lane == 0) masks[MASKS * i + s / 32] = others;
            }
        }
    }
}

// Counts residuals as a look at interpolation finds them: of the sampled rows' odd places, from quanta on either side. The
// caller has `left` = (x − 5) / 2 of them in each row.
template <int THREADS>
__device__ __forceinline__ void look(const int* q, u32 x, const tiles::Divisor& by_left, u32 count, bool whole, u32* classes, u32* masks,
                                     int lane) {
    for (u32 s = threadIdx.x; s < (count + 31) / 32 * 32; s += THREADS) {
        u32 z = 0;
        if (s < count) {
            const u32 k = by_left.of(s);
            const u32* at = (const u32*)q + sampled_row(k, whole) * x + 2 * (s - k * by_left.d);
            const u32 near = at[2] + at[4];
            z = estimate::zigzag((int)(at[3] - ((u32)((int)near >> 1) + (u32)((int)(near - (at[0] + at[6])) >> 4))));
            if (z) atomicAdd(classes + estimate::class_of(z), 1u);
        }
        const u32 others = __ballot_sync(warp::ALL, z != 0);
        if (lane == 0) masks[s / 32] = others;
    }
}

// The cost of one set of axes, from its counts. Whole warp.
__device__ __forceinline__ u32 cost_of(const u32* classes, const u32* masks, u32 count, int lane) {
    u32 changes = 0;
    for (u32 i = lane; i < (count + 31) / 32; i += 32) {
        const u32 before = i ? masks[i - 1] >> 31 : 0, left = count - 32 * i;
        const u32 meet = masks[i] ^ (masks[i] << 1 | before);
        changes += (u32)__popc(left < 32 ? meet & ((1u << left) - 1) : meet);
    }
    return estimate::cost(classes, count, warp::sum(changes), lane);
}

// a + sign · b, four times.
__device__ __forceinline__ int4 plus(int4 a, int4 b, u32 sign) {
    return make_int4((int)((u32)a.x + sign * (u32)b.x), (int)((u32)a.y + sign * (u32)b.y), (int)((u32)a.z + sign * (u32)b.z),
                     (int)((u32)a.w + sign * (u32)b.w));
}

// Residuals of the values from place `i` on, four of one row.
__device__ __forceinline__ void four(const int* q, u32 i, const tiles::Three& e, const tiles::Divisor& by_x,
                                     const tiles::Divisor& by_y, u32 axes, int (&d)[4]) {
    const u32 row = by_x.of(i), x = i - row * e.x, z = by_y.of(row), y = row - z * e.y;
    const bool up = (axes & Y) && y > 0, back = (axes & Z) && z > 0, left = (axes & X) && x > 0;
    const int* at = q + i;
    const u32 rise = e.x, plane = e.x * e.y;
    int4 v = *(const int4*)at;
    u32 l = left ? (u32)at[-1] : 0;
    if (up) {
        v = plus(v, *(const int4*)(at - rise), 0u - 1u);
        if (left) l -= (u32)at[-(int)rise - 1];
    }
    if (back) {
        v = plus(v, *(const int4*)(at - plane), 0u - 1u);
        if (left) l -= (u32)at[-(int)plane - 1];
        if (up) {
            v = plus(v, *(const int4*)(at - plane - rise), 1);
            if (left) l += (u32)at[-(int)(plane + rise) - 1];
        }
    }
    d[0] = (int)((u32)v.x - l);
    d[1] = v.y;
    d[2] = v.z;
    d[3] = v.w;
    if (axes & X) {
        d[1] = (int)((u32)v.y - (u32)v.x);
        d[2] = (int)((u32)v.z - (u32)v.y);
        d[3] = (int)((u32)v.w - (u32)v.z);
    }
}

// The residual of the value at place `i`.
__device__ __forceinline__ int one(const int* q, u32 i, const tiles::Three& e, const tiles::Divisor& by_x,
                                   const tiles::Divisor& by_y, u32 axes) {
    const u32 row = by_x.of(i), x = i - row * e.x, z = by_y.of(row), y = row - z * e.y;
    const u32 rise = e.x, plane = e.x * e.y;
    u32 v = 0;
#pragma unroll
    for (u32 corner = 0; corner < 8; corner++) {
        const bool there = (corner & ~axes) == 0 && !((corner & X) && x == 0) && !((corner & Y) && y == 0) && !((corner & Z) && z == 0);
        if (there) {
            const u32 p = (u32)q[i - (corner & 1) - (corner >> 1 & 1) * rise - (corner >> 2) * plane];
            v += (0x96u >> corner & 1) ? 0u - p : p;
        }
    }
    return (int)v;
}

}  // namespace lorenzo
