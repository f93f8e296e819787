// SPDX-License-Identifier: MIT OR Apache-2.0
// The steps of a tile of lorenzo: quanta, residuals, points, codewords; and how a chunk is cut into tiles.
#include "check.cuh"
#include "lorenzo/select.cuh"
#include "stage/codebook.cuh"
#include "stage/interpolate/points.cuh"
#include "stage/quantize.cuh"

namespace {

struct Quanta {
    u64 values, quanta, regular, differ, n, bound, log, fill, fill_on;
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
            ((u8*)a.regular)[i + j] = good >> j & 1;
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
        quantize_with<S>(a, quantize::Linear<S>(__dmul_rn(2.0, bound), bound, limit, -S(0)));
    }
}

struct Tile {
    u64 in, out, costs, best, z, y, x, axes;
};

// A tile's residuals along given axes; the cost of all of them for every set of axes allowed; the set that is taken.
__device__ __forceinline__ void differences(const Tile& a) {
    __shared__ int4 words[tiles::MOST / 4];
    int* q = (int*)words;
    __shared__ u32 classes[selection::SETS * estimate::CLASSES], masks[selection::SETS * selection::MASKS],
        costs[selection::SETS];
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
            const u32 cost =
                selection::cost_of(classes + estimate::CLASSES * w, masks + selection::MASKS * w, places, lane);
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
    u64 residuals, points, z, y, x, way;
};

// A tile's points from residuals in the order of the stream, interpolated this way.
__device__ __forceinline__ void points_of(const Points& a) {
    alignas(16) __shared__ int points[tiles::MOST];
    __shared__ interpolate::AnyShared sh;
    const tiles::Three e = {(u32)a.z, (u32)a.y, (u32)a.x};
    const u32 n = e.product(), way = (u32)a.way;
    for (u32 i = threadIdx.x; i < n; i += 256) points[i] = ((const int*)a.residuals)[i];
    __syncthreads();
    auto leave = [&](auto address) {
        for (u32 i = threadIdx.x; i < n; i += 256) ((int*)a.points)[i] = points[address(i)];
    };
    switch (interpolate::shape_of(e)) {
        case interpolate::BLOCK:
            interpolate::points<3>(points, way);
            leave([](u32 i) { return interpolate::Whole<3>::address(interpolate::Whole<3>::where(i)); });
            break;
        case interpolate::PLANE:
            interpolate::points<2>(points, way);
            leave([](u32 i) { return interpolate::Whole<2>::address(interpolate::Whole<2>::where(i)); });
            break;
        case interpolate::LINE:
            interpolate::points<1>(points, way);
            leave([](u32 i) { return interpolate::Whole<1>::address(interpolate::Whole<1>::where(i)); });
            break;
        default: interpolate::points(points, sh, e, way); leave([](u32 i) { return i; });
    }
}

struct Counts {
    u64 counts, lengths, codewords;
};

__device__ __forceinline__ void codebook_of(const Counts& a) {
    __shared__ codebook::Shared sh;
    const codebook::Shared::Half& book = sh.half[codebook::choose_codebook(sh, (const u32*)a.counts)];
    if (threadIdx.x < codebook::SYMBOLS) {
        ((u8*)a.lengths)[threadIdx.x] = book.lengths[threadIdx.x];
        ((unsigned short*)a.codewords)[threadIdx.x] = book.codewords[threadIdx.x];
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

STAGE(lorenzo_quantize_f32, 128, Quanta, quantize_all<float>)
STAGE(lorenzo_quantize_f64, 128, Quanta, quantize_all<double>)
STAGE(lorenzo_differences, 256, Tile, differences)
STAGE(lorenzo_interpolate, 256, Points, points_of)
STAGE(lorenzo_codebook, codebook::THREADS, Counts, codebook_of)
STAGE(lorenzo_tiles, 128, Cut, cut)
