// SPDX-License-Identifier: MIT OR Apache-2.0
// `interpolate`: the tiles that `plan` has marked, again: codecs/src/codec/lorenzo/FORMAT.md §4.4 and §8.
//
// points.cuh makes points and residuals of a tile. Then it is asked whether the points hold: each must keep the bound
// of its value in exact arithmetic, and not give the fill value. For most points this follows from how they were found;
// only those in `sh.unsure` are looked at again, unless there is a fill value or the unit is near the ends of the
// type's range. If all hold and the residuals cost less than Lorenzo's, or if the points give every value bit for bit,
// they take the place of what `plan` has left in working memory; else that stays.
//
// A tile whose values all lie on points, and tell which, has most likely been decoded from a frame. One of the ways to
// interpolate it gives every value bit for bit then, and is searched for. Where values are so large that they do not
// tell, every way that holds may give them back: that counts for nothing.
#pragma once
#include "points.cuh"

namespace {

// Whether the points in `sh.points` may stand for the tile's values; `same`: they give all but outliers bit for bit.
template <class S, class Fill>
__device__ __forceinline__ bool points_hold(const InterpolateShared& sh, interpolate::Shape shape, const Source<S>& in,
                                            const quantize::Linear<S>& fine, const Fill& none, bool& same) {
    using T = Traits<S>;
    const typename T::Bits fill = bits_of_fill<S>(none);
    constexpr u32 FARTHEST = (u32)fmt::LORENZO_POINT_LIMIT;
    bool veto = false;
    typename T::Bits differ = 0;
    in.each([&](u32, u32 i, u32 place) {
        S x[4], back[4];
        in.four(i, place, x);
        int r[4];
#pragma unroll
        for (u32 j = 0; j < 4; j++) r[j] = sh.points[address_of(shape, i + j)];
        const u32 fits = four_valid(i, in.n) & ~(sh.outliers[i / 32] >> (i % 32));
        u32 unsure = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            back[j] = fine.value(quantize::number(r[j]));
            // Beyond the farthest point on either side.
            const bool bad = (u32)r[j] + FARTHEST > 2 * FARTHEST || T::bits(back[j]) == fill;
            if (fits >> j & 1) {
                veto = veto || bad;
                differ |= T::bits(back[j]) ^ T::bits(x[j]);
            }
            unsure |= fine.surely_holds(x[j], back[j]) ? 0u : 1u << j;
        }
        unsure &= fits;
        if (unsure) {
#pragma unroll
            for (int j = 0; j < 4; j++) veto = veto || ((unsure >> j & 1) && !fine.holds(x[j], back[j]));
        }
    });
    const bool holds = !veto;
    same = !__syncthreads_or(differ != 0);
    return __syncthreads_and(holds);
}

// The same where every point outside `sh.unsure` surely holds and there is no fill value: looks at those inside alone.
// `alike`: 32 values are on the grid. If they are not, `on_grid` is false too, and most tiles need no more than this.
template <class S, class Fill>
__device__ __forceinline__ bool unsure_hold(InterpolateShared& sh, interpolate::Shape shape, const Source<S>& in,
                                            const quantize::Linear<S>& fine, const Fill& fill, bool& alike, int lane,
                                            int w) {
    constexpr u32 FARTHEST = (u32)fmt::LORENZO_POINT_LIMIT;
    if (w == 0) {
        const u32 i = min((u32)lane * (in.n / 32 + 1), in.n - 1);
        const S x = in.one(i);
        double whole;
        int q;
        const bool on = !fine.nearest(x, whole, q) || is_odd(x, q, fill) || fine.tells(x, whole);
        const bool all = __all_sync(warp::ALL, on);
        if (lane == 0) sh.alike = all;
    }
    bool holds = true;
    for (u32 left = sh.unsure[threadIdx.x]; left; left &= left - 1) {
        const u32 at = 32 * threadIdx.x + (u32)__ffs((int)left) - 1;
        const u32 i = number_of(shape, at);
        if (sh.outliers[i / 32] >> (i % 32) & 1) continue;
        const int r = sh.points[at];
        const S x = in.one(i);
        holds = holds && (u32)r + FARTHEST <= 2 * FARTHEST && fine.holds(x, fine.value(quantize::number(r)));
    }
    holds = __syncthreads_and(holds);
    alike = sh.alike;
    return holds;
}

// Whether the points give all but outliers bit for bit.
template <class S>
__device__ __forceinline__ bool points_same(const InterpolateShared& sh, interpolate::Shape shape, const Source<S>& in,
                                            const quantize::Linear<S>& fine) {
    using T = Traits<S>;
#pragma unroll 1
    for (u32 k = 0; k < 8; k++) {
        const u32 i = 4 * (threadIdx.x + k * THREADS);
        typename T::Bits differ = 0;
        if (i < in.n) {
            S x[4];
            in.four(i, x);
            int r[4];
#pragma unroll
            for (u32 j = 0; j < 4; j++) r[j] = sh.points[address_of(shape, i + j)];
            const u32 fits = four_valid(i, in.n) & ~(sh.outliers[i / 32] >> (i % 32));
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (fits >> j & 1) differ |= T::bits(fine.value(quantize::number(r[j]))) ^ T::bits(x[j]);
            }
        }
        if (__syncthreads_or(differ != 0)) return false;
    }
    return true;
}

// Whether a tile may have been interpolated this way before: its first point is a multiple of a step then.
template <class S, class Fill>
__device__ __forceinline__ bool first_fits(const Source<S>& in, const quantize::Linear<S>& fine, const Fill& fill,
                                           u32 way) {
    using namespace interpolate;
    const S x = in.one(0);
    double whole;
    int q;
    if (!fine.nearest(x, whole, q) || is_odd(x, q, fill)) return true;
    const u32 top = max(max(top_of(in.e.x), top_of(in.e.y)), top_of(in.e.z));
    return q % (int)step_at(way, top) == 0;
}

// LIMITED: of chunks of which more than the bound is kept.
template <class S, bool LIMITED>
__device__ __forceinline__ void interpolate_tile(const EncodeArgs& args) {
    __shared__ InterpolateShared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 t = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    // From the last tile on, whose values `plan` has just had in the cache. Those at a chunk's end, which are not whole
    // and take longer, do not come last.
    const u32 tile = args.tiles - 1 - blockIdx.x;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, tile, lane);
    const EncodeChunk& c = chunks[chunk];
    const u32 number = tile - c.first_tile;
    const Work work(c, number);
    Meta meta = *work.meta();
    if (!(meta.kind & TRIED)) return;
    const u32 likely = meta.kind >> TRIED_WAY & 255u, possible = meta.kind >> TRIED_SETS & 255u;
    meta.kind &= 255u;
    const Source<S> in(c, tiles::of(c.extents, c.tile, number));
    const u32 n = in.n;
    const Codebook* found = (const Codebook*)args.shared + chunk;
    const quantize::Linear<S> fine = units<S>(found->used, (S)found->base);
    const OddOf<S, LIMITED> odd(args, c, chunk, fine, w, lane);
    const auto& fill = odd.get();
    const interpolate::Shape shape = interpolate::shape_of(in.e);
    // Most points need no second look at their values.
    const bool sure = !(c.flags & FLAG_FILL) && usual<S>(fine.step) && fine.base == S(0);
    // The ways to go: the likely one; all that are possible on the grid, until one is exact; if none is, the likely one
    // again if it is shorter.
    constexpr u32 WAYS = 14, LAST = WAYS + 1;
    bool taken = false, shorter = false;
    u32 all = 0, way = likely;
    huffman::Mine mine;
#pragma unroll 1
    for (u32 k = likely ? 0 : 1; k <= LAST; k++) {
        if (k > 0) {
            way = k == LAST ? likely : (k - 1) % 7 + 1 + (k > 7 ? interpolate::FINER : 0);
            const bool go = k == LAST
                                ? shorter
                                : (possible >> (way & interpolate::ALL_AXES) & 1) && first_fits(in, fine, fill, way);
            if (!go) continue;
            __syncthreads();
        }
        sh.outliers[t] = 0;
        sh.unsure[t] = 0;
        if (t == 0) sh.all = sh.some = 0, sh.exact = work.exact(true);
        // Zeros up to the end of the last thread's bytes.
        if (n / 4 + t < (n + 31) / 32 * 8) sh.bytes[n / 4 + t] = 0;
        __syncthreads();
        all = code_points(sh, shape, way, in, fine, fill, lane, w);
        bool alike = true, grid = true, same;
        const bool holds = sure ? unsure_hold(sh, shape, in, fine, fill, alike, lane, w)
                                : points_hold(sh, shape, in, fine, fill, same);
        if (sure) same = alike && points_same(sh, shape, in, fine);
        clear_counts(sh);
        __syncthreads();
        mine = huffman::take(sh.bytes, n);
        if (holds) count(sh, mine, n, true, lane, w);
        if (LIMITED && holds) add_outliers_cost<S>(sh, lane);
        shorter = shorter || (k == 0 && holds && sh.cost < meta.cost);
        same = same && holds;
        if (k == 0) {
            // Whether to take what is not shorter, or to go on. Later ways are only for tiles on the grid.
            const bool fits = first_fits(in, fine, fill, 0) || first_fits(in, fine, fill, interpolate::FINER);
            grid = (same ? !shorter : possible && alike && fits) && on_grid(in, fine, fill);
        }
        taken = holds && ((same && grid) || (k % LAST == 0 && shorter));
        if (same || !grid) break;
    }
    u32* counts = ((Codebook*)args.shared + chunk)->counts;
    if (taken) {
        meta =
            settle_tile(sh, args, args.tiles - 1 - blockIdx.x, in, work, mine, INTERPOLATED | way, sh.some, all, lane);
        if ((meta.kind & CLASS) == HUFFMAN) add_symbols(sh, mine, n, work.counts(), counts, true);
    } else if ((meta.kind & CLASS) == HUFFMAN && t < huffman::SYMBOLS) {
        // What `plan` has left is good.
        add_symbol(counts, work.counts()[t]);
    }
    // All have read it, also where there was no way to go.
    __syncthreads();
    if (t == 0) *work.meta() = meta;
}

}  // namespace
