// SPDX-License-Identifier: MIT OR Apache-2.0
// `plan`: quanta, the axes of their differences, and whether interpolation is worth trying: FORMAT.md §8 of lorenzo.
//
// Values become quanta in shared memory, and outliers get the quantum of a neighbour. A sample of rows selects the axes
// (select.cuh). Residuals become bytes, and go to the chunk's working memory with what does not fit a byte. Bytes and
// runs of zeros are counted: that tells the cost, with which a look at some points is compared (look.cuh):
// interpolation is tried or not. Counts go into the chunk's counts of symbols unless it is.
#pragma once
#include "look.cuh"

namespace {

// Bytes are first what predictor selection needs.
struct PlanShared : TileShared {
    selection::Shared selection;
    double used;
    double base;
    // What comes after selection.
    __device__ __forceinline__ LookShared& look() { return *(LookShared*)&selection; }
};
static_assert(sizeof(LookShared) <= sizeof(selection::Shared), "a look takes its place");
static_assert(8 * THREADS <= TILE / 4 && selection::SETS * selection::MASKS <= TILE / 4,
              "a sample fits where bytes will be");

// Gives every outlier the quantum of a neighbour in its row: the last regular one before it, else the first behind it,
// else 0. All threads; `around` has a number for each.
__device__ __forceinline__ void bridge(int* q, const u32* marks, u32 n, u32 row, const tiles::Divisor& by_row,
                                       u32* around, u32* scratch) {
    const u32 t = threadIdx.x, first = 32 * t;
    const u32 valid = first >= n ? 0 : n - first < 32 ? (1u << (n - first)) - 1 : warp::ALL;
    const u32 regular = valid & ~marks[t];
    u32 total;
    // One more than the last regular place in the words before this one.
    const u32 before =
        block::most_before<THREADS>(regular ? first + estimate::highest(regular) + 1 : 0, scratch, total);
    // The first one in this word and those behind it, counted from the end, in the thread that mirrors this one.
    around[THREADS - 1 - t] = regular ? TILE - (first + (u32)__ffs((int)regular) - 1) : 0;
    __syncthreads();
    const u32 mirrored = block::most_before<THREADS>(around[t], scratch, total);
    around[THREADS - 1 - t] = mirrored;
    __syncthreads();
    const u32 behind = TILE - around[t];
    u32 left = marks[t];
    while (left) {
        const u32 i = (u32)__ffs((int)left) - 1, at = first + i, start = by_row.of(at) * row;
        left &= left - 1;
        const u32 low = regular & ((1u << i) - 1), high = regular & ~((2u << i) - 1);
        const u32 from = low ? first + estimate::highest(low) + 1 : before;
        const u32 to = high ? first + (u32)__ffs((int)high) - 1 : behind;
        q[at] = from > start ? q[from - 1] : to < start + row ? q[to] : 0;
    }
    __syncthreads();
}

// Quantises a tile, whose quanta go to `sh.points` and outliers to `sh.outliers`. Tells whether there are some, and
// whether every other value comes back bit for bit.
template <class S, class Quantizer>
__device__ __forceinline__ void quantise(PlanShared& sh, const Source<S>& in, const Quantizer& quantizer,
                                         typename Traits<S>::Bits fill, bool& outliers, bool& exact) {
    typename Traits<S>::Bits differ = 0;
    u32 bad = 0;
    const bool here = in.stage(sh.points);
    in.each([&](u32 k, u32 i, u32 at) {
        S x[4];
        int q[4];
        if (here) {
            in.staged(sh.points + i, x);
        } else {
            in.four(i, at, x);
        }
        const u32 valid = four_valid(i, in.n);
        bad |= (valid & ~quantize::four(quantizer, x, fill, valid, q, differ)) << (4 * k);
        *(int4*)(sh.points + i) = make_int4(q[0], q[1], q[2], q[3]);
    });
    exact = !__syncthreads_or(differ != 0);
    outliers = __syncthreads_or(bad != 0);
    if (outliers) {
        for (u32 k = 0; k < 8; k++) {
            const u32 group = threadIdx.x + k * THREADS, four = bad >> (4 * k) & 15u;
            if (four) atomicOr(sh.outliers + group / 8, four << (4 * (group % 8)));
        }
        __syncthreads();
        bridge(sh.points, sh.outliers, in.n, in.e.x, in.by_x, sh.bins, sh.scratch);
        clear_counts(sh);
        __syncthreads();
    }
}

// Whether all of the tile's quanta are below 2^26, as those of an f32 always are but for bounds relative to each value.
template <class S>
__device__ __forceinline__ bool small(const PlanShared& sh, u32 n, bool log) {
    static_assert(fmt::LORENZO_LIMIT_F32 < 1 << 26, "there is nothing to look for");
    if (Traits<S>::W == 4 && !log) return true;
    constexpr u32 MOST = 1u << 26;
    u32 any = 0;
    for (u32 i = 4 * threadIdx.x; i < n; i += 4 * THREADS) {
        const int4 q = *(const int4*)(sh.points + i);
        any |= ((u32)q.x + MOST) | ((u32)q.y + MOST) | ((u32)q.z + MOST) | ((u32)q.w + MOST);
    }
    return !__syncthreads_or(any >= 2 * MOST);
}

// Residuals of a tile whose rows are whole vec4s, along axes known when compiled.
template <u32 AXES, class S>
__device__ __forceinline__ All difference_vec4(PlanShared& sh, const Source<S>& in, u32* exact) {
    const tiles::Three& e = in.e;
    const u32 t = threadIdx.x, plane = e.x * e.y, columns = plane / 4;
    All all = {0, 0};
    if (AXES == (lorenzo::X | lorenzo::Y | lorenzo::Z) && in.n == TILE && columns <= THREADS &&
        THREADS % columns == 0) {
        // A thread goes from plane to plane, and has what is behind a four from the step before.
        constexpr u32 STEPS = TILE / 4 / THREADS;
        const u32 slab = t / columns, i = slab * STEPS * plane + 4 * (t - slab * columns);
        const tiles::Three place = in.where(i);
        auto four = [&](u32 at, int (&d)[4]) {
            lorenzo::difference4(sh.points, at, e, place, lorenzo::X | lorenzo::Y, d);
        };
        int behind[4] = {0, 0, 0, 0};
        if (place.z > 0) four(i - plane, behind);
#pragma unroll 1
        for (u32 k = 0; k < STEPS; k++) {
            int here[4];
            u32 d[4];
            four(i + k * plane, here);
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                d[j] = (u32)here[j] - (u32)behind[j] + 128;
                behind[j] = here[j];
            }
            keep_four(sh.bytes, i + k * plane, d, exact, all);
        }
        return all;
    }
    tiles::Three place = in.where(4 * t);
#pragma unroll 1
    for (u32 i = 4 * t; i < in.n; i += 4 * THREADS) {
        int found[4];
        if (!in.regular) place = in.where(i);
        lorenzo::difference4(sh.points, i, e, place, AXES, found);
        place.z += in.step.z, place.y += in.step.y, place.x += in.step.x;
        const u32 d[4] = {(u32)found[0] + 128, (u32)found[1] + 128, (u32)found[2] + 128, (u32)found[3] + 128};
        keep_four(sh.bytes, i, d, exact, all);
    }
    return all;
}

// Residuals of all values, as bytes in `sh.bytes`. Returns all of this thread's zigzag values together.
template <class S>
__device__ __forceinline__ u32 difference(PlanShared& sh, const Source<S>& in, u32 axes, u32* exact) {
    using namespace lorenzo;
    const u32 n = in.n;
    All all = {0, 0};
    if (!in.vec4) {
#pragma unroll 1
        for (u32 i = 4 * threadIdx.x; i < n; i += 4 * THREADS) {
            u32 d[4];
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                d[j] = 128 + (i + j < n ? (u32)lorenzo::difference(sh.points, i + j, in.e, in.by_x, in.by_y, axes) : 0);
            keep_four(sh.bytes, i, d, exact, all);
        }
    } else {
        all = axes == (X | Y | Z) ? difference_vec4<X | Y | Z>(sh, in, exact)
              : axes == (X | Y)   ? difference_vec4<X | Y>(sh, in, exact)
              : axes == X         ? difference_vec4<X>(sh, in, exact)
              : axes == Y         ? difference_vec4<Y>(sh, in, exact)
              : axes == Z         ? difference_vec4<Z>(sh, in, exact)
                                  : difference_vec4<0>(sh, in, exact);
    }
    // Zeros up to the end of the last thread's bytes.
    const u32 end = (n + 3) / 4 + threadIdx.x;
    if (end < (n + 31) / 32 * 8) sh.bytes[end] = 0;
    return all.together();
}

// LIMITED: of chunks of which more than the bound is kept.
template <class S, bool LIMITED>
__device__ __forceinline__ void plan(const EncodeArgs& args) {
    using T = Traits<S>;
    __shared__ PlanShared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 t = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const EncodeChunk& c = chunks[chunk];
    const ChunkState* state = (const ChunkState*)args.states + chunk;
    const u32 number = blockIdx.x - c.first_tile;
    const Source<S> in(c, tiles::of(c.extents, c.tile, number));
    const Work work(c, number);
    const u32 n = in.n;
    const typename T::Bits fill = fill_of<S>(c);
    const bool log = c.bound_kind == BOUND_POINTWISE;
    auto value = [&](u64 i) {
        const auto bits = T::bits(((const S*)c.input)[i]);
        return T::value(c.flags & FLAG_SWAP ? swapped(bits) : bits);
    };
    // Each tile for itself, unless another has told: it would take longer to wait for that one.
    volatile u32& told = ((Codebook*)args.shared + chunk)->said;
    u32 said = LIMITED ? told : 0;
    if (LIMITED && !__syncthreads_and(said & quantize::SAID)) {
        u32 mine = 0;
#pragma unroll
        for (u32 k = t; k < quantize::GUARDED_PLACES; k += THREADS)
            mine |= quantize::said(value(quantize::other_place(c.values, k)), frame::used_bound(c, state), fill,
                                   keep::limits_of<S>(c, state));
#pragma unroll
        for (u32 bit = 1; bit < quantize::SAID; bit *= 2) said |= __syncthreads_or(mine & bit) ? bit : 0;
        if (t == 0) told = said | quantize::SAID;
    }
    if (w == 0) {
        double used = frame::used_bound(c, state);
        S base = -S(0);
        auto at = [&](u32 k) { return value(quantize::base_place(c.values, k)); };
        if constexpr (LIMITED) {
            used = quantize::base_of<S>(used, fill, keep::limits_of<S>(c, state), said, base, lane, at);
        } else if (!log) {
            used = quantize::base_of<S>(used, fill, base, lane, at);
        }
        if (lane == 0) {
            sh.used = used;
            sh.base = (double)base;
            Codebook* codebook = (Codebook*)args.shared + chunk;
            if (number == 0) codebook->used = used, codebook->base = (double)base;
        }
    }
    sh.outliers[t] = 0;
    if (t == 0) sh.all = 0;
    if (t < selection::SETS) sh.selection.turns.inside[t] = 0;
    clear_counts(sh);
    __syncthreads();

    const double used = sh.used;
    const S base = (S)sh.base;
    bool outliers, exact;
    const double limit = T::W == 4 ? (double)fmt::LORENZO_LIMIT_F32 : (double)fmt::LORENZO_LIMIT;
    const auto linear = [&] { return quantize::Linear<S>(__dmul_rn(2.0, used), used, limit, base); };
    if constexpr (LIMITED) {
        quantise(sh, in, quantize::Limited<S>{linear(), keep::limits_of<S>(c, state)}, fill, outliers, exact);
    } else if (log) {
        quantise(sh, in, quantize::Log<S>(used, (double)fmt::LORENZO_LIMIT), fill, outliers, exact);
    } else {
        quantise(sh, in, linear(), fill, outliers, exact);
    }
    const bool vec4 = in.e.x % 4 == 0 && small<S>(sh, n, log);
    const u32 axes = selection::choose_axes<THREADS>(sh.points, in.e, in.by_x, in.by_y, vec4, sh.classes, sh.bytes,
                                                     sh.selection, lane, w);
    if (t < selection::SETS * estimate::CLASSES) sh.classes[t] = 0;
    const u32 all = difference(sh, in, axes, work.exact(false));
    __syncthreads();
    const huffman::Mine mine = huffman::take(sh.bytes, n);
    // A tile of one value has no axes.
    bool tried = !log && !exact && n > 1;
    // Beside a base the type must tell multiples of interpolation's unit.
    if (base != S(0) && T::add(base, T::round(__ddiv_rn(used, (double)interpolate::STEP + 1))) == base) tried = false;
    count(sh, mine, n, tried, lane, w);
    const u32 cost = sh.cost;
    u32 way = 0, possible = 0;
    if (tried) {
        const quantize::Linear<S> fine = units<S>(used, base);
        // A tile that costs nothing may still be one that was interpolated before.
        const OddOf<S, LIMITED> odd(args, c, chunk, fine, w, lane);
        const bool grid = cost == 0 && on_grid(in, fine, odd.get());
        if (cost > 0 || grid) {
            const Looked found = look(sh.points, in, fine, odd.get(), sh.look(), sh.classes, sh.cost, lane, w);
            if (cost > 0 && look_pays(in.e, found.cost, found.count, cost, n)) way = found.way;
            possible = found.possible;
        }
        tried = way || (possible && (grid || on_grid(in, fine, odd.get())));
    }
    u32 whole_cost = cost;
    if (LIMITED && tried) {
        __syncthreads();
        if (t == 0) sh.cost = cost;
        __syncthreads();
        add_outliers_cost<S>(sh, lane);
        whole_cost = sh.cost;
    }
    Meta meta = settle_tile(sh, args, blockIdx.x, in, work, mine, axes, outliers, all, lane);
    if ((meta.kind & CLASS) == HUFFMAN)
        add_symbols(sh, mine, n, work.counts(), ((Codebook*)args.shared + chunk)->counts, !tried);
    if (tried) meta.kind |= TRIED | way << TRIED_WAY | possible << TRIED_SETS, meta.cost = whole_cost;
    if (t == 0) *work.meta() = meta;
}

}  // namespace
