// SPDX-License-Identifier: MIT OR Apache-2.0
// The way through the lattice of a tile of any extents, from its single point to its finest level, by all threads of a
// CTA: class by class, point by point.
#pragma once
#include "lattice.cuh"

namespace interpolate {

// The guess at new point `i` along an axis, whose line begins at `at`. A point that is not there weighs nothing: any
// other one is read.
__device__ __forceinline__ u32 guess(const int* at, const Step& step, const Line& line, u32 i) {
    const u32 apart = step.coarse, end = step.end, behind = step.last - i;
    const int* near = at + i * apart;
    const bool first = i == 0;
    const u32 a = (u32)(first ? near : near - apart)[0], b = (u32)near[0];
    const u32 c = (u32)((int)behind > 1 ? near + apart : at + end)[0];
    const u32 d = (u32)((int)behind > 2 ? near + 2 * apart : at + end)[0];
    if (first || behind <= 2) {
        const Weights w = line.at[first ? 0 : behind];
        if (!w.even) return weighted(a, b, c, d, w.a, w.c, w.d);
    }
    return cubic(a, b, c, d);
}

// Visits every point of a tile. The first warp has the coarsest levels alone, as they have few points; then the whole
// CTA calls `wait`, which is a barrier, and visits the others. Calls `one(place in the stream, address, guess, step)`.
template <class Wait, class One>
__device__ __forceinline__ void visit_any(const int* v, const Lattice& lattice, const Steps& steps, u32 way, u32 points,
                                          Wait wait, One one) {
    if (threadIdx.x == 0) one(0u, 0u, 0u, step_at(way, lattice.records[0].level() + 1));
    bool alone = true;
#pragma unroll 1
    for (u32 number = 0;; number++) {
        const Record record = lattice.records[number];
        const u32 start = record.start();
        const bool end = start == points;
        if (alone && (end || !record.alone())) {
            alone = false;
            wait();
        } else if (alone && threadIdx.x >= 32) {
            continue;
        } else if (end || record.begins()) {
            // A pass, of classes with as many new axes, needs the one before.
            if (alone) {
                __syncwarp();
            } else {
                __syncthreads();
            }
        }
        if (end) break;
        const u32 fresh = record.fresh(), use = used(fresh, way), step = step_at(way, record.level());
        const u32 nx = record.nx(), ny = record.ny(), count = lattice.records[number + 1].start() - start;
        const Step &sx = steps.of[record.line(0)], &sy = steps.of[record.line(1)], &sz = steps.of[record.line(2)];
#pragma unroll 1
        for (u32 j = threadIdx.x; j < count; j += alone ? 32 : 256) {
            const u32 row = tiles::Divisor(nx, record.by_x).of(j), z = tiles::Divisor(ny, record.by_y).of(row);
            const u32 x = j - row * nx, y = row - z * ny;
            const u32 at_x = sx.of(x, fresh & X), at_y = sy.of(y, fresh & Y), at_z = sz.of(z, fresh & Z);
            const u32 gx = use & X ? guess(v + at_y + at_z, sx, lattice.lines[record.line(0)], x) : 0;
            const u32 gy = use & Y ? guess(v + at_x + at_z, sy, lattice.lines[record.line(1)], y) : 0;
            const u32 gz = use & Z ? guess(v + at_x + at_y, sz, lattice.lines[record.line(2)], z) : 0;
            one(start + j, at_x + at_y + at_z, joined(use, gx, gy, gz), step);
        }
    }
}

}  // namespace interpolate
