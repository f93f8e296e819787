// SPDX-License-Identifier: MIT OR Apache-2.0
// Free to change: shapes of CTAs. No byte of a frame depends on them.
#pragma once

template <class S>
struct SzxTuning;

// A tile's 32 blocks over the warps of a CTA; CTAs that should fit on one multiprocessor; whether a block's words wait
// for their place in shared memory, which lets a warp run through its blocks in a loop, or in registers.
// More would spill hundreds of bytes.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
constexpr int SZX_ENCODE_CTAS_F32 = 3, SZX_ENCODE_CTAS_F64 = 1;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 100 == 12
constexpr int SZX_ENCODE_CTAS_F32 = 2, SZX_ENCODE_CTAS_F64 = 2;
#else
constexpr int SZX_ENCODE_CTAS_F32 = 4, SZX_ENCODE_CTAS_F64 = 2;
#endif
template <>
struct SzxTuning<float> {
    static constexpr int BLOCKS_PER_WARP = 4, ENCODE_CTAS = SZX_ENCODE_CTAS_F32, DECODE_CTAS = 6;
    static constexpr bool SLOTS = true;
};
template <>
struct SzxTuning<double> {
    static constexpr int BLOCKS_PER_WARP = 2, ENCODE_CTAS = SZX_ENCODE_CTAS_F64, DECODE_CTAS = 2;
    static constexpr bool SLOTS = false;
};

// Whether f64 is computed at a 32nd or a 64th of f32's speed, and not at half of it: then f32 values are quantised in
// f32, which finds the same quanta. An H200 is 3 % slower that way.
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 700 || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ / 10 == 90 || __CUDA_ARCH__ / 10 == 100)
constexpr bool SLOW_F64 = false;
#else
constexpr bool SLOW_F64 = true;
#endif

// Threads that one multiprocessor holds; asking for more CTAs than fit is an error of the assembler.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 750
constexpr int RESIDENT = 1024;
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ / 10 == 110 || \
    __CUDA_ARCH__ / 100 == 12
constexpr int RESIDENT = 1536;
#else
constexpr int RESIDENT = 2048;
#endif

template <int CTAS, int THREADS>
constexpr int AT_ONCE = CTAS * THREADS <= RESIDENT ? CTAS : RESIDENT / THREADS;

// CTAs of 256 threads that should fit on one multiprocessor: shared memory holds five on those of data centres since
// Hopper, fewer elsewhere. Five are worth some spilled registers where warps wait for each other, but not as many as
// interpolation would spill for sm_100.
struct LorenzoTuning {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ / 100 == 9
    static constexpr int PLAN_CTAS = 4, INTERPOLATE_CTAS = 5, WRITE_CTAS = 5;
#elif __CUDA_ARCH__ / 100 == 10
    static constexpr int PLAN_CTAS = 4, INTERPOLATE_CTAS = 3, WRITE_CTAS = 5;
#else
    static constexpr int PLAN_CTAS = 2, INTERPOLATE_CTAS = 2, WRITE_CTAS = 3;
#endif
    // A fourth would spill a lot for sm_100.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ / 100 == 9
    static constexpr int DECODE_CTAS = 4;
#else
    static constexpr int DECODE_CTAS = 3;
#endif
};

// CTAs of four warps that should fit on one multiprocessor. A warp has a tile; without a bound a CTA has one. IMAGES:
// payloads without a bound that a CTA keeps in shared memory, of which static arrays are 48 KiB at most. A second one
// lets it run ahead of tiles that take longer: six CTAs with one each were 8 % faster where all tiles are alike, and 18
// % slower where they are not.
template <class S>
struct PlanesTuning;
template <>
struct PlanesTuning<float> {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ / 100 == 9 || __CUDA_ARCH__ / 100 == 10
    static constexpr int ENCODE_CTAS = 5, WIDE_DECODE = 7;
#else
    static constexpr int ENCODE_CTAS = 3, WIDE_DECODE = 6;
#endif
    static constexpr int DECODE_CTAS = 6, WIDE_ENCODE = 5, LOSSY_WIDE_ENCODE = 4, LIMITED_WIDE_ENCODE = 4, IMAGES = 2;
};
template <>
struct PlanesTuning<double> {
    static constexpr int ENCODE_CTAS = 3, DECODE_CTAS = 5, WIDE_ENCODE = 3, LOSSY_WIDE_ENCODE = 3,
                         LIMITED_WIDE_ENCODE = 2, IMAGES = 1, WIDE_DECODE = 4;
};
