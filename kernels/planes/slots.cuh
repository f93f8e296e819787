// SPDX-License-Identifier: MIT OR Apache-2.0
// Where the payloads of tiles under a bound wait until all lengths are known: a slot of working memory for each tile.
//
//   quanta_encode.cuh   a warp codes a tile of class 0 into its slot; a tile of another class is listed
//   wide_encode.cuh     a CTA codes each listed tile into its slot
//   place.cuh           lengths are summed up; each payload is copied to its place in the frame
//
// So no tile waits for another one, however long that takes. The price is that payloads are written and read again,
// mostly in the L2 cache.
//
// A slot holds a payload in two pieces, which stand one behind the other in the frame but for the first one's middle:
//
//   from the slot's begin   `before` words: head, mask, modes, ballots, nibbles; then bytes and values
//   from WHOLE_AT on        `whole` words: full bit planes, which leave as they come. They belong behind `before`
#pragma once
#include "chunk.cuh"

namespace planes::slots {

// Words before the full planes of a tile of class 0 at most: 6 of head, mask and modes, 68 ballots, 272 of nibbles, 640
// of bytes, 512 of exceptions' values.
constexpr u32 WHOLE_AT = 1504;
// Tiles whose lengths are summed up together, and groups of them.
constexpr u32 GROUP = 32;

// What the tiles of a batch tell each other, in the words that args.offsets leads to: a record of each tile; sums of
// the lengths of groups, and of groups of groups; the list of tiles that are not of class 0.
struct Board {
    u64* records;
    u32 *groups, *supers, *list, *listed;

    __device__ __forceinline__ explicit Board(const EncodeArgs& args) {
        const u32 count = (args.tiles + GROUP - 1) / GROUP;
        records = (u64*)args.offsets;
        groups = (u32*)(records + args.tiles), supers = groups + count, list = supers + (count + GROUP - 1) / GROUP;
        listed = (u32*)args.ticket + 1;
    }
    // A payload of `total` words is in its slot. One lane.
    __device__ __forceinline__ void tell(u32 tile, u32 total, u32 before, u32 whole) const {
        records[tile] = total | (u64)before << 16 | (u64)whole << 32;
        atomicAdd(groups + tile / GROUP, total);
        atomicAdd(supers + tile / (GROUP * GROUP), total);
    }
    // The tile is not of class 0: it may be of the classes from `kind` on. One lane.
    __device__ __forceinline__ void list_tile(u32 tile, u32 kind) const {
        list[atomicAdd(listed, 1u)] = tile | kind << 30;
    }
};

// What a tile's record says.
struct Record {
    u32 total, before, whole;
    __device__ __forceinline__ explicit Record(u64 word)
        : total((u32)word & 0xffff), before((u32)word >> 16), whole((u32)(word >> 32)) {}
};

}  // namespace planes::slots
