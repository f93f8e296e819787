// SPDX-License-Identifier: MIT OR Apache-2.0
// Bit planes of a block into a tile's payload, and back: FORMAT.md §3.2 and §8.3.
//
// A lane has 32 values of a block, and one word of each of its bit planes. Eight words hold one byte of each value;
// eight by eight bits are transposed in all four bytes at once, which makes eight planes of them. The sign's plane
// turns the others into magnitudes. A ballot says which lanes have a word that is not zero: it is stored, and it says
// where a lane's word goes, as no scan could faster. Sparser planes keep of each word the bytes that are not zero,
// placed by three ballots over how many a lane has.
#pragma once
#include "differences.cuh"
#include "slots.cuh"

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
// Of classes 1 and 2: map 1.
constexpr u32 SCALED = 16;
// Of class 1: quanta are in half steps.
constexpr u32 HALVES = 64;
// Numbers of classes 1 and 2's classes of lengths where no length is above 0: each class has its own.
constexpr u32 SAME_NUMBERS = 076543210;
// The head of a tile of class 3.
constexpr u32 RAW = 3;
// Modes of a bit plane.
constexpr u32 FULL = 1, SPARSE = 2;

// What a tile of class 0 may have at most: bit planes, words before its ballots, ballots, words of nibbles, bytes.
constexpr u32 MOST_PLANES = 4 * 16, MOST_FRONT = 6, MOST_BALLOTS = MOST_PLANES + BLOCKS,
              STAGE_NIBBLES = MOST_BALLOTS * 32 / 8, STAGE_BYTES = (u32)fmt::PLANES_BYTES + BLOCKS * 128;
static_assert(MOST_FRONT + MOST_BALLOTS + STAGE_NIBBLES + STAGE_BYTES / 4 + 2 * fmt::PLANES_EXCEPTIONS <=
                  slots::WHOLE_AT,
              "the first piece of a slot");

// How much of each part a tile has; words are those of full planes.
struct Parts {
    u32 words, ballots, nibbles, bytes;
};

// A warp's payload in the making, in shared memory, but for its full planes.
struct Stage {
    // Head and modes end where the ballots begin.
    u32 front[MOST_FRONT + MOST_BALLOTS];
    // Modes of slices as they come; one more than there may be.
    u32 modes[5];
    // The growing tile's chunk and the next one's; the array of the one whose values are fetched.
    Chunk chunk, next_chunk;
    Array fetched;
    // Address of the growing tile's slot.
    u64 slot;
    // Its number in the batch and the next one's; its values that lie in the array.
    u32 number, next, inside;
    // Its exceptions: how many, and the modes of their masks; each lane's words of the masks; the bits of one of them,
    // and whether another has other bits. FORMAT.md §8.2.
    u32 exceptions, mask_modes;
    u32 masks[BLOCKS][32];
    u64 value;
    bool differ;
    // Words of its payload where all its values are the same and no number, else 0.
    u32 same;
    // Its head, but for the predictor and exceptions; slices so far; the class that it is of, or a higher one.
    u32 head, slices, predictor, kind;
    // Its base; the range of that, where plane 0 does not tell.
    long long base, least, most_quantum;
    // Each lane's pairs of a block, columns 0 and 2 before 1 and 3, while its exceptions are marked; then its words of
    // a slice's bit planes, the sign's before those from the lowest bit on.
    u32 scratch[16][32];
    // Rank 3: each lane's pairs of the plane before a block.
    u32 back[8][32];
    // Nibbles are 0 where none has been put.
    u32 nibbles[STAGE_NIBBLES], bytes[STAGE_BYTES / 4];
};

// Bits that count as fill; those of an infinity, which never holds, where there is none.
template <class S>
__device__ __forceinline__ Int<S> fill_of(const Stage& s) {
    return s.chunk.flags & FLAG_FILL ? (Int<S>)s.chunk.fill : Traits<S>::EXPONENT;
}

// Writes the bits of a value.
__device__ __forceinline__ void put_value(u32* to, u32 bits) { *to = bits; }
__device__ __forceinline__ void put_value(u32* to, u64 bits) { to[0] = (u32)bits, to[1] = (u32)(bits >> 32); }

// A bit plane in mode SPARSE: bytes of its words that are not zero.
struct Sparse {
    u32 word, some, lower, ballot, ones, twos, fours;

    __device__ __forceinline__ Sparse(u32 word, u32 ballot, int lane)
        : word(word), lower((1u << lane) - 1), ballot(ballot) {
        const u32 high = (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u;
        some = high * 0x00204081u >> 28;
        const u32 count = (u32)__popc(some);
        ones = __ballot_sync(warp::ALL, count & 1), twos = __ballot_sync(warp::ALL, count & 2),
        fours = __ballot_sync(warp::ALL, count & 4);
    }
    __device__ __forceinline__ u32 words() const { return __popc(ballot); }
    __device__ __forceinline__ u32 bytes() const { return __popc(ones) + 2 * __popc(twos) + 4 * __popc(fours); }
    // Shorter than all of its words.
    __device__ __forceinline__ bool pays() const { return 8 + words() + 2 * bytes() < (u32)fmt::PLANES_FULL; }
    // Writes the lane's part behind `nibbles` nibbles, whose words are 0 as yet, and its bytes from `to` on.
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

// Puts a bit plane of the growing tile; returns its mode. `limited`: behind PLANES_BYTES bytes none is sparse. `full`:
// it and what comes after it in the block is stored whole. FORMAT.md §8.3. Whole warp.
__device__ __forceinline__ u32 put_plane(Stage& s, Parts& n, u32 word, bool limited, bool& full, int lane) {
    const u32 ballot = __ballot_sync(warp::ALL, word != 0);
    if (ballot == 0) return 0;
    if (!full) {
        const Sparse sparse(word, ballot, lane);
        const u32 bytes = sparse.bytes();
        if (sparse.pays() && (!limited || n.bytes + bytes <= (u32)fmt::PLANES_BYTES)) {
            sparse.put(s.nibbles, n.nibbles, (u8*)s.bytes + n.bytes);
            if (lane == 0) s.front[MOST_FRONT + n.ballots] = ballot;
            n.ballots++;
            n.nibbles += sparse.words();
            n.bytes += bytes;
            return SPARSE;
        }
        full = true;
    }
    ((u32*)s.slot)[slots::WHOLE_AT + n.words + lane] = word;
    n.words += 32;
    return FULL;
}

// Puts the bit planes of a block whose residuals are pairs of 8 bits, or of 16 where it is wide, 0x80 added to each;
// returns the modes of its slices. Whole warp.
//
// Planes go through shared memory, so that one put_plane visits all that have a word: nine copies of it in a row were
// fetched more slowly than they ran.
__device__ __forceinline__ u32 put_planes(Stage& s, Parts& n, const u32 (&a)[8], const u32 (&b)[8], bool wide,
                                          int lane) {
    // From pairs of 8 bits to pairs of 16: not added where they are, which would move registers.
    const u32 more = wide ? CLEAN - 0x00800080u : 0;
    u32 slices = 0, sign = 0;
    bool full = false;
#pragma unroll 1
    for (int slice = wide; slice >= 0; slice--) {
        const bool top = slice == (int)wide;
        const u32 which = slice ? 0x7531 : 0x6420;
        u32 x[8], some = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = __byte_perm(a[k] + more, b[k] + more, which);
        transpose(x);
        if (top) sign = ~x[7];
#pragma unroll
        for (int p = 0; p < 8; p++) {
            x[p] ^= sign;
            s.scratch[p + 1][lane] = x[p];
            if (x[p] != 0) some |= 2u << p;
        }
        some = warp::any(top ? some & 0xff : some);
        // The sign's is the last of all.
        if (slice == 0) s.scratch[0][lane] = sign, some |= 1;
        while (some != 0) {
            const int p = 31 - __clz((int)some);
            some ^= 1u << p;
            const u32 mode = put_plane(s, n, s.scratch[p][lane], true, full, lane);
            slices |= mode << (p == 0 ? (wide ? 30 : 14) : 16 * slice + 2 * (p - 1));
        }
    }
    return slices;
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
    x[7] = 0;
#pragma unroll 1
    for (int slice = wide;; slice--) {
        const u32 modes = slices >> 16 * slice;
        if (slice < (int)wide) x[7] = take_plane(t, modes >> 14 & 3, lane);
#pragma unroll
        for (int p = 6; p >= 0; p--) x[p] = take_plane(t, modes >> 2 * p & 3, lane);
        if (slice == 0) break;
#pragma unroll
        for (int p = 0; p < 7; p++) top[p] = x[p];
    }
    const u32 sign = take_plane(t, slices >> (wide ? 30 : 14) & 3, lane), bias = wide ? CLEAN : 0x00800080u;
    if (!wide) x[7] = ~0u;
#pragma unroll
    for (int p = 0; p < 8; p++) x[p] ^= sign;
    transpose(x);
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
