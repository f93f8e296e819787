// SPDX-License-Identifier: MIT OR Apache-2.0
// What the kernels that write lorenzo know of a tile: its values in the chunk, its part of the chunk's working memory,
// how its residuals are kept and counted.
#pragma once
#include "../base/frame.cuh"
#include "../prim/load.cuh"
#include "../stage/huffman_encode.cuh"
#include "../stage/interpolate/formulas.cuh"
#include "../stage/quantize.cuh"
#include "../tuning.cuh"
#include "outliers.cuh"
#include "select.cuh"

namespace {

constexpr int THREADS = 256;
constexpr u32 TILE = tiles::MOST, MARKS = TILE / 32;
static_assert(TILE == 32 * THREADS, "a thread has 32 residuals in a row");

// A tile's kind, FORMAT.md §3.3.
constexpr u32 INTERPOLATED = 8, HUFFMAN = 1 << 4, FIXED = 2 << 4, CLASS = 3 << 4, RAW = 3 << 4, OUTLIERS = 1 << 6;

// What the launches share of a chunk; counts are zero before.
struct Codebook {
    u32 counts[huffman::SLOTS];
    huffman::Codes codes;
    u64 kinds_at, lengths_at, starts_at, payload_at;
    u32 head_len, said;
    // The bound used, and the base as an f64: `plan` finds them, and above what `quantize::said` says, with SAID in it.
    double used, base;
};
static_assert(sizeof(Codebook) == LORENZO_SHARED, "as the host reserves");

// What `plan` and `interpolate` tell `write` of a tile, with the first word of its outliers; with `TRIED` in its kind,
// `plan` tells `interpolate` what it costs, and the way that may pay by the byte above the kind's, 0 for none, by the
// next one the sets under which it may have been interpolated before.
constexpr u32 TRIED = 1u << 31, TRIED_WAY = 8, TRIED_SETS = 16;
struct Meta {
    u32 kind, width, outliers, cost;
};

// A tile's part of the chunk's working memory.
struct Work {
    u8* at;
    // Bytes for a tile's values, one each.
    u32 capacity;
    __device__ __forceinline__ Work(const EncodeChunk& c, u32 t)
        : at((u8*)c.work + (u64)c.work_stride * t), capacity((c.tile[0] * c.tile[1] * c.tile[2] + 63) & ~63u) {}
    __device__ __forceinline__ Meta* meta() const { return (Meta*)at; }
    // How often the tile has each symbol.
    __device__ __forceinline__ unsigned short* counts() const { return (unsigned short*)(at + sizeof(Meta)); }
    __device__ __forceinline__ u32* bytes() const { return (u32*)(at + LORENZO_HEAD); }
    // A bit for each outlier; one for the first of each record.
    __device__ __forceinline__ u32* marks() const { return (u32*)(at + LORENZO_HEAD + capacity); }
    __device__ __forceinline__ u32* starts() const { return (u32*)(at + LORENZO_HEAD + capacity + capacity / 8); }
    // Or a mask: the bits of its values, and its runs.
    __device__ __forceinline__ u64* alike() const { return (u64*)(at + LORENZO_HEAD) - 1; }
    __device__ __forceinline__ unsigned short* runs() const { return (unsigned short*)(at + LORENZO_HEAD + capacity); }
    // Zigzag values that no byte holds, at their places: Lorenzo's, then interpolation's.
    __device__ __forceinline__ u32* exact(bool interpolated) const {
        return (u32*)(at + LORENZO_HEAD + 2 * capacity) + (interpolated ? capacity : 0);
    }
};
static_assert(sizeof(Meta) + 2 * huffman::SYMBOLS + sizeof(u64) <= LORENZO_HEAD, "the counts fit");

// A tile's values in the chunk.
template <class S>
struct Source {
    const S* first;
    tiles::Three e;
    u32 n, rise, plane;
    tiles::Divisor by_x, by_y;
    // 4 · THREADS values on in a tile, where that is the same step everywhere: in places, and in the chunk.
    tiles::Three step;
    u32 skip;
    bool regular, vec4, whole, swap;
    __device__ __forceinline__ Source(const EncodeChunk& c, const tiles::Tile& t)
        : first((const S*)c.input + t.start),
          e(t.extents),
          n(t.values()),
          rise(c.extents[2]),
          plane(c.extents[1] * c.extents[2]),
          by_x(t.extents.x),
          by_y(t.extents.y),
          vec4(t.extents.x % 4 == 0),
          swap(c.flags & FLAG_SWAP) {
        whole = vec4 && t.start % 4 == 0 && (rise % 4 == 0 || n == e.x);
        const u32 rows = by_x.of(4 * THREADS), planes = by_y.of(rows), left = 4 * THREADS - rows * e.x;
        if (n == e.x) {
            step = {0, 0, 4u * THREADS};
        } else if (e.z == 1) {
            step = {0, rows, 0};
        } else {
            step = {planes, 0, 0};
        }
        regular = n == e.x || (left == 0 && (e.z == 1 || rows == planes * e.y));
        skip = step.z * plane + step.y * rise + step.x;
    }
    // Where place `i` is: the thread's first, or `k` steps behind that.
    __device__ __forceinline__ tiles::Three where(u32 i) const {
        const u32 row = by_x.of(i), z = by_y.of(row);
        return {z, row - z * e.y, i - row * e.x};
    }
    // Brings this thread's values of a whole tile to where their quanta will be, all loads in flight at once. Tells
    // whether it did.
    __device__ __forceinline__ bool stage(int* to) const {
        if (Traits<S>::W != 4 || !regular || !whole || n != TILE) return false;
        const S* at = first + place(4 * threadIdx.x);
        uint4 v[8];
#pragma unroll
        for (u32 k = 0; k < 8; k++) v[k] = *(const uint4*)(at + k * skip);
#pragma unroll
        for (u32 k = 0; k < 8; k++) *(uint4*)(to + 4 * (threadIdx.x + k * THREADS)) = v[k];
        return true;
    }
    __device__ __forceinline__ void staged(const int* from, S (&x)[4]) const {
        using T = Traits<S>;
        const uint4 v = *(const uint4*)from;
        const u32 b[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = T::value((typename T::Bits)(swap ? swapped(b[j]) : b[j]));
    }
    // Calls `f(k, first place, its place in the chunk)` for this thread's values, four at a time.
    template <class F>
    __device__ __forceinline__ void each(F f) const {
        const u32 first = 4 * threadIdx.x;
        u32 at = first < n ? place(first) : 0;
#pragma unroll 1
        for (u32 k = 0; k < 8; k++) {
            const u32 i = first + k * 4 * THREADS;
            if (i < n) {
                f(k, i, at);
                if (regular) {
                    at += skip;
                } else if (i + 4 * THREADS < n) {
                    at = place(i + 4 * THREADS);
                }
            }
        }
    }
    __device__ __forceinline__ u32 place(u32 i) const { return place(where(i)); }
    __device__ __forceinline__ u32 place(const tiles::Three& p) const { return p.z * plane + p.y * rise + p.x; }
    __device__ __forceinline__ S one(u32 i) const {
        const auto b = Traits<S>::bits(first[place(i)]);
        return Traits<S>::value(swap ? swapped(b) : b);
    }
    // The values from place `i` of the tile on, a multiple of 4; the last one again after the end.
    __device__ __forceinline__ void four(u32 i, S (&x)[4]) const { four(i, vec4 ? place(i) : 0, x); }
    __device__ __forceinline__ void four(u32 i, u32 place_, S (&x)[4]) const {
        raw(i, place_, x);
        turn(x);
    }
    // The same in two steps: as they are stored, and in this machine's order of bytes.
    __device__ __forceinline__ void raw(u32 i, u32 place_, S (&x)[4]) const {
        if (vec4) {
            const S* at = first + place_;
            if (!whole) {
#pragma unroll
                for (int j = 0; j < 4; j++) x[j] = at[j];
            } else {
                load4(at, x);
            }
        } else {
            for (int j = 0; j < 4; j++) x[j] = first[place(min(i + j, n - 1))];
        }
    }
    __device__ __forceinline__ void turn(S (&x)[4]) const {
        if (swap) {
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] = Traits<S>::value(swapped(Traits<S>::bits(x[j])));
        }
    }
};

// A bit for each of four places that is before the end.
__device__ __forceinline__ u32 four_valid(u32 i, u32 n) { return n - i < 4 ? (1u << (n - i)) - 1 : 15u; }

template <class S>
__device__ __forceinline__ typename Traits<S>::Bits fill_of(const EncodeChunk& c) {
    return c.flags & FLAG_FILL ? (typename Traits<S>::Bits)c.fill : Traits<S>::EXPONENT;
}

struct TileShared {
    // Quanta in the order of the tile; or interpolation's points, with the finest levels split.
    alignas(16) int points[TILE];
    // Residuals, a byte each, in the order of the stream.
    alignas(16) u32 bytes[TILE / 4];
    u32 outliers[MARKS];
    alignas(16) u32 bins[huffman::BINS];
    alignas(16) u32 classes[selection::SETS * estimate::CLASSES];
    // A word a warp, for scans.
    u32 scratch[THREADS / 32];
    // Of the residuals counted; all zigzag values of the tile together.
    u32 changes, cost, all;
};

// Before anything is counted.
__device__ __forceinline__ void clear_counts(TileShared& sh) {
    for (u32 i = threadIdx.x; i < huffman::BINS; i += THREADS) sh.bins[i] = 0;
    if (threadIdx.x < selection::SETS * estimate::CLASSES) sh.classes[threadIdx.x] = 0;
    if (threadIdx.x == 0) sh.changes = 0;
}

// Counts the bytes and, with `wanted`, finds what they cost. All threads.
__device__ __forceinline__ void count(TileShared& sh, const huffman::Mine& mine, u32 n, bool wanted, int lane, int w) {
    const u32 t = threadIdx.x;
    huffman::tally(mine, sh.bins);
    if (wanted) {
        const bool before = t > 0 && 32 * t < n && (sh.bytes[8 * t - 1] >> 24) != 0;
        const u32 changes = warp::sum(huffman::changes(mine.mask, before, n));
        if (lane == 0 && changes) atomicAdd(&sh.changes, changes);
        __syncthreads();
        huffman::classes(sh.bins, sh.classes);
        __syncthreads();
        if (w == 0) {
            const u32 cost = estimate::cost(sh.classes, n, sh.changes, lane);
            if (lane == 0) sh.cost = cost;
        }
    }
    __syncthreads();
}

// Zigzag values together: those of four bytes, and those beyond.
struct All {
    u32 bytes, large;
    __device__ __forceinline__ u32 together() const {
        return large | ((bytes | bytes >> 8 | bytes >> 16 | bytes >> 24) & 255u);
    }
};

// Each byte's bit 7, eight times.
__device__ __forceinline__ u32 signs(u32 word) {
#ifdef __CUDA_ARCH__
    u32 signs;
    asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(signs) : "r"(word));
    return signs;
#else
    return (word >> 7 & 0x01010101u) * 255;
#endif
}

// Four residuals, each with 128 more, as bytes; where one fits no byte, calls `far` with their zigzag values.
template <class F>
__device__ __forceinline__ u32 zigzag_four(const u32 (&d)[4], All& all, F far) {
    const u32 low = __byte_perm(d[0], d[1], 0x0040), word = __byte_perm(low, __byte_perm(d[2], d[3], 0x0040), 0x5410);
    // Bit 7 is 0 in those below zero.
    u32 zigzag = (word << 1 & 0xfefefefeu) ^ ~signs(word);
    if ((d[0] | d[1] | d[2] | d[3]) < 256 && !huffman::far(zigzag)) {
        all.bytes |= zigzag;
    } else {
        u32 z[4];
        zigzag = 0;
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            z[j] = estimate::zigzag((int)(d[j] - 128));
            all.large |= z[j];
            zigzag |= huffman::byte_of(z[j]) << (8 * j);
        }
        far(z);
    }
    return zigzag;
}

// Keeps four residuals, each with 128 more, as bytes from place `i` on.
__device__ __forceinline__ void keep_four(u32* bytes, u32 i, const u32 (&d)[4], u32* exact, All& all) {
    bytes[i / 4] =
        zigzag_four(d, all, [&](const u32(&z)[4]) { *(uint4*)(exact + i) = make_uint4(z[0], z[1], z[2], z[3]); });
}

// The place behind the run of ones that a mask has at `at`, below `n`.
__device__ __forceinline__ u32 run_end(const u32* marks, u32 at, u32 n) {
    u32 word = at / 32, stops = ~marks[word] & ~((2u << (at % 32)) - 1);
    while (!stops && ++word < MARKS) stops = ~marks[word];
    return word < MARKS ? min(32 * word + (u32)__ffs((int)stops) - 1, n) : n;
}

// The place behind the last one before `at`, 0 if there is none.
__device__ __forceinline__ u32 run_before(const u32* marks, u32 at) {
    u32 word = at / 32, ones = marks[word] & ((1u << (at % 32)) - 1);
    while (!ones && word > 0) ones = marks[--word];
    return ones ? 32 * word + estimate::highest(ones) + 1 : 0;
}

// Calls `f` for each run of ones that begins in this thread's word: first place, the one behind it, and the one behind
// the run before.
template <class F>
__device__ __forceinline__ void each_run_of(const u32* marks, u32 n, F f) {
    const u32 t = threadIdx.x, before = t ? marks[t - 1] >> 31 : 0;
    for (u32 starts = marks[t] & ~(marks[t] << 1 | before); starts; starts &= starts - 1) {
        const u32 at = 32 * t + (u32)__ffs((int)starts) - 1;
        f(at, run_end(marks, at, n), run_before(marks, at));
    }
}

constexpr u32 RUN_MOST = 255;

// Makes a mask of the tile's outliers, which all have the same bits, if it takes fewer than `most` words; with `step`,
// from neighbour to neighbour along the slowest axis, also one of differences. Its runs go to `runs`. Returns the first
// word of the outliers, or 0. All threads; overwrites `sh.points`.
__device__ __forceinline__ u32 make_mask(TileShared& sh, unsigned short* runs, u32 n, u32 step, u32 value_words,
                                         u32 most) {
    const u32 t = threadIdx.x;
    u32 *differences = (u32*)sh.points, *marks = sh.outliers;
    const u32 whole = step / 32;
    auto word = [&](u32 k) { return t >= k ? marks[t - k] : 0; };
    u32 own = marks[t] ^ __funnelshift_l(word(whole + 1), word(whole), step % 32);
    // What was moved behind the last value.
    own &= 32 * t >= n ? 0 : n - 32 * t < 32 ? (1u << (n - 32 * t)) - 1 : warp::ALL;
    differences[t] = own;
    __syncthreads();
    auto count = [&](const u32* of, u32& before) {
        u32 mine = 0, all;
        each_run_of(of, n, [&](u32 at, u32 end, u32 last) {
            mine += (at - last) / RUN_MOST + (end - at + RUN_MOST - 1) / RUN_MOST;
        });
        before = block::sum_before<THREADS>(mine, sh.scratch, all);
        return all;
    };
    u32 before, before_other, all = count(marks, before), head = MASK;
    if (step) {
        const u32 other = count(differences, before_other);
        if (other < all) {
            all = other;
            before = before_other;
            head |= DIFFERENCES;
        }
    }
    if (1 + value_words + (all + 1) / 2 >= most || all > (n + 1) / 2) return 0;
    each_run_of(head & DIFFERENCES ? differences : marks, n, [&](u32 at, u32 end, u32 last) {
        u32 zeros = at - last, ones = end - at;
        for (; zeros >= RUN_MOST; zeros -= RUN_MOST) runs[before++] = RUN_MOST;
        while (ones) {
            const u32 some = min(ones, RUN_MOST);
            runs[before++] = (unsigned short)(zeros | some << 8);
            zeros = 0;
            ones -= some;
        }
    });
    if (t == 0 && all % 2) runs[all] = 0;
    return head | all;
}

// Keeps a tile's outliers: as a mask, or with the first one of every record marked: those behind each other with the
// same bits are one. Returns their first word. All threads; overwrites `sh.points`. A function of its own, as few tiles
// need it: its registers are not those of all others.
template <class S>
__device__ __noinline__ u32 outliers_of(TileShared& sh, const EncodeChunk* chunks, u32 chunk_count, u32 tile) {
    const EncodeChunk& c = chunks[frame::chunk_of(chunks, chunk_count, tile, (int)threadIdx.x & 31)];
    const u32 number = tile - c.first_tile;
    const Source<S> in(c, tiles::of(c.extents, c.tile, number));
    const Work work(c, number);
    using Bits = typename Traits<S>::Bits;
    const u32 t = threadIdx.x;
    const u32* marks = sh.outliers;
    u32 starts = 0, first = 0;
    while (first + 32 < MARKS && !__ballot_sync(warp::ALL, marks[first + t % 32])) first += 32;
    const u32 word = first + (u32)__ffs((int)__ballot_sync(warp::ALL, marks[first + t % 32])) - 1;
    const Bits bits = Traits<S>::bits(in.one(32 * word + (u32)__ffs((int)marks[word]) - 1));
    bool alike = true;
    for (u32 left = marks[t]; left; left &= left - 1) {
        const u32 i = (u32)__ffs((int)left) - 1, at = 32 * t + i;
        const bool follows = at > 0 && (marks[(at - 1) / 32] >> ((at - 1) % 32) & 1);
        const Bits own = Traits<S>::bits(in.one(at));
        if (!follows || own != Traits<S>::bits(in.one(at - 1))) starts |= 1u << i;
        alike = alike && own == bits;
    }
    alike = __syncthreads_and(alike);
    u32 total;
    block::sum_before<THREADS>((u32)__popc(starts), sh.scratch, total);
    if (alike) {
        const u32 step = in.e.z > 1 ? in.e.x * in.e.y : in.e.y > 1 ? in.e.x : 0;
        const u32 head = make_mask(sh, work.runs(), in.n, step, Traits<S>::W / 4, outlier_words<Traits<S>::W>(total));
        if (head) {
            if (t == 0) *work.alike() = (u64)bits;
            return head;
        }
    }
    if (32 * t < in.n) {
        work.marks()[t] = marks[t];
        work.starts()[t] = starts;
    }
    return total;
}

// Says what tile `tile` of the batch is to be, from its predictor and all zigzag values of this thread, and leaves its
// bytes for `write`.
template <class S>
__device__ __forceinline__ Meta settle_tile(TileShared& sh, const EncodeArgs& args, u32 tile, const Source<S>& in,
                                            const Work& work, const huffman::Mine& mine, u32 predictor, bool outliers,
                                            u32 all, int lane) {
    const u32 n = in.n, t = threadIdx.x;
    // What it takes is found anew: kept, it would be in registers of all tiles.
    const u32 found = outliers ? outliers_of<S>(sh, (const EncodeChunk*)args.chunks, args.chunk_count, tile) : 0;
    all = warp::any(all);
    if (lane == 0 && all) atomicOr(&sh.all, all);
    __syncthreads();
    const u32 width = sh.all ? estimate::highest(sh.all) + 1 : 0;
    const u32 stored = outliers ? 4 * outlier_words<Traits<S>::W>(found) : 0;
    u32 kind = predictor;
    if (stored + huffman::fixed_len(n, width) >= n * Traits<S>::W) {
        kind = RAW;
    } else {
        if (outliers) kind |= OUTLIERS;
        if (width) kind |= HUFFMAN;
    }
    if (32 * t < n) huffman::put_back(mine, work.bytes());
    return Meta{kind, width, found, 0};
}

// Adds how often a tile has this thread's symbol to the chunk's counts.
__device__ __forceinline__ void add_symbol(u32* counts, u32 count) {
    if (count) atomicAdd(counts + threadIdx.x, count);
}

// Keeps how often a tile has each symbol as its `own`; those that are no runs are counted by byte. With `wanted`, adds
// that to the chunk's counts. All threads; overwrites `sh.points`.
__device__ __forceinline__ void add_symbols(TileShared& sh, const huffman::Mine& mine, u32 n, unsigned short* own,
                                            u32* counts, bool wanted) {
    using namespace huffman;
    u32 end;
    const u32 t = threadIdx.x;
    u32 *short_runs = (u32*)sh.points, *symbols = sh.bins + 256;
    const u8* bytes = (const u8*)sh.bytes + 32 * t;
    // Short runs are counted by their length, beside what they are joined with.
    if (t < 3 * SHORT) short_runs[t] = 0;
    const u32 begin = runs_begin<THREADS>(mine.mask, sh.scratch, end);
    auto add = [&](u32 run, u32 with, u32 times) {
        atomicAdd(symbols + run_symbol(run_class(run), with), times);
        if (with) atomicSub(symbols + FIRST_DIRECT - 1 + with, times);
    };
    each_run(mine.mask, begin, [&](u32 run, u32 i) {
        const u32 with = joined_with(bytes[i]);
        if (run < SHORT) {
            atomicAdd(short_runs + SHORT * with + run, 1u);
        } else {
            add(run, with, 1);
        }
    });
    if (t == 0 && end < n) atomicAdd(symbols + END, 1u);
    fold(sh.bins);
    __syncthreads();
    if (t < 3 * SHORT && short_runs[t]) add(t % SHORT, t / SHORT, short_runs[t]);
    __syncthreads();
    if (t < SYMBOLS) {
        const u32 count = symbols[t];
        own[t] = (unsigned short)count;
        if (wanted) add_symbol(counts, count);
    }
}

// The unit of interpolation under a bound, and how values become multiples of it.
template <class S>
__device__ __forceinline__ quantize::Linear<S> units(double used, S base) {
    return {__ddiv_rn(__dmul_rn(2.0, used), (double)((1 << interpolate::FINE) + 1)), used, (double)fmt::LORENZO_LIMIT,
            base};
}

}  // namespace
