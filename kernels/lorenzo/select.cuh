// SPDX-License-Identifier: MIT OR Apache-2.0
// Predictor selection: codecs/src/codec/lorenzo/FORMAT.md §8 (axes); on the CPU codecs/src/codec/lorenzo/select.rs.
//
// Some rows of a tile, about a quarter, stand for all. For each of up to six sets of axes their Lorenzo residuals are
// counted by length, and where zero and not zero meet; estimate.cuh makes a cost of these counts, and the first set
// with the least cost is taken (`choose`). Where rows consist of whole vec4s, four neighbours are counted at a time: a
// 64-bit word has a count of four bits for each length, so that one addition counts a residual of any; counts of all
// threads are added up before they overflow.
#pragma once
#include "../stage/estimate.cuh"
#include "../stage/lorenzo.cuh"
#include "../stage/tiles.cuh"

namespace selection {

using tiles::Three;

constexpr u32 SETS = 6;

// Axes of set `k`, in the order in which they are tried.
__device__ __forceinline__ u32 axes_of(u32 k) { return 0x743210u >> (4 * k) & 7u; }

// The sets that a tile of these extents allows, a bit each.
__device__ __forceinline__ u32 sets_of(const Three& e) {
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
__device__ __forceinline__ void sample(const int* q, const Three& e, const tiles::Divisor& by_x,
                                       const tiles::Divisor& by_y, u32 sets, u32 count, bool whole, u32* classes,
                                       u32* masks, int lane) {
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

// Place of the highest bit that is not the sign, or -1.
__device__ __forceinline__ int highest_or_less(u32 d) {
#ifdef __CUDA_ARCH__
    int place;
    asm("bfind.s32 %0, %1;" : "=r"(place) : "r"(d));
    return place;
#else
    return 31 - __clz((int)d < 0 ? (int)~d : (int)d);
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

// Adds up the fields, of `FIELDS` bits each, of `C` words of every thread. Calls `to(c, k, sum)` for words c and fields
// k < 4, or 2 of eight bits: `sum` has field k's sum in its lower half, and in the upper one that of the field 16 bits
// on. `columns` has a word for every thread and each of the `C`. All threads.
template <int THREADS, int FIELDS, u32 C, class F>
__device__ __forceinline__ void add_up(const u32 (&words)[C], u32* columns, int lane, int w, F to) {
    static_assert(C <= THREADS / 32, "a warp a word");
#pragma unroll
    for (u32 c = 0; c < C; c++) columns[THREADS * c + threadIdx.x] = words[c];
    __syncthreads();
    if (w < (int)C) {
        u32 low = 0, high = 0;
#pragma unroll
        for (int k = 0; k < THREADS / 32; k++) {
            const u32 x = columns[THREADS * w + 32 * k + lane];
            if (FIELDS == 4) {
                low += x & 0x0f0f0f0fu;
                high += x >> 4 & 0x0f0f0f0fu;
            } else {
                low += x & 0xff00ffu;
                high += x >> 8 & 0xff00ffu;
            }
        }
        if (FIELDS == 4) {
            const u32 a = warp::total(low & 0xff00ffu), b = warp::total(low >> 8 & 0xff00ffu);
            const u32 c = warp::total(high & 0xff00ffu), d = warp::total(high >> 8 & 0xff00ffu);
            if (lane < 4) to((u32)w, (u32)lane, lane == 0 ? a : lane == 1 ? c : lane == 2 ? b : d);
        } else {
            const u32 a = warp::total(low), b = warp::total(high);
            if (lane < 2) to((u32)w, (u32)lane, lane == 0 ? a : b);
        }
    }
    __syncthreads();
}

// What four neighbours at a time find: where zero and not zero meet, for each set; and what the first lane and the last
// of a warp had seen.
struct Turns {
    u32 inside[SETS];
    u32 first[tiles::MOST / 128], last[tiles::MOST / 128];
};

// Fours that a thread of `sample_vec4` looks at before their neighbours come in, as a power of two.
constexpr __device__ u32 at_once_log2(int rank) { return rank == 1 ? 1 : 0; }

// Counts the residuals of a thread, four at a time, for the first `N` sets of axes: classes, four bits each.
template <u32 N>
struct Few {
    u64 counts[N];
    // A bit for each residual that is 0, the last one's lowest.
    u32 zeros;
    // Of twice the residuals of set `i`, which are below 2^30.
    __device__ __forceinline__ void add(u32 i, u32 d0, u32 d1, u32 d2, u32 d3) {
        const u32 d[4] = {d0, d1, d2, d3};
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            // The class; less than 0 for a residual that is 0.
            const int k = min(highest_or_less(d[j]), (int)estimate::CLASSES - 1);
            zeros = __funnelshift_l((u32)k, zeros, 1);
            // The fourth power is one in nibble k: a multiplier has more time to spare than what shifts.
            const u32 bit = one_at((u32)k), square = bit * bit;
            counts[i] += (u64)square * square;
        }
    }
    __device__ __forceinline__ void add(u32 i, const int4& d) { add(i, (u32)d.x, (u32)d.y, (u32)d.z, (u32)d.w); }
    __device__ __forceinline__ void steps(u32 i, const int4& d, u32 before) {
        add(i, (u32)d.x - before, (u32)d.y - (u32)d.x, (u32)d.z - (u32)d.y, (u32)d.w - (u32)d.z);
    }
};

// Twice the four values at `s` (a), less those above (v), less those behind (g), less both (h), and of the value to the
// left of them a, v and h. Zeros where nothing is.
struct Neighbours {
    int4 a = make_int4(0, 0, 0, 0), v = a, g = a, h = a;
    u32 al = 0, vl = 0, hl = 0;

    template <int RANK>
    __device__ __forceinline__ void read(const int* q, u32 s, const Three& e, const tiles::Divisor& by_x,
                                         const tiles::Divisor& by_y, bool whole) {
        const u32 rise = e.x, plane = e.x * e.y;
        u32 x = s, y = 0, z = 0;
        const int* at = q + s;
        if (RANK > 1) {
            const u32 k = by_x.of(s), row = sampled_row(k, whole);
            x = s - k * e.x, z = RANK > 2 ? by_y.of(row) : 0, y = row - z * e.y;
            at = q + row * e.x + x;
        }
        const bool left = x > 0, up = RANK > 1 && y > 0, back = RANK > 2 && z > 0;
        a = lorenzo::plus(a, *(const int4*)at, 2);
        if (left) al = 2 * (u32)at[-1];
        v = a, vl = al;
        if (up) {
            v = lorenzo::plus(a, *(const int4*)(at - rise), 0u - 2u);
            if (left) vl -= 2 * (u32)at[-(int)rise - 1];
        }
        g = a, h = v, hl = vl;
        if (back) {
            const int4 behind = *(const int4*)(at - plane);
            g = lorenzo::plus(a, behind, 0u - 2u);
            h = lorenzo::plus(v, behind, 0u - 2u);
            if (left) hl -= 2 * (u32)at[-(int)plane - 1];
            if (up) {
                h = lorenzo::plus(h, *(const int4*)(at - plane - rise), 2);
                if (left) hl += 2 * (u32)at[-(int)(plane + rise) - 1];
            }
        }
    }
};

// The same counts for tiles with rows of whole vec4s, of the last `RANK` axes, and quanta below 2^26. All threads.
template <int THREADS, int RANK>
__device__ __forceinline__ void sample_vec4(const int* q, const Three& e, const tiles::Divisor& by_x,
                                            const tiles::Divisor& by_y, u32 count, bool whole, u32* classes,
                                            Turns& turns, u32* columns, int lane, int w) {
    constexpr u32 N = 2 * RANK, AT_ONCE = 1 << at_once_log2(RANK), FIRST = 0x11111111u >> (32 - 4 * N * AT_ONCE);
    Few<N> few;
    u32 even = 0, odd = 0, steps = 0;
#pragma unroll
    for (u32 i = 0; i < N; i++) few.counts[i] = 0;
    // Of one axis, counts in bytes: the nibbles at even places, and at odd ones.
    u64 wide[4] = {0, 0, 0, 0};
#pragma unroll 1
    for (u32 first = 0; first < count; first += AT_ONCE * 4 * THREADS) {
        // Four bits a set, the first set's lowest, and in them the last residual's; those of later steps below.
        u32 here = 0;
        few.zeros = 0;
        if (first + 128 * w < count) {
#pragma unroll
            for (u32 step = 0; step < AT_ONCE; step++) {
                const u32 s = first + 4 * (threadIdx.x + step * THREADS);
                Neighbours n;
                if (AT_ONCE > 1) here <<= 4 * N;
                if (s < count) {
                    here |= (1u << 4 * N) - 1;
                    n.read<RANK>(q, s, e, by_x, by_y, whole);
                }
                if (RANK > 2) {
                    few.steps(5, n.h, n.hl);
                    few.add(4, n.g);
                }
                if (RANK > 1) {
                    few.steps(3, n.v, n.vl);
                    few.add(2, n.v);
                }
                few.steps(1, n.a, n.al);
                few.add(0, n.a);
            }
            const u32 before = __shfl_up_sync(warp::ALL, few.zeros, 1), at = first / (128 * AT_ONCE) + w;
            u32 meet = (few.zeros ^ ((few.zeros >> 1 & 7 * FIRST) | (before << 3 & ~(7 * FIRST)))) & here;
            meet -= meet >> 1 & 5 * FIRST;
            meet = (meet & 3 * FIRST) + (meet >> 2 & 3 * FIRST);
            even += meet & 0x0f0f0fu;
            odd += meet >> 4 & 0x0f0f0fu;
            if (lane == 0) turns.first[at] = few.zeros;
            if (lane == 31) turns.last[at] = few.zeros;
        }
        // Four bits hold 15: three steps.
        if (RANK > 1 && ++steps < 3 && first + 4 * THREADS < count) continue;
        steps = 0;
        if (RANK == 1) {
#pragma unroll
            for (u32 i = 0; i < N; i++) {
                constexpr u64 LOW = 0x0f0f0f0f0f0f0f0full;
                wide[2 * i] += few.counts[i] & LOW;
                wide[2 * i + 1] += few.counts[i] >> 4 & LOW;
            }
        } else {
            u32 low[N], high[N], any = 0;
#pragma unroll
            for (u32 i = 0; i < N; i++) {
                low[i] = (u32)few.counts[i];
                any |= high[i] = (u32)(few.counts[i] >> 32);
            }
            auto to = [&](u32 c, u32 k, u32 sum) {
                u32* at = classes + estimate::CLASSES * c + k;
                at[0] += sum & 0xffffu;
                at[4] += sum >> 16;
            };
            const bool large = __syncthreads_or(any != 0);
            add_up<THREADS, 4>(low, columns, lane, w, to);
            classes += 8;
            if (large) add_up<THREADS, 4>(high, columns, lane, w, to);
            classes -= 8;
        }
#pragma unroll
        for (u32 i = 0; i < N; i++) few.counts[i] = 0;
    }
    if (RANK == 1) {
        // Word c has the places 8 · (c / 2 % 2) + c % 2 and every second one behind that, of set c / 4.
        u32 words[8];
#pragma unroll
        for (u32 c = 0; c < 8; c++) words[c] = (u32)(wide[c / 4 * 2 + c % 2] >> (32 * (c / 2 % 2)));
        add_up<THREADS, 8>(words, columns, lane, w, [&](u32 c, u32 k, u32 sum) {
            u32* at = classes + estimate::CLASSES * (c / 4) + 8 * (c / 2 % 2) + c % 2 + 2 * k;
            at[0] = sum & 0xffffu;
            at[4] = sum >> 16;
        });
    }
    const u32 outer = warp::total(even & 0xff00ffu), others = warp::total(odd & 0xff00ffu);
    const u32 middle = warp::total(even >> 8 & 255u), fourth = warp::total(odd >> 8 & 255u);
    if (lane == 0) {
        atomicAdd(turns.inside + 0, outer & 0xffffu);
        atomicAdd(turns.inside + 1, others & 0xffffu);
        // Of one axis, those of the first of two steps.
        atomicAdd(turns.inside + 2 % N, middle);
        atomicAdd(turns.inside + 3 % N, fourth);
        if (RANK > 2) {
            atomicAdd(turns.inside + 4, outer >> 16);
            atomicAdd(turns.inside + 5, others >> 16);
        }
    }
}

// The cost of one set of axes, from what `sample_vec4` found. Whole warp.
template <int THREADS>
__device__ __forceinline__ u32 cost_of(u32 set, int rank, const u32* classes, const Turns& turns, u32 count, int lane) {
    constexpr u32 WARPS = THREADS / 32;
    const u32 log2 = at_once_log2(rank), last_step = (1u << log2) - 1;
    // Where a step's bits are: its word, and their place in it.
    auto word = [&](u32 i) { return (i / WARPS >> log2) * WARPS + i % WARPS; };
    auto shift = [&](u32 i) { return 4 * set + (~(i / WARPS) & last_step) * 8 * rank; };
    u32 changes = 0;
    for (u32 i = lane; i < (count + 127) / 128; i += 32) {
        const u32 first = turns.first[word(i)] >> shift(i), last = i ? turns.last[word(i - 1)] >> shift(i - 1) : 1;
        // The first lane has taken its own last one for what is before it.
        changes += ((first >> 3 ^ last) & 1) - ((first >> 3 ^ first) & 1);
    }
    return estimate::cost(classes + estimate::CLASSES * set, count, warp::total(changes) + turns.inside[set], lane);
}

// The first of the sets with the least cost. Whole warp.
__device__ __forceinline__ u32 cheapest(const u32* costs, u32 sets, int lane) {
    // A tile's cost has 29 bits at most.
    const u32 own = lane < (int)SETS && (sets >> lane & 1) ? costs[lane] << 3 | (u32)lane : warp::ALL;
    return warp::least(own) & 7u;
}

// The cost of one set of axes, from its counts. Whole warp.
__device__ __forceinline__ u32 cost_of(const u32* classes, const u32* masks, u32 count, int lane) {
    u32 changes = 0;
    for (u32 i = lane; i < (count + 31) / 32; i += 32) {
        const u32 before = i ? masks[i - 1] >> 31 : 0, left = count - 32 * i;
        const u32 meet = masks[i] ^ (masks[i] << 1 | before);
        changes += (u32)__popc(left < 32 ? meet & ((1u << left) - 1) : meet);
    }
    return estimate::cost(classes, count, warp::total(changes), lane);
}

// What a choice needs beside counts.
struct Shared {
    u32 costs[8];
    Turns turns;
};

// Lorenzo's axes: the first set with the least cost over the sampled rows. With `vec4` the rows of quanta `q` are whole
// vec4s below 2^26. `classes` are zero before, `words` has as many as the static_assert below says. All threads.
template <int THREADS>
__device__ __forceinline__ u32 choose_axes(const int* q, const Three& e, const tiles::Divisor& by_x,
                                           const tiles::Divisor& by_y, bool vec4, u32* classes, u32* words, Shared& sh,
                                           int lane, int w) {
    const u32 rows = e.z * e.y, sets = sets_of(e);
    const bool whole = rows < 8;
    const u32 places = sampled_rows(rows, whole) * e.x;
    const int rank = rows == 1 ? 1 : e.z == 1 ? 2 : 3;
    if (vec4 && rank == 1) {
        sample_vec4<THREADS, 1>(q, e, by_x, by_y, places, whole, classes, sh.turns, words, lane, w);
    } else if (vec4 && rank == 2) {
        sample_vec4<THREADS, 2>(q, e, by_x, by_y, places, whole, classes, sh.turns, words, lane, w);
    } else if (vec4) {
        sample_vec4<THREADS, 3>(q, e, by_x, by_y, places, whole, classes, sh.turns, words, lane, w);
    } else {
        sample<THREADS>(q, e, by_x, by_y, sets, places, whole, classes, words, lane);
    }
    __syncthreads();
    if (w < (int)SETS && (sets >> w & 1)) {
        const u32 cost = vec4 ? cost_of<THREADS>((u32)w, rank, classes, sh.turns, places, lane)
                              : cost_of(classes + estimate::CLASSES * w, words + MASKS * w, places, lane);
        if (lane == 0) sh.costs[w] = cost;
    }
    __syncthreads();
    return axes_of(cheapest(sh.costs, sets, lane));
}
static_assert(MASKS >= 256, "a set's bits and a column of a word a thread take as many words");

}  // namespace selection
