// SPDX-License-Identifier: MIT OR Apache-2.0
// Residuals → symbols → a stream of codewords: codecs/src/codec/lorenzo/FORMAT.md §3.2 and §3.4, on the CPU
// codecs/src/stage/huffman/encode.rs. After cuSZ+ (Tian et al., CLUSTER 2021, doi:10.1109/Cluster48925.2021.00047),
// with a codeword for each run of zeros, joined with a residual of -1 or 1 behind it where that pays.
//
// A thread has 32 residuals in a row, zigzag values of one byte each. Bytes from `FAR` on stand for symbols, whose
// values lie in a second array: so a byte always tells how long its code is. Threads count bytes and runs of zeros, of
// which a codebook is made; then each finds the length of its codewords, a scan tells where they begin in the stream,
// and each writes its own: a run and the residual behind it at once, from a table by the run's length.
#pragma once
#include "../prim/block.cuh"
#include "estimate.cuh"
#include "symbols.cuh"
#include "tiles.cuh"

namespace huffman {

// The first byte that stands for a symbol, and the symbol. It begins the upper half of zigzag values of eight bits.
constexpr u32 FAR = 192, FAR_SYMBOL = ESCAPE + 5;
static_assert(FAR + JOINT - FAR_SYMBOL <= 256, "the symbols of all larger values have a byte");
// Counters: by byte, then by symbol.
constexpr u32 BINS = 256 + SLOTS;

// Symbol of a zigzag value that is not 0; and how many of its bits follow the codeword.
__device__ __forceinline__ u32 symbol(u32 z) {
    if (z < DIRECT) return FIRST_DIRECT - 1 + z;
    const u32 power = estimate::highest(z);
    return ESCAPE + 2 * (power - 5) + (z >> (power - 1) & 1);
}
__device__ __forceinline__ u32 lower_bits(u32 z) { return z < DIRECT ? 0 : estimate::highest(z) - 1; }

// The class of a run of zeros, and how many bits of its length follow the codeword.
__device__ __forceinline__ u32 run_class(u32 run) {
    if (run <= SHORT_RUNS) return run - 1;
    const u32 power = estimate::highest(run);
    return SHORT_RUNS + 2 * (power - 4) + (run >> (power - 1) & 1);
}
__device__ __forceinline__ u32 run_lower(u32 c) { return c < SHORT_RUNS ? 0 : 3 + (c - SHORT_RUNS) / 2; }
// A run's symbol, joined with what ends it: 1 where that is -1, 2 where it is 1, 0 for anything else.
__device__ __forceinline__ u32 run_symbol(u32 run_class, u32 with) {
    return with ? JOINT + 2 * run_class + with - 1 : FIRST_RUN + run_class;
}

// Bits that follow a symbol's codeword.
__device__ __forceinline__ u32 lower_bits_of(u32 symbol) {
    if (symbol < FIRST_DIRECT) return symbol == END ? 0 : run_lower(symbol - FIRST_RUN);
    return symbol < ESCAPE ? 0 : symbol < JOINT ? 4 + (symbol - ESCAPE) / 2 : run_lower((symbol - JOINT) / 2);
}

// The byte of a zigzag value; the symbol of a byte that is not 0.
__device__ __forceinline__ u32 byte_of(u32 z) { return z < FAR ? z : FAR - FAR_SYMBOL + symbol(z); }
__device__ __forceinline__ u32 symbol_of(u32 byte) { return byte < FAR ? symbol(byte) : byte - FAR + FAR_SYMBOL; }

// Which of four bytes are not 0, as four bits; those from `FAR` on, their highest bit.
__device__ __forceinline__ u32 others(u32 word) {
    const u32 high = ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu | word) & 0x80808080u;
    return (high >> 7) * 0x01020408u >> 24;
}
__device__ __forceinline__ u32 far(u32 word) { return word & word << 1 & 0x80808080u; }
static_assert(FAR == 0xc0, "two bits tell");

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

// Writes them where `take` has read them, or anywhere else.
__device__ __forceinline__ void put_back(const Mine& m, u32* bytes) {
    uint4* at = (uint4*)bytes + 2 * threadIdx.x;
    at[0] = make_uint4(m.word[0], m.word[1], m.word[2], m.word[3]);
    at[1] = make_uint4(m.word[4], m.word[5], m.word[6], m.word[7]);
}

__device__ __forceinline__ bool any_far(const Mine& m) {
    u32 any = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) any |= far(m.word[k]);
    return any;
}

// Counts this thread's residuals; some of those that are 0, too.
__device__ __forceinline__ void tally(const Mine& m, u32* bins) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if (m.word[k]) {
#pragma unroll
            for (int j = 0; j < 4; j++) atomicAdd(bins + (m.word[k] >> (8 * j) & 255u), 1u);
        }
    }
}

// Where zero and not zero meet at this thread's residuals, the first of which follows one that `before` says is not 0.
__device__ __forceinline__ u32 changes(u32 mask, bool before, u32 n) {
    const u32 meet = mask ^ (mask << 1 | (u32)before), first = 32 * threadIdx.x;
    return first >= n ? 0 : (u32)__popc(n - first < 32 ? meet & ((1u << (n - first)) - 1) : meet);
}

// Counts of classes from those of bytes. All threads; thread k takes byte k.
__device__ __forceinline__ void classes(const u32* bins, u32* classes) {
    const u32 k = threadIdx.x, power = 5 + (symbol_of(FAR) - ESCAPE + k - FAR) / 2;
    if (k > 0 && bins[k])
        atomicAdd(classes + (k < FAR ? estimate::highest(k) : min(power, estimate::CLASSES - 1)), bins[k]);
}

// Adds the counts of bytes to those of their symbols.
__device__ __forceinline__ void fold(u32* bins) {
    const u32 k = threadIdx.x;
    if (k > 0 && bins[k]) atomicAdd(bins + 256 + symbol_of(k), bins[k]);
}

// The place after the last residual before this thread's that is not 0; `end`: the one after the last of the tile.
template <int THREADS>
__device__ __forceinline__ u32 runs_begin(u32 mask, u32* scratch, u32& end) {
    const u32 mine = mask ? 32 * threadIdx.x + 32 - (u32)__clz((int)mask) : 0;
    return block::most_before<THREADS>(mine, scratch, end);
}

// Calls `f(run, i)` for every run of zeros that ends at one of this thread's residuals, its number `i`.
template <class F>
__device__ __forceinline__ void each_run(u32 mask, u32 begin, F f) {
    const u32 first = 32 * threadIdx.x;
    u32 ends = mask & ~(mask << 1 | (u32)(begin == first));
    while (ends) {
        const u32 i = (u32)__ffs((int)ends) - 1, below = mask & ((1u << i) - 1);
        ends &= ends - 1;
        f(first + i - (below ? first + estimate::highest(below) + 1 : begin), i);
    }
}

// What a run is joined with where this byte ends it.
__device__ __forceinline__ u32 joined_with(u32 byte) { return byte <= 2 ? byte : 0; }

// A chunk's codebook as a writer wants it. A code: how many bits in the low byte, the bits above it.
struct Codes {
    // Codeword and following bits, by byte; from `FAR` on, the codeword alone.
    u32 bytes[256];
    // Codewords by symbol.
    u32 symbols[SLOTS];
    // Bits by symbol, all that follow included; of a joint symbol that the codebook has not, of its two parts.
    u8 lens[SLOTS];
    // Whether the codebook has joint symbols.
    u32 joint, spare;
};

__device__ __forceinline__ u32 code_of(u32 bits, u32 len) { return bits << 8 | len; }
__device__ __forceinline__ u32 bits_of(u32 code) { return code >> 8; }
__device__ __forceinline__ u32 len_of(u32 code) { return code & 255u; }

// x << k, by the low five bits of k.
__device__ __forceinline__ u32 shifted(u32 x, u32 k) { return __funnelshift_l(0, x, k); }

// Runs of zeros shorter than this have their codes side by side in a table.
constexpr u32 SHORT = 64;
// Stands for the length of codes that take the long way: of more than 24 bits, or of longer runs.
constexpr u32 LONG = 80;

// What a CTA looks up: a chunk's codebook, and what follows from it.
struct Tables {
    // As in `Codes`.
    u32 bytes[256];
    // By what they are joined with: codes of short runs, that with them; the last one of each stands for longer runs.
    u32 runs[3][SHORT + 1];
    // Bits of bytes, all that follow included; what a short run adds to those of the residual that ends it.
    u8 lens[256];
    signed char run_lens[3][SHORT];
    // The rest of the codebook stays where it is.
    const Codes* codes;
};

// A run as the long way writes it: its codeword, the bits behind that, and whether this is the residual's codeword too.
struct Run {
    u32 code, lower;
    bool joint;
};
__device__ __forceinline__ Run run_of(const Codes& codes, u32 run, u32 with) {
    const u32 c = run_class(run);
    const bool joint = with && codes.joint;
    return {codes.symbols[run_symbol(c, joint ? with : 0)], run_lower(c), joint};
}

// A short run's code with what it is joined with, which may be nothing.
__device__ __forceinline__ u32 short_run(const Codes& codes, u32 run, u32 with) {
    u64 bits = 0;
    u32 len = 0;
    auto add = [&](u32 more, u32 more_len) {
        bits |= (u64)more << len;
        len += more_len;
    };
    bool rest = with;
    if (run) {
        const Run r = run_of(codes, run, with);
        add(bits_of(r.code), len_of(r.code));
        add(run & ((1u << r.lower) - 1), r.lower);
        rest = with && !r.joint;
    }
    if (rest) add(bits_of(codes.bytes[with]), len_of(codes.bytes[with]));
    return len <= 24 ? code_of((u32)bits, len) : LONG;
}

// Bits of a run of zeros, less those of the residual that it may be joined with.
__device__ __forceinline__ int run_length(const Codes& codes, u32 run, u32 with) {
    const u32 symbol = run_symbol(run_class(run), with);
    return (int)codes.lens[symbol] - (with ? (int)codes.lens[FIRST_DIRECT - 1 + with] : 0);
}

// Makes the tables of a chunk's codebook. All threads, 256 of them.
__device__ __forceinline__ void make_tables(Tables& tables, const Codes& codes) {
    const u32 t = threadIdx.x, c = codes.bytes[t];
    tables.bytes[t] = c;
    tables.lens[t] = t ? codes.lens[symbol_of(t)] : 0;
    if (t < 3 * SHORT) {
        const u32 with = t / SHORT, run = t % SHORT;
        tables.runs[with][run] = short_run(codes, run, with);
        tables.run_lens[with][run] = (signed char)(run ? run_length(codes, run, with) : 0);
    } else if (t < 3 * SHORT + 3) {
        tables.runs[t - 3 * SHORT][SHORT] = LONG;
    }
    if (t == 0) tables.codes = &codes;
    __syncthreads();
}

// Bits of a tile whose symbols occur so often. Whole warp.
__device__ __forceinline__ u32 length(const unsigned short* counts, const Codes& codes, int lane) {
    u32 sum = 0;
#pragma unroll
    for (u32 k = 0; k < (SYMBOLS + 31) / 32; k++) {
        const u32 s = 32 * k + lane;
        if (s < SYMBOLS) sum += counts[s] * codes.lens[s];
    }
    return warp::total(sum);
}

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

// Bits of this thread's residuals and of the runs of zeros before them. `kept` has them, too.
__device__ __forceinline__ u32 length(const Mine& m, const u32* kept, u32 begin, const Tables& tables) {
    const u8* bytes = (const u8*)(kept + KEPT * threadIdx.x);
    u32 sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if (m.word[k]) {
#pragma unroll
            for (int j = 0; j < 4; j++) sum += tables.lens[m.word[k] >> (8 * j) & 255u];
        }
    }
    each_run(m.mask, begin, [&](u32 run, u32 i) {
        const u32 with = joined_with(bytes[i]);
        sum += (u32)(run < SHORT ? (int)tables.run_lens[with][run] : run_length(*tables.codes, run, with));
    });
    return sum;
}

// Appends bits to a stream of words that are 0.
struct Writer {
    u32* words;
    // This thread's next bit; those of its word that are not yet written.
    u32 at, held;
    __device__ __forceinline__ Writer(u32* words_, u32 at_) : words(words_), at(at_), held(0) {}
    // Up to 32 bits.
    __device__ __forceinline__ void put(u32 bits, u32 len) {
        const u32 end = at + len;
        held |= shifted(bits, at);
        if ((at ^ end) / 32) {
            // The first word and the last may be shared with other threads.
            atomicOr(words + at / 32, held);
            held = __funnelshift_l(bits, 0, at);
        }
        at = end;
    }
    // Up to 64 bits.
    __device__ __forceinline__ void put(u64 bits, u32 len) {
        const u32 end = at + len, more = end / 32 - at / 32, low = (u32)bits, high = (u32)(bits >> 32);
        held |= shifted(low, at);
        if (more) {
            atomicOr(words + at / 32, held);
            held = __funnelshift_l(low, high, at);
            if (more > 1) {
                words[at / 32 + 1] = held;
                held = __funnelshift_l(high, 0, at);
            }
        }
        at = end;
    }
    // A codeword, and what belongs to it.
    __device__ __forceinline__ void code(u32 c, u32 more = 0, u32 more_len = 0) {
        put(bits_of(c), len_of(c));
        if (more_len) put(more, more_len);
    }
    __device__ __forceinline__ void finish() {
        if (at % 32) atomicOr(words + at / 32, held);
    }
};

// The code of a value that a byte from `FAR` on stands for, of 24 bits at most.
__device__ __forceinline__ u32 far_code(const Tables& tables, u32 byte, u32 z) {
    const u32 c = tables.bytes[byte], len = len_of(c), lower = tables.lens[byte] - len;
    return len + lower > 24 ? LONG : (c + lower) | (z & ((1u << lower) - 1)) << (8 + len);
}

// Writes what `length` has counted, two neighbours at a time. With `FARS` some bytes stand for symbols.
template <bool FARS>
__device__ __forceinline__ void write(const u32* kept, u32 mask, int begin, const u32* exact, const Tables& tables,
                                      Writer& out) {
    const unsigned short* pairs = (const unsigned short*)(kept + KEPT * threadIdx.x);
    // Place after the last residual that is not 0, from this thread's first one on.
    int next = begin - 32 * (int)threadIdx.x;
    u32 left = __brev((mask | mask >> 1) & 0x55555555u), pair = 0;
    uint2 values = make_uint2(0, 0);
    // One pair ahead of what is written.
    auto fetch = [&] {
        const u32 i = (u32)__clz((int)left);
        pair = pairs[i / 2];
        const u32* at = exact + 32 * threadIdx.x + i;
        if (FARS && (pair & 255u) >= FAR) values.x = at[0];
        if (FARS && pair >> 8 >= FAR) values.y = at[1];
    };
    if (FARS && left) fetch();
#pragma unroll 1
    while (left) {
        const int i = __clz((int)left);
        if (!FARS) pair = pairs[i / 2];
        left &= ~(0x80000000u >> i);
        const u32 low = pair & 255u, high = pair >> 8;
        // The one that ends a run of zeros, if there is one, and the one behind it, if that is not 0.
        const u32 one = low ? low : high, two = low ? high : 0, with = joined_with(one);
        const u32 z_one = low ? values.x : values.y, z_two = values.y;
        if (FARS && left) fetch();
        const u32 run = (u32)(i - next) + (low ? 0 : 1);
        next = i + (high ? 2 : 1);
        u32 b = with ? 0 : tables.bytes[one], c = tables.bytes[two];
        if (FARS && one >= FAR) b = far_code(tables, one, z_one);
        if (FARS && two >= FAR) c = far_code(tables, two, z_two);
        const u32 a = tables.runs[with][min(run, SHORT)], ab = a + b, len = len_of(ab + c);
        if (len <= (FARS ? 64 : 32)) {
            if (FARS) {
                out.put((u64)bits_of(a) | (u64)bits_of(b) << len_of(a) | (u64)bits_of(c) << len_of(ab), len);
            } else {
                out.put(bits_of(a) | shifted(bits_of(b), a) | shifted(bits_of(c), ab), len);
            }
            continue;
        }
        bool written = false;
        if (run) {
            const Run r = run_of(*tables.codes, run, with);
            out.code(r.code, run & ((1u << r.lower) - 1), r.lower);
            written = r.joint;
        }
#pragma unroll 1
        for (u32 j = written ? 1 : 0; j < 2; j++) {
            const u32 byte = j ? two : one, code = j ? c : with ? tables.bytes[one] : b;
            if (!FARS || len_of(code) < LONG) {
                out.code(code);
            } else {
                const u32 lower = lower_bits_of(symbol_of(byte)), value = j ? z_two : z_one;
                out.code(tables.bytes[byte], value & ((1u << lower) - 1), lower);
            }
        }
    }
}

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
            if (z >= FAR) z = exact[at];
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
