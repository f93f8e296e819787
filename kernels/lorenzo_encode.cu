// SPDX-License-Identifier: MIT OR Apache-2.0
// The room lorenzo, writing: src/codec/lorenzo/FORMAT.md. One CTA codes one tile of up to 8192 values; four launches.
//
// `plan` quantises a tile, takes differences and counts their symbols; it leaves a byte a value, and what does not fit one, in
// the chunk's working memory. `interpolate` does the same where that may be shorter; both in one kernel would be more code
// than a multiprocessor keeps at hand. `codebook` makes a chunk's codebook of the counts. `write` turns bytes into a stream,
// and once its next tile is announced finds the place of this one and lets it go; the CTA that finishes a chunk seals it.
#include "base/frame.cuh"
#include "stage/codebook.cuh"
#include "stage/interpolate_fours.cuh"
#include "stage/lorenzo.cuh"
#include "stage/quantize.cuh"
#include "tuning.cuh"

namespace {

constexpr int THREADS = 256;
constexpr u32 TILE = tiles::MOST, MARKS = TILE / 32;
static_assert(TILE == 32 * THREADS, "a thread has 32 residuals in a row");

// A tile's kind, FORMAT.md §3.
constexpr u32 INTERPOLATED = 8, HUFFMAN = 1 << 4, FIXED = 2 << 4, CLASS = 3 << 4, RAW = 3 << 4, EXCEPTIONS = 1 << 6;

// What the launches share of a chunk; counts are zero before.
struct Book {
    u32 counts[128];
    huffman::Codes codes;
    u64 kinds_at, ends_at, payload_at;
    u32 head_len, spare;
};
static_assert(sizeof(Book) == LORENZO_BOOK, "the host makes room for it");

// What `plan` and `interpolate` tell `write` of a tile; with `TRIED` in its kind, `plan` tells `interpolate` what it costs.
constexpr u32 TRIED = 1u << 31;
struct Meta {
    u32 kind, width, records, cost;
};

// A tile's part of the chunk's working memory.
struct Work {
    u8* at;
    u32 room;
    __device__ __forceinline__ Work(const EncodeChunk& c, u32 t)
        : at((u8*)c.work + (u64)c.work_stride * t), room((c.tile[0] * c.tile[1] * c.tile[2] + 63) & ~63u) {}
    __device__ __forceinline__ Meta* meta() const { return (Meta*)at; }
    __device__ __forceinline__ u32* bytes() const { return (u32*)(at + 64); }
    // A bit for each exception; one for the first of each record.
    __device__ __forceinline__ u32* marks() const { return (u32*)(at + 64 + room); }
    __device__ __forceinline__ u32* starts() const { return (u32*)(at + 64 + room + room / 8); }
    // Zigzag values that no byte holds, at their places: Lorenzo's, then interpolation's.
    __device__ __forceinline__ u32* exact(bool interpolated) const {
        return (u32*)(at + 64 + room + room / 4) + (interpolated ? room : 0);
    }
    // How often the tile has each symbol, two in a word: where the predictor that was not taken had its exact values.
    __device__ __forceinline__ u32* counts(bool interpolated) const { return exact(!interpolated); }
};

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
    bool regular, fours, whole, swap;
    __device__ __forceinline__ Source(const EncodeChunk& c, const tiles::Tile& t)
        : first((const S*)c.input + t.start), e(t.extents), n(t.values()), rise(c.extents[2]), plane(c.extents[1] * c.extents[2]),
          by_x(t.extents.x), by_y(t.extents.y), fours(t.extents.x % 4 == 0), swap(c.flags & FLAG_SWAP) {
        whole = fours && t.start % 4 == 0 && (rise % 4 == 0 || n == e.x);
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
    // Brings this thread's values of a whole tile to where their quanta will be, all loads in flight at once. Tells whether it did.
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
    // Calls `f(k, first place, its place in the chunk)` for this thread's fours.
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
    __device__ __forceinline__ u32 place(u32 i) const {
        const u32 row = by_x.of(i), z = by_y.of(row);
        return z * plane + (row - z * e.y) * rise + (i - row * e.x);
    }
    __device__ __forceinline__ S one(u32 i) const {
        const auto b = Traits<S>::bits(first[place(i)]);
        return Traits<S>::value(swap ? swapped(b) : b);
    }
    // The values from place `i` of the tile on, a multiple of 4; the last one again after the end.
    __device__ __forceinline__ void four(u32 i, S (&x)[4]) const { four(i, fours ? place(i) : 0, x); }
    __device__ __forceinline__ void four(u32 i, u32 place_, S (&x)[4]) const {
        raw(i, place_, x);
        turn(x);
    }
    // The same in two steps: as they are stored, and in this machine's order of bytes.
    __device__ __forceinline__ void raw(u32 i, u32 place_, S (&x)[4]) const {
        using T = Traits<S>;
        if (fours) {
            const S* at = first + place_;
            if (!whole) {
#pragma unroll
                for (int j = 0; j < 4; j++) x[j] = at[j];
            } else if (T::W == 4) {
                const uint4 v = *(const uint4*)at;
                x[0] = T::value(v.x), x[1] = T::value(v.y), x[2] = T::value(v.z), x[3] = T::value(v.w);
            } else {
                const uint4 v = ((const uint4*)at)[0], w = ((const uint4*)at)[1];
                x[0] = T::value((typename T::Bits)(v.x | (u64)v.y << 32));
                x[1] = T::value((typename T::Bits)(v.z | (u64)v.w << 32));
                x[2] = T::value((typename T::Bits)(w.x | (u64)w.y << 32));
                x[3] = T::value((typename T::Bits)(w.z | (u64)w.w << 32));
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

// --- range ---------------------------------------------------------------------------------------------------------

template <class S>
__device__ __forceinline__ void find_range(const EncodeArgs& args) {
    using T = Traits<S>;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    const u32 at = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const EncodeChunk& c = chunks[at];
    // As many CTAs as the chunk has tiles, each with its part of the values in a row.
    const u64 per = ((c.values + c.tiles - 1) / c.tiles + 3) & ~3ull, from = per * (blockIdx.x - c.first_tile);
    const u32 here = from < c.values ? (u32)(c.values - from < per ? c.values - from : per) : 0;
    const typename T::Bits fill = fill_of<S>(c);
    const S* input = (const S*)c.input + from;
    const bool swap = c.flags & FLAG_SWAP;
    S lo = T::infinity(), hi = -T::infinity();
#pragma unroll 4
    for (u32 i = 4 * threadIdx.x; i < here; i += 4 * THREADS) {
        S x[4];
        if (i + 4 <= here) {
            if (T::W == 4) {
                const uint4 v = *(const uint4*)(input + i);
                x[0] = T::value(v.x), x[1] = T::value(v.y), x[2] = T::value(v.z), x[3] = T::value(v.w);
            } else {
                const uint4 v = ((const uint4*)(input + i))[0], u = ((const uint4*)(input + i))[1];
                x[0] = T::value((typename T::Bits)(v.x | (u64)v.y << 32));
                x[1] = T::value((typename T::Bits)(v.z | (u64)v.w << 32));
                x[2] = T::value((typename T::Bits)(u.x | (u64)u.y << 32));
                x[3] = T::value((typename T::Bits)(u.z | (u64)u.w << 32));
            }
        } else {
            for (int j = 0; j < 4; j++) x[j] = input[min(i + j, here - 1)];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const auto bits = swap ? swapped(T::bits(x[j])) : T::bits(x[j]);
            const S v = T::value(bits);
            const bool normal = (bits & T::EXPONENT) != T::EXPONENT && bits != fill;
            if (normal && v < lo) lo = v;
            if (normal && v > hi) hi = v;
        }
    }
    warp::range(lo, hi);
    __shared__ S los[THREADS / 32], his[THREADS / 32];
    if (lane == 0) {
        los[w] = lo;
        his[w] = hi;
    }
    __syncthreads();
    if (w == 0) {
        lo = lane < THREADS / 32 ? los[lane] : T::infinity();
        hi = lane < THREADS / 32 ? his[lane] : -T::infinity();
        warp::range(lo, hi);
        if (lane == 0 && lo <= hi) {
            ChunkState* state = (ChunkState*)args.states + at;
            const u64 high = exact::ordered((double)hi), low = ~exact::ordered((double)lo);
            if (lookback::peek(&state->high) < high) atomicMax(&state->high, high);
            if (lookback::peek(&state->low) < low) atomicMax(&state->low, low);
        }
    }
}

// --- plan ----------------------------------------------------------------------------------------------------------

struct TileShared {
    // Quanta in the order of the tile; or interpolation's points, with the finest levels split.
    alignas(16) int points[TILE];
    // Residuals, a byte each, in the order of the stream.
    alignas(16) u32 bytes[TILE / 4];
    u32 exceptions[MARKS];
    alignas(16) u32 bins[huffman::BINS];
    u32 classes[lorenzo::SETS * estimate::CLASSES];
    u32 room[THREADS / 32];
    // Of the residuals counted; all zigzag values of the tile together.
    u32 changes, cost, all;
};

// Bytes are first what `lorenzo::sample` finds.
struct PlanShared : TileShared {
    u32 costs[8];
    lorenzo::Turns turns;
};
static_assert(lorenzo::SETS * THREADS <= TILE / 4, "columns fit where bytes will be");
static_assert(lorenzo::SETS * lorenzo::MASKS <= TILE / 4, "masks fit where bytes will be");

struct InterpolateShared : TileShared {
    // Points that may be too far from their values, where they lie.
    u32 unsure[MARKS];
    interpolate::Split split[interpolate::SPLITS];
    // Levels, before anything is counted.
    __device__ __forceinline__ interpolate::Level* levels() { return (interpolate::Level*)bins; }
};
static_assert(interpolate::LEVELS * sizeof(interpolate::Level) <= huffman::BINS * 4, "levels fit where counts will be");

// Before anything is counted.
__device__ __forceinline__ void clear_counts(TileShared& sh) {
    for (u32 i = threadIdx.x; i < huffman::BINS; i += THREADS) sh.bins[i] = 0;
    if (threadIdx.x < lorenzo::SETS * estimate::CLASSES) sh.classes[threadIdx.x] = 0;
    if (threadIdx.x == 0) sh.changes = 0;
}

// Gives every exception the quantum of its neighbour: the last ordinary one before it in its row, else the first behind it,
// else 0. All threads; `around` has room for two numbers a thread.
__device__ __forceinline__ void bridge(int* q, const u32* marks, u32 n, u32 row, const tiles::Divisor& by_row, u32* around, u32* room) {
    const u32 t = threadIdx.x, first = 32 * t;
    const u32 valid = first >= n ? 0 : n - first < 32 ? (1u << (n - first)) - 1 : warp::ALL;
    const u32 ordinary = valid & ~marks[t];
    u32 total;
    // One more than the last ordinary place in the words before this one.
    const u32 before = block::most_before<THREADS>(ordinary ? first + estimate::highest(ordinary) + 1 : 0, room, total);
    // The first one in this word and those behind it, counted from the end, in the thread that mirrors this one.
    around[THREADS - 1 - t] = ordinary ? TILE - (first + (u32)__ffs((int)ordinary) - 1) : 0;
    __syncthreads();
    const u32 mirrored = block::most_before<THREADS>(around[t], room, total);
    around[THREADS - 1 - t] = mirrored;
    __syncthreads();
    const u32 behind = TILE - around[t];
    u32 left = marks[t];
    while (left) {
        const u32 i = (u32)__ffs((int)left) - 1, at = first + i, start = by_row.of(at) * row;
        left &= left - 1;
        const u32 low = ordinary & ((1u << i) - 1), high = ordinary & ~((2u << i) - 1);
        const u32 from = low ? first + estimate::highest(low) + 1 : before;
        const u32 to = high ? first + (u32)__ffs((int)high) - 1 : behind;
        q[at] = from > start ? q[from - 1] : to < start + row ? q[to] : 0;
    }
    __syncthreads();
}

// Counts the bytes and, with `wanted`, finds what they cost. All threads.
__device__ __forceinline__ void count(TileShared& sh, const huffman::Mine& mine, const u32* exact, u32 n, bool wanted, int lane, int w) {
    const u32 t = threadIdx.x;
    huffman::tally(mine, exact, sh.bins);
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

// Quantises a tile, whose quanta go to `sh.points` and exceptions to `sh.exceptions`. Tells whether there are some, and whether
// every other value comes back bit for bit.
template <class S, class Quantizer>
__device__ __forceinline__ void quantise(PlanShared& sh, const Source<S>& in, const Quantizer& quantizer, typename Traits<S>::Bits fill,
                                         bool& exceptions, bool& exact) {
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
    exceptions = __syncthreads_or(bad != 0);
    if (exceptions) {
        for (u32 k = 0; k < 8; k++) {
            const u32 group = threadIdx.x + k * THREADS, four = bad >> (4 * k) & 15u;
            if (four) atomicOr(sh.exceptions + group / 8, four << (4 * (group % 8)));
        }
        __syncthreads();
        bridge(sh.points, sh.exceptions, in.n, in.e.x, in.by_x, sh.bins, sh.room);
        clear_counts(sh);
        __syncthreads();
    }
}

// Whether all of the tile's quanta are below 2^26, as those of an f32 always are.
template <class S>
__device__ __forceinline__ bool small(const PlanShared& sh, u32 n) {
    static_assert(fmt::LORENZO_LIMIT_F32 < 1 << 26, "there is nothing to look for");
    if (Traits<S>::W == 4) return true;
    constexpr u32 MOST = 1u << 26;
    u32 any = 0;
    for (u32 i = 4 * threadIdx.x; i < n; i += 4 * THREADS) {
        const int4 q = *(const int4*)(sh.points + i);
        any |= ((u32)q.x + MOST) | ((u32)q.y + MOST) | ((u32)q.z + MOST) | ((u32)q.w + MOST);
    }
    return !__syncthreads_or(any >= 2 * MOST);
}

// Lorenzo's axes: the first set with the least cost over the sampled rows.
template <class S>
__device__ __forceinline__ u32 choose(PlanShared& sh, const tiles::Three& e, const tiles::Divisor& by_x, const tiles::Divisor& by_y,
                                      int lane, int w) {
    const u32 rows = e.z * e.y, sets = lorenzo::sets_of(e);
    const bool whole = rows < 8;
    const u32 places = lorenzo::sampled_rows(rows, whole) * e.x;
    const bool fours = e.x % 4 == 0 && small<S>(sh, e.product());
    auto sample = [&](auto rank) {
        lorenzo::sample_fours<THREADS, decltype(rank)::value>(sh.points, e, by_x, by_y, places, whole, sh.classes, sh.turns, sh.bytes, lane, w);
    };
    const int rank = rows == 1 ? 1 : e.z == 1 ? 2 : 3;
    if (fours && rank == 1) {
        sample(lorenzo::Rank<1>());
    } else if (fours && rank == 2) {
        sample(lorenzo::Rank<2>());
    } else if (fours) {
        sample(lorenzo::Rank<3>());
    } else {
        lorenzo::sample<THREADS>(sh.points, e, by_x, by_y, sets, places, whole, sh.classes, sh.bytes, lane);
    }
    __syncthreads();
    if (w < (int)lorenzo::SETS && (sets >> w & 1)) {
        const u32 cost = fours ? lorenzo::cost_of<THREADS>((u32)w, rank, sh.classes, sh.turns, places, lane)
                               : lorenzo::cost_of(sh.classes + estimate::CLASSES * w, sh.bytes + lorenzo::MASKS * w, places, lane);
        if (lane == 0) sh.costs[w] = cost;
    }
    __syncthreads();
    return lorenzo::axes_of(lorenzo::cheapest(sh.costs, sets, lane));
}

// A zigzag value as a byte; one that does not fit goes to `exact`.
__device__ __forceinline__ u32 as_byte(u32 z, u32* exact, u32 at) {
    if (z >= huffman::ESCAPE) {
        exact[at] = z;
        return huffman::ESCAPE;
    }
    return z;
}

// Zigzag values together: those of four bytes, and those beyond.
struct All {
    u32 bytes, large;
    __device__ __forceinline__ u32 together() const { return large | ((bytes | bytes >> 8 | bytes >> 16 | bytes >> 24) & 255u); }
};

// Keeps four residuals, each with 128 more, as bytes from place `i` on.
__device__ __forceinline__ void keep_four(u32* bytes, u32 i, const u32 (&d)[4], u32* exact, All& all) {
    const u32 low = __byte_perm(d[0], d[1], 0x0040), word = __byte_perm(low, __byte_perm(d[2], d[3], 0x0040), 0x5410);
    // Bit 7 is 0 in those below zero.
    u32 zigzag = (word << 1 & 0xfefefefeu) ^ ~lorenzo::signs(word);
    if ((d[0] | d[1] | d[2] | d[3]) < 256 && !huffman::escapes(zigzag)) {
        all.bytes |= zigzag;
    } else {
        zigzag = 0;
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            const u32 z = estimate::zigzag((int)(d[j] - 128));
            all.large |= z;
            zigzag |= as_byte(z, exact, i + j) << (8 * j);
        }
    }
    bytes[i / 4] = zigzag;
}

// The same of tiles with rows of whole fours, along axes known when compiled.
template <u32 AXES, class S>
__device__ __forceinline__ All difference_fours(PlanShared& sh, const Source<S>& in, u32* exact) {
    const tiles::Three& e = in.e;
    const u32 t = threadIdx.x, plane = e.x * e.y, columns = plane / 4;
    All all = {0, 0};
    if (AXES == (lorenzo::X | lorenzo::Y | lorenzo::Z) && in.n == TILE && columns <= THREADS && THREADS % columns == 0) {
        // A thread goes from plane to plane, and has what is behind a four from the step before.
        constexpr u32 STEPS = TILE / 4 / THREADS;
        const u32 slab = t / columns, i = slab * STEPS * plane + 4 * (t - slab * columns);
        const tiles::Three place = in.where(i);
        auto four = [&](u32 at, int (&d)[4]) { lorenzo::four(sh.points, at, e, place, lorenzo::X | lorenzo::Y, d); };
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
        lorenzo::four(sh.points, i, e, place, AXES, found);
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
    if (!in.fours) {
#pragma unroll 1
        for (u32 i = 4 * threadIdx.x; i < n; i += 4 * THREADS) {
            u32 d[4];
#pragma unroll
            for (u32 j = 0; j < 4; j++) d[j] = 128 + (i + j < n ? (u32)one(sh.points, i + j, in.e, in.by_x, in.by_y, axes) : 0);
            keep_four(sh.bytes, i, d, exact, all);
        }
    } else {
        all = axes == (X | Y | Z) ? difference_fours<X | Y | Z>(sh, in, exact)
              : axes == (X | Y)   ? difference_fours<X | Y>(sh, in, exact)
              : axes == X         ? difference_fours<X>(sh, in, exact)
              : axes == Y         ? difference_fours<Y>(sh, in, exact)
              : axes == Z         ? difference_fours<Z>(sh, in, exact)
                                  : difference_fours<0>(sh, in, exact);
    }
    // Zeros up to the end of the last thread's bytes.
    const u32 end = (n + 3) / 4 + threadIdx.x;
    if (end < (n + 31) / 32 * 8) sh.bytes[end] = 0;
    return all.together();
}

// A tile as interpolation goes through it: how many of its levels are split, the extents of what is left, and whether that is
// for the first warp alone, while others bring values.
struct Plane {
    u32 depth;
    tiles::Three left;
    bool alone;
    __device__ __forceinline__ explicit Plane(const tiles::Three& e) : left(e) {
        depth = interpolate::splits(left);
        alone = left.product() <= interpolate::FEW;
    }
};

// A value in interpolation's units, or `NONE`.
template <class S>
__device__ __forceinline__ int in_units(const quantize::Linear<S>& fine, S x, typename Traits<S>::Bits fill) {
    double whole;
    int q;
    return fine.nearest(x, whole, q) && Traits<S>::bits(x) != fill ? q : interpolate::NONE;
}

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

// A point less than half of 2^FINE units off its value keeps the bound, which is half of 2^FINE + 1, as long as rounding it to
// the type takes at most a quarter of a unit: up to this size, away from the ends of the type's range.
constexpr u32 SURE = 1u << 22;
template <class S>
__device__ __forceinline__ bool usual(double unit) {
    return Traits<S>::W == 4 ? unit > 1e-30 && unit < 1e30 : unit > 1e-290 && unit < 1e290;
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
                const int read = sh.points[at], x = read == interpolate::NONE ? predicted : read;
                const int d = interpolate::residual(x, predicted), r = interpolate::point(predicted, d);
                sh.points[at] = r;
                if (x - r == -(1 << (interpolate::FINE - 1)) || (u32)r + SURE > 2 * SURE) atomicOr(sh.unsure + at / 32, 1u << (at % 32));
                const u32 z = estimate::zigzag(d);
                all |= z;
                ((u8*)sh.bytes)[i] = (u8)as_byte(z, exact, i);
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

// Four points at `at` and their residuals, from what is predicted. With `some` there are exceptions.
__device__ __forceinline__ void visit_four(InterpolateShared& sh, u32 at, const u32 (&predicted)[4], bool some, u32* exact, All& all) {
    constexpr u32 HALF = 1u << (interpolate::FINE - 1);
    const int4 x4 = *(const int4*)(sh.points + at);
    int x[4] = {x4.x, x4.y, x4.z, x4.w};
    if (some) {
#pragma unroll
        for (int j = 0; j < 4; j++) x[j] = x[j] == interpolate::NONE ? (int)predicted[j] : x[j];
    }
    u32 d[4], off[4], r[4], far = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const u32 apart = (u32)x[j] - predicted[j] + HALF;
        off[j] = apart & (2 * HALF - 1);
        d[j] = interpolate::halved(apart, interpolate::FINE) + 128;
        r[j] = (u32)x[j] + HALF - off[j];
        far |= r[j] + SURE;
    }
    *(int4*)(sh.points + at) = make_int4((int)r[0], (int)r[1], (int)r[2], (int)r[3]);
    if (off[0] == 0 || off[1] == 0 || off[2] == 0 || off[3] == 0 || far >= 2 * SURE) {
        u32 unsure = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) unsure |= off[j] == 0 || r[j] + SURE > 2 * SURE ? 1u << j : 0u;
        atomicOr(sh.unsure + at / 32, unsure << (at % 32));
    }
    keep_four(sh.bytes, at, d, exact, all);
}

// The same for the levels that are split.
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

// The same for points that are sure, of values without a fill value, but for those in `sh.unsure`.
template <class S>
__device__ __forceinline__ bool unsure_hold(const InterpolateShared& sh, const Source<S>& in, const quantize::Linear<S>& fine, const Plane& plane) {
    constexpr u32 FARTHEST = (u32)fmt::LORENZO_POINT_LIMIT;
    bool holds = true;
    for (u32 left = sh.unsure[threadIdx.x]; left; left &= left - 1) {
        const u32 at = 32 * threadIdx.x + (u32)__ffs((int)left) - 1;
        const tiles::Three place = interpolate::place_of(sh.split, plane.depth, plane.left, at);
        const u32 i = interpolate::dense(in.e, place);
        if (sh.exceptions[i / 32] >> (i % 32) & 1) continue;
        const int r = sh.points[plane.depth ? sh.split[0].at(place) : at];
        const S x = in.one(i);
        holds = holds && (u32)r + FARTHEST <= 2 * FARTHEST && fine.holds(x, fine.value(quantize::number(r)));
    }
    return __syncthreads_and(holds);
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

// Whether every value that is no exception lies on a point, as in a tile that was interpolated before.
template <class S>
__device__ __forceinline__ bool on_grid(const Source<S>& in, const quantize::Linear<S>& fine, typename Traits<S>::Bits fill) {
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
                const bool counts = fine.nearest(x[j], whole, q) && T::bits(x[j]) != fill;
                on = on && (!counts || T::bits(fine.value(whole)) == T::bits(x[j]));
            }
        }
        if (!__syncthreads_and(on)) return false;
    }
    return true;
}

// Whether interpolation may cost less than `cost`. Lorenzo's quanta are in `sh.points`; overwrites bytes and classes.
__device__ __forceinline__ bool may_pay(PlanShared& sh, const tiles::Three& e, u32 n, u32 cost, int lane, int w) {
    // What costs 4 bits a value or more is noise, which no prediction takes away.
    if (cost == 0 || cost >= n * (4u << 8)) return false;
    if (cost < n * (5u << 7) || e.x < 7) return true;
    const u32 rows = e.z * e.y, left = (e.x - 5) / 2;
    const bool whole = rows < 8;
    const u32 places = lorenzo::sampled_rows(rows, whole) * left;
    if (threadIdx.x < estimate::CLASSES) sh.classes[threadIdx.x] = 0;
    __syncthreads();
    lorenzo::look<THREADS>(sh.points, e.x, tiles::Divisor(left), places, whole, sh.classes, sh.bytes, lane);
    __syncthreads();
    if (w == 0) {
        const u32 found = lorenzo::cost_of(sh.classes, sh.bytes, places, lane);
        if (lane == 0) sh.cost = found;
    }
    __syncthreads();
    return 8ull * sh.cost * n <= 7ull * cost * places;
}

// Marks the first exception of every record: those behind each other with the same bits are one. Returns the records.
template <class S>
__device__ __forceinline__ u32 records(TileShared& sh, const Source<S>& in, const Work& work) {
    const u32 t = threadIdx.x;
    const u32* marks = sh.exceptions;
    u32 starts = 0;
    for (u32 left = marks[t]; left; left &= left - 1) {
        const u32 i = (u32)__ffs((int)left) - 1, at = 32 * t + i;
        const bool follows = at > 0 && (marks[(at - 1) / 32] >> ((at - 1) % 32) & 1);
        if (!follows || Traits<S>::bits(in.one(at)) != Traits<S>::bits(in.one(at - 1))) starts |= 1u << i;
    }
    if (32 * t < in.n) {
        work.marks()[t] = marks[t];
        work.starts()[t] = starts;
    }
    u32 total;
    block::sum_before<THREADS>((u32)__popc(starts), sh.room, total);
    return total;
}

// Says what a tile is to be, from its predictor and all zigzag values of this thread, and leaves its bytes for `write`.
template <class S>
__device__ __forceinline__ Meta settle(TileShared& sh, const Source<S>& in, const Work& work, const huffman::Mine& mine, u32 predictor,
                                       bool exceptions, u32 all, int lane) {
    const u32 n = in.n, t = threadIdx.x, found = exceptions ? records(sh, in, work) : 0;
#pragma unroll
    for (int k = 16; k > 0; k /= 2) all |= __shfl_xor_sync(warp::ALL, all, k);
    if (lane == 0 && all) atomicOr(&sh.all, all);
    __syncthreads();
    const u32 width = sh.all ? estimate::highest(sh.all) + 1 : 0;
    const u32 stored = exceptions ? 4 + found * (4 + Traits<S>::W) : 0;
    u32 kind = predictor;
    if (stored + huffman::fixed_len(n, width) >= n * Traits<S>::W) {
        kind = RAW;
    } else {
        if (exceptions) kind |= EXCEPTIONS;
        if (width) kind |= HUFFMAN;
    }
    if (32 * t < n) {
        uint4* to = (uint4*)work.bytes() + 2 * t;
        to[0] = make_uint4(mine.word[0], mine.word[1], mine.word[2], mine.word[3]);
        to[1] = make_uint4(mine.word[4], mine.word[5], mine.word[6], mine.word[7]);
    }
    return Meta{kind, width, found, 0};
}

// Adds a tile's symbols, of which those that are no runs are counted by byte, to those of the chunk, and keeps them as its
// `own`. All threads; overwrites `sh.bytes`.
__device__ __forceinline__ void add_symbols(TileShared& sh, const huffman::Mine& mine, u32 n, u32* own, u32* counts) {
    u32 end;
    const u32 t = threadIdx.x;
    // Short runs are counted by their length.
    if (t < huffman::SHORT) sh.bytes[t] = 0;
    const u32 begin = huffman::runs_begin<THREADS>(mine.mask, sh.room, end);
    auto powers = [&](u32 run, u32 times) { huffman::powers(run, [&](u32 k) { atomicAdd(sh.bins + 256 + k, times); }); };
    auto add = [&](u32 run) {
        atomicAdd(sh.bytes + run % huffman::SHORT, 1u);
        if (run >= huffman::SHORT) powers(run / huffman::SHORT * huffman::SHORT, 1);
    };
    huffman::each_run(mine.mask, begin, add);
    if (t == 0) add(n - end);
    huffman::fold(sh.bins);
    __syncthreads();
    if (t < huffman::SHORT && sh.bytes[t]) powers(t, sh.bytes[t]);
    __syncthreads();
    if (t < huffman::SYMBOLS && sh.bins[256 + t]) atomicAdd(counts + t, sh.bins[256 + t]);
    if (t < (huffman::SYMBOLS + 1) / 2) own[t] = sh.bins[256 + 2 * t] | sh.bins[257 + 2 * t] << 16;
}

// The unit of interpolation under a bound, and how values become multiples of it.
template <class S>
__device__ __forceinline__ quantize::Linear<S> units(double used) {
    return {__ddiv_rn(__dmul_rn(2.0, used), (double)((1 << interpolate::FINE) + 1)), used, (double)fmt::LORENZO_LIMIT};
}

template <class S>
__device__ __forceinline__ void plan(const EncodeArgs& args) {
    using T = Traits<S>;
    __shared__ PlanShared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 t = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const EncodeChunk& c = chunks[chunk];
    const u32 number = blockIdx.x - c.first_tile;
    const Source<S> in(c, tiles::of(c.extents, c.tile, number));
    const Work work(c, number);
    const u32 n = in.n;
    const typename T::Bits fill = fill_of<S>(c);
    const double used = frame::used_bound(c, (const ChunkState*)args.states + chunk);
    const bool log = c.bound_kind == BOUND_POINTWISE;
    sh.exceptions[t] = 0;
    if (t == 0) sh.all = 0;
    if (t < lorenzo::SETS) sh.turns.inside[t] = 0;
    clear_counts(sh);
    __syncthreads();

    bool exceptions, exact;
    if (log) {
        quantise(sh, in, quantize::Log<S>(used, (double)fmt::LORENZO_LIMIT), fill, exceptions, exact);
    } else {
        const double limit = T::W == 4 ? (double)fmt::LORENZO_LIMIT_F32 : (double)fmt::LORENZO_LIMIT;
        quantise(sh, in, quantize::Linear<S>(__dmul_rn(2.0, used), used, limit), fill, exceptions, exact);
    }
    const u32 axes = choose<S>(sh, in.e, in.by_x, in.by_y, lane, w);
    __syncthreads();
    clear_counts(sh);
    const u32 all = difference(sh, in, axes, work.exact(false));
    __syncthreads();
    const huffman::Mine mine = huffman::take(sh.bytes, n);
    bool tried = !log && !exact;
    count(sh, mine, work.exact(false), n, tried, lane, w);
    const u32 cost = sh.cost;
    tried = tried && (may_pay(sh, in.e, n, cost, lane, w) || on_grid(in, units<S>(used), fill));
    Meta meta = settle(sh, in, work, mine, axes, exceptions, all, lane);
    if (!tried && (meta.kind & CLASS) == HUFFMAN) add_symbols(sh, mine, n, work.counts(meta.kind & INTERPOLATED), ((Book*)args.shared + chunk)->counts);
    if (tried) meta.kind |= TRIED, meta.cost = cost;
    if (t == 0) *work.meta() = meta;
}

// --- interpolate ---------------------------------------------------------------------------------------------------

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
    const Plane plane(in.e);
    const u32 top = interpolate::top(in.e);
    sh.exceptions[t] = 0;
    sh.unsure[t] = 0;
    if (t == 0) sh.all = 0;
    if (t < max(top, 1u)) sh.levels()[t].set(in.e, t);
    if (t >= 32 && t < 32 + plane.depth) sh.split[t - 32].set(interpolate::lattice(in.e, t - 32));
    // Zeros up to the end of the last thread's bytes.
    if (n / 4 + t < (n + 31) / 32 * 8) sh.bytes[n / 4 + t] = 0;
    __syncthreads();
    bool some = bring(sh, in, fine, fill, plane, lane, w);
    if (!plane.alone) __syncthreads();
    u32 all = 0;
    if (!plane.alone || w == 0) all = interpolate_left(sh, plane, top, work.exact(true));
    some = __syncthreads_or(some);
    all |= interpolate_fours(sh, plane.depth, some, work.exact(true));
    // Most points need no second look at their values.
    const bool sure = !(c.flags & FLAG_FILL) && usual<S>(fine.step);
    bool same = false, taken = sure ? unsure_hold(sh, in, fine, plane) : points_hold(sh, in, fine, fill, plane, same);
    clear_counts(sh);
    __syncthreads();
    huffman::Mine mine = huffman::take(sh.bytes, n);
    if (taken) {
        count(sh, mine, work.exact(true), n, true, lane, w);
        taken = sh.cost < meta.cost || (sure ? points_same(sh, in, fine, plane) : same);
    }
    if (taken) {
        meta = settle(sh, in, work, mine, INTERPOLATED, some, all, lane);
    } else {
        // What `plan` has left is good.
        __syncthreads();
        clear_counts(sh);
        mine = huffman::take(work.bytes(), n);
        __syncthreads();
        huffman::tally(mine, work.exact(false), sh.bins);
        __syncthreads();
    }
    if ((meta.kind & CLASS) == HUFFMAN) add_symbols(sh, mine, n, work.counts(meta.kind & INTERPOLATED), ((Book*)args.shared + chunk)->counts);
    if (t == 0) *work.meta() = meta;
}

// --- codebook ------------------------------------------------------------------------------------------------------

__device__ __forceinline__ u64 aligned(u64 x) { return (x + fmt::SECTION_ALIGN - 1) & ~(fmt::SECTION_ALIGN - 1); }

__device__ __forceinline__ void make_codebook(const EncodeArgs& args) {
    __shared__ codebook::Shared sh;
    __shared__ u32 used;
    const u32 t = threadIdx.x;
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[blockIdx.x];
    Book* book = (Book*)args.shared + blockIdx.x;
    if (t == 0) used = 0;
    codebook::make(sh, book->counts);
    if (t < huffman::SYMBOLS && sh.lengths[t]) atomicMax(&used, t + 1);
    auto code = [&](u32 symbol) { return huffman::code_of(sh.codewords[symbol], sh.lengths[symbol]); };
    u32 bytes = 0;
    if (t > 0 && t < huffman::ESCAPE) {
        const u32 symbol = huffman::symbol(t), lower = huffman::lower_bits(t);
        bytes = huffman::code_of(sh.codewords[symbol] | (t & ((1u << lower) - 1)) << sh.lengths[symbol], sh.lengths[symbol] + lower);
    }
    book->codes.bytes[t] = bytes;
    if (t < 128) book->codes.symbols[t] = t < huffman::SYMBOLS ? code(t) : 0;
    __syncthreads();
    const u32 n = used, head_len = 2 + (n + 1) / 2;
    const u64 head_at = c.table_at, kinds_at = aligned(head_at + head_len), ends_at = aligned(kinds_at + c.tiles);
    const u64 payload_at = aligned(ends_at + 4ull * c.tiles);
    if (t == 0) {
        book->kinds_at = kinds_at;
        book->ends_at = ends_at;
        book->payload_at = payload_at;
        book->head_len = head_len;
    }
    if (t < 32) {
        u32* out = (u32*)c.frame;
        u64 sum = 0;
        // The head and what fills it up.
        if (head_at / 4 + t < kinds_at / 4) {
            u32 word = 0;
            for (u32 j = 0; j < 4; j++) {
                const u32 at = 4 * t + j;
                u32 byte = 0;
                if (at == 0) byte = (u32)fmt::SUBSEQUENCE_LOG2;
                if (at == 1) byte = n;
                if (at >= 2 && at < head_len) byte = sh.lengths[2 * (at - 2)] | sh.lengths[2 * (at - 2) + 1] << 4;
                word |= byte << (8 * j);
            }
            out[head_at / 4 + t] = word;
            sum += frame::square(word, head_at / 4 + t);
        }
        // What fills the kinds up lies in words that tiles write bytes of; what fills the ends up in one of its own.
        const u64 tail = (kinds_at + c.tiles) / 4 + t;
        if (tail < ends_at / 4) out[tail] = 0;
        const u64 gap = ends_at / 4 + c.tiles + t;
        if (gap < payload_at / 4) {
            out[gap] = 0;
            sum += frame::square(0, gap);
        }
        sum = warp::sum(sum);
        if (t == 0) atomicAdd(&((ChunkState*)args.states + blockIdx.x)->sum, sum);
    }
}

// --- write ---------------------------------------------------------------------------------------------------------

// A tile to be written, and its chunk; none if `tile` is not below the number of all.
struct Next {
    u32 tile, chunk, values;
    Meta meta;
    // Words of values or exceptions, of what follows them, and of the gap array in that.
    u32 front, words, gaps;
};

struct WriteShared {
    // The waiting tile's gap array and stream.
    alignas(16) u32 stage[TILE + 4];
    u32 kept[huffman::KEPT * THREADS];
    huffman::Tables tables;
    u64 sums[THREADS / 32];
    u32 room[THREADS / 32];
    // The waiting tile; whether there is one, and tiles of its chunk that are not yet counted.
    u32 old_tile, old_chunk, old_kind, old_records, old_front, old_words, old, done;
    u32 start, last;
    // The tile at work and the one to come.
    Next next[2];
};

// Values of a raw tile; or its exceptions. Written into the frame as they come; returns what they add to the checksum.
template <class S>
__device__ __forceinline__ u64 write_front(const EncodeChunk& c, u32 tile, u32 kind, u32 records, u64 word0, u32* room) {
    using T = Traits<S>;
    const Source<S> in(c, tiles::of(c.extents, c.tile, tile));
    u32* out = (u32*)c.frame + word0;
    u64 sum = 0;
    auto put = [&](u32 at, u32 word) {
        out[at] = word;
        sum += frame::square(word, word0 + at);
    };
    auto value = [&](u32 at, S x) {
        const auto b = T::bits(x);
        put(at, (u32)b);
        if (T::W == 8) put(at + 1, (u32)((u64)b >> 32));
    };
    if ((kind & CLASS) == RAW) {
        for (u32 i = threadIdx.x; i < in.n; i += THREADS) value(i * (T::W / 4), in.one(i));
        return sum;
    }
    const Work work(c, tile);
    const u32 t = threadIdx.x, words = (in.n + 31) / 32;
    const u32* marks = work.marks();
    const u32* starts = work.starts();
    u32 left = t < words ? starts[t] : 0, total;
    u32 k = block::sum_before<THREADS>((u32)__popc(left), room, total);
    if (t == 0) put(0, records);
    for (; left; left &= left - 1, k++) {
        const u32 i = (u32)__ffs((int)left) - 1, at = 32 * t + i;
        // Up to the next record, or the next value that is no exception.
        u32 word = t, stops = (starts[t] | ~marks[t]) & ~((2u << i) - 1);
        while (!stops && ++word < words) stops = starts[word] | ~marks[word];
        const u32 end = word < words ? min(32 * word + (u32)__ffs((int)stops) - 1, in.n) : in.n;
        put(1 + k, at | (end - at - 1) << 16);
        value(1 + records + k * (T::W / 4), in.one(at));
    }
    return sum;
}

// Sums the kinds, which were written byte by byte. All threads.
__device__ __forceinline__ u64 sum_kinds(const EncodeChunk& c, const Book* book) {
    const u32* words = (const u32*)c.frame;
    u64 sum = 0;
    for (u64 i = book->kinds_at / 4 + threadIdx.x; i < book->ends_at / 4; i += THREADS) {
        sum += frame::square(*(const volatile u32*)(words + i), i);
    }
    return sum;
}

// This CTA's sum, in the first warp.
__device__ __forceinline__ u64 gather(WriteShared& sh, u64 sum, int lane, int w) {
    sum = warp::sum(sum);
    if (lane == 0) sh.sums[w] = sum;
    __syncthreads();
    return w == 0 ? warp::sum(lane < THREADS / 32 ? sh.sums[lane] : 0ull) : 0;
}

// Finds the place of the tile that waits and writes it. `finish`: the next tile is of another chunk, or there is none. `sum`
// is this thread's part of what the CTA's tiles add to the checksum.
template <class S>
__device__ __forceinline__ void flush(const EncodeArgs& args, WriteShared& sh, bool finish, u64& sum, int lane, int w) {
    if (!sh.old) return;
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[sh.old_chunk];
    const Book* book = (const Book*)args.shared + sh.old_chunk;
    const u32 t = sh.old_tile, front = sh.old_front, words = sh.old_words;
    u64* places = (u64*)args.places + c.first_tile;
    if (w == 0) {
        const u32 start = lookback::start(places, t, front + words, lane);
        if (lane == 0) {
            sh.start = start;
            const u64 entry = book->ends_at / 4 + t;
            ((u32*)c.frame)[entry] = start + front + words;
            sum += frame::square(start + front + words, entry);
            ((u8*)c.frame)[book->kinds_at + t] = (u8)sh.old_kind;
        }
    }
    __syncthreads();
    const u64 word0 = book->payload_at / 4 + sh.start;
    if (front) sum += write_front<S>(c, t, sh.old_kind, sh.old_records, word0, sh.room);
    sum += frame::copy_summed<THREADS, 4>((u32*)c.frame + word0 + front, sh.stage, word0 + front, words);
    if (finish) {
        const u64 added = gather(sh, sum, lane, w);
        sum = 0;
        ChunkState* state = (ChunkState*)args.states + sh.old_chunk;
        if (w == 0) {
            const u32 done = sh.done;
            __syncwarp();
            const bool last = frame::last_of(state, c.tiles, done, added, 0, lane);
            if (lane == 0) {
                sh.done = 0;
                sh.last = last;
            }
        }
        __syncthreads();
        if (sh.last) {
            const u64 kinds = gather(sh, sum_kinds(c, book), lane, w);
            if (w == 0) {
                const u64 payload = 4 * (lookback::peek(places + c.tiles - 1) & lookback::SUM), stored = book->payload_at + payload;
                // The lengths of the first section and of the last one, the fourth.
                const u32 lens = c.payload_len_at - 6;
                u64 all = frame::write_head(c, stored, frame::used_bound(c, state), lane, [&](u32 i, u32 word) {
                    if (i == lens) return book->head_len;
                    if (i == c.payload_len_at) return (u32)payload;
                    if (i == c.payload_len_at + 1) return (u32)(payload >> 32);
                    return word;
                });
                if (lane == 0) all += kinds;
                frame::finish(c, state, stored, all, (u64*)args.lengths + sh.old_chunk, lane);
            }
        }
    }
}

// Tiles as they come, one after the other.
template <class S>
__device__ __forceinline__ void write(const EncodeArgs& args) {
    __shared__ WriteShared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const u32 t = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    u64 sum = 0;
    u32 booked = 0xffffffffu;
    if (t == 0) sh.old = sh.old_chunk = sh.done = 0;
    // Takes the next tile, and announces its size: others wait for that. One warp.
    auto take_next = [&](Next& next) {
        u32 tile = 0;
        if (lane == 0) tile = atomicAdd((u32*)args.ticket, 1u);
        tile = warp::from(tile, 0);
        if (lane == 0) next.tile = tile;
        if (tile >= args.tiles) return;
        const u32 at = frame::chunk_of(chunks, args.chunk_count, tile, lane);
        const EncodeChunk& c = chunks[at];
        const u32 number = tile - c.first_tile, n = tiles::of(c.extents, c.tile, number).values();
        const Work work(c, number);
        Meta meta = *work.meta();
        u32 front = 0, words = 0, gaps = 0;
        if ((meta.kind & CLASS) == RAW) front = n * (Traits<S>::W / 4);
        if (meta.kind & EXCEPTIONS) front = 1 + meta.records * (1 + Traits<S>::W / 4);
        if ((meta.kind & CLASS) == HUFFMAN) {
            const unsigned short* counts = (const unsigned short*)work.counts(meta.kind & INTERPOLATED);
            const u32 bits = huffman::length(counts, ((const Book*)args.shared + at)->codes, lane);
            const u32 fixed = huffman::fixed_len(n, meta.width) / 4;
            words = (bits + 31) / 32;
            gaps = huffman::gap_units(words);
            words += gaps;
            if (words > fixed) {
                words = fixed;
                meta.kind ^= HUFFMAN ^ FIXED;
            }
        }
        if (lane == 0) {
            next.chunk = at;
            next.values = n;
            next.meta = meta;
            next.front = front;
            next.words = words;
            next.gaps = gaps;
            lookback::announce((u64*)args.places + c.first_tile, number, front + words);
        }
    };
    if (w == 0) take_next(sh.next[0]);
    for (u32 turn = 0;; turn ^= 1) {
        __syncthreads();
        const Next& now = sh.next[turn];
        if (now.tile >= args.tiles) break;
        const u32 chunk = now.chunk;
        const EncodeChunk& c = chunks[chunk];
        const u32 number = now.tile - c.first_tile, n = now.values;
        if (chunk != booked) {
            huffman::make_tables(sh.tables, ((const Book*)args.shared + chunk)->codes);
            booked = chunk;
        }
        const Meta meta = now.meta;
        const Work work(c, number);
        const u32* exact = work.exact(meta.kind & INTERPOLATED);
        const u32 kind = meta.kind, front = now.front, words = now.words, gaps = now.gaps;
        u32 mask = 0, begin = 0, end = 0, first = 0, bits = 0;
        if ((kind & CLASS) == HUFFMAN || (kind & CLASS) == FIXED) {
            const huffman::Mine mine = huffman::take(work.bytes(), n);
            huffman::keep(mine, sh.kept);
            mask = mine.mask;
            if ((kind & CLASS) == HUFFMAN) {
                begin = huffman::runs_begin<THREADS>(mine.mask, sh.room, end);
                u32 own = huffman::length(mine, begin, meta.width >= 8, exact, sh.tables);
                if (t == (n - 1) / 32) own += huffman::run_length(sh.tables, n - end);
                first = block::sum_before<THREADS>(own, sh.room, bits);
            }
        }
        // While the first warp looks back, the last one looks for the next tile.
        if (w == THREADS / 32 - 1) take_next(sh.next[turn ^ 1]);
        flush<S>(args, sh, sh.old_chunk != chunk, sum, lane, w);
        __syncthreads();
        if (t == 0) {
            sh.old = 1;
            sh.old_tile = number;
            sh.old_chunk = chunk;
            sh.old_kind = kind;
            sh.old_records = meta.records;
            sh.old_front = front;
            sh.old_words = words;
            sh.done++;
        }
        if ((kind & CLASS) == HUFFMAN) {
            for (u32 i = t; i < words; i += THREADS) sh.stage[i] = 0;
            __syncthreads();
            huffman::Writer out(sh.stage + gaps, (u8*)sh.stage, bits, first);
            huffman::write(sh.kept, mask, (int)begin, exact, sh.tables, out);
            if (t == (n - 1) / 32) huffman::powers(n - end, [&](u32 k) { out.code(sh.tables.symbols[k]); });
            out.finish();
        } else if ((kind & CLASS) == FIXED) {
            if (t == 0) sh.stage[0] = meta.width;
            if (32 * t < n) huffman::write_fixed(huffman::kept_again(sh.kept, mask), exact, n, meta.width, sh.stage + 1);
        }
    }
    flush<S>(args, sh, true, sum, lane, w);
}

}  // namespace

#define ENTRIES(S, name)                                                                                                              \
    extern "C" __global__ __launch_bounds__(THREADS) void lorenzo_encode_range_##name(EncodeArgs args) { find_range<S>(args); }       \
    extern "C" __global__ __launch_bounds__(THREADS, LorenzoTuning::PLAN_CTAS) void lorenzo_encode_plan_##name(EncodeArgs args) { plan<S>(args); } \
    extern "C" __global__ __launch_bounds__(THREADS, LorenzoTuning::INTERPOLATE_CTAS) void lorenzo_encode_interpolate_##name(EncodeArgs args) { interpolate_tile<S>(args); } \
    extern "C" __global__ __launch_bounds__(THREADS) void lorenzo_encode_codebook_##name(EncodeArgs args) { make_codebook(args); }    \
    extern "C" __global__ __launch_bounds__(THREADS, LorenzoTuning::WRITE_CTAS) void lorenzo_encode_write_##name(EncodeArgs args) { write<S>(args); }
ENTRIES(float, f32)
ENTRIES(double, f64)
