// SPDX-License-Identifier: MIT OR Apache-2.0
// Cubes of ndzip and its grid, without a frame.
#include "check.cuh"
#include "ndzip/cube.cuh"

namespace {

struct Cubes {
    u64 in, residuals, planes, lengths, words, rank, is_float;
};

// Cubes through the steps of encoding, one a CTA.
template <class W>
__device__ __forceinline__ void ndzip_cube(const Cubes& a) {
    using P = ndzip::Shape<W>;
    constexpr u32 CUBE = ndzip::CUBE;
    __shared__ ndzip::Shared<W> sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32, rank = (int)a.rank;
    const u64 from = (u64)blockIdx.x * CUBE;
    for (u32 i = threadIdx.x; i < CUBE; i += P::THREADS) {
        const W x = ((const W*)a.in)[from + i];
        sh.words[P::at(i)] = a.is_float ? ndzip::rotl1(x) : x;
    }
    __syncthreads();
    u32 first;
    bool low, second;
    ndzip::role<W>(threadIdx.x, first, low, second);
    {
        W d[32];
        ndzip::differences(sh.words, rank, first, lane - (sizeof(W) == 8 && !second ? 3 : 1), d);
        for (int j = 0; j < 32; j++) {
            if (!low) ((W*)a.residuals)[from + first + j] = ndzip::flipped(d[j]);
        }
    }
    ndzip::Planes mine;
    const u32 words = ndzip::planes_of(mine, sh, rank, lane, w);
    for (u32 p = 0; p < 32; p++) {
        if (sizeof(W) == 4) {
            ((u32*)a.planes)[from + p * P::COLUMNS + threadIdx.x] = mine.plane[p];
        } else {
            const u64 at = from + (p + (low ? 32 : 0)) * P::COLUMNS + threadIdx.x / 4;
            ((u32*)a.planes)[2 * at + (second ? 0 : 1)] = mine.plane[p];
        }
    }
    ndzip::keep_planes(sh, mine);
    __syncthreads();
    if (threadIdx.x == 0) ((u32*)a.lengths)[blockIdx.x] = words;
    W* out = (W*)a.words + (u64)blockIdx.x * P::LONGEST;
    for (u32 i = threadIdx.x; i < words; i += P::THREADS) out[i] = sh.words[i];
}

struct CubesBack {
    u64 words, lengths, faults, out, rank, is_float, swap;
};

// And back: 1 where the length is not what the heads say; the values.
template <class W>
__device__ __forceinline__ void ndzip_back(const CubesBack& a) {
    using P = ndzip::Shape<W>;
    __shared__ ndzip::DecodeShared<W> sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 words = ((const u32*)a.lengths)[blockIdx.x];
    const W* from = (const W*)a.words + (u64)blockIdx.x * P::LONGEST;
    for (u32 i = threadIdx.x; i < words; i += P::THREADS) sh.words[i] = from[i];
    if (threadIdx.x == 0) sh.fault = 0;
    __syncthreads();
    DecodeChunk c = {};
    c.output = a.out + (u64)blockIdx.x * ndzip::CUBE * sizeof(W);
    c.flags = (a.is_float ? FLAG_FLOAT : 0u) | (a.swap ? FLAG_SWAP : 0u);
    c.rank = (u32)a.rank;
    const u32 side = a.rank == 1 ? 4096 : a.rank == 2 ? 64 : 16;
    c.extents[0] = a.rank == 3 ? side : 1;
    c.extents[1] = a.rank == 1 ? 1 : side;
    c.extents[2] = side;
    ndzip::decode_cube<W>(c, ndzip::grid(c), sh, 0, words, lane, w);
    if (threadIdx.x == 0) ((u32*)a.faults)[blockIdx.x] = sh.fault;
}

struct Grids {
    u64 origins, border, cubes, n, extents[3], rank;
};

// Where cubes start and where the values of the border are.
__device__ __forceinline__ void ndzip_places(const Grids& a) {
    EncodeChunk c = {};
    for (int k = 0; k < 3; k++) c.extents[k] = (u32)a.extents[k];
    c.rank = (u32)a.rank;
    const ndzip::Grid g = ndzip::grid(c);
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i < a.cubes && i < g.cubes) ((u64*)a.origins)[i] = ndzip::origin(g, (u32)i);
    if (i < a.n) ((u64*)a.border)[i] = ndzip::border_at(g, i);
}

}  // namespace

STAGE(ndzip_cube_f32, ndzip::Shape<u32>::THREADS, Cubes, ndzip_cube<u32>)
STAGE(ndzip_cube_f64, ndzip::Shape<u64>::THREADS, Cubes, ndzip_cube<u64>)
STAGE(ndzip_back_f32, ndzip::Shape<u32>::THREADS, CubesBack, ndzip_back<u32>)
STAGE(ndzip_back_f64, ndzip::Shape<u64>::THREADS, CubesBack, ndzip_back<u64>)
STAGE(ndzip_places, 128, Grids, ndzip_places)
