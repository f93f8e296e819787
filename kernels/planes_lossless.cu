// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec planes without a bound: codecs/src/codec/planes/FORMAT.md. A CTA of four warps codes a tile of 4096 values,
// a warp each of its blocks: twice as many warps fit into shared memory as if each had a tile, and the four fetch the
// same code at about the same time.
//
//   planes/wide_encode.cuh       persistent CTAs take tiles; payloads wait in shared memory until their place is known
//   planes/wide_decode.cuh   a CTA for each tile
#include "planes/wide_decode.cuh"
#include "planes/wide_encode.cuh"
#include "prim/dependent.cuh"

#define ENTRIES(S, name)                                                                              \
    ENTRY(planes_lossless_encode_##name, EncodeArgs, (planes::THREADS, PlanesTuning<S>::WIDE_ENCODE), \
          planes::wide::encode<S>(args))                                                              \
    ENTRY(planes_lossless_decode_##name, DecodeArgs, (planes::THREADS, PlanesTuning<S>::WIDE_DECODE), \
          planes::wide::decode<S>(args))                                                              \
    ENTRY(planes_lossless_seal_##name, EncodeArgs, (32),                                              \
          frame::seal(args, blockIdx.x, frame::placed(args, blockIdx.x, 4), threadIdx.x))             \
    ENTRY(planes_lossless_verdict_##name, DecodeArgs, (32), if (threadIdx.x == 0) frame::verdict(args, blockIdx.x))
ENTRIES(float, f32)
ENTRIES(double, f64)
ENTRIES(planes::Short, short)
