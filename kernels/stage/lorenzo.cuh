// SPDX-License-Identifier: MIT OR Apache-2.0
// Integer Lorenzo prediction of one tile, as in cuSZ+ (Tian et al., CLUSTER 2021, doi:10.1109/Cluster48925.2021.00047):
// codecs/src/codec/lorenzo/FORMAT.md §4.3; on the CPU codecs/src/stage/lorenzo.rs.
//
// A writer takes differences of quanta along some of three axes, one after the other; what is outside the tile is 0. As
// sums of up to eight neighbours these need no order: `difference4` finds four in a row, `difference` one. A reader
// undoes them by running sums along each axis (`integrate`): a warp scans a row piece by piece, a thread sums a line
// along another axis, pieces of it where lines are few. Whole tiles of 16 × 16 × 32 stay in registers: a thread has
// eight times four values of a plane, and in the end all planes' values at a place. Integers wrap around.
#pragma once
#include "tiles.cuh"

namespace lorenzo {

using tiles::Three;

constexpr u32 X = 1, Y = 2, Z = 4;

// --- differences ---

// a + factor · b, four times.
__device__ __forceinline__ int4 plus(int4 a, int4 b, u32 factor) {
    return make_int4((int)((u32)a.x + factor * (u32)b.x), (int)((u32)a.y + factor * (u32)b.y),
                     (int)((u32)a.z + factor * (u32)b.z), (int)((u32)a.w + factor * (u32)b.w));
}

// Residuals of the values from place `i` on, four of one row.
__device__ __forceinline__ void difference4(const int* q, u32 i, const Three& e, const Three& place, u32 axes,
                                            int (&d)[4]) {
    const u32 x = place.x, y = place.y, z = place.z;
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
__device__ __forceinline__ int difference(const int* q, u32 i, const Three& e, const tiles::Divisor& by_x,
                                          const tiles::Divisor& by_y, u32 axes) {
    const u32 row = by_x.of(i), x = i - row * e.x, z = by_y.of(row), y = row - z * e.y;
    const u32 rise = e.x, plane = e.x * e.y;
    u32 v = 0;
#pragma unroll
    for (u32 corner = 0; corner < 8; corner++) {
        const bool there = (corner & ~axes) == 0 && !((corner & X) && x == 0) && !((corner & Y) && y == 0) &&
                           !((corner & Z) && z == 0);
        if (there) {
            const u32 p = (u32)q[i - (corner & 1) - (corner >> 1 & 1) * rise - (corner >> 2) * plane];
            v += (0x96u >> corner & 1) ? 0u - p : p;
        }
    }
    return (int)v;
}

// --- running sums; the whole CTA, which has waited before and has after ---

constexpr int THREADS = 256, WARPS = THREADS / 32;

// Lines along an axis that is not the last. Line i begins at place first(i); its values lie `stride` apart. Long lines
// are summed in pieces, when there are few.
template <class First>
__device__ __forceinline__ void lines(int* values, u32 lines, u32 length, u32 stride, First first) {
    const u32 pieces = lines >= THREADS ? 1 : max(1u, min(THREADS / lines, length / 8)),
              each = (length + pieces - 1) / pieces;
    for (u32 i = threadIdx.x; i < lines * pieces; i += THREADS) {
        const u32 piece = i / lines, from = piece * each, to = min(from + each, length);
        int* at = values + first(i - piece * lines) + from * stride;
        u32 sum = 0;
#pragma unroll 8
        for (u32 k = from; k < to; k++, at += stride) {
            sum += (u32)*at;
            *at = (int)sum;
        }
    }
    if (pieces > 1) {
        // One line and piece a thread.
        const u32 piece = threadIdx.x / lines, from = piece * each, to = min(from + each, length);
        int* line = values + first(threadIdx.x % lines);
        const bool here = piece > 0 && piece < pieces && from < length;
        u32 before = 0;
        __syncthreads();
        if (here) {
            for (u32 k = 0; k < piece; k++) before += (u32)line[((k + 1) * each - 1) * stride];
        }
        __syncthreads();
        if (here) {
            for (u32 k = from; k < to; k++) line[k * stride] = (int)((u32)line[k * stride] + before);
        }
    }
    __syncthreads();
}

// Rows of `c` values, any number. A warp takes consecutive values, four a lane; `totals` has a word a warp.
__device__ __forceinline__ void rows(int* values, u32 n, u32 c, int* totals, int lane, int w) {
    const tiles::Divisor by(c);
    const u32 each = ((n + WARPS - 1) / WARPS + 127) / 128 * 128, from = min(w * each, n), to = min(from + each, n);
    const bool whole = c % 128 == 0;
    u32 carry = 0, left = whole ? c - (from - by.of(from) * c) : 0;
#pragma unroll 2
    for (u32 i = from; i < to; i += 128) {
        int4* at = (int4*)(values + i) + lane;
        const int4 v = *at;
        u32 x[4] = {(u32)v.x, (u32)v.y, (u32)v.z, (u32)v.w};
        u32 begins = 4;
        bool carried = true;
        u32 sum;
        if (whole) {
#pragma unroll
            for (u32 j = 1; j < 4; j++) x[j] += x[j - 1];
            sum = warp::inclusive(x[3], lane) + carry;
        } else {
            const u32 first = i + 4 * lane;
            u32 place = first - by.of(first) * c;
            // A row may begin with any of the four.
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                if (place == 0) {
                    begins = min(begins, j);
                } else if (j) {
                    x[j] += x[j - 1];
                }
                place = place + 1 == c ? 0 : place + 1;
            }
            const u32 heads = __ballot_sync(warp::ALL, begins < 4) & ((2u << lane) - 1);
            sum = warp::inclusive(x[3], heads ? lane - (31 - __clz((int)heads)) : lane);
            carried = !heads;
            if (carried) sum += carry;
        }
        u32 before = __shfl_up_sync(warp::ALL, sum, 1);
        if (lane == 0) before = carry;
        carry = warp::from(sum, 31);
        if (whole && (left -= 128) == 0) {
            left = c;
            carry = 0;
        }
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            if (j < begins) x[j] += before;
        }
        *at = make_int4((int)x[0], (int)x[1], (int)x[2], (int)x[3]);
    }
    // What a row has in the warps before. A row that ends with a warp leaves nothing to the next.
    if (lane == 0) totals[w] = (int)carry;
    __syncthreads();
    const u32 row = from < n ? from - by.of(from) * c : 0;
    if (row) {
        u32 before = 0;
        for (int v = w - 1; v >= 0; v--) {
            before += (u32)totals[v];
            const u32 start = v * each;
            // A row began there.
            if (by.of(start + each - 1) * c >= start) break;
        }
        const u32 end = min(to, from - row + c);
        if (whole) {
            for (u32 i = from + 4 * lane; i < end; i += 128) {
                int4* at = (int4*)(values + i);
                const int4 v = *at;
                *at = make_int4((int)((u32)v.x + before), (int)((u32)v.y + before), (int)((u32)v.z + before),
                                (int)((u32)v.w + before));
            }
        } else {
            for (u32 i = from + lane; i < end; i += 32) values[i] = (int)((u32)values[i] + before);
        }
    }
    __syncthreads();
}

// Along every axis of the kind.
__device__ __forceinline__ void integrate(int* values, Three e, u32 axes, int* totals, int lane, int w) {
    const u32 n = e.product();
    // Axes of one place at the end are as if they were in front.
    while (e.x == 1 && n > 1) {
        e = {1, e.z, e.y};
        axes >>= 1;
    }
    if (axes & 4) lines(values, e.y * e.x, e.z, e.y * e.x, [](u32 i) { return i; });
    if (axes & 2) {
        const tiles::Divisor by(e.x);
        lines(values, e.z * e.x, e.y, e.x, [&](u32 i) {
            const u32 z = by.of(i);
            return z * e.x * e.y + (i - z * e.x);
        });
    }
    if (axes & 1) rows(values, n, e.x, totals, lane, w);
}

// --- running sums of whole tiles of 16 × 16 × 32: a thread has eight times four values in registers ---

constexpr u32 PLANE = 16 * 32, ROW = 32;

__device__ __forceinline__ bool full(const Three& e) { return e.z == 16 && e.y == 16 && e.x == 32; }

struct Column {
    u32 v[8][4];
    __device__ __forceinline__ void load(const int* at, u32 stride) {
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const int4 q = *(const int4*)(at + k * stride);
            v[k][0] = (u32)q.x, v[k][1] = (u32)q.y, v[k][2] = (u32)q.z, v[k][3] = (u32)q.w;
        }
    }
    __device__ __forceinline__ void store(int* at, u32 stride) const {
#pragma unroll
        for (u32 k = 0; k < 8; k++)
            *(int4*)(at + k * stride) = make_int4((int)v[k][0], (int)v[k][1], (int)v[k][2], (int)v[k][3]);
    }
    // Rows of 32: eight lanes have one.
    __device__ __forceinline__ void along_rows() {
        const int reach = threadIdx.x % 8;
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
#pragma unroll
            for (u32 j = 1; j < 4; j++) v[k][j] += v[k][j - 1];
            const u32 before = warp::inclusive<1, 8>(v[k][3], reach) - v[k][3];
#pragma unroll
            for (u32 j = 0; j < 4; j++) v[k][j] += before;
        }
    }
    // The eight, and behind them those of the thread with the same columns in the CTA's other half. `scratch` has 512
    // words.
    __device__ __forceinline__ void down(int* scratch) {
#pragma unroll
        for (u32 k = 1; k < 8; k++) {
#pragma unroll
            for (u32 j = 0; j < 4; j++) v[k][j] += v[k - 1][j];
        }
        int4* last = (int4*)scratch + threadIdx.x % 128;
        const bool second = threadIdx.x >= 128;
        if (!second) *last = make_int4((int)v[7][0], (int)v[7][1], (int)v[7][2], (int)v[7][3]);
        __syncthreads();
        if (second) {
            const int4 q = *last;
            const u32 before[4] = {(u32)q.x, (u32)q.y, (u32)q.z, (u32)q.w};
#pragma unroll
            for (u32 k = 0; k < 8; k++) {
#pragma unroll
                for (u32 j = 0; j < 4; j++) v[k][j] += before[j];
            }
        }
    }
};

// Along x and y.
__device__ __forceinline__ void rows_and_lines(int* values, u32 axes, int* scratch) {
    if (!(axes & 3)) return;
    Column c;
    int* at = values + threadIdx.x / 8 % 16 * PLANE + threadIdx.x / 128 * 8 * ROW + 4 * (threadIdx.x % 8);
    c.load(at, ROW);
    if (axes & 1) c.along_rows();
    if (axes & 2) c.down(scratch);
    c.store(at, ROW);
    __syncthreads();
}

__device__ __forceinline__ int plus(int a, int b) { return (int)((u32)a + (u32)b); }
__device__ __forceinline__ int2 plus(int2 a, int2 b) { return make_int2(plus(a.x, b.x), plus(a.y, b.y)); }

// Along z, to registers: what lies at a place, in all planes.
template <class T>
__device__ __forceinline__ void planes(T (&q)[16], const T* at, u32 axes) {
#pragma unroll
    for (u32 k = 0; k < 16; k++) q[k] = at[k * (PLANE * sizeof(int) / sizeof(T))];
    if (axes & 4) {
#pragma unroll
        for (u32 k = 1; k < 16; k++) q[k] = plus(q[k], q[k - 1]);
    }
}

}  // namespace lorenzo
