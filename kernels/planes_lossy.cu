// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec planes under a bound: codecs/src/codec/planes/FORMAT.md.
//
//   range    for a bound relative to the range: base/range.cuh
//   quanta   tiles of class 0, a warp each; others are listed       planes/quanta_encode.cuh
//   wide     the tiles that are listed, a CTA each                  planes/wide_encode.cuh
//   place    payloads from their slots to their places              planes/place.cuh
//   seal     the header
//
//
// and back:
//
//   take_quanta   tiles of class 0, a warp each; others are listed  planes/quanta_decode.cuh
//   take_wide     the tiles that are listed, a CTA each             planes/wide_decode.cuh
//   verdict
#include "base/range.cuh"
#include "planes/place.cuh"
#include "planes/quanta_decode.cuh"
#include "planes/quanta_encode.cuh"
#include "planes/wide_encode.cuh"
#include "prim/dependent.cuh"

#define BOUNDS(CTAS) (planes::THREADS, (AT_ONCE<CTAS, planes::THREADS>))
#define ENTRIES(S, name)                                                                                         \
    ENTRY(planes_lossy_range_##name, EncodeArgs, (planes::THREADS),                                              \
          frame::find_range<S, planes::THREADS, planes::TILE>(args))                                             \
    ENTRY(planes_lossy_quanta_##name, EncodeArgs, BOUNDS(PlanesTuning<S>::ENCODE_CTAS),                          \
          planes::quanta::encode<S>(args))                                                                       \
    ENTRY(planes_lossy_wide_##name, EncodeArgs, (planes::THREADS, PlanesTuning<S>::LOSSY_WIDE_ENCODE),           \
          planes::wide::encode_listed<S, planes::BOUNDED>(args))                                                 \
    ENTRY(planes_lossy_wide_limited_##name, EncodeArgs, (planes::THREADS, PlanesTuning<S>::LIMITED_WIDE_ENCODE), \
          planes::wide::encode_listed<S, planes::LIMITED>(args))                                                 \
    ENTRY(planes_lossy_place_##name, EncodeArgs, (planes::THREADS), planes::slots::place(args))                  \
    ENTRY(planes_lossy_take_quanta_##name, DecodeArgs, BOUNDS(PlanesTuning<S>::DECODE_CTAS),                     \
          planes::quanta::decode<S>(args))                                                                       \
    ENTRY(planes_lossy_take_wide_##name, DecodeArgs, (planes::THREADS, PlanesTuning<S>::WIDE_DECODE),            \
          planes::wide::decode_listed<S>(args))                                                                  \
    ENTRY(planes_lossy_seal_##name, EncodeArgs, (32),                                                            \
          frame::seal(args, blockIdx.x, 4ull * ((const ChunkState*)args.states)[blockIdx.x].done, threadIdx.x))  \
    ENTRY(planes_lossy_verdict_##name, DecodeArgs, (32), if (threadIdx.x == 0) frame::verdict(args, blockIdx.x))
ENTRIES(float, f32)
ENTRIES(double, f64)
