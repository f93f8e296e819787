// SPDX-License-Identifier: MIT OR Apache-2.0
// From a tile's values to points and residuals: values come into shared memory where their points will be, then each is
// replaced by what a reader will find there. The first warp brings the coarsest points and codes them at once, while
// the others bring all values; then all threads code the finer levels. Residuals go where the stream has them.
#pragma once
#include "../stage/interpolate/finest.cuh"
#include "odd.cuh"

namespace {

using tiles::Three;

struct InterpolateShared : TileShared {
    // Points that may be too far from their values, where they lie.
    u32 unsure[MARKS];
    // Whether points here and there give their values bit for bit; whether there are outliers.
    u32 alike, some;
    // Where zigzag values go that no byte holds. Like the above here and not in registers, of which there are few.
    u32* exact;
    // Before anything is counted; whole tiles have none.
    __device__ __forceinline__ interpolate::Lattice& lattice() { return *(interpolate::Lattice*)bins; }
    __device__ __forceinline__ interpolate::Steps& steps() { return *(interpolate::Steps*)classes; }
};
static_assert(sizeof(interpolate::Lattice) <= huffman::BINS * 4 &&
                  sizeof(interpolate::Steps) <= selection::SETS * estimate::CLASSES * 4,
              "they fit where counts will be");

// Whether every value that is no outlier lies on a point and tells which, as in a tile that was interpolated before.
template <class S, class Fill>
__device__ __forceinline__ bool on_grid(const Source<S>& in, const quantize::Linear<S>& fine, const Fill& fill) {
    using T = Traits<S>;
#pragma unroll 1
    for (u32 k = 0; k < 8; k++) {
        const u32 i = 4 * (threadIdx.x + k * THREADS);
        bool on = true;
        if (i < in.n) {
            S x[4];
            in.four(i, x);
            for (int j = 0; j < 4; j++) {
                double whole;
                int q;
                const bool counts = fine.nearest(x[j], whole, q) && !is_odd(x[j], q, fill);
                on = on && (!counts || fine.tells(x[j], whole));
            }
        }
        if (!__syncthreads_and(on)) return false;
    }
    return true;
}

// A point less than half of 2^FINE units off its value keeps the bound, which is half of 2^FINE + 1, as long as
// rounding it to the type takes at most a quarter of a unit: up to this size, away from the ends of the type's range.
constexpr u32 SURE = 1u << 22;
template <class S>
__device__ __forceinline__ bool usual(double unit) {
    return Traits<S>::W == 4 ? unit > 1e-30 && unit < 1e30 : unit > 1e-290 && unit < 1e290;
}

// Where value `i` of a tile is among its points, and the other way.
__device__ __forceinline__ u32 address_of(interpolate::Shape shape, u32 i) {
    using namespace interpolate;
    return shape == BLOCK   ? Whole<3>::address(Whole<3>::where(i))
           : shape == PLANE ? Whole<2>::address(Whole<2>::where(i))
           : shape == LINE  ? Whole<1>::address(Whole<1>::where(i))
                            : i;
}
__device__ __forceinline__ u32 number_of(interpolate::Shape shape, u32 at) {
    using namespace interpolate;
    if (shape == ANY) return at;
    const Three p = shape == BLOCK ? Whole<3>::place(at) : shape == PLANE ? Whole<2>::place(at) : Whole<1>::place(at);
    return shape == BLOCK   ? (p.z * Whole<3>::SIDE_Y + p.y) * Whole<3>::SIDE_X + p.x
           : shape == PLANE ? p.y * Whole<2>::SIDE_X + p.x
                            : p.x;
}

// Whether a value may have this point, of which `in_units` told `read`; if not it becomes an outlier.
template <class Fill>
__device__ __forceinline__ bool settle_point(InterpolateShared&, interpolate::Shape, u32, int, u32, const Fill&) {
    return true;
}
template <class S>
__device__ __forceinline__ bool settle_point(InterpolateShared& sh, interpolate::Shape shape, u32 at, int read,
                                             u32 point, const PointLimits<S>& limits) {
    if (read == NONE || limits.allow(read, (int)point)) return true;
    const u32 i = number_of(shape, at);
    atomicOr(sh.outliers + i / 32, 1u << (i % 32));
    sh.some = 1;
    return false;
}

// The point at `at` and its residual, number `i` of the stream, from what is predicted. Adds its zigzag value to `all`.
template <class Fill>
__device__ __forceinline__ void code_one(InterpolateShared& sh, interpolate::Shape shape, u32 i, u32 at, u32 predicted,
                                         u32 step, All& all, const Fill& fill) {
    const int read = sh.points[at];
    u32 x = point_of(read, predicted, fill);
    int d = interpolate::residual(x, predicted, step);
    u32 r = (u32)interpolate::point(predicted, d, step);
    if (!settle_point(sh, shape, at, read, r, fill)) x = r = predicted, d = 0;
    sh.points[at] = (int)r;
    u32 z = estimate::zigzag(d);
    const bool unsure = r - x == interpolate::STEP / 2 || r + SURE > 2 * SURE;
    // Both are rare.
    if (unsure || z >= huffman::FAR) {
        if (unsure) atomicOr(sh.unsure + at / 32, 1u << (at % 32));
        if (z >= huffman::FAR) {
            all.large |= z;
            sh.exact[i] = z;
            z = huffman::byte_of(z);
        } else {
            all.bytes |= z;
        }
    } else {
        all.bytes |= z;
    }
    ((u8*)sh.bytes)[i] = (u8)z;
}

// Which places are those of the coarsest points, of a tile whose first `few` levels have others.
struct Coarsest {
    u32 few;
    // Extents of axes that have more than one of them.
    Three e;
    __device__ __forceinline__ Coarsest(u32 few_, const Three& of) : few(few_) {
        auto extent = [&](u32 e) { return interpolate::points_of(e, few) > 1 ? e : 0; };
        e = {extent(of.z), extent(of.y), extent(of.x)};
    }
    __device__ __forceinline__ bool is(u32 place, u32 extent) const {
        return (place & ((1u << few) - 1)) == 0 || place + 1 == extent;
    }
    __device__ __forceinline__ bool row(const Three& p) const { return is(p.z, e.z) && is(p.y, e.y); }
    __device__ __forceinline__ bool is(const Three& p) const { return row(p) && is(p.x, e.x); }
};

// The first warp brings the coarsest points; `address` tells where they go. Outliers go to `sh.outliers`; tells whether
// this thread has met some.
template <class S, class Fill, class Address>
__device__ __forceinline__ bool bring_coarsest(InterpolateShared& sh, u32 few, const Source<S>& in,
                                               const quantize::Linear<S>& fine, const Fill& fill, int lane,
                                               Address address) {
    constexpr u32 EACH = (interpolate::FEW + 31) / 32;
    const u32 count = interpolate::points_at(in.e, few);
    const u32 nx = interpolate::points_of(in.e.x, few), ny = interpolate::points_of(in.e.y, few);
    const tiles::Divisor by_x(nx), by_y(ny);
    auto place = [&](u32 j) {
        const u32 i = min(32 * j + (u32)lane, count - 1), row = by_x.of(i), z = by_y.of(row);
        return Three{min(z << few, in.e.z - 1), min((row - z * ny) << few, in.e.y - 1),
                     min((i - row * nx) << few, in.e.x - 1)};
    };
    bool some = false;
    S x[4];
#pragma unroll
    for (u32 j = 0; j < 4; j++) x[j] = j < EACH ? in.first[in.place(place(j))] : S(0);
    in.turn(x);
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        if (32 * j + (u32)lane >= count) break;
        const Three p = place(j);
        const int q = in_units(fine, x[j], fill);
        sh.points[address(p)] = q;
        if (q == NONE) {
            some = true;
            const u32 i = (p.z * in.e.y + p.y) * in.e.x + p.x;
            atomicOr(sh.outliers + i / 32, 1u << (i % 32));
        }
    }
    return some;
}

// The other warps bring all values, each 128 at a time: `put(first place, points)` for every four; `where`
// tells places.
template <class S, class Fill, class Where, class Put>
__device__ __forceinline__ bool bring_others(InterpolateShared& sh, const Source<S>& in,
                                             const quantize::Linear<S>& fine, const Fill& fill, int lane, int w,
                                             Where where, Put put) {
    constexpr u32 APART = 128 * (THREADS / 32 - 1);
    const u32 n = in.n;
    bool some = false;
    S x[4], next[4];
    u32 i = 128 * (w - 1) + 4 * lane;
    if (i < n) in.raw(i, in.place(where(i)), next);
#pragma unroll 1
    for (; i < n; i += APART) {
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = next[j];
        // One round ahead of what is computed.
        if (i + APART < n) in.raw(i + APART, in.place(where(i + APART)), next);
        in.turn(x);
        int q[4];
        u32 bad = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            q[j] = in_units(fine, x[j], fill);
            bad |= q[j] == NONE ? 1u << j : 0;
        }
        if (bad) {
            bad &= four_valid(i, n);
            some = some || bad;
            atomicOr(sh.outliers + i / 32, bad << (i % 32));
        }
        put(i, q);
    }
    return some;
}

// Points and residuals of a whole tile, in a way that FORMAT.md's kinds have. Returns this thread's zigzag values
// together.
template <u32 RANK, class S, class Fill>
__device__ __forceinline__ u32 code_whole(InterpolateShared& sh, u32 way, const Source<S>& in,
                                          const quantize::Linear<S>& fine, const Fill& fill, int lane, int w) {
    using namespace interpolate;
    using W = Whole<RANK>;
    All all = {0, 0};
    constexpr Shape SHAPE = RANK == 3 ? BLOCK : RANK == 2 ? PLANE : LINE;
    auto one = [&](u32 i, u32 at, u32 guess, u32 step) { code_one(sh, SHAPE, i, at, guess, step, all, fill); };
    // The first warp looks at its own points before others have brought theirs.
    bool some;
    if (w == 0) {
        some = bring_coarsest(sh, W::FEW, in, fine, fill, lane, [](const Three& p) { return W::address(p); });
        __syncwarp();
        visit_few<RANK>(sh.points, way, (u32)lane, one);
    } else {
        some = bring_others(
            sh, in, fine, fill, lane, w, [](u32 i) { return W::where(i); },
            [&](u32 i, const int (&q)[4]) {
                const Three p = W::where(i);
                const typename W::Row row = W::row(p.z, p.y);
                // All but what the first warp has.
                auto few = [](u32 place, u32 side) { return place % (1u << W::FEW) == 0 || place + 1 == side; };
                const bool fewer = few(p.z, W::SIDE_Z) && few(p.y, W::SIDE_Y), last = p.x + 4 == W::SIDE_X;
                int *even = sh.points + row.even + p.x / 2, *odd = sh.points + row.odd + p.x / 2;
                if (!(fewer && p.x % (1u << W::FEW) == 0)) even[0] = q[0];
                odd[0] = q[1], even[1] = q[2];
                if (!(fewer && last)) (last ? even + 2 : odd + 1)[0] = q[3];
            });
    }
    if (some) atomicOr(&sh.some, 1u);
    visit_coarser<RANK>(sh.points, way, one);
    visit_finest<RANK>(sh.points, way, one);
    __syncthreads();
    return all.together();
}

// The same of any other tile.
template <class S, class Fill>
__device__ __forceinline__ u32 code_any(InterpolateShared& sh, u32 way, const Source<S>& in,
                                        const quantize::Linear<S>& fine, const Fill& fill, int lane, int w) {
    const Coarsest coarsest(interpolate::few_from(in.e), in.e);
    All all = {0, 0};
    interpolate::prepare(sh.lattice(), sh.steps(), in.e);
    __syncthreads();
    bool some = false;
    if (w == 0) {
        some = bring_coarsest(sh, coarsest.few, in, fine, fill, lane,
                              [&](const Three& p) { return (p.z * in.e.y + p.y) * in.e.x + p.x; });
        __syncwarp();
    } else if (coarsest.few) {
        some = bring_others(
            sh, in, fine, fill, lane, w, [&](u32 i) { return in.where(i); },
            [&](u32 i, const int (&q)[4]) {
                if (in.vec4 && !coarsest.row(in.where(i))) {
                    *(int4*)(sh.points + i) = make_int4(q[0], q[1], q[2], q[3]);
                    return;
                }
#pragma unroll 1
                for (u32 j = 0; j < 4 && i + j < in.n; j++) {
                    if (!coarsest.is(in.where(i + j)))
                        sh.points[i + j] = j == 0 ? q[0] : j == 1 ? q[1] : j == 2 ? q[2] : q[3];
                }
            });
    }
    if (some) atomicOr(&sh.some, 1u);
    interpolate::visit_any(
        sh.points, sh.lattice(), sh.steps(), way, in.n, [] { __syncthreads(); },
        [&](u32 i, u32 at, u32 guess, u32 step) { code_one(sh, interpolate::ANY, i, at, guess, step, all, fill); });
    return all.together();
}

// Of any tile. `sh.some` tells whether there are outliers.
template <class S, class Fill>
__device__ __forceinline__ u32 code_points(InterpolateShared& sh, interpolate::Shape shape, u32 way,
                                           const Source<S>& in, const quantize::Linear<S>& fine, const Fill& fill,
                                           int lane, int w) {
    return shape == interpolate::BLOCK   ? code_whole<3>(sh, way, in, fine, fill, lane, w)
           : shape == interpolate::PLANE ? code_whole<2>(sh, way, in, fine, fill, lane, w)
           : shape == interpolate::LINE  ? code_whole<1>(sh, way, in, fine, fill, lane, w)
                                         : code_any(sh, way, in, fine, fill, lane, w);
}

}  // namespace
