// SPDX-License-Identifier: MIT OR Apache-2.0
// A stream of codewords → residuals, by many threads: src/codec/lorenzo/FORMAT.md §3.2, §3.4 and §4.2.
//
// A codebook becomes decode tables, looked into with the next 11 bits of the stream. `single` tells the first codeword.
// `several` tells up to two residuals that are not zero and the zeros around them (`Dense`) or, for short streams, one
// such residual among many zeros (`Sparse`).
//
// The stream is cut into pieces of 64 to 512 bits, a thread each. A thread must know where the first codeword of its
// piece begins. Gap arrays say so for every 512 bits (Yamamoto et al., ICPP 2020, doi:10.1145/3404397.3404429). All
// other pieces use self-synchronising decoding (Weissenberger & Schmidt, ICPP 2018, doi:10.1145/3225058.3225076): a
// thread begins at the first bit of its piece, and after a few codewords it most likely is where a reader from the
// start would be. It then compares where its predecessor ended with where it began, and begins again there if they
// differ, until none does.
//
// Threads first count the places that their codewords take; a scan over these counts tells each where to write, which
// is a second pass. Every thread must have begun where the one before it ended, so by induction all of them began
// right.
#pragma once
#include "tiles.cuh"

namespace huffman {

constexpr u32 BITS = (u32)fmt::CODEWORD_LIMIT, PATTERNS = 1u << BITS, SYMBOLS = (u32)fmt::LORENZO_SYMBOLS;
constexpr u32 RUNS = (u32)fmt::LORENZO_RUNS, ESCAPE = RUNS + (u32)fmt::LORENZO_DIRECT - 1;
constexpr u32 SUBSEQUENCE_LOG2 = (u32)fmt::SUBSEQUENCE_LOG2, SUBSEQUENCE = 1u << SUBSEQUENCE_LOG2,
              PART_WORDS = SUBSEQUENCE / 32;
// An escape is a residual beyond the direct symbols, whose lower bits follow its codeword: so many for the first two
// symbols.
constexpr u32 LEAST_LOWER = 4;
// Longest codeword with its escape's bits.
constexpr u32 LONGEST = BITS + LEAST_LOWER + (SYMBOLS - 1 - ESCAPE) / 2;
static_assert(fmt::LORENZO_DIRECT == 32 && (1ull << (RUNS - 1)) == fmt::LORENZO_TILE, "symbols as in FORMAT.md §3.2");

// What a stream is read by.
struct Tables {
    // What the codewords of a pattern say: `Dense`, or `Sparse`.
    u32 several[PATTERNS];
    // Symbol, and from bit 8 on the codeword's length.
    unsigned short single[PATTERNS];
    // Streams can be read; they have gap arrays; the head is not right.
    u32 usable, gaps, bad, filling;
};
// All decode tables of a frame: `several` of the first is `Dense`.
struct FrameTables {
    Tables tables;
    u32 sparse[PATTERNS];
};
static_assert(sizeof(FrameTables) == 20496 && sizeof(FrameTables) % 16 == 0, "as the host reserves");

__device__ __forceinline__ int unzigzag(u32 z) { return (int)(z >> 1 ^ (0u - (z & 1))); }

// Up to two residuals that are not zero, a and b, with zeros around them; or zeros and then an escape. What is not
// there is said by what may be written all the same: a is 0, for a place of the zeros; b is a again.
struct Dense {
    u32 entry;
    // Bits of the stream, an escape's too: at most 32; 0 where the first codeword is a long run or a long escape.
    __device__ __forceinline__ u32 bits() const { return entry & 63; }
    __device__ __forceinline__ u32 places() const { return entry >> 24; }
    // Places to a, and from a to b.
    __device__ __forceinline__ u32 to_a() const { return entry >> 6 & 15; }
    __device__ __forceinline__ u32 to_b() const { return entry >> 10 & 15; }
    __device__ __forceinline__ int a() const { return (int)(entry << 13) >> 27; }
    __device__ __forceinline__ int b() const { return (int)(entry << 8) >> 27; }
    // The first escape's is 0.
    __device__ __forceinline__ u32 escape() const { return entry >> 14 & 63; }
};
// `to_b` of an entry with an escape.
constexpr u32 HAS_ESCAPE = 15;

// One residual that is not zero, or none, with many zeros around it; no escape.
struct Sparse {
    u32 entry;
    // 0 where the first codeword is an escape's, or all zeros that there can be.
    __device__ __forceinline__ u32 bits() const { return entry & 63; }
    __device__ __forceinline__ u32 places() const { return entry >> 19; }
    __device__ __forceinline__ u32 to_a() const { return entry >> 6 & 255; }
    // 0, for a place of the zeros, where there is none.
    __device__ __forceinline__ int a() const { return (int)(entry << 13) >> 27; }
};

// Bits of an escape that follow its codeword.
__device__ __forceinline__ u32 lower_of(u32 nth) { return LEAST_LOWER + nth / 2; }

// The entry of `Dense` for a pattern.
__device__ inline u32 combine(const unsigned short* single, u32 pattern) {
    u32 bits = 0, places = 0, found = 0, zeros = 0, entry = 0;
    for (;;) {
        const u32 s = single[pattern >> bits], symbol = s & 255, len = s >> 8;
        if (len == 0 || bits + len > BITS) break;
        bits += len;
        if (symbol < RUNS) {
            if (places + (1u << symbol) > 255) return entry | places << 24 | (bits - len);
            places += 1u << symbol;
            zeros += 1u << symbol;
            continue;
        }
        const u32 nth = symbol - ESCAPE, value = (u32)unzigzag(symbol + 1 - RUNS) & 31;
        const bool escape = symbol >= ESCAPE;
        if (found == 2 || places == 255 || zeros > (found ? HAS_ESCAPE - 2 : 15) ||
            (escape && (found || bits + lower_of(nth) > 32))) {
            bits -= len;
            break;
        }
        if (escape) {
            entry = zeros << 6 | HAS_ESCAPE << 10 | nth << 14;
            bits += lower_of(nth);
        } else if (found == 0) {
            entry = zeros << 6 | value << 14 | value << 19;
        } else {
            entry = (entry & 0x7ffff) | (zeros + 1) << 10 | value << 19;
        }
        found++;
        zeros = 0;
        places++;
        if (escape) break;
    }
    return entry | places << 24 | bits;
}

// The entry of `Sparse` for a pattern.
__device__ inline u32 combine_sparse(const unsigned short* single, u32 pattern) {
    u32 bits = 0, places = 0, entry = 0;
    for (bool found = false;;) {
        const u32 s = single[pattern >> bits], symbol = s & 255, len = s >> 8;
        if (len == 0 || bits + len > BITS || symbol >= ESCAPE) break;
        if (symbol < RUNS) {
            if (places + (1u << symbol) >= tiles::MOST) break;
            places += 1u << symbol;
        } else {
            if (found || places > 255) break;
            found = true;
            entry = places << 6 | ((u32)unzigzag(symbol + 1 - RUNS) & 31) << 14;
            places++;
        }
        bits += len;
    }
    return entry | places << 19 | bits;
}

// Makes the tables from the head's `len` bytes; whole CTA, at least 128 threads.
__device__ inline void make_tables(const u8* head, u32 len, FrameTables& made, u32 threads) {
    __shared__ u32 count[4][16], first[16], offset[16], counts[16];
    __shared__ u8 sorted[SYMBOLS + 1];
    __shared__ unsigned short single[PATTERNS];
    __shared__ u32 bad;
    static_assert(SYMBOLS + 1 <= 128, "four warps have a symbol a thread");
    const u32 t = threadIdx.x;
    const u32 subsequence = head[0], symbols = head[1];
    const bool shaped =
        (subsequence == 0 || subsequence == SUBSEQUENCE_LOG2) && symbols <= SYMBOLS && len == 2 + (symbols + 1) / 2;
    if (t == 0) bad = !shaped;
    __syncthreads();
    // One more than there are: an odd number's filling.
    const u32 own = shaped && t < SYMBOLS + 1 && t < 2 * (len - 2) ? head[2 + t / 2] >> (t % 2 * 4) & 15u : 0;
    u32 rank = 0;
    if (t < 128) {
        if (own > BITS || (t < SYMBOLS && own == 0 && t + 1 == symbols) || (own != 0 && t >= symbols)) bad = 1;
        for (u32 l = 0; l < 16; l++) {
            const u32 same = __ballot_sync(warp::ALL, own == l);
            if (own == l) rank = (u32)__popc(same & ((1u << t % 32) - 1));
            if (t % 32 == l) count[t / 32][l] = (u32)__popc(same);
        }
    }
    __syncthreads();
    if (t == 0) {
        u32 next = 0, before = 0;
#pragma unroll
        for (u32 l = 1; l <= BITS; l++) {
            const u32 all = count[0][l] + count[1][l] + count[2][l] + count[3][l];
            next <<= 1;
            first[l] = next;
            offset[l] = before;
            counts[l] = all;
            next += all;
            before += all;
        }
        // A whole codebook ends exactly at the last pattern.
        if (symbols && next != PATTERNS) bad = 1;
    }
    __syncthreads();
    if (t < SYMBOLS && own && !bad) {
        for (u32 v = 0; v < t / 32; v++) rank += count[v][own];
        sorted[offset[own] + rank] = (u8)t;
    }
    __syncthreads();
    const bool usable = !bad && symbols > 0;
    for (u32 pattern = t; pattern < PATTERNS; pattern += threads) {
        u32 entry = 0;
        if (usable) {
            const u32 msb = __brev(pattern) >> (32 - BITS);
            for (u32 l = 1; l <= BITS; l++) {
                const u32 nth = (msb >> (BITS - l)) - first[l];
                if (nth < counts[l]) {
                    entry = sorted[offset[l] + nth] | l << 8;
                    break;
                }
            }
        }
        single[pattern] = (unsigned short)entry;
        made.tables.single[pattern] = (unsigned short)entry;
    }
    __syncthreads();
    for (u32 pattern = t; pattern < PATTERNS; pattern += threads) {
        made.tables.several[pattern] = usable ? combine(single, pattern) : 0;
        made.sparse[pattern] = usable ? combine_sparse(single, pattern) : 0;
    }
    if (t == 0) {
        made.tables.usable = usable;
        made.tables.gaps = subsequence != 0;
        made.tables.bad = bad;
        made.tables.filling = 0;
    }
}

// Bits of a stream, from the low end of its words, which lie in shared or in global memory. A stream is readable up to
// four words behind its end.
template <bool SHARED>
struct Reader {
    const u32* words;
    // The words of the next bit and of the 31 behind it; one more is on its way before it is needed.
    u32 low, high, next, bit;
    __device__ __forceinline__ Reader(const u32* from, u32 bit) : words(from + bit / 32), bit(bit) {
        low = *words++;
        high = *words++;
        next = *words++;
    }
    __device__ __forceinline__ u32 window() const { return __funnelshift_r(low, high, bit); }
    // Up to 32.
    __device__ __forceinline__ void take(u32 bits) {
        const u32 was = bit;
        bit += bits;
#ifdef __CUDA_ARCH__
        // As below; the compiler would wait for the word at once, to move it to where it belongs.
        if (SHARED) {
            u32 at = (u32)__cvta_generic_to_shared(words);
            asm volatile(
                "{\n\t.reg .pred p;\n\t.reg .b32 x;\n\txor.b32 x, %4, %5;\n\tand.b32 x, x, 32;\n\tsetp.ne.u32 p, x, "
                "0;\n\t"
                "@p mov.b32 %0, %1;\n\t@p mov.b32 %1, %2;\n\t@p ld.shared.u32 %2, [%3];\n\t@p add.u32 %3, %3, 4;\n\t}"
                : "+r"(low), "+r"(high), "+r"(next), "+r"(at)
                : "r"(bit), "r"(was));
            words = (const u32*)__cvta_shared_to_generic(at);
        } else {
            asm volatile(
                "{\n\t.reg .pred p;\n\t.reg .b32 x;\n\txor.b32 x, %4, %5;\n\tand.b32 x, x, 32;\n\tsetp.ne.u32 p, x, "
                "0;\n\t"
                "@p mov.b32 %0, %1;\n\t@p mov.b32 %1, %2;\n\t@p ld.global.u32 %2, [%3];\n\t@p add.u64 %3, %3, 4;\n\t}"
                : "+r"(low), "+r"(high), "+r"(next), "+l"(words)
                : "r"(bit), "r"(was));
        }
#else
        if ((bit ^ was) & 32) {
            low = high;
            high = next;
            next = *words++;
        }
#endif
    }
};

// Takes one codeword.
template <class Reader, class Put>
__device__ __forceinline__ void take_one(const Tables& tables, Reader& r, u32& place, Put& put) {
    const u32 s = tables.single[r.window() & (PATTERNS - 1)], symbol = s & 255, nth = symbol - ESCAPE;
    r.take(s >> 8);
    if (symbol >= ESCAPE) {
        const u32 lower = lower_of(nth);
        put(place, unzigzag((2 + nth % 2) << lower | (r.window() & ((1u << lower) - 1))));
        r.take(lower);
    } else if (symbol >= RUNS) {
        put(place, unzigzag(symbol + 1 - RUNS));
    }
    place += symbol < RUNS ? 1u << symbol : 1;
}

// No bit of a stream.
constexpr u32 NEVER = 0x7fffffff;

// Takes the codewords that begin before bit `stop`; with LIMITED, as long as places are below `limit`. A look-up takes
// all that a pattern has, unless these would pass bit `hard`: then the first alone. With `hard` = `stop`, as it is
// unless pieces are SHORT, no codeword that begins at `stop` or later is taken; with a later `hard` a few more may be.
// Threads of a warp come to single codewords together.
template <bool LIMITED, bool SHORT, class Reader, class Put>
__device__ __forceinline__ void until(const Tables& tables, Reader& r, u32 stop, u32 hard, u32 limit, u32& place,
                                      Put& put) {
    while (r.bit < stop && (!LIMITED || place < limit)) {
        auto fit = [&](auto e) { return e.bits() - 1 < hard - r.bit && (!LIMITED || e.places() <= limit - place); };
        if constexpr (SHORT) {
            const Sparse e = {tables.several[r.window() & (PATTERNS - 1)]};
            if (fit(e)) {
                put(place + e.to_a(), e.a());
                place += e.places();
                r.take(e.bits());
            } else {
                take_one(tables, r, place, put);
            }
        } else {
            for (;;) {
                const u32 window = r.window();
                const Dense e = {tables.several[window & (PATTERNS - 1)]};
                if (!fit(e)) break;
                u32 to_b = e.to_b();
                int a = e.a(), b = e.b();
                if (to_b == HAS_ESCAPE) {
                    const u32 lower = lower_of(e.escape()), high = 2 + e.escape() % 2;
                    a = b = unzigzag(high << lower | window << (32 - e.bits()) >> (32 - lower));
                    to_b = 0;
                }
                const u32 first = place + e.to_a();
                put(first, a);
                put(first + to_b, b);
                place += e.places();
                r.take(e.bits());
            }
            if (r.bit < stop && (!LIMITED || place < limit)) take_one(tables, r, place, put);
        }
    }
}

// Whether a stream of `total` bits and `n` places ends where its codewords do.
template <class Reader>
__device__ __forceinline__ bool ended(const Reader& r, u32 total, u32 n, u32 place) {
    const u32 left = total - r.bit;
    return place == n && left <= 31 && (r.window() & ((1u << left) - 1)) == 0;
}

// Counts the places of codewords up to bit `stop`.
template <bool SHORT, class Reader>
__device__ __forceinline__ u32 count(const Tables& tables, Reader& r, u32 stop, u32 hard) {
    struct {
        __device__ __forceinline__ void operator()(u32, int) const {}
    } nothing;
    u32 places = 0;
    until<false, SHORT>(tables, r, stop, hard, 0, places, nothing);
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

// Reads a stream of `words` words into `n` places, which are zero: a CTA of `THREADS`, or one warp of it where that is
// enough. `gaps` are its gap array, or null. `put(place, residual)` takes what is not zero, and some zeros. SHORT: the
// stream has at most as many words as there are threads, and `tables.several` is `Sparse`. False, in at least one
// thread, where the stream is not right. The caller waits for everybody.
//
// A subsequence is cut into pieces, a thread each, as long as there are threads for them.
template <int THREADS, bool SHARED, bool SHORT, class Put>
__device__ __forceinline__ bool read(const Tables& tables, const u32* stream, u32 words, const u8* gaps, u32 n,
                                     Exchange<THREADS / 32>& ex, Put put) {
    const u32 cuts = SHORT || words <= THREADS ? 3
                     : words <= 4 * THREADS    ? 2
                     : words <= 8 * THREADS    ? 1
                                               : 0,
              log = SUBSEQUENCE_LOG2 - cuts;
    const u32 total = 32 * words, pieces = (total + (1u << log) - 1) >> log;
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const bool wide = pieces > 32;
    if (!wide && w) return true;
    bool good = true;
    u32 place = 0, begin = 0;
    for (u32 from = 0; from < pieces; from += THREADS) {
        const u32 k = from + threadIdx.x;
        const bool here = k < pieces, last = k + 1 == pieces;
        const u32 stop = last ? total : (k + 1) << log;
        // A short piece ends where its last look-up happens to end, and the next one begins there. Not so where a gap
        // array says where the next one begins, and near the end, where nobody may read what fills the last word up.
        const bool exact = !SHORT || k + 2 >= pieces || (gaps && ((k + 1) & ((1u << cuts) - 1)) == 0);
        const u32 hard = exact ? stop : NEVER;
        // By here, most pieces have synchronised.
        const u32 middle = (k << log) + (cuts == 3 ? 32 : cuts ? 64 : 128);
        u32 start = k << log, end = 0, met = 0, early = 0, late = 0, before;
        // A gap beyond the longest codeword is not right: nobody ends there.
        const bool known = gaps && (k & ((1u << cuts) - 1)) == 0;
        if (known && here && k) start += min((u32)gaps[(k >> cuts) - 1], LONGEST);
        if (threadIdx.x == 0 && !known) start = begin;
        if (here && !last) {
            Reader<SHARED> r(stream, start);
            early = count<SHORT>(tables, r, middle, hard);
            met = r.bit;
            late = count<SHORT>(tables, r, stop, hard);
            end = r.bit;
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
                    Reader<SHARED> r(stream, start);
                    early = count<SHORT>(tables, r, middle, hard);
                    if (r.bit != met) {
                        met = r.bit;
                        late = count<SHORT>(tables, r, stop, hard);
                        end = r.bit;
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
        if (here) {
            Reader<SHARED> r(stream, start);
            u32 at = first;
            until<true, SHORT>(tables, r, stop, hard, n, at, put);
            if (last) good = good && ended(r, total, n, at);
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
