// SPDX-License-Identifier: MIT OR Apache-2.0
// Streams of codewords → residuals: FORMAT.md §2 and §4 of lorenzo.
//
// A codebook becomes two tables, looked into with the next 11 bits: one tells the first codeword, the other up to two residuals
// that are not zero, with all zeros around them. A stream is read by many threads, each a piece of 128 to 512 bits. They
// begin where the gap array says, or, where it says nothing, anywhere: codewords fall into step soon, and whoever finds that
// the one before ends elsewhere reads its own beginning again. First everybody counts, then, knowing the place, writes.
// Every thread must end where the next began, so by induction all began right.
#pragma once
#include "../prim/warp.cuh"

namespace huffman {

constexpr u32 BITS = (u32)fmt::CODEWORD_LIMIT, PATTERNS = 1u << BITS, SYMBOLS = (u32)fmt::LORENZO_SYMBOLS;
constexpr u32 RUNS = (u32)fmt::LORENZO_RUNS, OUTLIER = RUNS + (u32)fmt::LORENZO_DIRECT - 1;
constexpr u32 SUBSEQUENCE_LOG2 = (u32)fmt::SUBSEQUENCE_LOG2, SUBSEQUENCE = 1u << SUBSEQUENCE_LOG2, PART_WORDS = SUBSEQUENCE / 32;
// An outlier's bits below those that its symbol tells: so many for the first two symbols.
constexpr u32 LEAST_LOWER = 4;
// Longest codeword with its outlier's bits.
constexpr u32 LONGEST = BITS + LEAST_LOWER + (SYMBOLS - 1 - OUTLIER) / 2;
static_assert(fmt::LORENZO_DIRECT == 32 && (1ull << (RUNS - 1)) == fmt::LORENZO_TILE, "symbols as in FORMAT.md §2");

// What kernels know of a frame's codebook.
struct Book {
    // Bits 0-3: bits of these codewords, 0 where the first one is an outlier's or a long run; 4-11: places in all; then twice five
    // bits for a place and five for the zigzag value there, 0 for none.
    u32 several[PATTERNS];
    // Symbol, and from bit 8 on the codeword's length.
    unsigned short single[PATTERNS];
    // Streams can be read; they have gap arrays; the head is not right.
    u32 usable, gaps, bad, filling;
};
static_assert(sizeof(Book) == 12304 && sizeof(Book) % 16 == 0, "src/codec/device/decode.rs makes room for it");

__device__ __forceinline__ int unzigzag(u32 z) { return (int)(z >> 1 ^ (0u - (z & 1))); }

// The entry of `several` for a pattern.
__device__ inline u32 combine(const unsigned short* single, u32 pattern) {
    u32 bits = 0, places = 0, found = 0, entry = 0;
    for (;;) {
        const u32 s = single[pattern >> bits], symbol = s & 255, len = s >> 8;
        if (len == 0 || bits + len > BITS || symbol >= OUTLIER) break;
        if (symbol < RUNS) {
            if (places + (1u << symbol) > 255) break;
            places += 1u << symbol;
        } else {
            if (found == 2 || places > 31) break;
            entry |= (places | (symbol + 1 - RUNS) << 5) << (12 + 10 * found);
            found++;
            places++;
        }
        bits += len;
    }
    return entry | places << 4 | bits;
}

// Makes the tables from the head's `len` bytes; whole CTA, at least 128 threads.
__device__ inline void make_book(const u8* head, u32 len, Book& book, u32 threads) {
    __shared__ u32 count[16], first[16], offset[16];
    __shared__ u8 lengths[SYMBOLS + 1], sorted[SYMBOLS + 1];
    __shared__ unsigned short single[PATTERNS];
    __shared__ u32 bad;
    const u32 t = threadIdx.x;
    const u32 subsequence = head[0], symbols = head[1];
    const bool shaped = (subsequence == 0 || subsequence == SUBSEQUENCE_LOG2) && symbols <= SYMBOLS && len == 2 + (symbols + 1) / 2;
    if (t < 16) count[t] = 0;
    if (t == 0) bad = !shaped;
    __syncthreads();
    if (t < SYMBOLS + 1) {
        // One more than there are: an odd number's filling.
        const u32 own = shaped && t < 2 * (len - 2) ? head[2 + t / 2] >> (t % 2 * 4) & 15u : 0;
        lengths[t] = (u8)own;
        if (own > BITS || (own == 0 && t + 1 == symbols) || (own != 0 && t >= symbols)) bad = 1;
        else if (own) atomicAdd(&count[own], 1u);
    }
    __syncthreads();
    if (t == 0) {
        u32 next = 0, before = 0;
        for (u32 l = 1; l <= BITS; l++) {
            next <<= 1;
            first[l] = next;
            offset[l] = before;
            next += count[l];
            before += count[l];
        }
        // A whole codebook ends exactly at the last pattern.
        if (symbols && next != PATTERNS) bad = 1;
    }
    __syncthreads();
    if (t < SYMBOLS && lengths[t]) {
        u32 rank = 0;
        for (u32 s = 0; s < t; s++) rank += lengths[s] == lengths[t];
        if (!bad) sorted[offset[lengths[t]] + rank] = (u8)t;
    }
    __syncthreads();
    const bool usable = !bad && symbols > 0;
    for (u32 pattern = t; pattern < PATTERNS; pattern += threads) {
        u32 entry = 0;
        if (usable) {
            const u32 msb = __brev(pattern) >> (32 - BITS);
            for (u32 l = 1; l <= BITS; l++) {
                const u32 nth = (msb >> (BITS - l)) - first[l];
                if (nth < count[l]) {
                    entry = sorted[offset[l] + nth] | l << 8;
                    break;
                }
            }
        }
        single[pattern] = (unsigned short)entry;
        book.single[pattern] = (unsigned short)entry;
    }
    __syncthreads();
    for (u32 pattern = t; pattern < PATTERNS; pattern += threads) book.several[pattern] = usable ? combine(single, pattern) : 0;
    if (t == 0) {
        book.usable = usable;
        book.gaps = subsequence != 0;
        book.bad = bad;
        book.filling = 0;
    }
}

// Bits of a stream, from the low end of its words. A stream is readable up to three words behind its end.
struct Reader {
    const u32* words;
    u64 held;
    // One word more is on its way before it is needed.
    u32 next, at, count;
    __device__ __forceinline__ Reader(const u32* from, u32 bit)
        : words(from), held(from[bit / 32] >> (bit % 32)), next(from[bit / 32 + 1]), at(bit / 32 + 2), count(32 - bit % 32) {}
    __device__ __forceinline__ u32 bit() const { return 32 * (at - 1) - count; }
    // 32 bits or more.
    __device__ __forceinline__ void refill() {
        if (count <= 32) {
            held |= (u64)next << count;
            next = words[at];
            at++;
            count += 32;
        }
    }
    __device__ __forceinline__ u32 pattern() const { return (u32)held & (PATTERNS - 1); }
    __device__ __forceinline__ void take(u32 bits) {
        held >>= bits;
        count -= bits;
    }
};

// Takes the codewords that begin before bit `stop`, as long as places are below `limit` where that counts. Both tables are
// looked into at once and what is taken is chosen without branches: other threads of the warp are elsewhere in their pieces.
template <bool LIMITED, class Put>
__device__ __forceinline__ void until(const Book& book, Reader& r, u32 stop, u32 limit, u32& place, Put& put) {
    int left = (int)(stop - r.bit());
    while (left > 0 && (!LIMITED || place < limit)) {
        r.refill();
        const u32 pattern = r.pattern(), e = book.several[pattern], s = book.single[pattern];
        const u32 symbol = s & 255;
        const bool all = (e & 15) - 1 < (u32)left && (!LIMITED || (e >> 4 & 255) <= limit - place), run = symbol < RUNS;
        u32 bits = all ? e & 15 : s >> 8;
        if (!all && symbol >= OUTLIER) {
            r.take(bits);
            r.refill();
            const u32 k = symbol - OUTLIER, lower = LEAST_LOWER + k / 2;
            put(place, (2 + k % 2) << lower | ((u32)r.held & ((1u << lower) - 1)));
            place++;
            left -= (int)bits;
            bits = lower;
        } else {
            const u32 a = all ? e >> 17 & 31 : run ? 0 : symbol + 1 - RUNS, at = all ? e >> 12 & 31 : 0;
            if (a) put(place + at, a);
            if (all && e >> 27) put(place + (e >> 22 & 31), e >> 27);
            place += all ? e >> 4 & 255 : run ? 1u << symbol : 1;
        }
        r.take(bits);
        left -= (int)bits;
    }
}

// Takes the last codewords of a stream of `total` bits, up to `n` places; false where they do not end there, and at its end.
template <class Put>
__device__ __forceinline__ bool finish(const Book& book, Reader& r, u32 total, u32 n, u32& place, Put& put) {
    until<true>(book, r, total, n, place, put);
    const u32 left = total - r.bit();
    if (place != n || left > 31) return false;
    r.refill();
    return ((u32)r.held & ((1u << left) - 1)) == 0;
}

// Counts the places of codewords that begin before bit `stop`.
__device__ __forceinline__ u32 count(const Book& book, Reader& r, u32 stop) {
    struct {
        __device__ __forceinline__ void operator()(u32, u32) const {}
    } nothing;
    u32 places = 0;
    until<false>(book, r, stop, 0, places, nothing);
    return places;
}

// What parts tell each other across warps.
template <int WARPS>
struct Exchange {
    u32 ends[WARPS], sums[WARPS];
    // Where the last part of a round ends.
    u32 bit, place;
};

// Units of gap array among `units` of it and a stream; above `units` where no stream has so many.
__device__ __forceinline__ u32 gap_units(u32 units) {
    const u32 gaps = units > PART_WORDS ? (units - PART_WORDS + 4 * PART_WORDS) / (4 * PART_WORDS + 1) : 0;
    if (units <= gaps) return units + 1;
    const u32 parts = (units - gaps + PART_WORDS - 1) / PART_WORDS;
    return (parts - 1 + 3) / 4 == gaps ? gaps : units + 1;
}

// Reads a stream of `words` words into `n` places, which are zero: a CTA of `THREADS`, or one warp of it where that is enough.
// `gaps` are its gap array, or null. `put(place, z)` takes what is not zero. False, in at least one thread, where the
// stream is not right. The caller waits for everybody.
//
// A subsequence is cut into pieces, a thread each, as long as there are threads for them.
template <int THREADS, class Put>
__device__ __forceinline__ bool read(const Book& book, const u32* stream, u32 words, const u8* gaps, u32 n, Exchange<THREADS / 32>& ex, Put put) {
    const u32 cuts = words <= 4 * THREADS ? 2 : words <= 8 * THREADS ? 1 : 0, log = SUBSEQUENCE_LOG2 - cuts;
    const u32 total = 32 * words, pieces = (total + (1u << log) - 1) >> log;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const bool wide = pieces > 32;
    if (!wide && w) return true;
    bool good = true;
    u32 place = 0, begin = 0;
    for (u32 from = 0; from < pieces; from += THREADS) {
        const u32 k = from + threadIdx.x;
        const bool here = k < pieces, last = k + 1 == pieces;
        const u32 stop = (k + 1) << log;
        // Where codewords fall into step is behind here in most pieces.
        const u32 middle = (k << log) + (cuts ? 64 : 128);
        u32 start = k << log, end = 0, met = 0, early = 0, late = 0, before;
        // A gap beyond the longest codeword is not right: nobody ends there.
        const bool known = gaps && (k & ((1u << cuts) - 1)) == 0;
        if (known && here && k) start += min((u32)gaps[(k >> cuts) - 1], LONGEST);
        if (threadIdx.x == 0 && !known) start = begin;
        if (here && !last) {
            Reader r(stream, start);
            early = count(book, r, middle);
            met = r.bit();
            late = count(book, r, stop);
            end = r.bit();
        }
        for (;;) {
            before = __shfl_up_sync(warp::ALL, end, 1);
            if (wide) {
                if (lane == 31) ex.ends[w] = end;
                __syncthreads();
                if (lane == 0 && w) before = ex.ends[w - 1];
            }
            if (threadIdx.x == 0) before = begin;
            const bool moved = here && !known && before != start;
            if (moved) {
                start = before;
                if (!last) {
                    Reader r(stream, start);
                    early = count(book, r, middle);
                    if (r.bit() != met) {
                        met = r.bit();
                        late = count(book, r, stop);
                        end = r.bit();
                    }
                }
            }
            if (wide ? !__syncthreads_or(moved) : !__any_sync(warp::ALL, moved)) break;
        }
        if (here && before != start) good = false;
        const u32 own = early + late;
        u32 first = warp::inclusive(own, lane);
        if (wide) {
            if (lane == 31) ex.sums[w] = first;
            __syncthreads();
            for (int v = 0; v < w; v++) place += ex.sums[v];
        }
        first += place - own;
        if (here && first <= n) {
            Reader r(stream, start);
            u32 at = first;
            if (last) {
                good = finish(book, r, total, n, at, put) && good;
            } else {
                until<true>(book, r, stop, n, at, put);
            }
        } else if (here) {
            good = false;
        }
        if (from + THREADS < pieces) {
            if (threadIdx.x == THREADS - 1) {
                ex.bit = end;
                ex.place = first + own;
            }
            __syncthreads();
            begin = ex.bit;
            place = ex.place;
        }
    }
    return good;
}

}  // namespace huffman
