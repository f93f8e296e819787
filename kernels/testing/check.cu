// SPDX-License-Identifier: MIT OR Apache-2.0
// Stages by themselves, over arrays: `gpu_check --stages` runs each on the GPU and on the CPU.
//
// A kernel takes words: addresses of its arrays first, then numbers. Outputs are zero before.
#include "base/frame.cuh"
#include "lorenzo/select.cuh"
#include "ndzip/cube.cuh"
#include "stage/codebook.cuh"
#include "stage/interpolate/tile_any.cuh"
#include "stage/interpolate/tile_whole.cuh"
#include "stage/quantize.cuh"
#include "szx/decode.cuh"
#include "szx/encode.cuh"

namespace {

// NaNs have bits that machines disagree on, and no byte of a frame comes from them.
template <class S>
__device__ __forceinline__ u64 plain(S x) {
    return x != x ? ~0ull : (u64)Traits<S>::bits(x);
}

struct Arrays {
    u64 in, out, n;
};

// --- base --------------------------------------------------------------------------------------------------------------

// Three f64 an item; seven words out.
__device__ __forceinline__ void exact_ops(const Arrays& a) {
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i >= a.n) return;
    const double* v = (const double*)a.in + 3 * i;
    const double x = v[0], y = v[1], b = v[2];
    u64* out = (u64*)a.out + 7 * i;
    const bool finite = fabs(x) <= 1.7976931348623157e308 && fabs(y) <= 1.7976931348623157e308;
    const double lo = x < y ? x : y, hi = x < y ? y : x;
    out[0] = exact::within(x, y, b);
    out[1] = finite ? plain(exact::mul_down(fabs(x), fabs(y))) : 0;
    out[2] = finite ? plain(exact::sub_down(hi, lo)) : 0;
    out[3] = exact::ordered(x);
    out[4] = (u64)__double_as_longlong(exact::unordered(exact::ordered(x)));
    out[5] = finite ? plain(exact::below(fabs(x))) : 0;
    out[6] = swapped((u64)__double_as_longlong(x));
}

// Three numbers and an f64, in 8 bytes each; eight words out.
template <class S>
__device__ __forceinline__ void arithmetic(const Arrays& a) {
    using T = Traits<S>;
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i >= a.n) return;
    const u64* v = (const u64*)a.in + 4 * i;
    const S x = T::value((typename T::Bits)v[0]), y = T::value((typename T::Bits)v[1]), z = T::value((typename T::Bits)v[2]);
    const double d = __longlong_as_double((long long)v[3]);
    u64* out = (u64*)a.out + 8 * i;
    out[0] = plain(T::add(x, y));
    out[1] = plain(T::sub(x, y));
    out[2] = plain(T::mul(x, y));
    out[3] = plain(T::fma(x, y, z));
    out[4] = plain(T::add(z, T::mul(x, y)));
    out[5] = plain(T::round(d));
    out[6] = d == d ? plain(T::down(d)) : 0;
    out[7] = (u64)T::length(T::bits(x));
}

struct Chunks {
    u64 chunks, tiles, out, count, n;
};

// The chunk of each of n tiles, a warp a tile.
__device__ __forceinline__ void chunk_of(const Chunks& a) {
    const int lane = threadIdx.x & 31;
    const u64 i = (u64)blockIdx.x * 4 + threadIdx.x / 32;
    if (i >= a.n) return;
    const u32 at = frame::chunk_of((const EncodeChunk*)a.chunks, (u32)a.count, ((const u32*)a.tiles)[i], lane);
    if (lane == 0) ((u32*)a.out)[i] = at;
}

struct Copy {
    u64 in, copy, sums, n, first, segment;
};

// Copies n words, `segment` a CTA, and sums each segment; word 0 is number `first` of a frame.
template <int THREADS, int BATCH>
__device__ __forceinline__ void copy_summed(const Copy& a) {
    const u64 from = blockIdx.x * a.segment, words = min(a.segment, a.n - from);
    const u64 sum = warp::sum(frame::copy_summed<THREADS, BATCH>((u32*)a.copy + from, (const u32*)a.in + from, a.first + from, (u32)words));
    if ((threadIdx.x & 31) == 0) atomicAdd((u64*)a.sums + blockIdx.x, sum);
}

// --- prim --------------------------------------------------------------------------------------------------------------

struct Scans {
    u64 in, sums, scans, xors, ranges, n;
};

// Words of 8 bytes, 32 a warp: their sum, running sums and exclusive ors; range of their upper halves as f32, and as f64.
__device__ __forceinline__ void scans(const Scans& a) {
    const int lane = threadIdx.x & 31;
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    const u64 warp = i / 32;
    if (warp * 32 >= a.n) return;
    const u64 x = ((const u64*)a.in)[i];
    const u64 sum = warp::sum(x);
    ((u64*)a.scans)[i] = warp::inclusive(x, lane);
    ((u64*)a.xors)[i] = warp::inclusive_xor(x, lane);
    float lo = __uint_as_float((u32)(x >> 32)), hi = lo;
    double low = __longlong_as_double((long long)x), high = low;
    warp::range(lo, hi);
    warp::range(low, high);
    if (lane == 0) {
        ((u64*)a.sums)[warp] = sum;
        // Zeros of either sign are equal.
        u64* range = (u64*)a.ranges + 4 * warp;
        range[0] = plain(__fadd_rn(lo, 0.0f));
        range[1] = plain(__fadd_rn(hi, 0.0f));
        range[2] = plain(__dadd_rn(low, 0.0));
        range[3] = plain(__dadd_rn(high, 0.0));
    }
}

struct Places {
    u64 sizes, starts, places, ticket;
};

// Every tile's start, from all sizes. One warp a tile; tiles by tickets.
__device__ __forceinline__ void look_back(const Places& a) {
    const int lane = threadIdx.x;
    u32 t = 0;
    if (lane == 0) t = atomicAdd((u32*)a.ticket, 1u);
    t = warp::from(t, 0);
    const u32 size = ((const u32*)a.sizes)[t];
    if (lane == 0) lookback::announce((u64*)a.places, t, size);
    __syncwarp();
    const u32 start = lookback::place((u64*)a.places, t, size, lane);
    if (lane == 0) ((u32*)a.starts)[t] = start;
}

// --- szx ---------------------------------------------------------------------------------------------------------------

template <class S>
constexpr u32 LONGEST = 32 + 4096 * Traits<S>::W;

// Bounds in; three words out.
template <class S>
__device__ __forceinline__ void szx_rule(const Arrays& a) {
    using T = Traits<S>;
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i >= a.n) return;
    const double b = ((const double*)a.in)[i];
    u64* out = (u64*)a.out + 3 * i;
    const szx::Rule<S> r = szx::rule<S>(b, false, 0, false);
    out[0] = r.usable ? (u64)T::bits(r.step) : 0;
    out[1] = r.usable ? (u64)T::bits(r.inverse) : 0;
    out[2] = szx::rule<S>(b, true, 0, false).q;
}

struct Szx {
    u64 values, kinds, words, payloads, n, bound, fill, fill_on;
};

// Tiles into payloads, one warp a tile: kinds, 32 a tile; words of the payload; the payload.
template <class S, bool POINTWISE>
__device__ __forceinline__ void szx_encode(const Szx& a) {
    using T = Traits<S>;
    __shared__ uint4 room[LONGEST<S> / 16 + 1];
    u8* stage = (u8*)room;
    __shared__ szx::Block<S> blocks[32];
    const int lane = threadIdx.x;
    const u64 first = (u64)blockIdx.x * 4096;
    const u32 here = (u32)min(a.n - first, (u64)4096), count = (here + 127) / 128;
    const szx::Rule<S> r = szx::rule<S>(__longlong_as_double((long long)a.bound), POINTWISE, a.fill, a.fill_on != 0);
    auto load = [&](u32 block, S(&x)[4]) {
        const u32 last = min(here, 128 * (block + 1)) - 1;
#pragma unroll
        for (u32 j = 0; j < 4; j++) x[j] = ((const S*)a.values)[first + min(128 * block + 4 * lane + j, last)];
    };
    szx::Lane<S> own;
    for (u32 block = 0; block < 32; block++) {
        szx::Block<S> b = {};
        if (block < count) {
            S x[4];
            load(block, x);
            szx::analyse<S, POINTWISE>(b, own, x, r, (int)min(here - 128 * block, 128u), lane);
        }
        if (lane == 0) blocks[block] = b;
    }
    for (u32 i = lane; i < (LONGEST<S> + 16) / 4; i += 32) ((u32*)stage)[i] = 0;
    __syncwarp();
    const u32 kind = blocks[lane].kind;
    u32 end;
    const szx::Parts parts = szx::offsets<T::W>(szx::fixed_parts<POINTWISE>(kind), blocks[lane].lens, count, lane, end);
    if (lane < (int)count) stage[lane] = (u8)kind;
    for (u32 block = 0; block < count; block++) {
        S x[4];
        szx::Block<S> b;
        const int values = (int)min(here - 128 * block, 128u);
        load(block, x);
        szx::analyse<S, POINTWISE>(b, own, x, r, values, lane);
        szx::emit<S, POINTWISE>(stage, blocks[block], own, parts, block, values, lane, [&](S(&y)[4]) { load(block, y); });
    }
    __syncwarp();
    const u32 words = (end + 3) / 4;
    ((u8*)a.kinds)[32 * blockIdx.x + lane] = (u8)kind;
    if (lane == 0) ((u32*)a.words)[blockIdx.x] = words;
    u32* out = (u32*)a.payloads + (u64)blockIdx.x * (LONGEST<S> / 4);
    for (u32 i = lane; i < words; i += 32) out[i] = ((const u32*)stage)[i];
}

struct SzxBack {
    u64 payloads, words, verdicts, values, n, bound;
};

// The way back: 1 where a payload's lengths are right; its values.
template <class S, bool POINTWISE>
__device__ __forceinline__ void szx_decode(const SzxBack& a) {
    using Bits = typename Traits<S>::Bits;
    __shared__ uint4 room[LONGEST<S> / 16 + 1];
    u8* stage = (u8*)room;
    __shared__ szx::Parts parts[32];
    __shared__ u32 kinds[32];
    const int lane = threadIdx.x;
    const u64 first = (u64)blockIdx.x * 4096;
    const u32 here = (u32)min(a.n - first, (u64)4096), count = (here + 127) / 128, words = ((const u32*)a.words)[blockIdx.x];
    const u32* from = (const u32*)a.payloads + (u64)blockIdx.x * (LONGEST<S> / 4);
    for (u32 i = lane; i < (LONGEST<S> + 16) / 4; i += 32) ((u32*)stage)[i] = i < words ? from[i] : 0;
    __syncwarp();
    const szx::Rule<S> r = szx::rule<S>(__longlong_as_double((long long)a.bound), POINTWISE, 0, false);
    const int mine = max(min((int)here - 128 * lane, 128), 0);
    if (!szx::layout<S, POINTWISE>(stage, parts, kinds, r, 4 * words, count, mine, lane)) return;
    if (lane == 0) ((u32*)a.verdicts)[blockIdx.x] = 1;
    __syncwarp();
    for (u32 block = 0; block < count; block++) {
        Bits x[4];
        szx::take<S, POINTWISE>(stage, kinds[block], parts[block], r, lane, x);
        for (u32 j = 0; j < 4; j++) {
            const u32 i = 128 * block + 4 * lane + j;
            if (i < here) ((Bits*)a.values)[first + i] = x[j];
        }
    }
}

// --- ndzip -------------------------------------------------------------------------------------------------------------

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

// --- lorenzo -----------------------------------------------------------------------------------------------------------

struct Quanta {
    u64 values, quanta, ordinary, differ, n, bound, log, fill, fill_on;
};

template <class S, class Quantizer>
__device__ __forceinline__ void quantize_with(const Quanta& a, const Quantizer& quantizer) {
    using T = Traits<S>;
    const u64 i = 4 * ((u64)blockIdx.x * 128 + threadIdx.x);
    if (i >= a.n) return;
    const u32 valid = a.n - i < 4 ? (1u << (a.n - i)) - 1 : 15u;
    S x[4];
    for (int j = 0; j < 4; j++) x[j] = valid >> j & 1 ? ((const S*)a.values)[i + j] : S(0);
    int q[4];
    typename T::Bits differ = 0;
    const u32 good = quantize::four(quantizer, x, a.fill_on ? (typename T::Bits)a.fill : T::EXPONENT, valid, q, differ);
    for (int j = 0; j < 4; j++) {
        if (valid >> j & 1) {
            ((int*)a.quanta)[i + j] = good >> j & 1 ? q[j] : 0;
            ((u8*)a.ordinary)[i + j] = good >> j & 1;
        }
    }
    if (differ) atomicOr((u32*)a.differ, 1u);
}

template <class S>
__device__ __forceinline__ void quantize_all(const Quanta& a) {
    const double bound = __longlong_as_double((long long)a.bound);
    if (a.log) {
        quantize_with<S>(a, quantize::Log<S>(bound, (double)fmt::LORENZO_LIMIT));
    } else {
        const double limit = Traits<S>::W == 4 ? (double)fmt::LORENZO_LIMIT_F32 : (double)fmt::LORENZO_LIMIT;
        quantize_with<S>(a, quantize::Linear<S>(__dmul_rn(2.0, bound), bound, limit));
    }
}

struct Tile {
    u64 in, out, costs, best, z, y, x, axes;
};

// A tile's residuals along given axes; the cost of all of them for every set of axes that it allows; the set that is taken.
__device__ __forceinline__ void differences(const Tile& a) {
    __shared__ int4 room[tiles::MOST / 4];
    int* q = (int*)room;
    __shared__ u32 classes[selection::SETS * estimate::CLASSES], masks[selection::SETS * selection::MASKS], costs[selection::SETS];
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const tiles::Three e = {(u32)a.z, (u32)a.y, (u32)a.x};
    const tiles::Divisor by_x(e.x), by_y(e.y);
    const u32 n = e.product(), rows = e.z * e.y, sets = selection::sets_of(e);
    for (u32 i = threadIdx.x; i < n; i += 256) q[i] = ((const int*)a.in)[i];
    __syncthreads();
    for (u32 i = 4 * threadIdx.x; i < n; i += 4 * 256) {
        int d[4];
        if (e.x % 4 == 0) {
            const u32 row = by_x.of(i), z = by_y.of(row);
            lorenzo::difference4(q, i, e, tiles::Three{z, row - z * e.y, i - row * e.x}, (u32)a.axes, d);
        } else {
            for (u32 j = 0; j < 4 && i + j < n; j++) d[j] = lorenzo::difference(q, i + j, e, by_x, by_y, (u32)a.axes);
        }
        for (u32 j = 0; j < 4 && i + j < n; j++) ((int*)a.out)[i + j] = d[j];
    }
    for (int round = 0; round < 2; round++) {
        const bool whole = round == 0 || rows < 8;
        const u32 places = selection::sampled_rows(rows, whole) * e.x;
        if (threadIdx.x < selection::SETS * estimate::CLASSES) classes[threadIdx.x] = 0;
        __syncthreads();
        selection::sample<256>(q, e, by_x, by_y, sets, places, whole, classes, masks, lane);
        __syncthreads();
        if (w < (int)selection::SETS && (sets >> w & 1)) {
            const u32 cost = selection::cost_of(classes + estimate::CLASSES * w, masks + selection::MASKS * w, places, lane);
            if (lane == 0) costs[w] = cost;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 best = 0;
            for (u32 k = 0; k < selection::SETS; k++) {
                if (!(sets >> k & 1)) continue;
                if (round == 0) ((u32*)a.costs)[k] = costs[k];
                if (costs[k] < costs[best]) best = k;
            }
            if (round == 1) *(u32*)a.best = selection::axes_of(best);
        }
        __syncthreads();
    }
}

struct Points {
    u64 residuals, points, z, y, x;
};

// A tile's points from residuals in the order of the stream.
__device__ __forceinline__ void points_of(const Points& a) {
    alignas(16) __shared__ int points[tiles::MOST];
    __shared__ interpolate::Level levels[interpolate::LEVELS];
    const tiles::Three e = {(u32)a.z, (u32)a.y, (u32)a.x};
    for (u32 i = threadIdx.x; i < e.product(); i += 256) points[i] = ((const int*)a.residuals)[i];
    interpolate::TileAny::prepare(levels, e);
    __syncthreads();
    const interpolate::TileAny any(levels, e);
    auto with = [&](const auto& tile) {
        interpolate::points(tile, points);
        for (u32 i = threadIdx.x; i < e.product(); i += 256) {
            ((int*)a.points)[i] = points[interpolate::find(tile.finest(), tile.where(i))];
        }
    };
    if (interpolate::Tile3d::fits(e)) {
        with(interpolate::Tile3d());
    } else if (interpolate::Tile2d::fits(e)) {
        with(interpolate::Tile2d());
    } else if (interpolate::Tile1d::fits(e)) {
        with(interpolate::Tile1d());
    } else {
        with(any);
    }
}

struct Counts {
    u64 counts, lengths, codewords;
};

__device__ __forceinline__ void codebook_of(const Counts& a) {
    __shared__ codebook::Shared sh;
    __shared__ u32 counts[codebook::SYMBOLS];
    if (threadIdx.x < codebook::SYMBOLS) counts[threadIdx.x] = ((const u32*)a.counts)[threadIdx.x];
    __syncthreads();
    codebook::make(sh, counts);
    if (threadIdx.x < codebook::SYMBOLS) {
        ((u8*)a.lengths)[threadIdx.x] = (u8)sh.lengths[threadIdx.x];
        ((unsigned short*)a.codewords)[threadIdx.x] = (unsigned short)sh.codewords[threadIdx.x];
    }
}

struct Cut {
    u64 sides, tiles, n;
};

// Every tile's place and extents.
__device__ __forceinline__ void cut(const Cut& a) {
    const u64 i = (u64)blockIdx.x * 128 + threadIdx.x;
    if (i >= a.n) return;
    const u32* sides = (const u32*)a.sides;
    const tiles::Tile t = tiles::of(sides, sides + 3, (u32)i);
    u64* out = (u64*)a.tiles + 4 * i;
    out[0] = tiles::row(sides, t, 0, 0);
    out[1] = t.extents.z;
    out[2] = t.extents.y;
    out[3] = t.extents.x;
}

}  // namespace

#define STAGE(name, threads, Args, body) \
    extern "C" __global__ __launch_bounds__(threads) void check_##name(Args a) { body(a); }
STAGE(exact, 128, Arrays, exact_ops)
STAGE(arithmetic_f32, 128, Arrays, arithmetic<float>)
STAGE(arithmetic_f64, 128, Arrays, arithmetic<double>)
STAGE(chunk_of, 128, Chunks, chunk_of)
STAGE(sum_4, 128, Copy, (copy_summed<128, 4>))
STAGE(sum_8, 256, Copy, (copy_summed<256, 8>))
STAGE(sum_11, 128, Copy, (copy_summed<128, 11>))
STAGE(scans, 128, Scans, scans)
STAGE(look_back, 32, Places, look_back)
STAGE(szx_rule_f32, 128, Arrays, szx_rule<float>)
STAGE(szx_rule_f64, 128, Arrays, szx_rule<double>)
STAGE(szx_encode_f32, 32, Szx, (szx_encode<float, false>))
STAGE(szx_encode_f64, 32, Szx, (szx_encode<double, false>))
STAGE(szx_encode_pointwise_f32, 32, Szx, (szx_encode<float, true>))
STAGE(szx_encode_pointwise_f64, 32, Szx, (szx_encode<double, true>))
STAGE(szx_decode_f32, 32, SzxBack, (szx_decode<float, false>))
STAGE(szx_decode_f64, 32, SzxBack, (szx_decode<double, false>))
STAGE(szx_decode_pointwise_f32, 32, SzxBack, (szx_decode<float, true>))
STAGE(szx_decode_pointwise_f64, 32, SzxBack, (szx_decode<double, true>))
STAGE(ndzip_cube_f32, ndzip::Shape<u32>::THREADS, Cubes, ndzip_cube<u32>)
STAGE(ndzip_cube_f64, ndzip::Shape<u64>::THREADS, Cubes, ndzip_cube<u64>)
STAGE(ndzip_back_f32, ndzip::Shape<u32>::THREADS, CubesBack, ndzip_back<u32>)
STAGE(ndzip_back_f64, ndzip::Shape<u64>::THREADS, CubesBack, ndzip_back<u64>)
STAGE(ndzip_places, 128, Grids, ndzip_places)
STAGE(quantize_f32, 128, Quanta, quantize_all<float>)
STAGE(quantize_f64, 128, Quanta, quantize_all<double>)
STAGE(differences, 256, Tile, differences)
STAGE(interpolate, 256, Points, points_of)
STAGE(codebook, 256, Counts, codebook_of)
STAGE(tiles, 128, Cut, cut)
