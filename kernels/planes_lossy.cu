// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec planes under a bound: src/codec/planes/FORMAT.md. A warp codes a tile of 4096 values.
//
//   planes/lossy_encode.cuh   warps take tiles from tickets; payloads wait in shared memory until their place is known
//   planes/lossy_decode.cuh   a warp for each tile
//
// Both are for tiles of class 0, a few exceptions among them (planes/exceptions.cuh). planes/encode_any.cuh and
// planes/decode_any.cuh take all others, and those that are too long for shared memory, or not shorter than their
// values.
#include "base/range.cuh"
#include "planes/lossy_decode.cuh"
#include "planes/lossy_encode.cuh"
#include "prim/dependent.cuh"

#define ENTRIES(S, name)                                                                                             \
    extern "C" __global__ __launch_bounds__(planes::THREADS) void planes_lossy_range_##name(EncodeArgs args) {       \
        dependent::begin();                                                                                          \
        frame::find_range<S, planes::THREADS, planes::TILE>(args);                                                   \
    }                                                                                                                \
    extern "C" __global__ __launch_bounds__(                                                                         \
        planes::THREADS,                                                                                             \
        (AT_ONCE<PlanesTuning<S>::ENCODE_CTAS, planes::THREADS>)) void planes_lossy_encode_##name(EncodeArgs args) { \
        dependent::begin();                                                                                          \
        planes::lossy::encode<S>(args);                                                                              \
    }                                                                                                                \
    extern "C" __global__ __launch_bounds__(                                                                         \
        planes::THREADS,                                                                                             \
        (AT_ONCE<PlanesTuning<S>::DECODE_CTAS, planes::THREADS>)) void planes_lossy_decode_##name(DecodeArgs args) { \
        dependent::begin();                                                                                          \
        planes::lossy::decode<S>(args);                                                                              \
    }                                                                                                                \
    extern "C" __global__ __launch_bounds__(32) void planes_lossy_seal_##name(EncodeArgs args) {                     \
        dependent::begin();                                                                                          \
        frame::seal(args, blockIdx.x, 4, threadIdx.x);                                                               \
    }                                                                                                                \
    extern "C" __global__ __launch_bounds__(32) void planes_lossy_verdict_##name(DecodeArgs args) {                  \
        dependent::begin();                                                                                          \
        if (threadIdx.x == 0) frame::verdict(args, blockIdx.x);                                                      \
    }
ENTRIES(float, f32)
ENTRIES(double, f64)
