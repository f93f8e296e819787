// SPDX-License-Identifier: MIT OR Apache-2.0
// `interpolate`: the tiles that `plan` has marked, again, each point predicted from those of coarser levels.
#pragma once
#include "whole.cuh"

namespace {

// Brings values in units to where their points will be; what the first warp is left with alone only that warp. Exceptions go to
// `sh.exceptions`; tells whether this thread has met some.
template <class S>
__device__ __forceinline__ bool bring(InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine,
                                      typename Traits<S>::Bits fill, const Plane& plane, int lane, int w) {
    const u32 few = plane.alone ? plane.left.product() : 0, first = plane.alone ? 32 : 0, apart = 4 * (THREADS - first);
    if (plane.alone && w == 0) {
        for (u32 i = lane; i < few; i += 32) {
            const tiles::Three at = interpolate::place_of(sh.split, 0, plane.left, i);
            const u32 l = plane.depth;
            sh.points[i] = in_units(fine, in.one(interpolate::dense(in.e, {at.z << l, at.y << l, at.x << l})), fill);
        }
        return false;
    }
    bool some = false;
    const interpolate::Split split = sh.split[0];
    S x[4], next[4];
    tiles::Three at = {0, 0, 0}, next_at = at;
    // One round ahead of what is computed.
    const u32 begin = 4 * (threadIdx.x - first);
#pragma unroll 1
    for (u32 i = begin; i < in.n + apart; i += apart) {
        if (i < in.n) {
            next_at = in.where(i);
            in.raw(i, next_at.z * in.plane + next_at.y * in.rise + next_at.x, next);
        }
        if (i != begin) {
            const u32 here = i - apart;
            in.turn(x);
            int q[4];
            u32 bad = 0;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                q[j] = in_units(fine, x[j], fill);
                bad |= q[j] == interpolate::NONE ? 1u << j : 0;
            }
            if (bad) {
                bad &= four_valid(here, in.n);
                some = some || bad;
                atomicOr(sh.exceptions + here / 32, bad << (here % 32));
            }
            if (plane.depth == 0) {
                if (few == 0) *(int4*)(sh.points + here) = make_int4(q[0], q[1], q[2], q[3]);
            } else {
                u32 odd, even = split.pair(at, odd);
                *(int2*)(sh.points + odd) = make_int2(q[1], q[3]);
                if (plane.depth == 1 || ((at.z | at.y) & 1)) {
                    if (even >= few) *(int2*)(sh.points + even) = make_int2(q[0], q[2]);
                } else {
                    // Two neighbours of the next level.
                    const tiles::Three half = {at.z / 2, at.y / 2, at.x / 2};
                    even = sh.split[1].pair(half, odd);
                    sh.points[odd] = q[2];
                    if (plane.depth > 2 && !((half.z | half.y) & 1)) even = interpolate::position(sh.split, plane.depth, at);
                    if (even >= few) sh.points[even] = q[0];
                }
            }
        }
        at = next_at;
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = next[j];
    }
    return some;
}

// The points of the four values from place `i` of the tile on, when all is done.
template <class S>
__device__ __forceinline__ int4 points_at(const InterpolateShared& sh, const Source<S>& in, u32 i, const Plane& plane) {
    if (plane.depth == 0) return *(const int4*)(sh.points + i);
    u32 at;
    const int2 even = *(const int2*)(sh.points + sh.split[0].pair(in.where(i), at)), odd = *(const int2*)(sh.points + at);
    return make_int4(even.x, odd.x, even.y, odd.y);
}

// Turns what is not split into points and residuals, level by level: `threads` of them, all or the first warp. Returns all of
// this thread's zigzag values together.
__device__ __forceinline__ u32 interpolate_left(InterpolateShared& sh, const Plane& plane, u32 top, u32* exact) {
    const u32 threads = plane.alone ? 32 : THREADS;
    u32 all = 0;
#pragma unroll 1
    for (u32 l = top + 1; l-- > plane.depth;) {
#pragma unroll 1
        for (u32 pass = 0; pass < 3; pass++) {
            // Above all levels, the one point.
            const interpolate::Level& v = sh.levels()[min(l, top - 1)];
            const bool single = l == top;
            const u32 end = single ? (pass == 0) : v.end(pass);
#pragma unroll 1
            for (u32 i = (single ? 0 : v.first(pass)) + threadIdx.x; i < end; i += threads) {
                u32 at = 0;
                const int predicted = single ? 0 : interpolate::predict_one(v, sh.points, plane.left, l - plane.depth, pass, i, at);
                visit_one(sh, at, i, predicted, exact, all);
            }
            if (plane.alone) {
                __syncwarp();
            } else {
                __syncthreads();
            }
        }
    }
    return all;
}

// The levels that are split.
__device__ __forceinline__ u32 interpolate_fours(InterpolateShared& sh, u32 depth, bool some, u32* exact) {
    All all = {0, 0};
#pragma unroll 1
    for (u32 l = depth; l-- > 0;) {
        const interpolate::Split v = sh.split[l];
        const u32 fours = v.points / 4;
        u32 begin = 1;
#pragma unroll 1
        for (u32 pass = 0; pass < 3; pass++) {
            const u32 classes = sh.split[l].classes[pass];
#pragma unroll 1
            for (u32 i = threadIdx.x; i < classes * fours; i += THREADS) {
                const u32 k = tiles::Divisor(fours, v.by_fours).of(i), p = v.parities >> (4 * (begin + k)) & 7u;
                const tiles::Three at = v.four(i - k * fours, p & 2);
                const u32 here = v.dense(at);
                u32 predicted[4];
                interpolate::predict_four(v, sh.points + here, p, at, predicted);
                visit_four(sh, (begin + k) * v.points + here, predicted, some, exact, all);
            }
            begin += classes;
            if (classes) __syncthreads();
        }
        if (l == 0) break;
        // The level in its own order, as the next finer one needs it.
        const u32 n = begin * v.points;
        int4 q[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            const u32 i = 4 * (threadIdx.x + k * THREADS);
            if (i < n) {
                u32 at;
                const int2 even = *(const int2*)(sh.points + v.pair(v.whole(i), at)), odd = *(const int2*)(sh.points + at);
                q[k] = make_int4(even.x, odd.x, even.y, odd.y);
            }
        }
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            const u32 i = 4 * (threadIdx.x + k * THREADS);
            if (i < n) *(int4*)(sh.points + i) = q[k];
        }
        __syncthreads();
    }
    return all.together();
}

// Whether the points in `sh.points` may stand for the tile's values; `exact`: they give all but exceptions bit for bit.
template <class S>
__device__ __forceinline__ bool points_hold(const InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine,
                                            typename Traits<S>::Bits fill, const Plane& plane, bool& exact) {
    using T = Traits<S>;
    constexpr u32 FARTHEST = (u32)fmt::LORENZO_POINT_LIMIT;
    bool veto = false;
    typename T::Bits differ = 0;
    in.each([&](u32, u32 i, u32 place) {
        S x[4], back[4];
        in.four(i, place, x);
        const int4 r4 = points_at(sh, in, i, plane);
        const int r[4] = {r4.x, r4.y, r4.z, r4.w};
        const u32 fits = four_valid(i, in.n) & ~(sh.exceptions[i / 32] >> (i % 32));
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

// The same for points that are sure, of values without a fill value, but for those in `sh.unsure`; `exact` may be said too often.
template <class S>
__device__ __forceinline__ bool unsure_hold(InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine, const Plane& plane,
                                            bool& exact, int lane, int w) {
    constexpr u32 FARTHEST = (u32)fmt::LORENZO_POINT_LIMIT;
    if (w == 0) {
        const u32 i = min((u32)lane * (in.n / 32 + 1), in.n - 1);
        const int r = sh.points[plane.depth ? sh.split[0].at(in.where(i)) : i];
        const bool same = (sh.exceptions[i / 32] >> (i % 32) & 1) || Traits<S>::bits(fine.value(quantize::number(r))) == Traits<S>::bits(in.one(i));
        const bool alike = __all_sync(warp::ALL, same);
        if (lane == 0) sh.alike = alike;
    }
    bool holds = true;
    for (u32 left = sh.unsure[threadIdx.x]; left; left &= left - 1) {
        const u32 at = 32 * threadIdx.x + (u32)__ffs((int)left) - 1;
        const tiles::Three place = plane.line    ? tiles::Three{0, 0, interpolate_line::place_of(at)}
                                   : plane.sheet ? interpolate_sheet::place_of(at)
                                                 : interpolate::place_of(sh.split, plane.depth, plane.left, at);
        const u32 i = interpolate::dense(in.e, place);
        if (sh.exceptions[i / 32] >> (i % 32) & 1) continue;
        const int r = sh.points[plane.depth ? sh.split[0].at(place) : at];
        const S x = in.one(i);
        holds = holds && (u32)r + FARTHEST <= 2 * FARTHEST && fine.holds(x, fine.value(quantize::number(r)));
    }
    holds = __syncthreads_and(holds);
    exact = sh.alike;
    return holds;
}

// Whether the points give all but exceptions bit for bit.
template <class S>
__device__ __forceinline__ bool points_same(const InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine, const Plane& plane) {
    using T = Traits<S>;
#pragma unroll 1
    for (u32 k = 0; k < 8; k++) {
        const u32 i = 4 * (threadIdx.x + k * THREADS);
        typename T::Bits differ = 0;
        if (i < in.n) {
            S x[4];
            in.four(i, x);
            const int4 r4 = points_at(sh, in, i, plane);
            const int r[4] = {r4.x, r4.y, r4.z, r4.w};
            const u32 fits = four_valid(i, in.n) & ~(sh.exceptions[i / 32] >> (i % 32));
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
    const u32 top = interpolate::top(in.e);
    sh.exceptions[t] = 0;
    sh.unsure[t] = 0;
    if (t == 0) sh.all = 0;
    {
        const Plane found = Plane::of(in.e);
        if (t == 0) sh.plane = found;
        if (!(found.full || found.line || found.sheet) && t < max(top, 1u)) sh.levels()[t].set(in.e, t);
        if (t >= 32 && t < 32 + found.depth) sh.split[t - 32].set(interpolate::lattice(in.e, t - 32));
    }
    const Plane& plane = sh.plane;
    // Zeros up to the end of the last thread's bytes.
    if (n / 4 + t < (n + 31) / 32 * 8) sh.bytes[n / 4 + t] = 0;
    __syncthreads();
    bool some;
    u32 all = 0;
    if (plane.full) {
        all = interpolate_whole<Box>(sh, in, fine, fill, some, work.exact(true), lane, w);
    } else if (plane.line) {
        all = interpolate_whole<Line>(sh, in, fine, fill, some, work.exact(true), lane, w);
    } else if (plane.sheet) {
        all = interpolate_whole<Sheet>(sh, in, fine, fill, some, work.exact(true), lane, w);
    } else {
        some = bring(sh, in, fine, fill, plane, lane, w);
        if (!plane.alone) __syncthreads();
        if (!plane.alone || w == 0) all = interpolate_left(sh, plane, top, work.exact(true));
        some = __syncthreads_or(some);
        all |= interpolate_fours(sh, plane.depth, some, work.exact(true));
    }
    // Most points need no second look at their values.
    const bool sure = !(c.flags & FLAG_FILL) && usual<S>(fine.step);
    bool same, taken = sure ? unsure_hold(sh, in, fine, plane, same, lane, w) : points_hold(sh, in, fine, fill, plane, same);
    clear_counts(sh);
    __syncthreads();
    const huffman::Mine mine = huffman::take(sh.bytes, n);
    if (taken) {
        count(sh, mine, n, true, lane, w);
        taken = sh.cost < meta.cost || (same && (!sure || points_same(sh, in, fine, plane)));
    }
    u32* counts = ((Book*)args.shared + chunk)->counts;
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
