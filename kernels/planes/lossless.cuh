// SPDX-License-Identifier: MIT OR Apache-2.0
// What encoding and decoding tiles without a bound have in common.
#pragma once
#include "tile.cuh"

namespace planes::lossless {

// Words of a tile's values.
template <class S>
constexpr u32 VALUES = TILE * sizeof(S) / 4;

// Bit planes of a tile: numbers of classes, and masks.
constexpr u32 PLANES = BLOCKS * (3 + 1);

}  // namespace planes::lossless
