// SPDX-License-Identifier: MIT OR Apache-2.0
// A stream of codewords → residuals, by many threads: codecs/src/codec/lorenzo/FORMAT.md §3.2, §3.4 and §4.2.
//
// A codebook becomes decode tables, looked into with the next 11 bits of the stream. `single` tells the first codeword.
// `several` tells up to two residuals that are not zero and the zeros around them (`Dense`) or, for short streams, one
// such residual and the zeros around it, in any number (`Sparse`).
//
// The stream is cut into pieces of 64 to 512 bits, a thread each. A thread must know where the first codeword of its
// piece begins: self-synchronising decoding (Weissenberger & Schmidt, ICPP 2018, doi:10.1145/3225058.3225076). It
// begins at the first bit of its piece, and after a few codewords it most likely is where a reader from the start would
// be. It then compares where its predecessor ended with where it began, and begins again there if they differ, until
// none does.
//
// Threads first count the places that their codewords take; a scan over these counts tells each where to write, which
// is a second pass. Every thread must have begun where the one before it ended, so by induction all of them began
// right. Zeros to the end of the tile count as none; the last piece has more bits than the longest codeword and what
// fills the last word up, so they may stand there alone.
#pragma once
#include "symbols.cuh"
#include "tiles.cuh"

namespace huffman {

constexpr u32 BITS = LIMIT, PATTERNS = 1u << BITS;
// An escape is a residual beyond the direct symbols; its lower bits follow its codeword. This many bits for the first
// two symbols of escapes.
constexpr u32 LEAST_LOWER = 4;
// The same for runs of zeros beyond the short ones.
constexpr u32 LEAST_RUN_LOWER = 3;

// What a stream is read by.
struct Tables {
    // What the codewords of a pattern say: `Dense`, or `Sparse`.
    u32 several[PATTERNS];
    // Symbol, and from bit 8 on the codeword's length.
    unsigned short single[PATTERNS];
    // Streams can be read; the head is not right.
    u32 usable, bad, filling[2];
};
// All decode tables of a frame: `several` of the first is `Dense`.
struct FrameTables {
    Tables tables;
    u32 sparse[PATTERNS];
};
static_assert(sizeof(FrameTables) == 20496 && sizeof(FrameTables) % 16 == 0, "as the host reserves");

__device__ __forceinline__ int unzigzag(u32 z) { return (int)(z >> 1 ^ (0u - (z & 1))); }

// Up to two residuals that are not zero, a and b, with zeros around them; or zeros and then an escape. What is not
// there is said by what may be written all the same: a is 0, for a place of the zeros; b is a again. Long runs of zeros
// are not here: look-ups that take them were slower where values take some bits, and no faster elsewhere.
struct Dense {
    u32 entry;
    // Bits of the stream, an escape's too: at most 32; 0 where the first codeword is that of a long run or escape, or
    // says zeros to the end.
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

// `n` bits of x from bit `at` on, fewer than 32.
__device__ __forceinline__ u32 field(u32 x, u32 at, u32 n) {
#ifdef __CUDA_ARCH__
    u32 bits;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(bits) : "r"(x), "r"(at), "r"(n));
    return bits;
#else
    return x >> at & ((1u << n) - 1);
#endif
}

// Zeros, of which the lower bits of a number may follow; one residual that is not zero, or none; zeros. No escape.
struct Sparse {
    u32 entry;
    // Bits of the codewords, 0 where the first one is an escape's or says zeros to the end; bits that follow them.
    __device__ __forceinline__ u32 codewords() const { return entry & 15; }
    __device__ __forceinline__ u32 lower() const { return entry >> 4 & 15; }
    __device__ __forceinline__ u32 bits() const { return codewords() + lower(); }
    // Places to a, in the window whose next bits are codewords; and all of them.
    __device__ __forceinline__ u32 to_a(u32 window) const {
        return (entry >> 13 & 0x1fff) + field(window, codewords(), lower());
    }
    __device__ __forceinline__ u32 behind() const { return entry >> 26; }
    // 0 where there is none.
    __device__ __forceinline__ int a() const { return (int)(entry << 19) >> 27; }
};

// Numbers of which a symbol tells the highest two bits: escapes, and runs beyond the short ones; `lower` bits follow.
__device__ __forceinline__ u32 highest_of(u32 nth, u32 lower) { return (2 + nth % 2) << lower; }
// Bits of an escape that follow its codeword.
__device__ __forceinline__ u32 lower_of(u32 nth) { return LEAST_LOWER + nth / 2; }

// A run of zeros: the least that its class says, and bits that follow.
struct Run {
    u32 zeros, lower;
};
__device__ __forceinline__ Run run_of(u32 c) {
    if (c < SHORT_RUNS) return {c + 1, 0};
    const u32 lower = LEAST_RUN_LOWER + (c - SHORT_RUNS) / 2;
    return {highest_of(c, lower), lower};
}

// What a symbol says, but zeros to the end and escapes: zeros, then one residual or, where it is 0, none.
struct Meaning {
    Run run;
    int residual;
};
__device__ __forceinline__ Meaning meaning(u32 symbol) {
    if (symbol < FIRST_DIRECT) return {run_of(symbol - FIRST_RUN), 0};
    if (symbol < ESCAPE) return {{0, 0}, unzigzag(symbol + 1 - FIRST_DIRECT)};
    return {run_of((symbol - JOINT) / 2), symbol % 2 ? 1 : -1};
}
__device__ __forceinline__ bool is_escape(u32 symbol) { return symbol >= ESCAPE && symbol < JOINT; }

// The entry of `Dense` for a pattern.
__device__ inline u32 combine(const unsigned short* single, u32 pattern) {
    u32 bits = 0, places = 0, found = 0, zeros = 0, entry = 0;
    for (;;) {
        const u32 s = single[pattern >> bits], symbol = s & 255, len = s >> 8;
        if (len == 0 || bits + len > BITS || symbol == END) break;
        const u32 nth = symbol - ESCAPE;
        const bool escape = is_escape(symbol);
        const Meaning m = escape ? Meaning{{highest_of(nth, lower_of(nth)), lower_of(nth)}, 0} : meaning(symbol);
        if (escape) {
            const u32 all = bits + len + m.run.lower;
            if (found || zeros > 15 || all > 32) break;
            return zeros << 6 | HAS_ESCAPE << 10 | nth << 14 | (places + 1) << 24 | all;
        }
        if (m.run.lower) break;
        const u32 all = m.run.zeros + (m.residual ? 1 : 0);
        if (places + all > 255) break;
        zeros += m.run.zeros;
        if (m.residual) {
            if (found == 2 || zeros > (found ? HAS_ESCAPE - 2 : 15)) break;
            const u32 value = (u32)m.residual & 31;
            entry =
                found ? (entry & 0x7ffff) | (zeros + 1) << 10 | value << 19 : zeros << 6 | value << 14 | value << 19;
            found++;
            zeros = 0;
        }
        bits += len;
        places += all;
    }
    return entry | places << 24 | bits;
}

// The entry of `Sparse` for a pattern.
__device__ inline u32 combine_sparse(const unsigned short* single, u32 pattern) {
    u32 bits = 0, lower = 0, to_a = 0, behind = 0;
    int a = 0;
    while (!lower) {
        const u32 s = single[pattern >> bits], symbol = s & 255, len = s >> 8;
        if (len == 0 || bits + len > BITS || symbol == END || is_escape(symbol)) break;
        const Meaning m = meaning(symbol);
        // Behind a residual there are short runs alone.
        if (a ? m.residual || m.run.lower || behind + m.run.zeros > 63 : to_a + m.run.zeros >= tiles::MOST) break;
        if (a) {
            behind += m.run.zeros;
        } else {
            to_a += m.run.zeros;
            a = m.residual;
            behind = a ? 1 : 0;
        }
        lower = m.run.lower;
        bits += len;
    }
    return behind << 26 | to_a << 13 | ((u32)a & 31) << 8 | lower << 4 | bits;
}

// Makes the tables from the head's `len` bytes; whole CTA, at least a thread a slot.
__device__ inline void make_tables(const u8* head, u32 len, FrameTables& made, u32 threads) {
    constexpr u32 PARTS = (SYMBOLS + 1 + 31) / 32;
    __shared__ u32 count[PARTS][16], first[16], offset[16], counts[16];
    __shared__ u8 sorted[SYMBOLS + 1];
    __shared__ unsigned short single[PATTERNS];
    __shared__ u32 bad;
    const u32 t = threadIdx.x;
    const u32 symbols = head[0];
    const bool shaped = symbols <= SYMBOLS && len == 1 + (symbols + 1) / 2;
    if (t == 0) bad = !shaped;
    __syncthreads();
    // One more than there are: an odd number's filling.
    const u32 own = shaped && t < SYMBOLS + 1 && t < 2 * (len - 1) ? head[1 + t / 2] >> (t % 2 * 4) & 15u : 0;
    u32 rank = 0;
    if (t < 32 * PARTS) {
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
            u32 all = 0;
            for (u32 k = 0; k < PARTS; k++) all += count[k][l];
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
        made.tables.bad = bad;
        made.tables.filling[0] = made.tables.filling[1] = 0;
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

// Takes one codeword. LIMITED: zeros to the end lead to place `limit`, from which on nothing is put; else they are no
// places.
template <bool LIMITED, class Reader, class Put>
__device__ __forceinline__ void take_one(const Tables& tables, Reader& r, u32 limit, u32& place, Put& put) {
    const u32 s = tables.single[r.window() & (PATTERNS - 1)], symbol = s & 255, nth = symbol - ESCAPE;
    r.take(s >> 8);
    if (symbol == END) {
        if (LIMITED) place = limit;
        return;
    }
    // Runs and escapes whose lower bits follow are alike; no branches, as threads meet all kinds.
    const bool escape = is_escape(symbol), joint = symbol >= JOINT, run = symbol < FIRST_DIRECT || joint;
    const u32 c = joint ? (symbol - JOINT) / 2 : symbol - FIRST_RUN, which = escape ? nth : c - SHORT_RUNS;
    const bool more = escape || (run && c >= SHORT_RUNS);
    const u32 lower = more ? which / 2 + (escape ? LEAST_LOWER : LEAST_RUN_LOWER) : 0;
    const u32 number = more ? highest_of(which, lower) + field(r.window(), 0, lower) : run ? c + 1 : 0;
    r.take(lower);
    if (run) place += number;
    if (!run || joint) {
        const u32 z = escape ? number : joint ? 1 + symbol % 2 : symbol + 1 - FIRST_DIRECT;
        if (!LIMITED || place < limit) put(place, unzigzag(z));
        place++;
    }
}

// No bit of a stream.
constexpr u32 NEVER = 0x7fffffff;

// Takes the codewords that begin before bit `stop`; with LIMITED, as long as places are below `limit`. A look-up takes
// all that a pattern has, unless these would pass bit `hard`: then the first alone. With `hard` = `stop`, as it is
// unless pieces are SHORT, no codeword that begins at `stop` or later is taken; with a later `hard` a few more may be.
// Threads of a warp come to single codewords together. Zeros to the end end it where they are LIMITED, and are no
// places elsewhere.
template <bool LIMITED, bool SHORT, class Reader, class Put>
__device__ __forceinline__ void until(const Tables& tables, Reader& r, u32 stop, u32 hard, u32 limit, u32& place,
                                      Put& put) {
    while (r.bit < stop && (!LIMITED || place < limit)) {
        auto fit = [&](u32 bits, u32 places) {
            return bits - 1 < hard - r.bit && (!LIMITED || places <= limit - place);
        };
        if constexpr (SHORT) {
            const u32 window = r.window();
            const Sparse e = {tables.several[window & (PATTERNS - 1)]};
            const u32 to_a = e.to_a(window), bits = e.codewords() ? e.bits() : 0;
            if (fit(bits, to_a + e.behind())) {
                if (e.a()) put(place + to_a, e.a());
                place += to_a + e.behind();
                r.take(bits);
            } else {
                take_one<LIMITED>(tables, r, limit, place, put);
            }
        } else {
            for (;;) {
                const u32 window = r.window();
                const Dense e = {tables.several[window & (PATTERNS - 1)]};
                if (!fit(e.bits(), e.places())) break;
                u32 to_b = e.to_b();
                int a = e.a(), b = e.b();
                if (to_b == HAS_ESCAPE) {
                    const u32 lower = lower_of(e.escape());
                    a = b = unzigzag(highest_of(e.escape(), lower) | window << (32 - e.bits()) >> (32 - lower));
                    to_b = 0;
                }
                const u32 first = place + e.to_a();
                put(first, a);
                put(first + to_b, b);
                place += e.places();
                r.take(e.bits());
            }
            if (r.bit < stop && (!LIMITED || place < limit)) take_one<LIMITED>(tables, r, limit, place, put);
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

// Reads a stream of `words` words into `n` places, which are zero: a CTA of `THREADS`, or one warp of it where that is
// enough. Places below `n` get what is not zero, and some zeros. SHORT: the stream has at most as many words as there
// are threads, and `tables.several` is `Sparse`. False, in at least one thread, where the stream is not right. The
// caller waits for everybody.
template <int THREADS, bool SHARED, bool SHORT>
__device__ __forceinline__ bool read(const Tables& tables, const u32* stream, u32 words, u32 n,
                                     Exchange<THREADS / 32>& ex, int* values) {
    // Pieces are as short as there are threads for them.
    const u32 log = SHORT || words <= THREADS ? 6 : words <= 4 * THREADS ? 7 : words <= 8 * THREADS ? 8 : 9;
    // The last piece has 64 bits or more.
    const u32 total = 32 * words, pieces = max(1u, (total - 32 + (1u << log) - 1) >> log);
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const bool wide = pieces > 32;
    if (!wide && w) return true;
    bool good = true;
    u32 place = 0, begin = 0;
    for (u32 from = 0; from < pieces; from += THREADS) {
        const u32 k = from + threadIdx.x;
        const bool here = k < pieces, last = k + 1 == pieces;
        const u32 stop = last ? total : (k + 1) << log;
        // A short piece ends where its last look-up happens to end, and the next one begins there. Not so near the end,
        // where nobody may read what fills the last word up.
        const bool exact = !SHORT || k + 2 >= pieces;
        const u32 hard = exact ? stop : NEVER;
        // By here, most pieces have synchronised.
        const u32 middle = (k << log) + (log == 6 ? 32 : log == 9 ? 128 : 64);
        u32 start = k << log, end = 0, met = 0, early = 0, late = 0;
        if (threadIdx.x == 0) start = begin;
        for (bool moved = here && !last;;) {
            if (moved && !last) {
                Reader<SHARED> r(stream, start);
                early = count<SHORT>(tables, r, middle, hard);
                // From a codeword that was met before, all is known.
                if (r.bit != met) {
                    met = r.bit;
                    late = count<SHORT>(tables, r, stop, hard);
                    end = r.bit;
                }
            }
            u32 before = __shfl_up_sync(warp::ALL, end, 1);
            if (wide) {
                if (lane == 31) ex.ends[w] = end;
                __syncthreads();
                if (lane == 0 && w) before = ex.ends[w - 1];
            }
            if (threadIdx.x == 0) before = begin;
            moved = here && before != start;
            start = here ? before : start;
            if (wide ? !__syncthreads_or(moved) : !__any_sync(warp::ALL, moved)) break;
        }
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
            auto put = [&](u32 place, int residual) { values[place] = residual; };
            until<true, SHORT>(tables, r, stop, hard, n, at, put);
            good = good && (last ? ended(r, total, n, at) : at - first == own);
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
