// SPDX-License-Identifier: MIT OR Apache-2.0
// Bit planes of a block into a tile's payload, and back: FORMAT.md §3.2 and §8.3.
//
// A lane has 32 values of a block, and one word of each of its bit planes. Eight words hold one byte of each value;
// eight by eight bits are transposed in all four bytes at once, which makes eight planes of them. The sign's plane
// turns the others into magnitudes. A ballot says which lanes have a word that is not zero: it is stored, and it says
// where a lane's word goes, as no scan could faster. Sparser planes keep of each word the bytes that are not zero,
// placed by three ballots over how many a lane has.
#pragma once
#include "chunk.cuh"
#include "differences.cuh"

namespace planes {

// Transposes eight by eight bits, in each byte: afterwards bit k of word j is what bit j of word k was. Its own
// inverse.
__device__ __forceinline__ void transpose(u32 (&x)[8]) {
#pragma unroll
    for (int j = 4; j > 0; j /= 2) {
        const u32 low = j == 4 ? 0x0f0f0f0fu : j == 2 ? 0x33333333u : 0x55555555u;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            if (k & j) continue;
            // (a and m) or (b and not m), said so that it is one operation.
            const u32 p = x[k], q = x[k + j], up = q << j, down = p >> j;
            x[k] = (p ^ up) & low ^ up;
            x[k + j] = (down ^ q) & low ^ q;
        }
    }
}

// Bits of a tile's head.
constexpr u32 WITH_EXCEPTIONS = 1 << 9, UNIFORM = 1 << 10;

// What a tile of class 0 may have at most: bit planes, words before its ballots, ballots.
constexpr u32 MOST_PLANES = 4 * 16, MOST_FRONT = 6, MOST_BALLOTS = MOST_PLANES + BLOCKS;

// How much of each part a tile has; words of the growing tile are counted from the stage's first one.
struct Parts {
    u32 words, ballots, nibbles, bytes;
};

// Classes of lengths, as a tile's head has them: FORMAT.md §3.3.
struct Classes {
    u32 shape, least, top, zeros, numbers;
};

// What encode_any.cuh knows of a tile that it is going to write.
struct Plan {
    // The head's first word, but for the marks of exceptions; the word of masks.
    u32 head, masks;
    // What each part has; words of the fields.
    Parts n;
    u32 bits;
    Classes classes;
    // e of map 1.
    int exponent;
    // There are exceptions; all have the bits `value`; in class 2, those with low bits are among them.
    bool marked, uniform, low;
    u64 base, value;
};
// Of classes 1 and 2: map 1.
constexpr u32 SCALED = 16;
// The head of a tile of class 3.
constexpr u32 RAW = 3;

// A tile that waits for its place in the frame; none while it has no words.
struct Waiting {
    Place place;
    u32 tile, total;
    // Where its words begin in the stage, behind which nibbles and bytes stand, and how many of each there are.
    u32 start, words, nibbles, bytes;
    // Words before the ballots, and with them.
    u32 before, front;
};

// A warp's payloads in the making, in shared memory: of a tile that waits, and of one that grows.
struct Stage {
    // Head and modes end where the ballots begin.
    u32 front[2][MOST_FRONT + MOST_BALLOTS];
    // Modes of slices as they come; one more than there may be.
    u32 modes[5];
    Waiting waiting;
    // The growing tile's chunk and the next one's; the array of the one whose values are fetched.
    Chunk chunk, next_chunk;
    Array fetched;
    // The growing tile: its number in the batch and the next one's; its values that lie in the array; where its words
    // begin, and what they stay below.
    u32 number, next, inside, start, limit;
    // The growing tile's exceptions: how many, and the modes of their masks; in level A their nibbles and bytes; each
    // lane's words of the masks; the bits of one of them, and whether another has other bits. FORMAT.md §8.2.
    u32 exceptions, mask_modes, mask_nibbles, mask_bytes;
    u32 masks[BLOCKS][32];
    u64 value;
    bool differ;
    // Words of its payload where all its values are the same and no number, else 0.
    u32 same;
    // Its head, but for the predictor and exceptions; slices so far; nothing was found that is not of class 0, or too
    // long.
    u32 head, slices, predictor;
    bool good;
    // Its base's range, where plane 0 does not tell.
    long long least, most_quantum;
    // What the words that each lane wrote add to the checksum of a chunk, and where its state is: none, 0.
    u64 sum[32], summed;
    // The growing tile's, where encode_any.cuh codes it.
    Plan plan;
    // Words of both tiles. The last ones of level B are the growing tile's nibbles and bytes.
    alignas(16) u32 words[2400];
};
constexpr u32 STAGE = 2400, STAGE_BYTES = (u32)fmt::PLANES_BYTES / 4, STAGE_NIBBLES = MOST_PLANES * 32 / 8,
              NIBBLES_AT = STAGE - STAGE_BYTES - STAGE_NIBBLES, BYTES_AT = STAGE - STAGE_BYTES;

// Bits that count as fill; those of an infinity, which never holds, where there is none.
template <class S>
__device__ __forceinline__ Int<S> fill_of(const Stage& s) {
    return s.chunk.flags & FLAG_FILL ? (Int<S>)s.chunk.fill : Traits<S>::EXPONENT;
}

// Writes the bits of a value.
__device__ __forceinline__ void put_value(u32* to, u32 bits) { *to = bits; }
__device__ __forceinline__ void put_value(u32* to, u64 bits) { to[0] = (u32)bits, to[1] = (u32)(bits >> 32); }

// Finds the growing tile a place next to the one that waits, where there is more room. Whole warp.
__device__ __forceinline__ Parts begin_tile(Stage& s, bool dense, int lane) {
    const Waiting& other = s.waiting;
    const u32 end = dense ? NIBBLES_AT : STAGE, from = other.start,
              to = from + other.words + other.nibbles + other.bytes;
    const bool alone = other.total == 0, behind = alone || end - to >= from;
    const u32 start = alone || !behind ? 0 : to;
    if (lane == 0) s.start = start, s.limit = behind ? end : from;
    __syncwarp();
    return {start};
}

// Bytes of a word that are not zero, as bits 0 to 3.
__device__ __forceinline__ u32 nonzero_bytes(u32 w) {
    const u32 high = (((w & 0x7f7f7f7fu) + 0x7f7f7f7fu) | w) & 0x80808080u;
    return high * 0x00204081u >> 28;
}

// Puts a block's bit planes of level A, in order of coding; returns their modes, in order of planes. `rows` replace
// planes 7 to 0 of 16 where all of these are full. First lane j learns plane j's ballot; then all lanes together find
// modes and places.
template <int PLANES, class Rows>
__device__ __forceinline__ u32 put_words(Stage& s, u32* front, Parts& n, u32 (&words)[PLANES], int lane, Rows rows) {
    u32 ballot = 0;
#pragma unroll
    for (int j = 0; j < PLANES; j++) {
        const u32 some = __ballot_sync(warp::ALL, words[j] != 0);
        if (lane == j) ballot = some;
    }
    const u32 lower = (1u << lane) - 1, whole = __ballot_sync(warp::ALL, ballot == warp::ALL);
    // The planes from the first whole one on are full, but for those that are zero.
    const bool full = (whole & (lower | 1u << lane)) != 0 && ballot != 0, some = !full && ballot != 0;
    const u32 ballots = __ballot_sync(warp::ALL, some), stored = full ? warp::ALL : ballot;
    if (some) front[MOST_FRONT + n.ballots + __popc(ballots & lower)] = ballot;
    n.ballots += __popc(ballots);
    const u32 count = (u32)__popc(stored);
    u32 end = count;
#pragma unroll
    for (int k = 1; k < PLANES; k *= 2) {
        const u32 less = __shfl_up_sync(warp::ALL, end, k);
        if (lane >= k) end += less;
    }
    const u32 start = n.words + end - count;
    n.words += warp::from(end, PLANES - 1);
    if (PLANES == 16 && (__ballot_sync(warp::ALL, full) & 0x7f80) == 0x7f80) rows(words);
#pragma unroll
    for (int j = 0; j < PLANES; j++) {
        const u32 lanes = warp::from(stored, j), at = warp::from(start, j) + __popc(lanes & lower);
        if (lanes >> lane & 1) s.words[at] = words[j];
    }
    // Plane PLANES - 2 is coded first, the signs' last.
    const u32 mode = full ? 1 : some ? 2 : 0;
    return warp::total(mode << 2 * (lane < PLANES - 1 ? PLANES - 2 - lane : lane < PLANES ? lane : 0));
}

// A bit plane whose words are bytes that are not zero.
struct Sparse {
    u32 word, some, lower, ballot, ones, twos, fours;

    __device__ __forceinline__ Sparse(u32 word, u32 ballot, int lane)
        : word(word), lower((1u << lane) - 1), ballot(ballot) {
        some = nonzero_bytes(word);
        const u32 count = (u32)__popc(some);
        ones = __ballot_sync(warp::ALL, count & 1), twos = __ballot_sync(warp::ALL, count & 2),
        fours = __ballot_sync(warp::ALL, count & 4);
    }
    __device__ __forceinline__ u32 words() const { return __popc(ballot); }
    __device__ __forceinline__ u32 bytes() const { return __popc(ones) + 2 * __popc(twos) + 4 * __popc(fours); }
    // Shorter than all of its words.
    __device__ __forceinline__ bool pays() const { return 8 + words() + 2 * bytes() < (u32)fmt::PLANES_FULL; }
    // Behind so many nibbles, which are 0 as yet, and behind bytes.
    __device__ __forceinline__ void put(u32* to_nibbles, u32 nibbles, u8* to) const {
        to += __popc(ones & lower) + 2 * __popc(twos & lower) + 4 * __popc(fours & lower);
        if (word != 0) {
            const u32 at = nibbles + __popc(ballot & lower);
            atomicOr(to_nibbles + at / 8, some << 4 * (at % 8));
        }
        if (some & 1) *to++ = (u8)word;
        if (some & 2) *to++ = (u8)(word >> 8);
        if (some & 4) *to++ = (u8)(word >> 16);
        if (some & 8) *to = (u8)(word >> 24);
    }
};

// Puts a bit plane of level B; returns its mode. `full`: it and what comes after it in the block is stored whole.
__device__ __forceinline__ u32 put_bytes(Stage& s, u32* front, Parts& n, u32 word, bool& full, int lane) {
    const u32 ballot = __ballot_sync(warp::ALL, word != 0);
    if (ballot == 0) return 0;
    if (!full) {
        const Sparse sparse(word, ballot, lane);
        const u32 bytes = sparse.bytes();
        if (sparse.pays() && n.bytes + bytes <= (u32)fmt::PLANES_BYTES) {
            sparse.put(s.words + NIBBLES_AT, n.nibbles, (u8*)(s.words + BYTES_AT) + n.bytes);
            if (lane == 0) front[MOST_FRONT + n.ballots] = ballot;
            n.ballots++;
            n.nibbles += sparse.words();
            n.bytes += bytes;
            return 3;
        }
        full = true;
    }
    s.words[n.words + lane] = word;
    n.words += 32;
    return 1;
}

// Puts a block of level B: as put_block.
__device__ __forceinline__ u32 put_dense(Stage& s, u32* front, Parts& n, const u32 (&a)[8], const u32 (&b)[8],
                                         bool wide, u32 more, int lane) {
    u32 slices = 0, sign = 0;
    bool full = false;
#pragma unroll 1
    for (int slice = wide; slice >= 0; slice--) {
        const bool top = slice == (int)wide;
        const u32 which = slice ? 0x7531 : 0x6420;
        u32 x[8], modes = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = __byte_perm(a[k] + more, b[k] + more, which);
        transpose(x);
        if (top) sign = ~x[7];
#pragma unroll
        for (int p = 0; p < 8; p++) x[p] ^= sign;
        const Parts less = n;
        if (!top) modes = put_bytes(s, front, n, x[7], full, lane) << 14;
#pragma unroll
        for (int p = 6; p >= 0; p--) modes |= put_bytes(s, front, n, x[p], full, lane) << 2 * p;
        if (modes == 0x5555u) {
            // All eight planes full: they stand as bytes.
            n = less;
#pragma unroll
            for (int k = 0; k < 8; k++) s.words[n.words + 32 * k + lane] = __byte_perm(a[k] + more, b[k] + more, which);
            n.words += 256;
        }
        slices |= modes << 16 * slice;
    }
    return slices | put_bytes(s, front, n, sign, full, lane) << (wide ? 30 : 14);
}

// Puts a block whose residuals are pairs of 8 bits, or of 16 where it is wide, 0x80 added to each, where there is room
// for it; returns the modes of its slices.
template <bool DENSE>
__device__ __forceinline__ u32 put_block(Stage& s, u32* front, Parts& n, const u32 (&a)[8], const u32 (&b)[8],
                                         bool wide, int lane) {
    // From pairs of 8 bits to pairs of 16: not added where they are, which would move registers.
    constexpr u32 MORE = CLEAN - 0x00800080u;
    if constexpr (DENSE) {
        return put_dense(s, front, n, a, b, wide, wide ? MORE : 0, lane);
    } else {
        u32 x[8];
        if (!wide) {
#pragma unroll
            for (int k = 0; k < 8; k++) x[k] = __byte_perm(a[k], b[k], 0x6420);
            transpose(x);
            u32 words[8];
            words[7] = ~x[7];
#pragma unroll
            for (int j = 0; j < 7; j++) words[j] = x[6 - j] ^ words[7];
            return put_words<8>(s, front, n, words, lane, [](u32(&)[8]) {});
        }
        u32 top[8], words[16];
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = a[k] + MORE, words[k] = b[k] + MORE;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            top[k] = __byte_perm(x[k], words[k], 0x7531);
            x[k] = __byte_perm(x[k], words[k], 0x6420);
        }
        transpose(x);
        transpose(top);
        words[15] = ~top[7];
#pragma unroll
        for (int j = 0; j < 7; j++) words[j] = top[6 - j] ^ words[15];
#pragma unroll
        for (int j = 7; j < 15; j++) words[j] = x[14 - j] ^ words[15];
        return put_words<16>(s, front, n, words, lane, [](u32(&words)[16]) {
            u32 x[8];
#pragma unroll
            for (int p = 0; p < 8; p++) x[p] = words[14 - p] ^ words[15];
            transpose(x);
#pragma unroll
            for (int k = 0; k < 8; k++) words[7 + k] = x[k];
        });
    }
}

// A tile's payload that is read: where the next of each part stands.
struct Taker {
    const u32 *ballots, *words;
    const u8* bytes;
    const u32* nibble_words;
    u32 nibbles = 0;
};

// Takes a lane's word of a bit plane in `mode`.
__device__ __forceinline__ u32 take_plane(Taker& t, u32 mode, int lane) {
    if (mode == 0) return 0;
    u32 word = 0;
    if (mode == 1) {
        word = t.words[lane];
        t.words += 32;
        return word;
    }
    const u32 ballot = *t.ballots++, lower = (1u << lane) - 1, rank = __popc(ballot & lower);
    const bool mine = ballot >> lane & 1;
    if (mode == 2) {
        if (mine) word = t.words[rank];
        t.words += __popc(ballot);
        return word;
    }
    const u32 at = t.nibbles + rank, some = mine ? t.nibble_words[at / 8] >> 4 * (at % 8) & 15 : 0;
    t.nibbles += __popc(ballot);
    const u32 count = (u32)__popc(some);
    const u32 ones = __ballot_sync(warp::ALL, count & 1), twos = __ballot_sync(warp::ALL, count & 2),
              fours = __ballot_sync(warp::ALL, count & 4);
    const u8* from = t.bytes + __popc(ones & lower) + 2 * __popc(twos & lower) + 4 * __popc(fours & lower);
    if (some & 1) word = *from++;
    if (some & 2) word |= (u32)*from++ << 8;
    if (some & 4) word |= (u32)*from++ << 16;
    if (some & 8) word |= (u32)*from << 24;
    t.bytes += __popc(ones) + 2 * __popc(twos) + 4 * __popc(fours);
    return word;
}

// Takes the residuals of a block as pairs, its slices having these modes.
__device__ __forceinline__ void take_block(Taker& t, u32 (&a)[8], u32 (&b)[8], bool wide, u32 slices, int lane) {
    u32 x[8], top[8];
    const bool bytes = wide && (slices & 0xffff) == 0x5555;
    x[7] = 0;
#pragma unroll 1
    for (int slice = wide;; slice--) {
        const u32 modes = slices >> 16 * slice;
        if (slice < (int)wide) {
            if (bytes) {
#pragma unroll
                for (int k = 0; k < 8; k++) x[k] = t.words[32 * k + lane];
                t.words += 256;
                break;
            }
            x[7] = take_plane(t, modes >> 14 & 3, lane);
        }
#pragma unroll
        for (int p = 6; p >= 0; p--) x[p] = take_plane(t, modes >> 2 * p & 3, lane);
        if (slice == 0) break;
#pragma unroll
        for (int p = 0; p < 7; p++) top[p] = x[p];
    }
    const u32 sign = take_plane(t, slices >> (wide ? 30 : 14) & 3, lane), bias = wide ? CLEAN : 0x00800080u;
    if (!wide) x[7] = ~0u;
    if (!bytes) {
#pragma unroll
        for (int p = 0; p < 8; p++) x[p] ^= sign;
        transpose(x);
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        a[k] = __byte_perm(x[k], 0, 0x4140) - bias;
        b[k] = __byte_perm(x[k], 0, 0x4342) - bias;
    }
    if (!wide) return;
#pragma unroll
    for (int p = 0; p < 7; p++) top[p] ^= sign;
    top[7] = ~sign;
    transpose(top);
#pragma unroll
    for (int k = 0; k < 8; k++) {
        a[k] += __byte_perm(top[k], 0, 0x1404);
        b[k] += __byte_perm(top[k], 0, 0x3424);
    }
}

}  // namespace planes
