// SPDX-License-Identifier: MIT OR Apache-2.0
// Integers of a value's width, 32 of a block in a lane: differences along as many axes as the predictor says, and sums.
// FORMAT.md §4. What is not of class 0 goes this way, and all that is lossless.
//
// The order of a lane's 32 values is that of planes, rows and columns, [4 * (plane mod 2) + row][column]; that of a bit
// plane's bits is `bit_of`.
#pragma once
#include "bitplanes.cuh"

namespace planes {

// The same bits with a sign.
__device__ __forceinline__ int with_sign(u32 x) { return (int)x; }
__device__ __forceinline__ long long with_sign(u64 x) { return (long long)x; }

// All ones where a number is negative.
template <class I>
__device__ __forceinline__ I minus(I v) {
    return (I)0 - (v >> (8 * sizeof(I) - 1));
}

// Between a float's bits and a number of the same order; undoes itself.
template <class I>
__device__ __forceinline__ I ordered(I bits) {
    return bits ^ (minus(bits) & ~((I)1 << (8 * sizeof(I) - 1)));
}

// What goes from one block of a tile to the next, forth or back.
template <class I>
struct Edge {
    I left = 0;  // grid rank 1: the value before
    I up[4] = {};  // grid rank 2: the row before
    I back[4][4] = {};  // grid rank 3: the plane before
};

// Differences of a block along x, y or z.
template <class I>
__device__ __forceinline__ void forward_x(I (&v)[8][4], u32 rank, Edge<I>& edge, int lane) {
    I row = edge.left;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        I left = warp::from(v[k][3], (lane + 31) & 31);
        if (rank == 1) {
            const I last = left;
            if (lane == 0) left = row;
            row = last;
        } else if (lane % 8 == 0) {
            left = 0;
        }
#pragma unroll
        for (int i = 3; i > 0; i--) v[k][i] -= v[k][i - 1];
        v[k][0] -= left;
    }
    edge.left = row;
}
template <class I>
__device__ __forceinline__ void forward_y(I (&v)[8][4], u32 rank, Edge<I>& edge, int lane) {
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const I last = warp::from(v[k + 3][i], (lane + 24) & 31), up = lane < 8 ? edge.up[i] : last;
            if (rank == 2) edge.up[i] = last;
#pragma unroll
            for (int r = 3; r > 0; r--) v[k + r][i] -= v[k + r - 1][i];
            v[k][i] -= up;
        }
    }
}
template <class I>
__device__ __forceinline__ void forward_z(I (&v)[8][4], Edge<I>& edge) {
#pragma unroll
    for (int k = 0; k < 16; k++) {
        const int r = k / 4, i = k % 4;
        const I next = v[4 + r][i];
        v[4 + r][i] -= v[r][i];
        v[r][i] -= edge.back[r][i];
        edge.back[r][i] = next;
    }
}

// Undoes it.
template <class I>
__device__ __forceinline__ void backward_z(I (&v)[8][4], Edge<I>& edge) {
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const int r = k / 4 % 4, i = k % 4;
        v[k / 4][i] = edge.back[r][i] += v[k / 4][i];
    }
}
template <class I>
__device__ __forceinline__ void backward_y(I (&v)[8][4], u32 rank, Edge<I>& edge, int lane) {
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int r = 1; r < 4; r++) v[k + r][i] += v[k + r - 1][i];
            const I upto = warp::inclusive<8>(v[k + 3][i], lane);
            const I less = upto - v[k + 3][i] + edge.up[i];
            if (rank == 2) edge.up[i] += warp::from(upto, 24 + lane % 8);
#pragma unroll
            for (int r = 0; r < 4; r++) v[k + r][i] += less;
        }
    }
}
template <class I>
__device__ __forceinline__ void backward_x(I (&v)[8][4], u32 rank, Edge<I>& edge, int lane) {
    const int reach = rank == 1 ? 32 : 8, at = lane & (reach - 1);
#pragma unroll
    for (int k = 0; k < 8; k++) {
#pragma unroll
        for (int i = 1; i < 4; i++) v[k][i] += v[k][i - 1];
        I upto = warp::inclusive<1, 8>(v[k][3], at);
        if (rank == 1) upto = warp::inclusive<8>(upto, at);
        const I less = upto - v[k][3] + edge.left;
        if (rank == 1) edge.left += warp::from(upto, 31);
#pragma unroll
        for (int i = 0; i < 4; i++) v[k][i] += less;
    }
}
// Along as many axes as the predictor says. One branch after the other would move registers.
template <class I>
__device__ __forceinline__ void backward(I (&v)[8][4], u32 predictor, u32 rank, Edge<I>& edge, int lane) {
    if (predictor > 2) {
        backward_z(v, edge);
        backward_y(v, rank, edge, lane);
        backward_x(v, rank, edge, lane);
    } else if (predictor == 2) {
        backward_y(v, rank, edge, lane);
        backward_x(v, rank, edge, lane);
    } else if (predictor == 1) {
        backward_x(v, rank, edge, lane);
    }
}

__device__ __forceinline__ void take_value(const u32* from, u32& bits) { bits = *from; }
__device__ __forceinline__ void take_value(const u32* from, u64& bits) { bits = from[0] | (u64)from[1] << 32; }

}  // namespace planes
