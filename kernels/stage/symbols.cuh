// SPDX-License-Identifier: MIT OR Apache-2.0
// The symbols of a stream: codecs/src/codec/lorenzo/FORMAT.md §3.2, on the CPU codecs/src/stage/symbols.rs.
#pragma once
#include "../prim/warp.cuh"

namespace huffman {

constexpr u32 RUNS = (u32)fmt::LORENZO_RUNS, SHORT_RUNS = (u32)fmt::LORENZO_SHORT_RUNS,
              DIRECT = (u32)fmt::LORENZO_DIRECT, SYMBOLS = (u32)fmt::LORENZO_SYMBOLS;
// The first symbol of each kind: zeros to the end, runs, residuals that are not zero, escapes, runs joined with one.
constexpr u32 END = 0, FIRST_RUN = 1, FIRST_DIRECT = FIRST_RUN + RUNS, ESCAPE = FIRST_DIRECT + DIRECT - 1,
              JOINT = ESCAPE + 2 * 27;
// Bits of the longest codeword.
constexpr u32 LIMIT = (u32)fmt::CODEWORD_LIMIT;
static_assert(DIRECT == 32 && SHORT_RUNS == 16 && LIMIT == 11 && JOINT + 2 * RUNS == SYMBOLS,
              "symbols as in FORMAT.md §3.2, which are found by shifts");

// Length of a table with a number for each symbol, rounded up to whole warps.
constexpr u32 SLOTS = (SYMBOLS + 31) / 32 * 32;

}  // namespace huffman
