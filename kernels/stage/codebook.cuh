// SPDX-License-Identifier: MIT OR Apache-2.0
// Symbol counts → canonical codebook with codewords of limited length: src/codec/lorenzo/FORMAT.md §8, on the CPU
// src/stage/codebook.rs. One CTA.
//
// Package-merge (Larmore & Hirschberg, J. ACM 37(3), 1990): a level's entries are the symbols and the pairs of
// neighbours of the level before, merged by weight; among equal weights symbols come first. After as many levels as a
// codeword may have bits, the 2n − 2 lightest entries are taken. A symbol among them gets a bit; a pair takes its two
// entries of the level before, and so on. Ranks come from binary searches, so that each thread places one entry of a
// level.
#pragma once
#include "huffman_encode.cuh"

namespace codebook {

using huffman::LIMIT;
using huffman::SYMBOLS;

struct Shared {
    // Symbols in use by count, then by symbol; the pairs of a level; the entries of a level and of the one before.
    u64 leaves[SYMBOLS];
    u64 pairs[SYMBOLS];
    u64 entries[2][2 * SYMBOLS];
    u32 symbols[SYMBOLS];
    // Which entries of each level are pairs.
    u8 paired[LIMIT][256];
    // What is found: bits of every symbol's codeword, and the codewords.
    u32 lengths[128];
    u32 codewords[128];
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

// Fills `lengths` and `codewords` from the counts of all symbols. 256 threads.
__device__ __forceinline__ void make(Shared& sh, const u32* counts) {
    const u32 k = threadIdx.x;
    const u32 mine = k < SYMBOLS ? counts[k] : 0;
    if (k < 128) sh.lengths[k] = 0;
    const u32 n = (u32)__syncthreads_count(mine > 0);
    if (mine) {
        u32 place = 0;
        for (u32 s = 0; s < SYMBOLS; s++) {
            const u32 other = counts[s];
            place += other > 0 && (other < mine || (other == mine && s < k));
        }
        sh.leaves[place] = mine;
        sh.symbols[place] = k;
    }
    __syncthreads();
    if (n == 1 && k == 0) {
        // A codebook of one codeword would leave half of all bits without meaning.
        const u32 only = sh.symbols[0];
        sh.lengths[only] = 1;
        sh.lengths[only == 0 ? 1 : 0] = 1;
    }
    if (n > 1) {
        u32 size = n;
        if (k < n) sh.entries[0][k] = sh.leaves[k];
        sh.paired[0][k] = 0;
        __syncthreads();
        for (u32 level = 1; level < LIMIT; level++) {
            const u64* before = sh.entries[(level - 1) & 1];
            u64* entries = sh.entries[level & 1];
            const u32 pairs = size / 2;
            if (k < pairs) sh.pairs[k] = before[2 * k] + before[2 * k + 1];
            __syncthreads();
            // Half of the threads place symbols, half of them pairs.
            if (k < 128) {
                if (k < n) {
                    const u32 at = k + rank(sh.pairs, pairs, sh.leaves[k], false);
                    entries[at] = sh.leaves[k];
                    sh.paired[level][at] = 0;
                }
            } else if (k - 128 < pairs) {
                const u32 p = k - 128, at = p + rank(sh.leaves, n, sh.pairs[p], true);
                entries[at] = sh.pairs[p];
                sh.paired[level][at] = 1;
            }
            size = n + pairs;
            __syncthreads();
        }
        u32 taken = 2 * n - 2;
        for (int level = LIMIT - 1; level >= 0; level--) {
            const u32 pairs = (u32)__syncthreads_count(k < taken && sh.paired[level][k]);
            if (k < taken - pairs) sh.lengths[sh.symbols[k]]++;
            taken = 2 * pairs;
        }
    }
    __syncthreads();
    u32 codeword = 0;
    const u32 length = k < SYMBOLS ? sh.lengths[k] : 0;
    if (length) {
        // The codewords before it, in parts of the whole.
        for (u32 s = 0; s < SYMBOLS; s++) {
            const u32 other = sh.lengths[s];
            if (other && (other < length || (other == length && s < k))) codeword += 1u << (length - other);
        }
        codeword = __brev(codeword) >> (32 - length);
    }
    if (k < 128) sh.codewords[k] = codeword;
    __syncthreads();
}

}  // namespace codebook
