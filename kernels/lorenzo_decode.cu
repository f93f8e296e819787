// SPDX-License-Identifier: MIT OR Apache-2.0
// Decoding of the room lorenzo: src/codec/lorenzo/FORMAT.md. A CTA a frame makes the codebook's tables, then a CTA a tile
// does all the rest in shared memory: its payload comes in whole words, summed on the way; every length is checked before it
// is used; residuals are written to where the tile has them, summed up or interpolated there, and leave as values.
//
// Three more kernels stop at the residuals, to compare decoders: a thread a stream, and many threads a stream, without
// and with gap arrays.
#include "base/frame.cuh"
#include "stage/huffman_decode.cuh"
#include "stage/interpolate/tile_any.cuh"
#include "stage/interpolate/tile_whole.cuh"
#include "stage/sums.cuh"
#include "tuning.cuh"

namespace {

using tiles::Three;
using tiles::Tile;

constexpr int THREADS = 256, WARPS = THREADS / 32, BOOK_THREADS = 1024;
// Words of shared memory for a tile's payload. Longer ones stay where they are.
constexpr u32 POOL = 864;
// Payloads of so many words, a residual every few bytes at best, are read by another table.
constexpr u32 SHORT = THREADS;
// No stream of more words is read: a writer takes fixed width there.
constexpr u32 LONGEST_STREAM = tiles::MOST + 1;

enum How { VALUES, SYNC, GAP };

struct Shared {
    alignas(16) int values[tiles::MOST];
    huffman::Tables book;
    u32 pool[POOL];
    huffman::Exchange<WARPS> exchange;
    u64 sums[WARPS];
    // Sums over warps' rows.
    int totals[WARPS];
    Tile tile;
};
static_assert(sizeof(Shared) <= 48 << 10, "static shared memory");

// A tile's kind, FORMAT.md §3.3.
struct Kind {
    u32 bits;
    __device__ __forceinline__ bool interpolated() const { return bits & 8; }
    __device__ __forceinline__ u32 axes() const { return bits & 7; }
    __device__ __forceinline__ u32 coding() const { return bits >> 4 & 3; }
    __device__ __forceinline__ bool exceptions() const { return bits & 0x40; }
    __device__ __forceinline__ bool allowed(bool log) const {
        return !(bits & 0x80) && !(interpolated() && (log || axes())) && !(coding() == 3 && bits != 0x30);
    }
};
enum Coding { EMPTY, HUFFMAN, FIXED, RAW };

// What a payload consists of, in words from its first.
struct Parts {
    // Records of exceptions; 0 for none.
    u32 exceptions;
    // Gap array, or the width of fixed width.
    u32 gaps;
    u32 stream, words;
    bool right;
};

// Checks every length of a payload of `words` words for `n` values of W bytes; the same in all threads.
template <int W>
__device__ __forceinline__ Parts part(const u32* payload, u32 words, Kind kind, u32 n, const huffman::Tables& book) {
    Parts p = {0, 0, 0, 0, true};
    u32 at = 0;
    if (kind.exceptions()) {
        p.exceptions = words ? payload[0] : 0;
        if (p.exceptions == 0 || p.exceptions > n || p.exceptions * (1 + W / 4) >= words) {
            p.exceptions = 0;
            p.right = false;
            return p;
        }
        at = 1 + p.exceptions * (1 + W / 4);
    }
    const u32 left = words - at;
    p.gaps = at;
    switch (kind.coding()) {
        case EMPTY: p.right = left == 0; break;
        case RAW: p.right = left == n * (W / 4); break;
        case FIXED: {
            const u32 width = left ? payload[at] : 0;
            p.stream = at + 1;
            p.words = left - 1;
            p.right = width >= 1 && width <= 32 && p.words == (n * width + 31) / 32;
            if (p.right && n * width % 32) p.right = payload[at + p.words] >> (n * width % 32) == 0;
            break;
        }
        default: {
            const u32 gaps = book.gaps ? huffman::gap_units(left) : 0;
            p.right = book.usable && gaps < left && left - gaps <= LONGEST_STREAM;
            p.stream = at + gaps;
            p.words = left - gaps;
            if (p.right && gaps) {
                const u32 used = (p.words + huffman::PART_WORDS - 1) / huffman::PART_WORDS - 1;
                if (used % 4) p.right = payload[at + gaps - 1] >> (used % 4 * 8) == 0;
            }
        }
    }
    return p;
}

// The z-value at place i of words of fixed width.
__device__ __forceinline__ int fixed(const u32* words, u32 width, u32 i) {
    const u32 bit = i * width, at = bit / 32;
    return huffman::unzigzag(__funnelshift_r(words[at], words[at + 1], bit % 32) & (width == 32 ? ~0u : (1u << width) - 1));
}

// Writes residuals where the stream has them. Places are below the tile's values.
struct InOrder {
    int* values;
    __device__ __forceinline__ void operator()(u32 place, int residual) const { values[place] = residual; }
};

// Quanta or points → bits of values.
template <class S, bool LOG>
struct Dequantizer {
    using T = Traits<S>;
    double step;
    u64 distance;
    __device__ __forceinline__ typename T::Bits operator()(int q) const {
        if (!LOG) return T::bits(T::round(__dmul_rn((double)q, step)));
        const u64 size = q < 0 ? (u64)(0u - (u32)q) : (u64)(u32)q;
        constexpr u64 SIGN = 1ull << (8 * T::W - 1);
        return (typename T::Bits)((size * distance & (SIGN - 1)) | (q < 0 ? SIGN : 0));
    }
};

__device__ __forceinline__ void store2(u32* at, u32 a, u32 b) { *(uint2*)at = make_uint2(a, b); }
__device__ __forceinline__ void store2(u64* at, u64 a, u64 b) { *(uint4*)at = make_uint4((u32)a, (u32)(a >> 32), (u32)b, (u32)(b >> 32)); }
__device__ __forceinline__ void store4(u32* at, const u32 (&x)[4]) { *(uint4*)at = make_uint4(x[0], x[1], x[2], x[3]); }
__device__ __forceinline__ void store4(u64* at, const u64 (&x)[4]) {
    ((uint4*)at)[0] = make_uint4((u32)x[0], (u32)(x[0] >> 32), (u32)x[1], (u32)(x[1] >> 32));
    ((uint4*)at)[1] = make_uint4((u32)x[2], (u32)(x[2] >> 32), (u32)x[3], (u32)(x[3] >> 32));
}

// Where a tile's values go.
template <class S>
struct Out {
    using Bits = typename Traits<S>::Bits;
    Bits* at;
    u64 row, plane;
    Three e;
    bool swap, fours;
    __device__ __forceinline__ Out(const DecodeChunk& c, const Tile& t)
        : at((Bits*)c.output + t.start), row(c.extents[2]), plane((u64)c.extents[1] * c.extents[2]), e(t.extents),
          swap(c.flags & FLAG_SWAP), fours(e.x % 4 == 0 && c.extents[2] % 4 == 0 && t.start % 4 == 0) {}
    __device__ __forceinline__ Bits* of(u32 z, u32 y) const { return at + z * plane + y * row; }
    __device__ __forceinline__ Bits ordered(Bits x) const { return swap ? swapped(x) : x; }
    // Two or four values, where the tile's rows begin at multiples of four.
    __device__ __forceinline__ void put2(Bits* to, Bits a, Bits b) const {
        if (swap) {
            a = swapped(a);
            b = swapped(b);
        }
        store2(to, a, b);
    }
    __device__ __forceinline__ void put4(Bits* to, Bits (&x)[4]) const {
        if (swap) {
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] = swapped(x[j]);
        }
        store4(to, x);
    }
};

// The same for places in the tile's order.
template <class S>
struct Places {
    using Bits = typename Traits<S>::Bits;
    const Out<S>& out;
    tiles::Divisor by_x, by_y;
    __device__ __forceinline__ explicit Places(const Out<S>& out) : out(out), by_x(out.e.x), by_y(out.e.y) {}
    __device__ __forceinline__ Bits* of(u32 i) const {
        const u32 r = by_x.of(i), z = by_y.of(r);
        return out.of(z, r - z * out.e.y) + (i - r * out.e.x);
    }
    __device__ __forceinline__ void put(u32 i, Bits x) const { *of(i) = out.ordered(x); }
};

// Writes values that are in the tile's order.
template <class S, class Value>
__device__ __forceinline__ void write_all(const int* values, const Out<S>& out, u32 n, Value value, int lane, int w) {
    using Bits = typename Traits<S>::Bits;
    const Places<S> places(out);
    if (out.fours) {
        for (u32 i = 4 * threadIdx.x; i < n; i += 4 * THREADS) {
            const int4 q = *(const int4*)(values + i);
            Bits x[4] = {value(q.x), value(q.y), value(q.z), value(q.w)};
            out.put4(places.of(i), x);
        }
    } else {
        // A row a warp, or several short ones.
        const u32 side = min(out.e.x, 32u), each = 32 / side, sub = lane / side;
        if (sub == each) return;
        for (u32 r = w * each + sub; r < out.e.z * out.e.y; r += WARPS * each) {
            const u32 z = places.by_y.of(r);
            Bits* to = out.of(z, r - z * out.e.y);
            for (u32 x = lane - sub * side; x < out.e.x; x += side) to[x] = out.ordered(value(values[r * out.e.x + x]));
        }
    }
}

// Writes the points of an interpolated whole tile. 1024 values on, a thread has the same distance to go everywhere.
template <u32 RANK, class S, class Value>
__device__ __forceinline__ void write_points(const interpolate::Whole<RANK>& tile, const int* points, const Out<S>& out,
                                             Value value) {
    using Bits = typename Traits<S>::Bits;
    constexpr u32 STEPS = tiles::MOST / 4 / THREADS, STEP = 4 * THREADS >> RANK;
    const u64 step = RANK == 3 ? 2 * out.plane : RANK == 2 ? 8 * out.row : 4 * THREADS;
    if (out.fours) {
        const Three p = tile.where(4 * threadIdx.x);
        u32 at;
        const int* even = points + interpolate::find_pair(tile.finest(), p, at);
        const int* odd = points + at;
        Bits* to = out.of(p.z, p.y) + p.x;
#pragma unroll
        for (u32 k = 0; k < STEPS; k++, to += step) {
            const int2 a = *(const int2*)(even + k * STEP), b = *(const int2*)(odd + k * STEP);
            Bits v[4] = {value(a.x), value(b.x), value(a.y), value(b.y)};
            out.put4(to, v);
        }
    } else {
        for (u32 k = 0; k < 4; k++) {
            const Three p = tile.where(threadIdx.x + k * THREADS);
            const int* from = points + interpolate::find(tile.finest(), p);
            Bits* to = out.of(p.z, p.y) + p.x;
#pragma unroll 4
            for (u32 j = 0; j < STEPS; j++, from += STEP, to += step) *to = out.ordered(value(*from));
        }
    }
}

// Those of a tile of any extents, 128 values of a row a warp, or some short rows.
template <class S, class Value>
__device__ __forceinline__ void write_points(const interpolate::TileAny& tile, const int* points, const Out<S>& out, Value value,
                                             int lane, int w) {
    using Bits = typename Traits<S>::Bits;
    const Three& e = out.e;
    const tiles::Divisor by_y(e.y);
    auto point = [&](u32 z, u32 y, u32 x) { return points[interpolate::find(tile.finest(), Three{z, y, x})]; };
    if (e.x >= 32) {
        const u32 pieces = (e.x + 127) / 128;
        const tiles::Divisor by_pieces(pieces);
        for (u32 i = w; i < e.z * e.y * pieces; i += WARPS) {
            const u32 r = by_pieces.of(i), z = by_y.of(r), y = r - z * e.y;
            const u32 from = (i - r * pieces) * 128, to = min(from + 128, e.x);
            Bits* at = out.of(z, y);
            if (out.fours) {
                const u32 x = from + 4 * lane;
                if (x >= to) continue;
                u32 odd;
                const int2 a = *(const int2*)(points + interpolate::find_pair(tile.finest(), Three{z, y, x}, odd));
                const int2 b = *(const int2*)(points + odd);
                Bits v[4] = {value(a.x), value(b.x), value(a.y), value(b.y)};
                out.put4(at + x, v);
            } else {
                for (u32 x = from + lane; x < to; x += 32) at[x] = out.ordered(value(point(z, y, x)));
            }
        }
    } else {
        const u32 each = 32 / e.x, sub = lane / e.x, x = lane - sub * e.x;
        if (sub == each) return;
        for (u32 r = w * each + sub; r < e.z * e.y; r += WARPS * each) {
            const u32 z = by_y.of(r), y = r - z * e.y;
            out.of(z, y)[x] = out.ordered(value(point(z, y, x)));
        }
    }
}

template <class S>
__device__ __forceinline__ typename Traits<S>::Bits stored(const u32* words, u32 i) {
    if (Traits<S>::W == 4) return (typename Traits<S>::Bits)words[i];
    return (typename Traits<S>::Bits)(words[2 * i] | (u64)words[2 * i + 1] << 32);
}

// Whether records rise and stay inside, as this thread sees them.
__device__ __forceinline__ bool records_right(const u32* records, u32 count, u32 n) {
    bool right = true;
    for (u32 k = threadIdx.x; k < count; k += THREADS) {
        const u32 r = records[k], p = k ? records[k - 1] : 0, end = (r & 0xffffu) + (r >> 16) + 1;
        right = right && end <= n && (k == 0 || (r & 0xffffu) >= (p & 0xffffu) + (p >> 16) + 1);
    }
    return right;
}

// Exceptions over values that are there. Short runs by a lane each, long ones by a warp.
template <class S>
__device__ __forceinline__ void restore(const u32* records, u32 count, const Places<S>& out, int lane, int w) {
    const u32* values = records + count;
    for (u32 from = 32 * w; from < count; from += THREADS) {
        const u32 k = from + lane, r = k < count ? records[k] : 0, length = k < count ? (r >> 16) + 1 : 0;
        if (length <= 8) {
            for (u32 i = 0; i < length; i++) out.put((r & 0xffffu) + i, stored<S>(values, k));
        }
        for (u32 rest = __ballot_sync(warp::ALL, length > 8); rest; rest &= rest - 1) {
            const int which = __ffs((int)rest) - 1;
            const u32 its = warp::from(r, which);
            const auto x = stored<S>(values, from + which);
            for (u32 i = lane; i <= its >> 16; i += 32) out.put((its & 0xffffu) + i, x);
        }
    }
}

// Decodes a payload's residuals, as the stream has them. False, in some thread, where it is not right. The caller waits.
template <How HOW>
__device__ __forceinline__ bool residuals(Shared& sh, const u32* payload, u32 words, const Parts& p, Kind kind, u32 n) {
    if (!p.right || sh.book.bad) return false;
    bool right = records_right(payload + 1, p.exceptions, n);
    if (kind.coding() == HUFFMAN) {
        const u8* gaps = (const u8*)(payload + p.gaps);
        if (HOW == SYNC || !sh.book.gaps) gaps = nullptr;
        if (HOW == GAP && !gaps) return false;
        const InOrder put = {sh.values};
        // Words known to be in shared memory come faster.
        const u32* stream = payload + p.stream;
        u32* staged = sh.pool + p.stream;
        huffman::Exchange<WARPS>& ex = sh.exchange;
        bool whole;
        if (words <= SHORT) {
            whole = huffman::read<THREADS, true, true>(sh.book, staged, p.words, gaps, n, ex, put);
        } else if (payload == sh.pool) {
            whole = huffman::read<THREADS, true, false>(sh.book, staged, p.words, gaps, n, ex, put);
        } else {
            whole = huffman::read<THREADS, false, false>(sh.book, stream, p.words, gaps, n, ex, put);
        }
        right = right && whole;
    } else if (kind.coding() == FIXED) {
        for (u32 i = threadIdx.x; i < n; i += THREADS) sh.values[i] = fixed(payload + p.stream, payload[p.gaps], i);
    }
    return right;
}

// Residuals become values, which leave; nothing can be wrong any more.
template <class S, How HOW>
__device__ __forceinline__ void finish_tile(const DecodeChunk& c, Shared& sh, const u32* payload, const Parts& p, Kind kind, const Tile& t, int lane,
                                            int w) {
    const u32 n = t.values();
    if (HOW != VALUES) {
        // In the order of tiles: what comes before are whole layers, in this layer whole rows of tiles, and in this row whole tiles.
        int* to = (int*)c.output + ((u64)t.origin.z * c.extents[1] + (u64)t.extents.z * t.origin.y) * c.extents[2] +
                  (u64)t.extents.z * t.extents.y * t.origin.x;
        for (u32 i = threadIdx.x; i < n; i += THREADS) to[i] = sh.values[i];
        return;
    }
    if (kind.coding() == RAW) {
        const Out<S> out(c, t);
        const Places<S> places(out);
        for (u32 i = threadIdx.x; i < n; i += THREADS) places.put(i, stored<S>(payload, i));
        return;
    }
    if (kind.interpolated()) {
        // Found late: before, registers are few.
        auto linear = [&] { return Dequantizer<S, false>{c.fine, 0}; };
        auto whole = [&](auto tile) {
            interpolate::points(tile, sh.values);
            write_points(tile, sh.values, Out<S>(c, t), linear());
        };
        if (interpolate::Tile3d::fits(t.extents)) {
            whole(interpolate::Tile3d());
        } else if (interpolate::Tile2d::fits(t.extents)) {
            whole(interpolate::Tile2d());
        } else if (interpolate::Tile1d::fits(t.extents)) {
            whole(interpolate::Tile1d());
        } else {
            auto* levels = (interpolate::Level*)sh.book.several;
            static_assert(sizeof(sh.book.several) >= interpolate::LEVELS * sizeof(*levels), "room for all levels");
            interpolate::TileAny::prepare(levels, t.extents);
            __syncthreads();
            const interpolate::TileAny tile(levels, t.extents);
            interpolate::points(tile, sh.values);
            write_points(tile, sh.values, Out<S>(c, t), linear(), lane, w);
        }
    } else if (sums::full(t.extents) && c.mode != 3) {
        sums::rows_and_lines(sh.values, kind.axes(), (int*)sh.book.several);
        const Out<S> out(c, t);
        const Dequantizer<S, false> linear = {c.step, 0};
        if (out.fours) {
            // Two places a thread, in all planes.
            int2 q[16];
            sums::planes(q, (const int2*)sh.values + threadIdx.x, kind.axes());
            auto* to = out.of(0, threadIdx.x / 16) + 2 * (threadIdx.x % 16);
#pragma unroll
            for (u32 k = 0; k < 16; k++, to += out.plane) out.put2(to, linear(q[k].x), linear(q[k].y));
        } else {
            for (u32 y = w; y < 16; y += WARPS) {
                int q[16];
                sums::planes(q, sh.values + 32 * y + lane, kind.axes());
                auto* to = out.of(0, y) + lane;
#pragma unroll
                for (u32 k = 0; k < 16; k++, to += out.plane) *to = out.ordered(linear(q[k]));
            }
        }
    } else {
        sums::any(sh.values, t.extents, kind.axes(), sh.totals, lane, w);
        const Out<S> out(c, t);
        if (c.mode == 3) {
            write_all(sh.values, out, n, Dequantizer<S, true>{0.0, c.distance}, lane, w);
        } else {
            write_all(sh.values, out, n, Dequantizer<S, false>{c.step, 0}, lane, w);
        }
    }
    if (p.exceptions) {
        __syncthreads();
        const Out<S> out(c, t);
        restore<S>(payload + 1, p.exceptions, Places<S>(out), lane, w);
    }
}

// A tile's payload, as the table of ends says.
struct Span {
    u32 from, to;
    bool right;
    __device__ __forceinline__ Span(const DecodeChunk& c, u32 t) {
        const u32* ends = (const u32*)(c.frame + c.ends_at);
        const u64 most = c.payload_len / 4;
        from = t ? ends[t - 1] : 0;
        to = ends[t];
        right = from <= to && to <= most && (t + 1 < c.tiles || to == most);
    }
};

template <class S, How HOW>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    __shared__ Shared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const Span span(c, t);
    const Kind kind = {((const u8*)(c.frame + c.kinds_at))[t]};
    // Divisions, by one thread, while the others wait for memory.
    if (threadIdx.x == THREADS - 1) sh.tile = tiles::of(c.extents, c.tile, t);
    const u32 words = span.right ? span.to - span.from : 0;
    const u64 word0 = c.payload_at / 4 + span.from;
    const u32* in = (const u32*)c.frame + word0;
    const u32 first = threadIdx.x < words ? in[threadIdx.x] : 0;
    const bool log = c.mode == 3;
    {
        const huffman::Book& book = ((const huffman::Book*)args.books)[chunk];
        constexpr u32 FIRST = huffman::PATTERNS / 4, ALL = sizeof(huffman::Tables) / 16;
        const uint4 *several = (const uint4*)(words <= SHORT ? book.sparse : book.tables.several), *others = (const uint4*)&book.tables;
#pragma unroll
        for (u32 k = 0; k < ALL / THREADS; k++) {
            const u32 i = threadIdx.x + k * THREADS;
            ((uint4*)&sh.book)[i] = (k < FIRST / THREADS ? several : others)[i];
        }
        static_assert(FIRST % THREADS == 0 && ALL % THREADS == 1, "a thread copies what is left");
        if (threadIdx.x == 0) ((uint4*)&sh.book)[ALL - 1] = others[ALL - 1];
    }
    // Residuals are zeros where a stream says nothing.
#pragma unroll
    for (u32 k = 0; k < tiles::MOST / 4 / THREADS; k++) ((int4*)sh.values)[threadIdx.x + k * THREADS] = make_int4(0, 0, 0, 0);
    const u32* payload = words + 4 <= POOL ? sh.pool : in;
    u64 sum = 0;
    {
        u64 key = frame::key_of(word0 + threadIdx.x);
#pragma unroll 4
        for (u32 i = threadIdx.x; i < words; i += THREADS) {
            const u32 word = i < THREADS ? first : in[i];
            if (i < POOL) sh.pool[i] = word;
            sum += frame::keyed(word, key);
            key += frame::KEY_STEP * THREADS;
        }
    }
    sum = warp::sum(sum);
    if (lane == 0) sh.sums[w] = sum;
    __syncthreads();
    const Parts p = part<Traits<S>::W>(payload, words, kind, sh.tile.values(), sh.book);
    const bool right = span.right && kind.allowed(log) && residuals<HOW>(sh, payload, words, p, kind, sh.tile.values());
    const u32 fault = __syncthreads_or(!right);
    // Told before values are written: what comes later cannot fail, and nobody has to wait for the writes.
    ChunkState* state = (ChunkState*)args.states + chunk;
    const bool teller = w == WARPS - 1;
    u32 before = 0;
    if (teller) {
        sum = warp::sum(lane < WARPS ? sh.sums[lane] : 0ull);
        if (lane == 0) {
            atomicAdd(&state->sum, sum + frame::term(span.to, c.ends_at / 4 + t));
            if (fault) atomicOr(&state->fault, fault);
            __threadfence();
            before = atomicAdd(&state->done, 1u);
        }
    }
    if (!fault) finish_tile<S, HOW>(c, sh, payload, p, kind, sh.tile, lane, w);
    if (teller && lane == 0 && before == c.tiles - 1) {
        __threadfence();
        const bool same = HOW != VALUES || atomicAdd(&state->sum, 0ull) == c.checksum;
        ((u64*)args.verdicts)[chunk] = same && atomicOr(&state->fault, 0u) == 0 ? 1 : 2;
    }
}

// Tables, and the checksum's part of all that is not a tile's.
__device__ __forceinline__ void make_book(const DecodeArgs& args) {
    const DecodeChunk& c = ((const DecodeChunk*)args.chunks)[blockIdx.x];
    huffman::make_book((const u8*)(c.frame + c.table_at), c.table_len, ((huffman::Book*)args.books)[blockIdx.x], BOOK_THREADS);
    const u32* in = (const u32*)c.frame;
    u64 sum = 0;
#pragma unroll 4
    for (u64 i = threadIdx.x; i < c.ends_at / 4; i += BOOK_THREADS) {
        if (i != frame::CHECKSUM_WORD && i != frame::CHECKSUM_WORD + 1) sum += frame::term(in[i], i);
    }
    for (u64 i = c.ends_at / 4 + c.tiles + threadIdx.x; i < c.payload_at / 4; i += BOOK_THREADS) sum += frame::term(in[i], i);
    sum = warp::sum(sum);
    if ((threadIdx.x & 31) == 0) atomicAdd(&((ChunkState*)args.states)[blockIdx.x].sum, sum);
}

// Writes every residual, zeros too, one after the other.
struct OneByOne {
    int* to;
    u32 n, next;
    __device__ __forceinline__ void operator()(u32 place, int residual) {
        if (place >= n || place < next) return;
        while (next < place) to[next++] = 0;
        to[next++] = residual;
    }
};

// The baseline: one thread a tile. Tiles of another chunk than the CTA's first look into tables that are farther away.
template <class S>
__device__ __forceinline__ void decode_coarse(const DecodeArgs& args, u32 threads) {
    __shared__ huffman::Tables shared;
    const int lane = threadIdx.x & 31;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 first = blockIdx.x * threads;
    const u32 home = frame::chunk_of(chunks, args.chunk_count, min(first, args.tiles - 1), lane);
    for (u32 i = threadIdx.x; i < sizeof(huffman::Tables) / 16; i += threads) {
        ((uint4*)&shared)[i] = ((const uint4*)&((const huffman::Book*)args.books)[home].tables)[i];
    }
    __syncthreads();
    const u32 number = first + threadIdx.x;
    if (number >= args.tiles) return;
    u32 chunk = home;
    while (chunk + 1 < args.chunk_count && chunks[chunk + 1].first_tile <= number) chunk++;
    const DecodeChunk& c = chunks[chunk];
    const huffman::Tables& book = chunk == home ? shared : ((const huffman::Book*)args.books)[chunk].tables;
    const u32 t = number - c.first_tile;
    const Span span(c, t);
    const Kind kind = {((const u8*)(c.frame + c.kinds_at))[t]};
    const Tile tile = tiles::of(c.extents, c.tile, t);
    const u32 n = tile.values();
    const u32* payload = (const u32*)c.frame + c.payload_at / 4 + span.from;
    bool right = span.right && kind.allowed(c.mode == 3) && !book.bad;
    if (right) {
        const Parts p = part<Traits<S>::W>(payload, span.to - span.from, kind, n, book);
        right = p.right;
        OneByOne put = {(int*)c.output + ((u64)tile.origin.z * c.extents[1] + (u64)tile.extents.z * tile.origin.y) * c.extents[2] +
                            (u64)tile.extents.z * tile.extents.y * tile.origin.x,
                        n, 0};
        if (right && kind.coding() == HUFFMAN) {
            huffman::Reader<false> r(payload + p.stream, 0);
            u32 place = 0;
            huffman::until<true, false>(book, r, 32 * p.words, 32 * p.words, n, place, put);
            right = huffman::ended(r, 32 * p.words, n, place);
        } else if (right && kind.coding() == FIXED) {
            for (u32 i = 0; i < n; i++) put.to[put.next++] = fixed(payload + p.stream, payload[p.gaps], i);
        }
        while (right && put.next < n) put.to[put.next++] = 0;
    }
    ChunkState* state = (ChunkState*)args.states + chunk;
    if (!right) atomicOr(&state->fault, 1u);
    __threadfence();
    if (atomicAdd(&state->done, 1u) == c.tiles - 1) ((u64*)args.verdicts)[chunk] = atomicOr(&state->fault, 0u) == 0 ? 1 : 2;
}

constexpr int CTAS = AT_ONCE<LorenzoTuning::DECODE_CTAS, THREADS>, COARSE = 64;

}  // namespace

#define ENTRIES(S, name)                                                                                                               \
    extern "C" __global__ __launch_bounds__(BOOK_THREADS) void lorenzo_decode_book_##name(DecodeArgs args) { make_book(args); }        \
    extern "C" __global__ __launch_bounds__(THREADS, CTAS) void lorenzo_decode_##name(DecodeArgs args) { decode<S, VALUES>(args); }    \
    extern "C" __global__ __launch_bounds__(THREADS, CTAS) void lorenzo_decode_sync_##name(DecodeArgs args) { decode<S, SYNC>(args); } \
    extern "C" __global__ __launch_bounds__(THREADS, CTAS) void lorenzo_decode_gap_##name(DecodeArgs args) { decode<S, GAP>(args); }   \
    extern "C" __global__ __launch_bounds__(COARSE) void lorenzo_decode_coarse_##name(DecodeArgs args) { decode_coarse<S>(args, COARSE); }
ENTRIES(float, f32)
ENTRIES(double, f64)
