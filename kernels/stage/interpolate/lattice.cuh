// SPDX-License-Identifier: MIT OR Apache-2.0
// The lattice of a tile of any extents, whose points lie in the order of places: what is worth knowing beforehand of
// its levels.
#pragma once
#include "formulas.cuh"

namespace interpolate {

// Most levels of a tile that have new points: a line's. Most of them over the three axes of a tile.
constexpr u32 LEVELS = 14, LINES = 18;
static_assert(top_of(tiles::MOST) == LEVELS, "a line is halved as often");

// An axis: its extent, and the words from place to place.
struct Axis {
    u32 extent, stride;
};

// An axis on one level, in words: from a coarse point to the next, and of the last coarse one; the number of that.
struct alignas(16) Step {
    u32 coarse, end, last, fresh;
    // Address of a coarse point, or a new one.
    __device__ __forceinline__ u32 of(u32 i, bool is_new) const {
        const u32 at = i * coarse, other = i == last ? end : at;
        return is_new ? at + fresh : other;
    }
};
constexpr __device__ Step step_of(const Axis& axis, u32 l) {
    const u32 points = points_of(axis.extent, l), last = last_of(points), far = (axis.extent - 1) * axis.stride;
    const u32 coarse = axis.stride << (l + 1);
    // Of two points, the last one is new.
    return {coarse, last ? far : 0, last, points == 2 ? far : coarse / 2};
}

// The first level of few points, if it has any, which one warp visits alone; and how many those may be.
constexpr u32 FEW = 72;
constexpr __device__ u32 points_at(const Three& e, u32 l) {
    return points_of(e.z, l) * points_of(e.y, l) * points_of(e.x, l);
}
constexpr __device__ u32 few_from(const Three& e) {
    u32 l = 0;
    while (points_at(e, l) > FEW) l++;
    return l;
}

// An axis' weights on one level.
struct Line {
    Weights at[3];
};

// A class of a level: where it begins in the stream, 5 bits for each axis that tell its line, and the level as far as
// steps differ; points along x and along y, of 13 bits each, the new axes, and whether it begins a pass, is visited by
// one warp; for quotients, by points along x and along y.
struct alignas(16) Record {
    u32 where, what, by_x, by_y;
    __device__ __forceinline__ u32 start() const { return where & 0x3fffu; }
    __device__ __forceinline__ u32 line(u32 k) const { return where >> (14 + 5 * k) & 31u; }
    __device__ __forceinline__ u32 level() const { return where >> 29; }
    __device__ __forceinline__ u32 nx() const { return what & 0x1fffu; }
    __device__ __forceinline__ u32 ny() const { return what >> 13 & 0x1fffu; }
    __device__ __forceinline__ u32 fresh() const { return what >> 26 & 7u; }
    __device__ __forceinline__ bool begins() const { return what >> 29 & 1; }
    __device__ __forceinline__ bool alone() const { return what >> 30 & 1; }
};
// Most of them, and the one behind them. An axis of one point has a line of its own.
constexpr u32 RECORDS = 43, NO_LINE = LINES;

// Class `fresh` of level `l` as a record, and its number; none, a number that is too large, where it has no points.
constexpr __device__ u32 record_of(const Three& e, u32 few, u32 l, u32 fresh, Record& found) {
    const u32 extents[3] = {e.x, e.y, e.z}, tops[3] = {top_of(e.x), top_of(e.y), top_of(e.z)};
    u32 number = 0, start = points_at(e, l + 1), there = 0;
    for (u32 k = 0; k < 3; k++) there |= l < tops[k] ? 1u << k : 0;
    // Those of coarser levels: 7 of three axes, 3 of two, 1 of one.
    for (u32 m = l + 1; m < tops[0] || m < tops[1] || m < tops[2]; m++) {
        u32 classes = 1;
        for (u32 k = 0; k < 3; k++) classes *= m < tops[k] ? 2 : 1;
        number += classes - 1;
    }
    auto along = [&](u32 k, u32 set) {
        const u32 points = points_of(extents[k], l);
        return set >> k & 1 ? new_of(points) : last_of(points) + 1;
    };
    bool begins = true;
    for (u32 k = 1; class_at(k) != fresh; k++) {
        const u32 other = class_at(k);
        if (other & ~there) continue;
        number++;
        start += along(0, other) * along(1, other) * along(2, other);
        auto axes = [](u32 set) { return (set & 1) + (set >> 1 & 1) + (set >> 2); };
        if (axes(other) == axes(fresh)) begins = false;
    }
    if (fresh & ~there) return RECORDS;
    u32 line = 0;
    found.where = start | (l < LAST_STEP ? l : LAST_STEP) << 29;
    for (u32 k = 0; k < 3; k++) {
        found.where |= (l < tops[k] ? line + l : NO_LINE) << (14 + 5 * k);
        line += tops[k];
    }
    const u32 nx = along(0, fresh), ny = along(1, fresh);
    found.what = nx | ny << 13 | fresh << 26 | (begins ? 1u << 29 : 0) | (l >= few ? 1u << 30 : 0);
    found.by_x = 0xffffffffu / nx + 1, found.by_y = 0xffffffffu / ny + 1;
    return number;
}

// A tile's lattice: what is worth knowing beforehand.
struct Lattice {
    Line lines[LINES];
    Record records[RECORDS];
};
struct Steps {
    Step of[LINES + 1];
};
// Prepares the lattice of a tile; all threads, which then wait.
__device__ __forceinline__ void prepare(Lattice& lattice, Steps& steps, const Three& e) {
    const u32 t = threadIdx.x;
    auto extent = [&](u32 k) { return k == 0 ? e.x : k == 1 ? e.y : e.z; };
    // A line's axis and level.
    auto find = [&](u32 line, u32& k) {
        k = 0;
        while (k < 3 && line >= top_of(extent(k))) line -= top_of(extent(k)), k++;
        return line;
    };
    if (t < 3 * LINES) {
        u32 k;
        const u32 l = find(t / 3, k);
        if (k < 3) lattice.lines[t / 3].at[t % 3] = weights_at(extent(k), l, t % 3);
    } else if (t >= 64 && t <= 64 + LINES) {
        u32 k;
        const u32 l = find(t - 64, k);
        const Axis axis = {extent(k), k == 0 ? 1 : k == 1 ? e.x : e.x * e.y};
        steps.of[t - 64] = k < 3 && t < 64 + LINES ? step_of(axis, l) : Step{0, 0, 0, 0};
    } else if (t >= 128 && t < 128 + 8 * LEVELS) {
        const u32 l = (t - 128) / 8, k = t % 8;
        Record record{};
        const u32 number = k ? record_of(e, few_from(e), l, class_at(k), record) : RECORDS;
        if (number < RECORDS) lattice.records[number] = record;
        // The finest level's last class is the last of all.
        const u32 there = (e.x > 1 ? X : 0) | (e.y > 1 ? Y : 0) | (e.z > 1 ? Z : 0);
        if (l == 0 && k && class_at(k) == there) lattice.records[number + 1] = {e.product(), 0, 0, 0};
        if (l == 0 && k == 0 && there == 0) lattice.records[0] = {1, 0, 0, 0};
    }
}

}  // namespace interpolate
