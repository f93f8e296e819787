// SPDX-License-Identifier: MIT OR Apache-2.0
// Bit planes of 32 words in one thread's registers: H. S. Warren, "Hacker's Delight", section 7-3.
#pragma once
#include "../base/scalar.cuh"

namespace bits {

// Transposes 32 x 32 bits: afterwards bit 31 - j of word p is what bit 31 - p of word j was. Its own inverse.
// Blocks of 16 and of 8 bits are moved by byte permutations, smaller ones by masks.
__device__ __forceinline__ void transpose(u32 (&x)[32]) {
#pragma unroll
    for (int k = 0; k < 16; k++) {
        const u32 a = x[k], b = x[k + 16];
        x[k] = __byte_perm(a, b, 0x3276);
        x[k + 16] = __byte_perm(a, b, 0x1054);
    }
#pragma unroll
    for (int k = 0; k < 32; k++) {
        if (k & 8) continue;
        const u32 a = x[k], b = x[k + 8];
        x[k] = __byte_perm(a, b, 0x3715);
        x[k + 8] = __byte_perm(a, b, 0x2604);
    }
#pragma unroll
    for (int j = 4; j > 0; j /= 2) {
        const u32 mask = j == 4 ? 0x0f0f0f0fu : j == 2 ? 0x33333333u : 0x55555555u;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            if (k & j) continue;
            const u32 t = (x[k] ^ x[k + j] >> j) & mask;
            x[k] ^= t;
            x[k + j] ^= t << j;
        }
    }
}

// Bit 31 - p says whether word p is not zero.
__device__ __forceinline__ u32 nonzero(const u32 (&x)[32]) {
    u32 mask = 0;
#pragma unroll
    for (int p = 0; p < 32; p++) mask |= (u32)(x[p] != 0) << (31 - p);
    return mask;
}

}  // namespace bits
