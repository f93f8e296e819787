// SPDX-License-Identifier: MIT OR Apache-2.0
// Integer Lorenzo prediction of one tile, and the choice of its axes: src/stage/lorenzo.rs, src/codec/lorenzo/encode.rs.
#pragma once
#include "estimate.cuh"
#include "tiles.cuh"

namespace lorenzo {

constexpr u32 X = 1, Y = 2, Z = 4, SETS = 6;

// Axes of set `k`, in the order in which they are tried.
__device__ __forceinline__ u32 axes_of(u32 k) { return 0x743210u >> (4 * k) & 7u; }

// The sets that a tile of these extents allows, a bit each.
__device__ __forceinline__ u32 sets_of(const tiles::Three& e) {
    const bool x = e.x > 1, y = e.y > 1, z = e.z > 1;
    return 1u | (x ? 2u : 0u) | (y ? 4u : 0u) | (x && y ? 8u : 0u) | (z ? 16u : 0u) | (x && y && z ? 32u : 0u);
}

// Rows that axes are chosen by, out of 64; all of a tile with fewer than eight.
constexpr u64 SAMPLED = 1 | 0x1842184218421842ull;
constexpr u32 OF = 64, OF_THEM = 17;
__device__ __forceinline__ u32 sampled_row(u32 k, bool whole) {
    if (whole) return k;
    const u32 round = k / OF_THEM, i = k - round * OF_THEM;
    return OF * round + (i == 0 ? 0 : (i - 1) / 4 * 16 + (0xcb61u >> (4 * ((i - 1) & 3)) & 15u));
}
__device__ __forceinline__ u32 sampled_rows(u32 rows, bool whole) {
    return whole ? rows : rows / OF * OF_THEM + (u32)__popcll(SAMPLED & ((1ull << rows % OF) - 1));
}

// Words of bits for each set.
constexpr u32 MASKS = tiles::MOST / 32;

// Counts residuals of the sampled rows for every set of axes: how many are of each class, and which are not zero.
template <int THREADS>
__device__ __forceinline__ void sample(const int* q, const tiles::Three& e, const tiles::Divisor& by_x, const tiles::Divisor& by_y,
                                       u32 sets, u32 count, bool whole, u32* classes, u32* masks, int lane) {
    const u32 rise = e.x, plane = e.x * e.y;
    for (u32 s = threadIdx.x; s < (count + 31) / 32 * 32; s += THREADS) {
        u32 d[SETS] = {0, 0, 0, 0, 0, 0};
        if (s < count) {
            const u32 k = by_x.of(s), x = s - k * e.x, row = sampled_row(k, whole), z = by_y.of(row), y = row - z * e.y;
            const u32* at = (const u32*)q + row * e.x + x;
            const bool left = x > 0, up = y > 0, back = z > 0;
            // The place itself, the one above it, the ones behind those; and of each the one to its left.
            u32 a = *at, u = 0, k0 = 0, k1 = 0, al = 0, ul = 0, kl = 0;
            if (left) al = *(at - 1);
            if (up) {
                u = *(at - rise);
                if (left) ul = *(at - rise - 1);
            }
            if (back) {
                k0 = *(at - plane);
                if (left) kl = *(at - plane - 1);
                if (up) {
                    k1 = *(at - plane - rise);
                    if (left) kl -= *(at - plane - rise - 1);
                }
            }
            d[0] = a;
            d[1] = a - al;
            d[2] = a - u;
            d[3] = d[1] - (u - ul);
            d[4] = a - k0;
            d[5] = d[3] - (k0 - k1 - kl);
        }
#pragma unroll
        for (u32 i = 0; i < SETS; i++) {
            if (sets >> i & 1) {
                const u32 z = estimate::zigzag((int)d[i]);
                if (z) atomicAdd(classes + estimate::CLASSES * i + estimate::class_of(z), 1u);
                const u32 others = __ballot_sync(warp::ALL, z != 0);
                if (lane == 0) masks[MASKS * i + s / 32] = others;
            }
        }
    }
}

// Counts residuals as a look at interpolation finds them: of the sampled rows' odd places, from quanta on either side. The
// caller has `left` = (x − 5) / 2 of them in each row.
template <int THREADS>
__device__ __forceinline__ void look(const int* q, u32 x, const tiles::Divisor& by_left, u32 count, bool whole, u32* classes, u32* masks,
                                     int lane) {
    for (u32 s = threadIdx.x; s < (count + 31) / 32 * 32; s += THREADS) {
        u32 z = 0;
        if (s < count) {
            const u32 k = by_left.of(s);
            const u32* at = (const u32*)q + sampled_row(k, whole) * x + 2 * (s - k * by_left.d);
            const u32 near = at[2] + at[4];
            z = estimate::zigzag((int)(at[3] - ((u32)((int)near >> 1) + (u32)((int)(near - (at[0] + at[6])) >> 4))));
            if (z) atomicAdd(classes + estimate::class_of(z), 1u);
        }
        const u32 others = __ballot_sync(warp::ALL, z != 0);
        if (lane == 0) masks[s / 32] = others;
    }
}

// a + sign · b, four times.
__device__ __forceinline__ int4 plus(int4 a, int4 b, u32 sign) {
    return make_int4((int)((u32)a.x + sign * (u32)b.x), (int)((u32)a.y + sign * (u32)b.y), (int)((u32)a.z + sign * (u32)b.z),
                     (int)((u32)a.w + sign * (u32)b.w));
}

// Place of the highest bit, or -1.
__device__ __forceinline__ int highest_or_less(u32 z) {
#ifdef __CUDA_ARCH__
    int place;
    asm("bfind.u32 %0, %1;" : "=r"(place) : "r"(z));
    return place;
#else
    return 31 - __clz((int)z);
#endif
}

// 1 << k, or 0 where k is not below 32.
__device__ __forceinline__ u32 one_at(u32 k) {
#ifdef __CUDA_ARCH__
    u32 bit;
    asm("shl.b32 %0, 1, %1;" : "=r"(bit) : "r"(k));
    return bit;
#else
    return k < 32 ? 1u << k : 0;
#endif
}

// Sum over the warp of two halves of a word each.
__device__ __forceinline__ u32 total(u32 x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    return __reduce_add_sync(warp::ALL, x);
#else
    return warp::sum(x);
#endif
}

// Adds the threads' counts of eight classes, four bits each and at most 12, to those of the tile. `columns` has a word for
// every thread and set. All threads.
template <int THREADS>
__device__ __forceinline__ void gather_classes(const u32 (&counts)[SETS], u32 sets, u32* classes, u32* columns, int lane, int w) {
#pragma unroll
    for (u32 i = 0; i < SETS; i++) {
        if (sets >> i & 1) columns[THREADS * i + threadIdx.x] = counts[i];
    }
    __syncthreads();
    if (w < (int)SETS && (sets >> w & 1)) {
        u32 even = 0, odd = 0;
#pragma unroll
        for (int k = 0; k < THREADS / 32; k++) {
            const u32 x = columns[THREADS * w + 32 * k + lane];
            even += x & 0x0f0f0f0fu;
            odd += x >> 4 & 0x0f0f0f0fu;
        }
        const u32 a = total(even & 0xff00ffu), b = total(odd & 0xff00ffu), c = total(even >> 8 & 0xff00ffu), d = total(odd >> 8 & 0xff00ffu);
        if (lane < 4) {
            const u32 mine = lane == 0 ? a : lane == 1 ? b : lane == 2 ? c : d;
            u32* to = classes + estimate::CLASSES * w + lane;
            to[0] += mine & 0xffffu;
            to[4] += mine >> 16;
        }
    }
    __syncthreads();
}

// What four neighbours at a time find: where zero and not zero meet, for each set; and, for every 128 places, a bit a set for
// whether the first is not zero, and the last.
struct Turns {
    u32 inside[SETS];
    u32 first[tiles::MOST / 128], last[tiles::MOST / 128];
};

// The same counts for tiles with rows of whole fours. A thread counts its few values itself, four bits a class.
template <int THREADS>
__device__ __forceinline__ void sample_fours(const int* q, const tiles::Three& e, const tiles::Divisor& by_x, const tiles::Divisor& by_y,
                                             u32 sets, u32 count, bool whole, u32* classes, Turns& turns, u32* columns, int lane, int w) {
    constexpr u32 FIRST = 0x111111u;
    const u32 rise = e.x, plane = e.x * e.y;
    u32 low[SETS], high[SETS], even = 0, odd = 0;
#pragma unroll
    for (u32 i = 0; i < SETS; i++) low[i] = high[i] = 0;
    // Four bits hold 15: three steps.
    u32 steps = 0;
#pragma unroll 1
    for (u32 first = 0; first < count; first += 4 * THREADS) {
        const u32 from = first + 128 * w, s = from + 4 * lane;
        if (from < count) {
            int4 a = make_int4(0, 0, 0, 0), v = a, g = a, h = a;
            u32 al = 0, vl = 0, hl = 0;
            if (s < count) {
                const u32 k = by_x.of(s), x = s - k * e.x, row = sampled_row(k, whole), z = by_y.of(row), y = row - z * e.y;
                const int* at = q + row * e.x + x;
                const bool left = x > 0, up = y > 0, back = z > 0;
                // The places themselves; less those above; less those behind; less both.
                v = a = *(const int4*)at;
                if (left) vl = al = (u32)at[-1];
                if (up) {
                    v = plus(a, *(const int4*)(at - rise), 0u - 1u);
                    if (left) vl -= (u32)at[-(int)rise - 1];
                }
                g = a, h = v, hl = vl;
                if (back) {
                    const int4 behind = *(const int4*)(at - plane);
                    g = plus(a, behind, 0u - 1u);
                    h = plus(v, behind, 0u - 1u);
                    if (left) hl -= (u32)at[-(int)plane - 1];
                    if (up) {
                        h = plus(h, *(const int4*)(at - plane - rise), 1);
                        if (left) hl += (u32)at[-(int)(plane + rise) - 1];
                    }
                }
            }
            u32 bits = 0;
            auto add = [&](u32 i, u32 d0, u32 d1, u32 d2, u32 d3) {
                const u32 z[4] = {estimate::zigzag((int)d0), estimate::zigzag((int)d1), estimate::zigzag((int)d2), estimate::zigzag((int)d3)};
#pragma unroll
                for (u32 j = 0; j < 4; j++) {
                    low[i] += one_at(4 * (u32)highest_or_less(z[j]));
                    bits |= min(z[j], 1u) << (4 * i + j);
                }
                if (__any_sync(warp::ALL, (z[0] | z[1] | z[2] | z[3]) > 255)) {
#pragma unroll
                    for (u32 j = 0; j < 4; j++) high[i] += one_at(4 * (u32)min(highest_or_less(z[j]), (int)estimate::CLASSES - 1) - 32);
                }
            };
            auto four = [&](u32 i, const int4& d) { add(i, (u32)d.x, (u32)d.y, (u32)d.z, (u32)d.w); };
            auto steps_of = [&](u32 i, const int4& d, u32 before) {
                add(i, (u32)d.x - before, (u32)d.y - (u32)d.x, (u32)d.z - (u32)d.y, (u32)d.w - (u32)d.z);
            };
            four(0, a);
            if (sets & 2) steps_of(1, a, al);
            if (sets & 4) four(2, v);
            if (sets & 8) steps_of(3, v, vl);
            if (sets & 16) four(4, g);
            if (sets & 32) steps_of(5, h, hl);
            const u32 before = __shfl_up_sync(warp::ALL, bits >> 3 & FIRST, 1);
            u32 meet = bits ^ ((bits << 1 & 0xeeeeeeu) | (lane == 0 ? bits & FIRST : before));
            if (s >= count) meet = 0;
            meet -= meet >> 1 & 0x555555u;
            meet = (meet & 0x333333u) + (meet >> 2 & 0x333333u);
            even += meet & 0x0f0f0fu;
            odd += meet >> 4 & 0x0f0f0fu;
            if (lane == 0) turns.first[from / 128] = bits & FIRST;
            if (lane == 31) turns.last[from / 128] = bits >> 3 & FIRST;
        }
        if (++steps == 3 || first + 4 * THREADS >= count) {
            u32 any = 0;
#pragma unroll
            for (u32 i = 0; i < SETS; i++) any |= high[i];
            const bool large = __syncthreads_or(any != 0);
            gather_classes<THREADS>(low, sets, classes, columns, lane, w);
            if (large) gather_classes<THREADS>(high, sets, classes + 8, columns, lane, w);
            steps = 0;
#pragma unroll
            for (u32 i = 0; i < SETS; i++) low[i] = high[i] = 0;
        }
    }
    const u32 outer = total(even & 0xff00ffu), middle = total(even >> 8 & 255u), others = total(odd & 0xff00ffu), fourth = total(odd >> 8 & 255u);
    if (lane == 0) {
        atomicAdd(turns.inside + 0, outer & 0xffffu);
        atomicAdd(turns.inside + 1, others & 0xffffu);
        atomicAdd(turns.inside + 2, middle);
        atomicAdd(turns.inside + 3, fourth);
        atomicAdd(turns.inside + 4, outer >> 16);
        atomicAdd(turns.inside + 5, others >> 16);
    }
}

// The cost of one set of axes, from what `sample_fours` found. Whole warp.
__device__ __forceinline__ u32 cost_of(u32 set, const u32* classes, const Turns& turns, u32 count, int lane) {
    u32 changes = 0;
    for (u32 i = lane; i < (count + 127) / 128; i += 32) {
        changes += (turns.first[i] ^ (i ? turns.last[i - 1] : 0)) >> (4 * set) & 1;
    }
    return estimate::cost(classes + estimate::CLASSES * set, count, warp::sum(changes) + turns.inside[set], lane);
}

// The cost of one set of axes, from its counts. Whole warp.
__device__ __forceinline__ u32 cost_of(const u32* classes, const u32* masks, u32 count, int lane) {
    u32 changes = 0;
    for (u32 i = lane; i < (count + 31) / 32; i += 32) {
        const u32 before = i ? masks[i - 1] >> 31 : 0, left = count - 32 * i;
        const u32 meet = masks[i] ^ (masks[i] << 1 | before);
        changes += (u32)__popc(left < 32 ? meet & ((1u << left) - 1) : meet);
    }
    return estimate::cost(classes, count, warp::sum(changes), lane);
}

// Residuals of the values from place `i` on, four of one row.
__device__ __forceinline__ void four(const int* q, u32 i, const tiles::Three& e, const tiles::Three& place, u32 axes, int (&d)[4]) {
    const u32 x = place.x, y = place.y, z = place.z;
    const bool up = (axes & Y) && y > 0, back = (axes & Z) && z > 0, left = (axes & X) && x > 0;
    const int* at = q + i;
    const u32 rise = e.x, plane = e.x * e.y;
    int4 v = *(const int4*)at;
    u32 l = left ? (u32)at[-1] : 0;
    if (up) {
        v = plus(v, *(const int4*)(at - rise), 0u - 1u);
        if (left) l -= (u32)at[-(int)rise - 1];
    }
    if (back) {
        v = plus(v, *(const int4*)(at - plane), 0u - 1u);
        if (left) l -= (u32)at[-(int)plane - 1];
        if (up) {
            v = plus(v, *(const int4*)(at - plane - rise), 1);
            if (left) l += (u32)at[-(int)(plane + rise) - 1];
        }
    }
    d[0] = (int)((u32)v.x - l);
    d[1] = v.y;
    d[2] = v.z;
    d[3] = v.w;
    if (axes & X) {
        d[1] = (int)((u32)v.y - (u32)v.x);
        d[2] = (int)((u32)v.z - (u32)v.y);
        d[3] = (int)((u32)v.w - (u32)v.z);
    }
}

// The residual of the value at place `i`.
__device__ __forceinline__ int one(const int* q, u32 i, const tiles::Three& e, const tiles::Divisor& by_x,
                                   const tiles::Divisor& by_y, u32 axes) {
    const u32 row = by_x.of(i), x = i - row * e.x, z = by_y.of(row), y = row - z * e.y;
    const u32 rise = e.x, plane = e.x * e.y;
    u32 v = 0;
#pragma unroll
    for (u32 corner = 0; corner < 8; corner++) {
        const bool there = (corner & ~axes) == 0 && !((corner & X) && x == 0) && !((corner & Y) && y == 0) && !((corner & Z) && z == 0);
        if (there) {
            const u32 p = (u32)q[i - (corner & 1) - (corner >> 1 & 1) * rise - (corner >> 2) * plane];
            v += (0x96u >> corner & 1) ? 0u - p : p;
        }
    }
    return (int)v;
}

}  // namespace lorenzo
