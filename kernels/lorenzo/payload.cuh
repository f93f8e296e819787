// SPDX-License-Identifier: MIT OR Apache-2.0
// A tile's payload to residuals in shared memory: codecs/src/codec/lorenzo/FORMAT.md §3.4 and §4.2.
//
// One CTA decodes one tile. The payload comes in whole words, summed on the way. `part` checks every length before it
// is used. Residuals of fixed width are found each by itself; those of a stream by many threads at once
// (huffman_decode.cuh), whose decoding synchronises itself. A frame's verdict is its last tile's.
#pragma once
#include "../base/frame_reader.cuh"
#include "../stage/huffman_decode.cuh"
#include "../stage/tiles.cuh"
#include "../tuning.cuh"
#include "outliers.cuh"

namespace {

using tiles::Three;
using tiles::Tile;

constexpr int THREADS = 256, WARPS = THREADS / 32;
// Words of shared memory for a tile's payload. Longer ones stay where they are.
constexpr u32 POOL = 864;
// Payloads of at most this many words are read by the table for sparse residuals.
constexpr u32 SHORT = THREADS;
// No stream of more words is read: a writer takes fixed width there.
constexpr u32 LONGEST_STREAM = tiles::MOST + 1;

// From tile to tile whose payload's start a frame says.
constexpr u32 START_EVERY = (u32)fmt::LORENZO_START_EVERY;

// Where a tile's payload lies, from lengths of 2 bytes each and, for every 64th tile but the first, a start; in units
// of 4 bytes. Whole warp.
struct Span {
    u32 from, to;
    // It ends inside the payloads, where the next start or the section's end is; and nothing fills up but zeros.
    bool right;
    // What this lane's words add to the checksum, of those that no other tile's CTA sums.
    u64 sum;
    __device__ __forceinline__ Span(const DecodeChunk& c, u32 t, int lane) : sum(0) {
        static_assert(START_EVERY == 64, "two lengths a lane");
        const u32 pairs = (c.tiles + 1) / 2, group = t / START_EVERY, k = t % START_EVERY, pair = 32 * group + lane;
        const u64 word0 = c.lengths_at / 4;
        const u32* words = (const u32*)c.frame + word0;
        const u32* starts = words + pairs;
        const u32 word = pair < pairs ? words[pair] : 0, low = word & 0xffffu, high = word >> 16;
        const u32 before = warp::total((2 * (u32)lane < k ? low : 0) + (2 * (u32)lane + 1 < k ? high : 0));
        const u32 own = warp::from(k % 2 ? high : low, k / 2), behind = warp::from(high, k / 2);
        from = (group ? starts[group - 1] : 0) + before;
        to = from + own;
        const u64 most = c.payload_len / 4;
        right = from <= to && to <= most;
        if (t + 1 == c.tiles) {
            right = right && to == most && (k % 2 || behind == 0);
        } else if (k + 1 == START_EVERY) {
            right = right && starts[group] == to;
            if (lane == 0) sum += frame::term(to, word0 + pairs + group);
        }
        if (k % 2 == 0 && lane == (int)k / 2) sum += frame::term(word, word0 + pair);
    }
};

struct Shared {
    alignas(16) int values[tiles::MOST];
    huffman::Tables tables;
    u32 pool[POOL];
    huffman::Exchange<WARPS> exchange;
    frame::Sums<THREADS> sums;
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
    // How it is interpolated.
    __device__ __forceinline__ u32 way() const { return bits & 0x87; }
    __device__ __forceinline__ u32 coding() const { return bits >> 4 & 3; }
    __device__ __forceinline__ bool outliers() const { return bits & 0x40; }
    // An interpolated tile has one axis at least, and none of one value.
    __device__ __forceinline__ bool allowed(bool log, const Three& e) const {
        const u32 long_ones = (e.x > 1 ? 1 : 0) | (e.y > 1 ? 2 : 0) | (e.z > 1 ? 4 : 0);
        return !(interpolated() ? log || !axes() || (axes() & ~long_ones) : bits & 0x80) &&
               !(coding() == 3 && bits != 0x30);
    }
};
enum Coding { EMPTY, HUFFMAN, FIXED, RAW };

// What a payload consists of, in words from its first.
struct Parts {
    // The first word of outliers; 0 for none.
    u32 outliers;
    // The width of fixed width, or the stream.
    u32 stream;
    u32 words;
    bool right;
};

// Checks every length of a payload of `words` words for `n` values of W bytes; the same in all threads.
template <int W>
__device__ __forceinline__ Parts part(const u32* payload, u32 words, Kind kind, u32 n, const huffman::Tables& tables) {
    Parts p = {0, 0, 0, true};
    u32 at = 0;
    if (kind.outliers()) {
        p.outliers = words ? payload[0] : 0;
        const u32 count = count_of(p.outliers);
        at = outlier_words<W>(p.outliers);
        if (count == 0 || count > n || at > words) {
            p.outliers = 0;
            p.right = false;
            return p;
        }
    }
    const u32 left = words - at;
    p.stream = at;
    p.words = left;
    switch (kind.coding()) {
        case EMPTY: p.right = left == 0; break;
        case RAW: p.right = left == n * (W / 4); break;
        case FIXED: {
            const u32 width = left ? payload[at] : 0;
            p.right = width >= 1 && width <= 32 && left - 1 == (n * width + 31) / 32;
            if (p.right && n * width % 32) p.right = payload[at + left - 1] >> (n * width % 32) == 0;
            break;
        }
        default: p.right = tables.usable && left && left <= LONGEST_STREAM;
    }
    return p;
}

// The z-value at place i of words of fixed width.
__device__ __forceinline__ int fixed(const u32* words, u32 width, u32 i) {
    const u32 bit = i * width, at = bit / 32;
    return huffman::unzigzag(__funnelshift_r(words[at], words[at + 1], bit % 32) &
                             (width == 32 ? ~0u : (1u << width) - 1));
}

// Run `k` of a mask: zeros in the lower byte, ones in the upper.
__device__ __forceinline__ u32 mask_run(const u32* runs, u32 k) { return runs[k / 2] >> (k % 2 * 16) & 0xffffu; }

// Whether a mask's runs stay inside, nothing fills up but zeros, and differences have an axis. One warp.
__device__ __forceinline__ bool mask_right(const u32* runs, u32 head, const Three& e, int lane) {
    const u32 count = count_of(head);
    u32 places = 0;
    for (u32 k = lane; k < count; k += 32) {
        const u32 run = mask_run(runs, k);
        places += (run & 255u) + (run >> 8);
    }
    return warp::total(places) <= e.z * e.y * e.x && (count % 2 == 0 || runs[count / 2] >> 16 == 0) &&
           !(head & DIFFERENCES && e.z * e.y == 1);
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

// Decodes a payload's residuals, as the stream has them. False, in some thread, where it is not right. The caller
// waits.
__device__ __forceinline__ bool residuals(Shared& sh, const u32* payload, u32 words, const Parts& p, Kind kind, u32 n) {
    if (!p.right || sh.tables.bad) return false;
    bool right = true;
    if (!(p.outliers & MASK)) {
        right = records_right(payload + 1, p.outliers, n);
    } else if (threadIdx.x < 32) {
        right = mask_right(payload + p.stream - (count_of(p.outliers) + 1) / 2, p.outliers, sh.tile.extents,
                           (int)threadIdx.x);
    }
    if (kind.coding() == HUFFMAN) {
        // Words known to be in shared memory come faster.
        const u32* stream = payload + p.stream;
        u32* staged = sh.pool + p.stream;
        huffman::Exchange<WARPS>& ex = sh.exchange;
        bool whole;
        if (words <= SHORT) {
            whole = huffman::read<THREADS, true, true>(sh.tables, staged, p.words, n, ex, sh.values);
        } else if (payload == sh.pool) {
            whole = huffman::read<THREADS, true, false>(sh.tables, staged, p.words, n, ex, sh.values);
        } else {
            whole = huffman::read<THREADS, false, false>(sh.tables, stream, p.words, n, ex, sh.values);
        }
        right = right && whole;
    } else if (kind.coding() == FIXED) {
        const u32* at = payload + p.stream;
        for (u32 i = threadIdx.x; i < n; i += THREADS) sh.values[i] = fixed(at + 1, at[0], i);
    }
    return right;
}

// Asks for the part of the payloads that is needed when this multiprocessor takes its next tile. Where exactly that
// lies is not known, but all tiles together ask for all. One warp.
__device__ __forceinline__ void ask_ahead(const DecodeChunk& c, u32 tile, int lane) {
#ifdef __CUDA_ARCH__
    constexpr u32 AHEAD = 132 * LorenzoTuning::DECODE_CTAS;
    if (c.tiles - tile <= AHEAD) return;
    const float each = (float)c.payload_len / (float)c.tiles;
    const u64 from = (u64)(each * (float)(tile + AHEAD)) + 128 * lane;
    for (u64 at = from; at < from + (u32)each && at < c.payload_len; at += 128 * 32)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(c.frame + c.payload_at + at));
#endif
}

// Decodes one tile to residuals in shared memory; `finish` does the rest, in which nothing can be wrong any more.
// Without SUMMED the frame's head was not summed, by kernels that are compared.
template <int W, bool SUMMED, class Finish>
__device__ __forceinline__ void decode_tile(const DecodeArgs& args, Finish finish) {
    __shared__ Shared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const Span span(c, t, lane);
    const Kind kind = {((const u8*)(c.frame + c.kinds_at))[t]};
    // Divisions, by one thread, while the others wait for memory.
    if (threadIdx.x == THREADS - 1) sh.tile = tiles::of(c.extents, c.tile, t);
    const u32 words = span.right ? span.to - span.from : 0;
    const u64 word0 = c.payload_at / 4 + span.from;
    const u32* in = (const u32*)c.frame + word0;
    const u32 first = threadIdx.x < words ? in[threadIdx.x] : 0;
    const bool log = c.mode == 3;
    if (threadIdx.x / 32 == 1) ask_ahead(c, t, lane);
    {
        const huffman::FrameTables& all = ((const huffman::FrameTables*)args.tables)[chunk];
        constexpr u32 FIRST = huffman::PATTERNS / 4, ALL = sizeof(huffman::Tables) / 16;
        const uint4 *several = (const uint4*)(words <= SHORT ? all.sparse : all.tables.several),
                    *others = (const uint4*)&all.tables;
#pragma unroll
        for (u32 k = 0; k < ALL / THREADS; k++) {
            const u32 i = threadIdx.x + k * THREADS;
            ((uint4*)&sh.tables)[i] = (k < FIRST / THREADS ? several : others)[i];
        }
        static_assert(FIRST % THREADS == 0 && ALL % THREADS == 1, "a thread copies what is left");
        if (threadIdx.x == 0) ((uint4*)&sh.tables)[ALL - 1] = others[ALL - 1];
    }
    // Residuals are zeros where a stream says nothing.
#pragma unroll
    for (u32 k = 0; k < tiles::MOST / 4 / THREADS; k++)
        ((int4*)sh.values)[threadIdx.x + k * THREADS] = make_int4(0, 0, 0, 0);
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
    sh.sums.put(sum, lane, w);
    __syncthreads();
    const Parts p = part<W>(payload, words, kind, sh.tile.values(), sh.tables);
    const bool right =
        span.right && kind.allowed(log, sh.tile.extents) && residuals(sh, payload, words, p, kind, sh.tile.values());
    const u32 fault = __syncthreads_or(!right);
    // Told before values are written: what comes later cannot fail, and nobody has to wait for the writes.
    ChunkState* state = (ChunkState*)args.states + chunk;
    const bool teller = w == WARPS - 1;
    bool last = false;
    if (teller) {
        sum = sh.sums.all(lane) + warp::sum(span.sum);
        last = lane == 0 && frame::count(state, c.tiles, 1, sum, fault);
    }
    if (!fault) finish(c, sh, payload, p, kind, lane, w);
    if (last) frame::verdict(args, chunk, SUMMED);
}

constexpr int CTAS = AT_ONCE<LorenzoTuning::DECODE_CTAS, THREADS>;

}  // namespace
