// SPDX-License-Identifier: MIT OR Apache-2.0
// `interpolate`: the tiles that `plan` has marked, again: src/codec/lorenzo/FORMAT.md §4.4 and §8.
//
// points.cuh makes points and residuals of a tile. Then it is asked whether the points hold: each must keep the bound
// of its value in exact arithmetic, and not give the fill value. For most points this follows from how they were found;
// only those in `sh.unsure` are looked at again, unless there is a fill value or the unit is near the ends of the
// type's range. If all hold and the residuals cost less than Lorenzo's, or if the points give every value bit for bit,
// they take the place of what `plan` has left in working memory; else that stays.
#pragma once
#include "points.cuh"

namespace {

// The points of the four values from place `i` of the tile on, when all is done; the last one again after the end.
template <class S>
__device__ __forceinline__ int4 points_at(const InterpolateShared& sh, const Source<S>& in, u32 i) {
    const interpolate::Level& level = sh.finest;
    if (!in.vec4) {
        auto one = [&](u32 k) { return sh.points[find(level, in.where(min(i + k, in.n - 1)))]; };
        return make_int4(one(0), one(1), one(2), one(3));
    }
    u32 at;
    const int2 even = *(const int2*)(sh.points + find_pair(level, in.where(i), at)),
               odd = *(const int2*)(sh.points + at);
    return make_int4(even.x, odd.x, even.y, odd.y);
}

// Whether the points in `sh.points` may stand for the tile's values; `exact`: they give all but outliers bit for bit.
template <class S>
__device__ __forceinline__ bool points_hold(const InterpolateShared& sh, const Source<S>& in,
                                            const quantize::Linear<S>& fine, typename Traits<S>::Bits fill,
                                            bool& exact) {
    using T = Traits<S>;
    constexpr u32 FARTHEST = (u32)fmt::LORENZO_POINT_LIMIT;
    bool veto = false;
    typename T::Bits differ = 0;
    in.each([&](u32, u32 i, u32 place) {
        S x[4], back[4];
        in.four(i, place, x);
        const int4 r4 = points_at(sh, in, i);
        const int r[4] = {r4.x, r4.y, r4.z, r4.w};
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
    exact = !__syncthreads_or(differ != 0);
    return __syncthreads_and(holds);
}

// The same where every point outside `sh.unsure` surely holds and there is no fill value: looks at those inside alone.
// `exact` is judged by 32 points: it may be true where some value differs, never false where all are the same.
template <class S>
__device__ __forceinline__ bool unsure_hold(InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine,
                                            bool& exact, int lane, int w) {
    constexpr u32 FARTHEST = (u32)fmt::LORENZO_POINT_LIMIT;
    if (w == 0) {
        const u32 i = min((u32)lane * (in.n / 32 + 1), in.n - 1);
        const int r = sh.points[find(sh.finest, in.where(i))];
        const bool same = (sh.outliers[i / 32] >> (i % 32) & 1) ||
                          Traits<S>::bits(fine.value(quantize::number(r))) == Traits<S>::bits(in.one(i));
        const bool alike = __all_sync(warp::ALL, same);
        if (lane == 0) sh.alike = alike;
    }
    const interpolate::TileAny tile(sh.levels(), in.e);
    bool holds = true;
    for (u32 left = sh.unsure[threadIdx.x]; left; left &= left - 1) {
        const u32 at = 32 * threadIdx.x + (u32)__ffs((int)left) - 1;
        const Three place = tile.place_of(at);
        const u32 i = (place.z * in.e.y + place.y) * in.e.x + place.x;
        if (sh.outliers[i / 32] >> (i % 32) & 1) continue;
        const int r = sh.points[find(sh.finest, place)];
        const S x = in.one(i);
        holds = holds && (u32)r + FARTHEST <= 2 * FARTHEST && fine.holds(x, fine.value(quantize::number(r)));
    }
    holds = __syncthreads_and(holds);
    exact = sh.alike;
    return holds;
}

// Whether the points give all but outliers bit for bit.
template <class S>
__device__ __forceinline__ bool points_same(const InterpolateShared& sh, const Source<S>& in,
                                            const quantize::Linear<S>& fine) {
    using T = Traits<S>;
#pragma unroll 1
    for (u32 k = 0; k < 8; k++) {
        const u32 i = 4 * (threadIdx.x + k * THREADS);
        typename T::Bits differ = 0;
        if (i < in.n) {
            S x[4];
            in.four(i, x);
            const int4 r4 = points_at(sh, in, i);
            const int r[4] = {r4.x, r4.y, r4.z, r4.w};
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

template <class S>
__device__ __forceinline__ void interpolate_tile(const EncodeArgs& args) {
    __shared__ InterpolateShared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 t = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const EncodeChunk& c = chunks[chunk];
    const u32 number = blockIdx.x - c.first_tile;
    const Work work(c, number);
    Meta meta = *work.meta();
    if (!(meta.kind & TRIED)) return;
    meta.kind ^= TRIED;
    const Source<S> in(c, tiles::of(c.extents, c.tile, number));
    const u32 n = in.n;
    const typename Traits<S>::Bits fill = fill_of<S>(c);
    const quantize::Linear<S> fine = units<S>(frame::used_bound(c, (const ChunkState*)args.states + chunk));
    sh.outliers[t] = 0;
    sh.unsure[t] = 0;
    if (t == 0) sh.all = 0;
    interpolate::TileAny::prepare(sh.levels(), in.e);
    if (t == 32) sh.finest.set(in.e, 0);
    // Zeros up to the end of the last thread's bytes.
    if (n / 4 + t < (n + 31) / 32 * 8) sh.bytes[n / 4 + t] = 0;
    __syncthreads();
    bool some;
    u32 all;
    u32* exact = work.exact(true);
    if (interpolate::Tile3d::fits(in.e)) {
        all = code_points(sh, interpolate::Tile3d(), in, fine, fill, some, exact, lane, w);
    } else if (interpolate::Tile2d::fits(in.e)) {
        all = code_points(sh, interpolate::Tile2d(), in, fine, fill, some, exact, lane, w);
    } else if (interpolate::Tile1d::fits(in.e)) {
        all = code_points(sh, interpolate::Tile1d(), in, fine, fill, some, exact, lane, w);
    } else {
        all = code_points(sh, interpolate::TileAny(sh.levels(), in.e), in, fine, fill, some, exact, lane, w);
    }
    // Most points need no second look at their values.
    const bool sure = !(c.flags & FLAG_FILL) && usual<S>(fine.step);
    bool same, taken = sure ? unsure_hold(sh, in, fine, same, lane, w) : points_hold(sh, in, fine, fill, same);
    clear_counts(sh);
    __syncthreads();
    const huffman::Mine mine = huffman::take(sh.bytes, n);
    if (taken) {
        count(sh, mine, n, true, lane, w);
        taken = sh.cost < meta.cost || (same && (!sure || points_same(sh, in, fine)));
    }
    u32* counts = ((Codebook*)args.shared + chunk)->counts;
    if (taken) {
        meta = settle(sh, in, work, mine, INTERPOLATED, some, all, lane);
        if ((meta.kind & CLASS) == HUFFMAN) add_symbols(sh, mine, n, work.counts(), counts, true);
    } else if ((meta.kind & CLASS) == HUFFMAN && t < huffman::SYMBOLS) {
        // What `plan` has left is good.
        add_symbol(counts, work.counts()[t]);
    }
    if (t == 0) *work.meta() = meta;
}

}  // namespace
