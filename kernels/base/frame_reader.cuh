// SPDX-License-Identifier: MIT OR Apache-2.0
// What decoding kernels do with a frame besides their tiles. Nothing of a frame is believed: a tile's place comes from
// `Span`, lengths inside it are the codec's to check, all words are summed, and the CTA that is last with a chunk gives
// the verdict. Anything but a right one sends the frame to the CPU, which names what is wrong.
#pragma once
#include "frame.cuh"

namespace frame {

// A tile's payload, as the table of ends at `ends` says, of which the last is `most`; `right`: inside the section of
// payloads.
struct Span {
    u32 from, to;
    bool right;
    __device__ __forceinline__ Span(const u32* ends, u32 t, u32 tiles, u64 most)
        : from(t ? ends[t - 1] : 0), to(ends[t]) {
        right = from <= to && to <= most && (t + 1 < tiles || to == most);
    }
};

// Sums the words before the payloads, but for the checksum's own and the ends of tiles in `ends` up to `after`, which
// their CTAs sum. A thread takes every `STEP`th from `first` on.
template <u32 STEP>
__device__ __forceinline__ u64 sum_rest(const DecodeChunk& c, u64 ends, u64 after, u32 first) {
    const u32* in = (const u32*)c.frame;
    u64 sum = 0;
#pragma unroll 4
    for (u64 i = first; i < ends; i += STEP) {
        if (i != CHECKSUM_WORD && i != CHECKSUM_WORD + 1) sum += term(in[i], i);
    }
    for (u64 i = after + first; i < c.payload_at / 4; i += STEP) sum += term(in[i], i);
    return sum;
}

// The verdict on a chunk whose tiles are all counted: 1 where it is right. Not all words are summed where kernels are
// compared: then the checksum says nothing. One lane.
__device__ __forceinline__ void verdict(const DecodeArgs& args, u32 chunk, bool summed = true) {
    ChunkState* state = (ChunkState*)args.states + chunk;
    __threadfence();
    const u64 checksum = ((const DecodeChunk*)args.chunks)[chunk].checksum;
    const bool same = !summed || atomicAdd(&state->sum, 0ull) == checksum;
    ((u64*)args.verdicts)[chunk] = same && atomicOr(&state->fault, 0u) == 0 ? 1 : 2;
}

}  // namespace frame
