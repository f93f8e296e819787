// SPDX-License-Identifier: MIT OR Apache-2.0
// A tile's payload to residuals in shared memory: src/codec/lorenzo/FORMAT.md §3.4 and §4.2.
//
// One CTA decodes one tile. The payload comes in whole words, summed on the way. `part` checks every length before it
// is used. Residuals of fixed width are found each by itself; those of a stream by many threads at once
// (huffman_decode.cuh), which begin where gap arrays say, or where decoding synchronises itself. A frame's verdict is
// its last tile's.
#pragma once
#include "../base/frame_reader.cuh"
#include "../stage/huffman_decode.cuh"
#include "../stage/tiles.cuh"
#include "../tuning.cuh"

namespace {

using tiles::Three;
using tiles::Tile;

constexpr int THREADS = 256, WARPS = THREADS / 32;
// Words of shared memory for a tile's payload. Longer ones stay where they are.
constexpr u32 POOL = 864;
// Payloads of so many words, a residual every few bytes at best, are read by another table.
constexpr u32 SHORT = THREADS;
// No stream of more words is read: a writer takes fixed width there.
constexpr u32 LONGEST_STREAM = tiles::MOST + 1;

// What becomes of gap arrays: they are used where the frame has them; or, to compare decoders, never or in any case.
enum Gaps { STORED, IGNORED, NEEDED };

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
    __device__ __forceinline__ u32 coding() const { return bits >> 4 & 3; }
    __device__ __forceinline__ bool outliers() const { return bits & 0x40; }
    __device__ __forceinline__ bool allowed(bool log) const {
        return !(bits & 0x80) && !(interpolated() && (log || axes())) && !(coding() == 3 && bits != 0x30);
    }
};
enum Coding { EMPTY, HUFFMAN, FIXED, RAW };

// What a payload consists of, in words from its first.
struct Parts {
    // Records of outliers; 0 for none.
    u32 outliers;
    // Gap array, or the width of fixed width.
    u32 gaps;
    u32 stream, words;
    bool right;
};

// Checks every length of a payload of `words` words for `n` values of W bytes; the same in all threads.
template <int W>
__device__ __forceinline__ Parts part(const u32* payload, u32 words, Kind kind, u32 n, const huffman::Tables& tables) {
    Parts p = {0, 0, 0, 0, true};
    u32 at = 0;
    if (kind.outliers()) {
        p.outliers = words ? payload[0] : 0;
        if (p.outliers == 0 || p.outliers > n || p.outliers * (1 + W / 4) >= words) {
            p.outliers = 0;
            p.right = false;
            return p;
        }
        at = 1 + p.outliers * (1 + W / 4);
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
            const u32 gaps = tables.gaps ? huffman::gap_units(left) : 0;
            p.right = tables.usable && gaps < left && left - gaps <= LONGEST_STREAM;
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
    return huffman::unzigzag(__funnelshift_r(words[at], words[at + 1], bit % 32) &
                             (width == 32 ? ~0u : (1u << width) - 1));
}

// Writes residuals where the stream has them. Places are below the tile's values.
struct InOrder {
    int* values;
    __device__ __forceinline__ void operator()(u32 place, int residual) const { values[place] = residual; }
};

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
template <Gaps GAPS>
__device__ __forceinline__ bool residuals(Shared& sh, const u32* payload, u32 words, const Parts& p, Kind kind, u32 n) {
    if (!p.right || sh.tables.bad) return false;
    bool right = records_right(payload + 1, p.outliers, n);
    if (kind.coding() == HUFFMAN) {
        const u8* gaps = (const u8*)(payload + p.gaps);
        if (GAPS == IGNORED || !sh.tables.gaps) gaps = nullptr;
        if (GAPS == NEEDED && !gaps) return false;
        const InOrder put = {sh.values};
        // Words known to be in shared memory come faster.
        const u32* stream = payload + p.stream;
        u32* staged = sh.pool + p.stream;
        huffman::Exchange<WARPS>& ex = sh.exchange;
        bool whole;
        if (words <= SHORT) {
            whole = huffman::read<THREADS, true, true>(sh.tables, staged, p.words, gaps, n, ex, put);
        } else if (payload == sh.pool) {
            whole = huffman::read<THREADS, true, false>(sh.tables, staged, p.words, gaps, n, ex, put);
        } else {
            whole = huffman::read<THREADS, false, false>(sh.tables, stream, p.words, gaps, n, ex, put);
        }
        right = right && whole;
    } else if (kind.coding() == FIXED) {
        for (u32 i = threadIdx.x; i < n; i += THREADS) sh.values[i] = fixed(payload + p.stream, payload[p.gaps], i);
    }
    return right;
}

// Decodes one tile to residuals in shared memory; `finish` does the rest, in which nothing can be wrong any more.
template <int W, Gaps GAPS, class Finish>
__device__ __forceinline__ void decode_tile(const DecodeArgs& args, Finish finish) {
    __shared__ Shared sh;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const frame::Span span((const u32*)(c.frame + c.ends_at), t, c.tiles, c.payload_len / 4);
    const Kind kind = {((const u8*)(c.frame + c.kinds_at))[t]};
    // Divisions, by one thread, while the others wait for memory.
    if (threadIdx.x == THREADS - 1) sh.tile = tiles::of(c.extents, c.tile, t);
    const u32 words = span.right ? span.to - span.from : 0;
    const u64 word0 = c.payload_at / 4 + span.from;
    const u32* in = (const u32*)c.frame + word0;
    const u32 first = threadIdx.x < words ? in[threadIdx.x] : 0;
    const bool log = c.mode == 3;
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
        span.right && kind.allowed(log) && residuals<GAPS>(sh, payload, words, p, kind, sh.tile.values());
    const u32 fault = __syncthreads_or(!right);
    // Told before values are written: what comes later cannot fail, and nobody has to wait for the writes.
    ChunkState* state = (ChunkState*)args.states + chunk;
    const bool teller = w == WARPS - 1;
    bool last = false;
    if (teller) {
        sum = sh.sums.all(lane);
        last = lane == 0 && frame::count(state, c.tiles, 1, sum + frame::term(span.to, c.ends_at / 4 + t), fault);
    }
    if (!fault) finish(c, sh, payload, p, kind, lane, w);
    // A comparison runs again without `decode_book`, which sums the frame's head.
    if (last) frame::verdict(args, chunk, GAPS == STORED);
}

constexpr int CTAS = AT_ONCE<LorenzoTuning::DECODE_CTAS, THREADS>;

}  // namespace
