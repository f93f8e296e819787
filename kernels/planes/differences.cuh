// SPDX-License-Identifier: MIT OR Apache-2.0
// Lorenzo prediction on pairs of quanta, forth and back: FORMAT.md §4 and §8.2.
//
// A lane has rows 0 to 3 of a plane, of each the pair (0, 2) of its columns in `a`, (1, 3) in `b`. A pair is the number
// low + 65536 · high with signed halves: sums and differences of such numbers are those of their halves, for what a low
// half borrows from the high one it gives back in the end. A constant added to a pair whose halves fit 16 bits,
// 0x80008000, brings clean halves out, 32768 more than they stand for.
#pragma once
#include "quantize.cuh"

namespace planes {

constexpr u32 CLEAN = 0x80008000u;

// What goes from one block of a tile to the next in registers. Rank 2: pairs of the row before. Rank 1: pair b of the
// row before, in `a`, of which the last lane's counts.
struct Before {
    u32 a, b = 0;
    __device__ __forceinline__ explicit Before(u32 rank) : a(rank == 1 ? ZEROS : 0) {}
};

// Along x: rows of two planes.
__device__ __forceinline__ void forward_x(u32 (&a)[8], u32 (&b)[8], u32 rank, Before& before, int lane) {
    // Of rank 1 a row continues the one before: the last lane hands on what is left of the first lane's.
    const bool last = rank == 1 && lane == 31, edge = rank != 1 && lane % 8 == 0;
    const u32 next = b[7];
#pragma unroll
    for (int k = 7; k >= 0; k--) {
        u32 left = warp::from(!last ? b[k] : k > 0 ? b[k - 1] : before.a, (lane + 31) & 31);
        if (edge) left = ZEROS;
        left = __byte_perm(left, b[k], 0x5432);
        b[k] -= a[k];
        a[k] -= left;
    }
    if (rank == 1) before.a = next;
}

// Along y, after x.
__device__ __forceinline__ void forward_y(u32 (&a)[8], u32 (&b)[8], u32 rank, Before& before, int lane) {
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
        const u32 last_a = warp::from(a[k + 3], (lane + 24) & 31), last_b = warp::from(b[k + 3], (lane + 24) & 31);
        const u32 up_a = lane >= 8   ? last_a
                         : rank == 2 ? before.a
                                     : 0,
                  up_b = lane >= 8   ? last_b
                         : rank == 2 ? before.b
                                     : 0;
        if (rank == 2) before.a = last_a, before.b = last_b;
#pragma unroll
        for (int r = 3; r > 0; r--) a[k + r] -= a[k + r - 1], b[k + r] -= b[k + r - 1];
        a[k] -= up_a, b[k] -= up_b;
    }
}

// Along z, after y. `back`: the plane before, which the tile's first block does not have; then the block's last one.
__device__ __forceinline__ void forward_z(u32 (&a)[8], u32 (&b)[8], u32 (&back)[8][32], bool first, int lane) {
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const u32 next_a = a[r + 4], next_b = b[r + 4];
        a[r + 4] -= a[r], b[r + 4] -= b[r];
        if (!first) a[r] -= back[r][lane], b[r] -= back[r + 4][lane];
        back[r][lane] = next_a, back[r + 4][lane] = next_b;
    }
}

// Bits of the largest residual of the lane in plane 1, by the or of all; `bias` makes pairs clean.
__device__ __forceinline__ u32 length(const u32 (&a)[8], const u32 (&b)[8], u32 bias) {
    u32 all = 0;
#pragma unroll
    for (int r = 4; r < 8; r++) {
        const u32 p = a[r] + bias, q = b[r] + bias;
        // A number's Gray code is as long as the number, and as its complement where it is negative.
        all |= p ^ p >> 1 ^ 0x40004000u;
        all |= q ^ q >> 1 ^ 0x40004000u;
    }
    return 32 - (u32)__clz((int)((all | all >> 16) & 0x7fffu));
}

// The cheapest predictor for a tile, from plane 1 of its first block; `held` of its planes hold values, and those
// beyond are zeros along all axes.
__device__ __forceinline__ u32 select(u32 (&a)[8], u32 (&b)[8], u32 rank, u32 held, int lane) {
    Before none(rank);
    u32 cost01 = length(a, b, CLEAN - ZEROS), cost23 = 0xffffffffu;
    forward_x(a, b, rank, none, lane);
    cost01 = warp::total(cost01 | length(a, b, CLEAN) << 16);
    if (rank > 1) {
        forward_y(a, b, rank, none, lane);
        const u32 cost2 = length(a, b, CLEAN);
        u32 cost3 = 0x7ff;
        if (rank > 2) {
#pragma unroll
            for (int r = 4; r < 8; r++) a[r] -= a[r - 4], b[r] -= b[r - 4];
            cost3 = length(a, b, CLEAN);
        }
        cost23 = warp::total(cost2 | cost3 << 16);
    }
    const u32 costs[4] = {cost01 & 0xffff, cost01 >> 16, cost23 & 0xffff, cost23 >> 16};
    u32 best = 8 * costs[0], which = 0;
#pragma unroll
    for (u32 k = 1; k < 4; k++) {
        const u32 cost = costs[k] * (k == rank ? held : 8);
        if (cost < best) best = cost, which = k;
    }
    return which;
}

// What goes from one plane of a tile to the next, backwards.
struct Sums {
    u32 left = 0;  // rank 1: the last value, as a clean pair of twice the same; 0 at first
    u32 up_a = 0, up_b = 0;  // rank 2: the last row of the plane before
    u32 back_a[4] = {}, back_b[4] = {};  // rank 3: the plane before
};

__device__ __forceinline__ void backward_z(u32 (&a)[4], u32 (&b)[4], Sums& sums) {
#pragma unroll
    for (int r = 0; r < 4; r++) {
        a[r] = sums.back_a[r] += a[r];
        b[r] = sums.back_b[r] += b[r];
    }
}

__device__ __forceinline__ void backward_y(u32 (&a)[4], u32 (&b)[4], u32 rank, Sums& sums, int lane) {
#pragma unroll
    for (int r = 1; r < 4; r++) a[r] += a[r - 1], b[r] += b[r - 1];
    u32 upto_a = a[3], upto_b = b[3];
#pragma unroll
    for (int k = 8; k < 32; k *= 2) {
        const u32 x = __shfl_up_sync(warp::ALL, upto_a, k), y = __shfl_up_sync(warp::ALL, upto_b, k);
        if (lane >= k) upto_a += x, upto_b += y;
    }
    u32 less_a = upto_a - a[3], less_b = upto_b - b[3];
    if (rank == 2) {
        less_a += sums.up_a, less_b += sums.up_b;
        sums.up_a += warp::from(upto_a, 24 + lane % 8), sums.up_b += warp::from(upto_b, 24 + lane % 8);
    }
#pragma unroll
    for (int r = 0; r < 4; r++) a[r] += less_a, b[r] += less_b;
}

// Along x; leaves clean pairs, REACH more than they stand for where they fit it.
__device__ __forceinline__ void backward_x(u32 (&a)[4], u32 (&b)[4], u32 rank, Sums& sums, int lane) {
    // Sums within four values; of rows 0 and 1, 2 and 3 the sum of all four, in one register.
#pragma unroll
    for (int r = 0; r < 4; r++) {
        a[r] += (a[r] + b[r]) << 16;
        b[r] += a[r];
    }
    u32 own[2], upto[2];
#pragma unroll
    for (int k = 0; k < 2; k++) upto[k] = own[k] = __byte_perm(b[2 * k] + CLEAN, b[2 * k + 1] + CLEAN, 0x7632) - CLEAN;
    const int reach = rank == 1 ? 32 : 8, at = lane & (reach - 1);
#pragma unroll
    for (int k = 1; k < 8; k *= 2) {
        const u32 x = __shfl_up_sync(warp::ALL, upto[0], k), y = __shfl_up_sync(warp::ALL, upto[1], k);
        if (at >= k) upto[0] += x, upto[1] += y;
    }
    if (rank == 1) {
#pragma unroll
        for (int k = 8; k < 32; k *= 2) {
            const u32 x = __shfl_up_sync(warp::ALL, upto[0], k), y = __shfl_up_sync(warp::ALL, upto[1], k);
            if (at >= k) upto[0] += x, upto[1] += y;
        }
        // Rows follow each other.
        const u32 all0 = warp::from(upto[0], 31), all1 = warp::from(upto[1], 31);
        // Halves to pairs of twice the same: (c, c) with c of row 0, then of row 1, …
        const u32 end0 = __byte_perm(all0 + CLEAN, 0, 0x1010) - CLEAN,
                  end1 = __byte_perm(all0 + CLEAN, 0, 0x3232) - CLEAN,
                  end2 = __byte_perm(all1 + CLEAN, 0, 0x1010) - CLEAN,
                  end3 = __byte_perm(all1 + CLEAN, 0, 0x3232) - CLEAN;
        const u32 row1 = sums.left + end0, row2 = row1 + end1, row3 = row2 + end2;
        const u32 before[4] = {sums.left, row1, row2, row3};
        sums.left = row3 + end3;
#pragma unroll
        for (int r = 0; r < 4; r++) a[r] += before[r], b[r] += before[r];
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const u32 less = __byte_perm(upto[r / 2] - own[r / 2] + CLEAN, 0, r % 2 ? 0x3232 : 0x1010) - (CLEAN - ZEROS);
        a[r] += less, b[r] += less;
    }
}

}  // namespace planes
