// SPDX-License-Identifier: MIT OR Apache-2.0
// Whole tiles, of the shapes that large chunks are cut into: 16 × 16 × 32 values, 64 × 128, or 8192 in a line.
//
// A whole tile's points lie in shared memory class by class, as the finest level's are in the stream: new point number
// i of that level is word i. Before them are the coarse points, as a lattice of 9 × 9 × 17 (33 × 65, 4097) in the order
// of places, the last place being the next behind the last even one. So neighbours on a line are the same number of
// words apart everywhere, on each level, and lanes of a warp have neighbouring words; only weights differ at the ends
// of lines.
//
// The finest level is visited line by line (finest.cuh), with all extents known when compiled. Of the levels behind it,
// which have a sixth of a block's points, a table tells where each point lies and which ends of lines it is near.
#pragma once
#include "formulas.cuh"

namespace interpolate {

// Tiles of any extents, and whole ones by their axes.
enum Shape : u32 { ANY, LINE, PLANE, BLOCK };

// A whole tile of `RANK` axes: places along x are a power of two, along the others half as many.
template <u32 RANK>
struct Whole {
    static constexpr u32 LOG_X = (13 + RANK - 1) / RANK;
    static constexpr u32 SIDE_X = 1u << LOG_X, SIDE_Y = RANK > 1 ? SIDE_X / 2 : 1, SIDE_Z = RANK > 2 ? SIDE_X / 2 : 1;
    static_assert(SIDE_Z * SIDE_Y * SIDE_X == tiles::MOST, "a whole tile");
    static constexpr u32 AXES = (1u << RANK) - 1;
    // The first level that one warp visits alone: it has 45, 45 or 65 points.
    static constexpr u32 FEW = RANK == 3 ? 3 : RANK == 2 ? 4 : 7;
    // Levels behind the finest one.
    static constexpr u32 TOP = LOG_X;

    // Points of the finest level along an axis, by whether they are new.
    static constexpr __device__ u32 along(u32 side, bool fresh) {
        return side == 1 ? !fresh : fresh ? side / 2 - 1 : side / 2 + 1;
    }
    static constexpr __device__ u32 nx(u32 fresh) { return along(SIDE_X, fresh & X); }
    static constexpr __device__ u32 ny(u32 fresh) { return along(SIDE_Y, fresh & Y); }
    static constexpr __device__ u32 nz(u32 fresh) { return along(SIDE_Z, fresh & Z); }
    static constexpr __device__ u32 points(u32 fresh) { return nz(fresh) * ny(fresh) * nx(fresh); }
    // Where a class begins.
    static constexpr __device__ u32 begin(u32 fresh) {
        u32 at = 0;
        for (u32 k = 0; class_at(k) != fresh; k++) at += points(class_at(k));
        return at;
    }
    static constexpr u32 COARSE = along(SIDE_Z, false) * along(SIDE_Y, false) * along(SIDE_X, false);

    static __device__ __forceinline__ bool fits(const Three& e) {
        return e.z == SIDE_Z && e.y == SIDE_Y && e.x == SIDE_X;
    }
    // Place of value `i` of the tile.
    static __device__ __forceinline__ Three where(u32 i) {
        return {RANK > 2 ? i / (SIDE_X * SIDE_Y) : 0, RANK > 1 ? i / SIDE_X % SIDE_Y : 0, i % SIDE_X};
    }
    // Where a row's points at even places begin, and those at odd ones. The last place is behind the even ones.
    struct Row {
        u32 even, odd;
        __device__ __forceinline__ u32 last() const { return even + SIDE_X / 2; }
    };
    static __device__ __forceinline__ Row row(u32 z, u32 y) {
        const bool fresh_z = RANK > 2 && (z & 1) && z != SIDE_Z - 1, fresh_y = RANK > 1 && (y & 1) && y != SIDE_Y - 1;
        const u32 plane = RANK > 2 ? (z + !fresh_z) / 2 : 0, line = RANK > 1 ? (y + !fresh_y) / 2 : 0;
        const u32 number = plane * (fresh_y ? ny(Y) : ny(0)) + line;
        auto first = [&](u32 x) {
            return fresh_z ? (fresh_y ? begin(Z | Y | x) : begin(Z | x)) : fresh_y ? begin(Y | x) : begin(x);
        };
        return {first(0) + number * nx(0), first(X) + number * nx(X)};
    }
    static __device__ __forceinline__ u32 address(const Three& p) {
        const Row at = row(p.z, p.y);
        return p.x == SIDE_X - 1 ? at.last() : (p.x & 1 ? at.odd : at.even) + p.x / 2;
    }
    // Place of an address.
    static __device__ __forceinline__ Three place(u32 at) {
        u32 fresh = 0, start = 0;
#pragma unroll
        for (u32 k = 1; k <= CLASSES; k++) {
            if ((class_at(k) & ~AXES) == 0 && at >= begin(class_at(k))) fresh = class_at(k), start = begin(class_at(k));
        }
        const u32 i = at - start, row = fresh & X ? i / nx(X) : i / nx(0), x = i - row * (fresh & X ? nx(X) : nx(0));
        const u32 z = RANK < 3 ? 0 : fresh & Y ? row / ny(Y) : row / ny(0);
        const u32 y = row - z * (fresh & Y ? ny(Y) : ny(0));
        auto of = [&](u32 number, u32 side, bool is_new) {
            return is_new ? 2 * number + 1 : 2 * number < side ? 2 * number : side - 1;
        };
        return {of(z, SIDE_Z, fresh & Z), of(y, SIDE_Y, fresh & Y), of(x, SIDE_X, fresh & X)};
    }
};

__device__ __forceinline__ Shape shape_of(const Three& e) {
    return Whole<3>::fits(e) ? BLOCK : Whole<2>::fits(e) ? PLANE : Whole<1>::fits(e) ? LINE : ANY;
}

// A new point of a coarser level: 13 bits for its place in the lattice, 3 for the new axes; for each axis a bit that
// there is no point a, and how many coarse points are behind b, 3 for more.
struct Coarse {
    u32 bits;
    __device__ __forceinline__ u32 at() const { return bits & 0x1fffu; }
    __device__ __forceinline__ u32 fresh() const { return bits >> 13 & 7u; }
    __device__ __forceinline__ bool first(u32 axis) const { return bits >> (16 + 3 * axis) & 1; }
    __device__ __forceinline__ u32 behind(u32 axis) const { return bits >> (17 + 3 * axis) & 3u; }
};

// All of them, in the order of the stream.
template <u32 RANK>
struct Coarser {
    Coarse points[Whole<RANK>::COARSE];
};
// Where their passes begin, of one new axis, two, three, from the coarsest level on; and weights at the ends of lines,
// by axis and level: of a first point, and by how many coarse points are behind b.
template <u32 RANK>
struct Passes {
    u32 begin[RANK * Whole<RANK>::TOP + 1];
    Weights weights[RANK][Whole<RANK>::TOP][3];
};
template <u32 RANK>
struct Behind {
    Coarser<RANK> points;
    Passes<RANK> passes;
};
template <u32 RANK>
constexpr Behind<RANK> behind_finest() {
    using W = Whole<RANK>;
    Behind<RANK> all{};
    const u32 sides[3] = {W::SIDE_X, W::SIDE_Y, W::SIDE_Z}, strides[3] = {1, W::nx(0), W::nx(0) * W::ny(0)};
    u32 i = 1, pass = 0;
    for (u32 l = W::TOP; l > 0; l--) {
        for (u32 k = 1, axes = 0; k <= CLASSES; k++) {
            const u32 fresh = class_at(k), its = (fresh & 1) + (fresh >> 1 & 1) + (fresh >> 2);
            if (its > axes && its <= RANK) axes = its, all.passes.begin[pass++] = i;
            u32 count[3] = {}, coarse[3] = {};
            for (u32 a = 0; a < 3; a++) {
                const u32 points = points_of(sides[a], l), made = points > 1 ? new_of(points) : 0;
                coarse[a] = points - made, count[a] = fresh >> a & 1 ? made : coarse[a];
            }
            for (u32 z = 0; z < count[2]; z++) {
                for (u32 y = 0; y < count[1]; y++) {
                    for (u32 x = 0; x < count[0]; x++, i++) {
                        const u32 numbers[3] = {x, y, z};
                        u32 bits = fresh << 13;
                        for (u32 a = 0; a < 3; a++) {
                            const bool is_new = fresh >> a & 1;
                            const u32 behind = coarse[a] - 1 - numbers[a];
                            bits += ((2 * numbers[a] + is_new) << (l - 1)) * strides[a];
                            if (is_new) bits |= (u32)(numbers[a] == 0) << (16 + 3 * a);
                            if (is_new) bits |= (behind < 3 ? behind : 3u) << (17 + 3 * a);
                        }
                        all.points.points[i].bits = bits;
                    }
                }
            }
        }
        for (u32 a = 0; a < RANK; a++)
            for (u32 kind = 0; kind < 3; kind++) all.passes.weights[a][l - 1][kind] = weights_at(sides[a], l, kind);
    }
    all.passes.begin[pass] = i;
    return all;
}
template <u32 RANK>
constexpr Behind<RANK> BEHIND = behind_finest<RANK>();
template <u32 RANK>
__device__ const Coarser<RANK> COARSER = BEHIND<RANK>.points;
template <u32 RANK>
__constant__ Passes<RANK> PASSES = BEHIND<RANK>.passes;

// The guess at a point of level `l` along one of its new axes, whose neighbours on the finest lattice are `apart`.
template <u32 RANK>
__device__ __forceinline__ u32 guess_along(const int* v, const Coarse& point, u32 l, u32 axis, int apart) {
    const int* p = v + point.at();
    const int d = apart << (l - 1);
    const bool first = point.first(axis);
    const u32 behind = point.behind(axis);
    const u32 na = (u32)p[first ? -d : -3 * d], nb = (u32)p[-d];
    const u32 nc = (u32)p[behind > 0 ? d : -d], nd = (u32)p[behind > 1 ? 3 * d : -d];
    u32 g = cubic(na, nb, nc, nd);
    if (first || behind < 3) {
        const Weights& w = PASSES<RANK>.weights[axis][l - 1][first ? 0 : behind];
        g = weighted(na, nb, nc, nd, w.a, w.c, w.d);
    }
    return g;
}

// The guess at a point of level `l`.
template <u32 RANK>
__device__ __forceinline__ u32 guess_coarser(const int* v, const Coarse& point, u32 l, u32 way) {
    using W = Whole<RANK>;
    const u32 use = used(point.fresh(), way);
    u32 g[3] = {0, 0, 0};
#pragma unroll
    for (u32 axis = 0; axis < RANK; axis++) {
        const int apart = axis == 0 ? 1 : axis == 1 ? W::nx(0) : W::nx(0) * W::ny(0);
        if (use >> axis & 1) g[axis] = guess_along<RANK>(v, point, l, axis, apart);
    }
    return joined(use, g[0], g[1], g[2]);
}

// Visits the single point and the new ones of levels that have few, by one warp: calls `one(number in the stream, where
// it is, guess, step)`. A lane has one axis of a point, as all other warps wait for this one; no pass has more than 32
// of them.
template <u32 RANK, class One>
__device__ __forceinline__ void visit_few(const int* v, u32 way, u32 lane, One one) {
    using W = Whole<RANK>;
    // All of them at once: from memory each would take longer than its pass.
    const u32 early = COARSER<RANK>.points[1 + lane].bits, late = COARSER<RANK>.points[33 + lane].bits;
    if (lane == 0) one(0, 0, 0, step_at(way, W::TOP + 1));
#pragma unroll 1
    for (u32 pass = 0; pass < (W::TOP - W::FEW + 1) * RANK; pass++) {
        const u32 begin = PASSES<RANK>.begin[pass], end = PASSES<RANK>.begin[pass + 1];
        if (begin == end) continue;
        const u32 l = W::TOP - pass / RANK, axes = pass % RANK + 1;
        const u32 number = axes == 1 ? lane : axes == 2 ? lane / 2 : lane / 3, nth = lane - number * axes;
        const u32 i = begin + number;
        __syncwarp();
        const u32 a = __shfl_sync(warp::ALL, early, (int)((i - 1) & 31)),
                  b = __shfl_sync(warp::ALL, late, (int)((i - 1) & 31));
        const Coarse point = {i <= 32 ? a : b};
        const u32 fresh = point.fresh();
        u32 g = 0;
        if (i < end) {
            // The first of its axes, the last or the one between.
            const u32 lowest = (u32)__ffs((int)fresh) - 1, highest = 31 - (u32)__clz((int)fresh);
            const u32 axis = RANK == 1 ? 0 : nth == 0 ? lowest : nth + 1 == axes ? highest : 1;
            const int apart = axis == 0 ? 1 : axis == 1 ? W::nx(0) : W::nx(0) * W::ny(0);
            g = guess_along<RANK>(v, point, l, axis, apart);
        }
        if (axes > 1) {
            const u32 second = __shfl_down_sync(warp::ALL, g, 1), third = __shfl_down_sync(warp::ALL, g, 2);
            g = joined(used(fresh, way), g, fresh & X ? second : g, axes == 3 ? third : second);
        }
        if (i < end && nth == 0) one(i, point.at(), g, step_at(way, l));
    }
}

// Visits the new points of the levels between these and the finest one, by all threads, which wait before each pass.
template <u32 RANK, class One>
__device__ __forceinline__ void visit_coarser(const int* v, u32 way, One one) {
    using W = Whole<RANK>;
    const Coarse* points = COARSER<RANK>.points;
#pragma unroll 1
    for (u32 pass = (W::TOP - W::FEW + 1) * RANK; pass < W::TOP * RANK; pass++) {
        const u32 end = PASSES<RANK>.begin[pass + 1], l = W::TOP - pass / RANK;
        u32 i = PASSES<RANK>.begin[pass] + threadIdx.x;
        // There before it is needed.
        Coarse next = points[min(i, W::COARSE - 1)];
        __syncthreads();
#pragma unroll 1
        while (i < end) {
            const Coarse point = next;
            next = points[min(i + 256, W::COARSE - 1)];
            one(i, point.at(), guess_coarser<RANK>(v, point, l, way), step_at(way, l));
            i += 256;
        }
    }
}

}  // namespace interpolate
