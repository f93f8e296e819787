// SPDX-License-Identifier: MIT OR Apache-2.0
// Residuals → symbols → a stream of codewords with its gap array: src/stage/huffman.rs. A thread has 32 residuals in a row.
//
// A tile's residuals are zigzag values of one byte each; 255 stands for itself and all above, which lie in a second array.
#pragma once
#include "../prim/block.cuh"
#include "estimate.cuh"
#include "tiles.cuh"

namespace huffman {

constexpr u32 RUNS = (u32)fmt::LORENZO_RUNS, DIRECT = (u32)fmt::LORENZO_DIRECT, SYMBOLS = (u32)fmt::LORENZO_SYMBOLS;
constexpr u32 OUTLIER = RUNS + DIRECT - 1, LIMIT = (u32)fmt::CODEWORD_LIMIT, SUBSEQUENCE_WORDS = 1u << (fmt::SUBSEQUENCE_LOG2 - 5);
static_assert(DIRECT == 32 && LIMIT == 11 && SYMBOLS <= 128, "symbols are found by shifts");

// A byte that stands for a value in the second array.
constexpr u32 ESCAPE = 255;
// Counters: by byte, then by symbol.
constexpr u32 BINS = 256 + 128;

// Symbol of a zigzag value that is not 0; and how many of its bits follow the codeword.
__device__ __forceinline__ u32 symbol(u32 z) {
    if (z < DIRECT) return RUNS - 1 + z;
    const u32 power = estimate::highest(z);
    return OUTLIER + 2 * (power - 5) + (z >> (power - 1) & 1);
}
__device__ __forceinline__ u32 lower_bits(u32 z) { return z < DIRECT ? 0 : estimate::highest(z) - 1; }

// Which of four bytes are not 0, as four bits; whether some byte is `ESCAPE`.
__device__ __forceinline__ u32 others(u32 word) {
    const u32 high = ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu | word) & 0x80808080u;
    return (high >> 7) * 0x01020408u >> 24;
}
__device__ __forceinline__ bool escapes(u32 word) { return (~word - 0x01010101u) & word & 0x80808080u; }

// This thread's 32 bytes as eight words, and a bit for each that is not 0.
struct Mine {
    u32 word[8];
    u32 mask;
};

__device__ __forceinline__ Mine take(const u32* bytes, u32 n) {
    Mine m;
    m.mask = 0;
    const uint4* at = (const uint4*)bytes + 2 * threadIdx.x;
    const bool here = 32 * threadIdx.x < n;
    const uint4 a = here ? at[0] : make_uint4(0, 0, 0, 0), b = here ? at[1] : make_uint4(0, 0, 0, 0);
    m.word[0] = a.x, m.word[1] = a.y, m.word[2] = a.z, m.word[3] = a.w;
    m.word[4] = b.x, m.word[5] = b.y, m.word[6] = b.z, m.word[7] = b.w;
#pragma unroll
    for (int k = 0; k < 8; k++) m.mask |= others(m.word[k]) << (4 * k);
    return m;
}

// Calls `f(place, value)` for this thread's values that the second array holds.
template <class F>
__device__ __forceinline__ void each_escape(const Mine& m, const u32* exact, F f) {
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        const u32 word = k == 0 ? m.word[0] : k == 1 ? m.word[1] : k == 2 ? m.word[2] : k == 3 ? m.word[3] : k == 4 ? m.word[4]
                         : k == 5 ? m.word[5] : k == 6 ? m.word[6] : m.word[7];
        if (!escapes(word)) continue;
        for (u32 j = 0; j < 4; j++) {
            const u32 at = 32 * threadIdx.x + 4 * k + j;
            if ((word >> (8 * j) & 255u) == ESCAPE) f(at, exact[at]);
        }
    }
}
__device__ __forceinline__ bool any_escape(const Mine& m) {
    bool any = false;
#pragma unroll
    for (int k = 0; k < 8; k++) any = any || escapes(m.word[k]);
    return any;
}

// Counts this thread's residuals that are not 0.
__device__ __forceinline__ void tally(const Mine& m, const u32* exact, u32* bins) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if (m.word[k]) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const u32 z = m.word[k] >> (8 * j) & 255u;
                if (z) atomicAdd(bins + z, 1u);
            }
        }
    }
    if (any_escape(m)) {
        each_escape(m, exact, [&](u32, u32 z) { atomicAdd(bins + 256 + symbol(z), 1u); });
    }
}

// Where zero and not zero meet at this thread's residuals, the first of which follows one that `before` says is not 0.
__device__ __forceinline__ u32 changes(u32 mask, bool before, u32 n) {
    const u32 meet = mask ^ (mask << 1 | (u32)before), first = 32 * threadIdx.x;
    return first >= n ? 0 : (u32)__popc(n - first < 32 ? meet & ((1u << (n - first)) - 1) : meet);
}

// Counts of classes from those of bytes and symbols. All threads; thread k takes byte k.
__device__ __forceinline__ void classes(const u32* bins, u32* classes) {
    const u32 k = threadIdx.x;
    if (k > 0 && k < ESCAPE && bins[k]) atomicAdd(classes + estimate::class_of(k), bins[k]);
    if (k < SYMBOLS - OUTLIER && bins[256 + OUTLIER + k]) atomicAdd(classes + min(5 + k / 2, estimate::CLASSES - 1), bins[256 + OUTLIER + k]);
}

// Adds the counts of bytes to those of their symbols.
__device__ __forceinline__ void fold(u32* bins) {
    const u32 k = threadIdx.x;
    if (k > 0 && k < ESCAPE && bins[k]) atomicAdd(bins + 256 + symbol(k), bins[k]);
}

// The place after the last residual before this thread's that is not 0; `end`: the one after the last of the tile.
template <int THREADS>
__device__ __forceinline__ u32 runs_begin(u32 mask, u32* room, u32& end) {
    const u32 mine = mask ? 32 * threadIdx.x + 32 - (u32)__clz((int)mask) : 0;
    return block::most_before<THREADS>(mine, room, end);
}

// Calls `f(run)` for every run of zeros that ends at one of this thread's residuals.
template <class F>
__device__ __forceinline__ void each_run(u32 mask, u32 begin, F f) {
    const u32 first = 32 * threadIdx.x;
    u32 ends = mask & ~(mask << 1 | (u32)(begin == first));
    while (ends) {
        const u32 i = (u32)__ffs((int)ends) - 1, below = mask & ((1u << i) - 1);
        ends &= ends - 1;
        f(first + i - (below ? first + estimate::highest(below) + 1 : begin));
    }
}

// Calls `f(k)` for the powers of two that a run consists of, the largest first.
template <class F>
__device__ __forceinline__ void powers(u32 run, F f) {
    while (run) {
        const u32 k = estimate::highest(run);
        f(k);
        run ^= 1u << k;
    }
}

// A chunk's codebook as a writer wants it: bits from the low end, their number from bit 24 on.
struct Codes {
    // Codeword and following bits, by byte; nothing for 0 and `ESCAPE`.
    u32 bytes[256];
    // Codewords by symbol.
    u32 symbols[128];
};

constexpr u32 BITS = 0xffffffu;

// Bits of this thread's residuals and of the runs of zeros before them.
__device__ __forceinline__ u32 length(const Mine& m, u32 begin, const u32* exact, const Codes& codes) {
    u32 sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if (m.word[k]) {
#pragma unroll
            for (int j = 0; j < 4; j++) sum += codes.bytes[m.word[k] >> (8 * j) & 255u] >> 24;
        }
    }
    if (any_escape(m)) {
        each_escape(m, exact, [&](u32, u32 z) { sum += (codes.symbols[symbol(z)] >> 24) + lower_bits(z); });
    }
    each_run(m.mask, begin, [&](u32 run) { powers(run, [&](u32 k) { sum += codes.symbols[k] >> 24; }); });
    return sum;
}

// Appends bits to a stream of words that are 0, from a place inside one of them on, and notes where subsequences begin.
struct Writer {
    u32* words;
    u8* gaps;
    u32 total, word, count;
    u64 held;
    __device__ __forceinline__ Writer(u32* words_, u8* gaps_, u32 total_, u32 at)
        : words(words_), gaps(gaps_), total(total_), word(at / 32), count(at % 32), held(0) {}
    // Up to 32 bits; so many bits more belong to the same codeword.
    __device__ __forceinline__ void put(u32 bits, u32 len, u32 more) {
        held |= (u64)bits << count;
        count += len;
        if (count >= 32) {
            // The first word and the last may be shared with other threads.
            atomicOr(words + word, (u32)held);
            held >>= 32;
            count -= 32;
            word++;
            if (word % SUBSEQUENCE_WORDS == 0 && 32 * word < total) gaps[word / SUBSEQUENCE_WORDS - 1] = (u8)(count + more);
        }
    }
    // Whether so many bits reach a subsequence behind this one.
    __device__ __forceinline__ bool passes(u32 len) const { return count + len >= 32 && (word + 1) % SUBSEQUENCE_WORDS == 0; }
    __device__ __forceinline__ void code(u32 c) { put(c & BITS, c >> 24, 0); }
    __device__ __forceinline__ void finish() {
        if (count) atomicOr(words + word, (u32)held);
    }
};

// Runs of zeros shorter than this have their codewords side by side in a table.
constexpr u32 SHORT = 16;

// A short run's codewords, their bits from bit 58 on.
__device__ __forceinline__ u64 short_run(u32 run, const Codes& codes) {
    u64 bits = 0;
    u32 len = 0;
    powers(run, [&](u32 p) {
        const u32 c = codes.symbols[p];
        bits |= (u64)(c & BITS) << len;
        len += c >> 24;
    });
    return bits | (u64)len << 58;
}
static_assert(4 * LIMIT <= 58, "a short run is four powers at most");

// This thread's 32 bytes in shared memory, laid out so that threads do not meet in a bank.
constexpr u32 KEPT = 9;
__device__ __forceinline__ void keep(const Mine& m, u32* kept) {
#pragma unroll
    for (int k = 0; k < 8; k++) kept[KEPT * threadIdx.x + k] = m.word[k];
}
__device__ __forceinline__ Mine kept_again(const u32* kept, u32 mask) {
    Mine m;
    m.mask = mask;
#pragma unroll
    for (int k = 0; k < 8; k++) m.word[k] = kept[KEPT * threadIdx.x + k];
    return m;
}

// Writes what `length` has counted.
__device__ __forceinline__ void write(const u32* kept, u32 mask, u32 begin, const u32* exact, const Codes& codes, const u64* runs,
                                      Writer& out) {
    const u8* bytes = (const u8*)(kept + KEPT * threadIdx.x);
    const u32 first = 32 * threadIdx.x;
    u32 next = begin;
#pragma unroll 1
    for (u32 left = mask; left; left &= left - 1) {
        const u32 i = (u32)__ffs((int)left) - 1, byte = bytes[i], run = first + i - next;
        next = first + i + 1;
        // A short run and what ends it go together, where no subsequence may begin between them.
        const u64 short_one = runs[run < SHORT ? run : 0];
        const u32 before = (u32)(short_one >> 58), own = codes.bytes[byte], len = before + (own >> 24);
        const bool known = run < SHORT && byte != ESCAPE;
        if (known && len <= 32 && (run == 0 || !out.passes(len))) {
            out.put((u32)short_one | (own & BITS) << before, len, 0);
            continue;
        }
        powers(run, [&](u32 p) { out.code(codes.symbols[p]); });
        if (byte != ESCAPE) {
            out.code(own);
        } else {
            const u32 z = exact[first + i], c = codes.symbols[symbol(z)], lower = lower_bits(z);
            out.put(c & BITS, c >> 24, lower);
            out.put(z & ((1u << lower) - 1), lower, 0);
        }
    }
}

// Units of gap array that belong to a stream of `words`.
__device__ __forceinline__ u32 gap_units(u32 words) { return (max((words + SUBSEQUENCE_WORDS - 1) / SUBSEQUENCE_WORDS, 1u) + 2) / 4; }

// Bytes of a fixed-width part.
__device__ __forceinline__ u32 fixed_len(u32 n, u32 width) { return width ? 4 + (n * width + 31) / 32 * 4 : 0; }

// Writes this thread's residuals with `width` bits each.
__device__ __forceinline__ void write_fixed(const Mine& m, const u32* exact, u32 n, u32 width, u32* words) {
    u32* to = words + width * threadIdx.x;
    u64 held = 0;
    u32 count = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const u32 at = 32 * threadIdx.x + 4 * k + j;
            u32 z = m.word[k] >> (8 * j) & 255u;
            if (z == ESCAPE) z = exact[at];
            held |= (u64)z << count;
            count += width;
            if (count >= 32) {
                *to++ = (u32)held;
                held >>= 32;
                count -= 32;
            }
        }
    }
}

}  // namespace huffman
