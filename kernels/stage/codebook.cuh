// SPDX-License-Identifier: MIT OR Apache-2.0
// Symbol counts → canonical codebook with codewords of limited length: codecs/src/codec/lorenzo/FORMAT.md §8, on the
// CPU codecs/src/stage/codebook.rs. One CTA.
//
// Package-merge (Larmore & Hirschberg, J. ACM 37(3), 1990): a level's entries are the symbols and the pairs of
// neighbours of the level before, merged by weight; among equal weights symbols come first. After as many levels as a
// codeword may have bits, the 2n − 2 lightest entries are taken. A symbol among them gets a bit; a pair takes its two
// entries of the level before, and so on. Ranks come from binary searches, so that each thread places one entry of a
// level.
//
// There are two codebooks to choose from, made side by side by the CTA's halves: one with joint symbols, one in which
// each of these is counted as its run and its residual.
#pragma once
#include "huffman_encode.cuh"

namespace codebook {

using huffman::LIMIT;
using huffman::SYMBOLS;

// Threads, half of them for either codebook.
constexpr u32 THREADS = 1024, HALF = THREADS / 2, MOST = huffman::SLOTS;
static_assert(SYMBOLS <= MOST && 2 * MOST <= HALF, "a half has a thread for each entry of a level");

struct Shared {
    struct Half {
        alignas(16) u32 counts[MOST];
        // Symbols in use by count, then by symbol; the pairs of a level; the entries of a level and of the one before.
        u64 leaves[MOST];
        u64 pairs[MOST];
        u64 entries[2][2 * MOST];
        u8 symbols[MOST];
        // Which entries of each level are pairs.
        u8 paired[LIMIT][HALF];
        // What is found: bits of every symbol's codeword, and the codewords.
        u8 lengths[MOST];
        unsigned short codewords[MOST];
        // How many codewords of each length each warp has; the first one of each length.
        u32 same[MOST / 32][LIMIT + 1], first[LIMIT + 1];
        // Bits of all codewords; symbols up to the last one in use; how many are.
        u64 bits;
        u32 used, n;
    } half[2];
};

// How many of the ascending numbers are less than `x`; or, with `equal`, not more.
__device__ __forceinline__ u32 rank(const u64* numbers, u32 count, u64 x, bool equal) {
    u32 lo = 0;
    while (count > 0) {
        const u32 half = count / 2;
        const u64 y = numbers[lo + half];
        if (y < x || (equal && y == x)) {
            lo += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return lo;
}

// Makes both codebooks from the counts of all symbols, and tells which is taken: 0 the one with joint symbols, else 1.
// `THREADS` threads.
__device__ __forceinline__ u32 choose_codebook(Shared& both, const u32* counts) {
    const u32 half = threadIdx.x / HALF, k = threadIdx.x % HALF;
    Shared::Half& sh = both.half[half];
    const u32 given = k < SYMBOLS ? counts[k] : 0;
    const bool taken_apart = half && k >= huffman::JOINT;
    if (k < MOST) sh.counts[k] = taken_apart ? 0 : given;
    if (k == 0) sh.used = sh.n = 0, sh.bits = 0;
    __syncthreads();
    if (taken_apart && given) {
        atomicAdd(sh.counts + huffman::FIRST_RUN + (k - huffman::JOINT) / 2, given);
        atomicAdd(sh.counts + huffman::FIRST_DIRECT + k % 2, given);
    }
    __syncthreads();
    const u32 mine = k < MOST ? sh.counts[k] : 0;
    if (mine) {
        atomicAdd(&sh.n, 1u);
        u32 place = 0;
#pragma unroll 2
        for (u32 s = 0; s < MOST; s += 4) {
            const uint4 four = *(const uint4*)(sh.counts + s);
            const u32 others[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            // Those not in use become the largest number there is.
            for (u32 j = 0; j < 4; j++) place += others[j] - 1 < mine - (s + j < k ? 0 : 1);
        }
        sh.leaves[place] = mine;
        sh.symbols[place] = (u8)k;
        sh.entries[0][place] = mine;
    }
    sh.paired[0][k] = 0;
    u32 length = 0;
    __syncthreads();
    const u32 n = sh.n;
    u32 size = n;
#pragma unroll 1
    for (u32 level = 1; level < LIMIT; level++) {
        const u64* before = sh.entries[(level - 1) & 1];
        u64* entries = sh.entries[level & 1];
        const u32 pairs = size / 2;
        if (k < pairs) sh.pairs[k] = before[2 * k] + before[2 * k + 1];
        __syncthreads();
        // The first threads place symbols, others pairs.
        if (k < MOST) {
            if (k < n) {
                const u32 at = k + rank(sh.pairs, pairs, sh.leaves[k], false);
                entries[at] = sh.leaves[k];
                sh.paired[level][at] = 0;
            }
        } else if (k - MOST < pairs) {
            const u32 p = k - MOST, at = p + rank(sh.leaves, n, sh.pairs[p], true);
            entries[at] = sh.pairs[p];
            sh.paired[level][at] = 1;
        }
        size = n + pairs;
        __syncthreads();
    }
    u32 taken = n > 1 ? 2 * n - 2 : 0;
#pragma unroll 1
    for (int level = LIMIT - 1; level >= 0; level--) {
        const bool pair = k < taken && sh.paired[level][k];
        const u32 first = (u32)__syncthreads_count(pair && half == 0), second = (u32)__syncthreads_count(pair && half);
        const u32 pairs = half ? second : first;
        length += k < taken - pairs;
        taken = 2 * pairs;
    }
    if (k < MOST) sh.lengths[k] = 0;
    __syncthreads();
    if (k < n) {
        // A codebook of one codeword would leave half of all bits without meaning.
        if (n == 1) length = 1, sh.lengths[sh.symbols[0] == 0 ? 1 : 0] = 1;
        sh.lengths[sh.symbols[k]] = (u8)length;
    }
    __syncthreads();
    length = k < MOST ? sh.lengths[k] : 0;
    u32 nth = 0;
    if (k < MOST) {
        for (u32 l = 1; l <= LIMIT; l++) {
            const u32 same = __ballot_sync(warp::ALL, length == l);
            if (length == l) nth = (u32)__popc(same & ((1u << k % 32) - 1));
            if (k % 32 == l) sh.same[k / 32][l] = (u32)__popc(same);
        }
        if (length) atomicMax(&sh.used, k + 1);
        const u64 bits = warp::sum((u64)mine * length);
        if (k % 32 == 0) atomicAdd(&sh.bits, bits);
    }
    __syncthreads();
    if (k == 0) {
        u32 next = 0;
        for (u32 l = 1; l <= LIMIT; l++) {
            next <<= 1;
            sh.first[l] = next;
            for (u32 v = 0; v < MOST / 32; v++) next += sh.same[v][l];
        }
    }
    __syncthreads();
    if (k < MOST) {
        u32 codeword = sh.first[length ? length : 1] + nth;
        for (u32 v = 0; v < k / 32; v++) codeword += sh.same[v][length ? length : 1];
        sh.codewords[k] = (unsigned short)(length ? __brev(codeword) >> (32 - length) : 0);
    }
    __syncthreads();
    const Shared::Half &joint = both.half[0], &apart = both.half[1];
    return apart.bits + 4 * apart.used < joint.bits + 4 * joint.used;
}

}  // namespace codebook
