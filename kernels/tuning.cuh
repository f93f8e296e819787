// SPDX-License-Identifier: MIT OR Apache-2.0
// Free to change: shapes of CTAs. No byte of a frame depends on them.
#pragma once

template <class S>
struct SzxTuning;

// A tile's 32 blocks over the warps of a CTA; CTAs that should fit on one multiprocessor.
template <>
struct SzxTuning<float> {
    static constexpr int BLOCKS_PER_WARP = 4, ENCODE_CTAS = 3, DECODE_CTAS = 5;
};
template <>
struct SzxTuning<double> {
    static constexpr int BLOCKS_PER_WARP = 2, ENCODE_CTAS = 2, DECODE_CTAS = 2;
};
