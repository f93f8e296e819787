// SPDX-License-Identifier: MIT OR Apache-2.0
// A tile's outliers as they are stored, FORMAT.md §3.4.
#pragma once
#include "../base/scalar.cuh"

namespace {

// Their first word: how many records, or with MASK how many runs of a mask.
constexpr u32 MASK = 1u << 31, DIFFERENCES = 1u << 30;
__device__ __forceinline__ u32 count_of(u32 head) { return head & MASK ? head & ~(MASK | DIFFERENCES) : head; }

// How many words they are, of values of W bytes.
template <int W>
__device__ __forceinline__ u32 outlier_words(u32 head) {
    const u32 count = count_of(head);
    return head & MASK ? 1 + W / 4 + (count + 1) / 2 : 1 + count * (1 + W / 4);
}

}  // namespace
