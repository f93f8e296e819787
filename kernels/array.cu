// SPDX-License-Identifier: MIT OR Apache-2.0
// Boxes of arrays of any strides, and frames brought together: what stands between a user's array and the codecs.
//
// `array_copy` copies boxes: values of an array into a dense chunk (gather), back (scatter), or one element over a box
// (steps of 0). The host has joined axes that lie one behind the other in both arrays, so a box is rows of `run` bytes
// that are together in both. A row is cut into pieces of 2 KiB; `lanes` threads copy a piece, `width` bytes each at a
// time, four loads in flight; the launch's CTAs are shared out between the boxes in order. It should run at half of the
// memory's speed: each byte is read once and written once.
//
// `array_pack` puts the frames of some chunks one behind the other, at multiples of 64 bytes, so that one copy brings
// all of them to the host. Frames longer than `limit` are left out, and so are those that are not there (length 0). A
// CTA finds its frame's place by summing the lengths before it.
//
// `array_widen` makes f32 of 16-bit numbers for the codecs of f32 (FORMAT.md §5), `array_narrow` the nearest 16-bit
// numbers of f32: eight a thread at a time, each byte read once and written once. codec/half.rs has both on the host.
#include "prim/dependent.cuh"
#include "prim/warp.cuh"

namespace {

constexpr u32 THREADS = 256, PIECE = ARRAY_PIECE, STEP = ARRAY_PACK_STEP;

// A piece of a row, by `lanes` threads.
template <class T>
__device__ __forceinline__ void copy_piece(const T* from, T* to, u32 count, u32 lane, u32 lanes) {
    for (u32 i = lane; i < count; i += 4 * lanes) {
        T x[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            if (i + k * lanes < count) x[k] = from[i + k * lanes];
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            if (i + k * lanes < count) to[i + k * lanes] = x[k];
    }
}

// What one CTA copies of a box.
template <class T>
__device__ __forceinline__ void copy_box(const BoxCopy& b, u32 cta) {
    const u32 groups = THREADS / b.lanes, lane = threadIdx.x % b.lanes;
    u32 unit = cta * b.turns * groups + threadIdx.x / b.lanes;
    for (u32 turn = 0; turn < b.turns && unit < b.units; turn++, unit += groups) {
        u32 row = b.pieces > 1 ? unit / b.pieces : unit;
        const u64 begin = (u64)(unit - row * b.pieces) * PIECE;
        u64 from = b.from + begin, to = b.to + begin;
#pragma unroll
        for (int d = 7; d >= 0; d--) {
            if (row == 0) break;
            const u32 n = b.extents[d], rest = row / n, at = row - rest * n;
            from += at * b.from_steps[d];
            to += at * b.to_steps[d];
            row = rest;
        }
        const u64 left = b.run - begin;
        copy_piece((const T*)from, (T*)to, (u32)((left < PIECE ? left : PIECE) / sizeof(T)), lane, b.lanes);
    }
}

// NaN keep their bits.
__device__ __forceinline__ u32 widened(u32 bits, bool is_bfloat16) {
    if (is_bfloat16) return bits << 16;
    const u32 sign = (bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
    if (magnitude < 0x0400) return sign | __float_as_uint((float)magnitude * 0x1p-24f);
    return sign | (magnitude < 0x7C00 ? (magnitude << 13) + (112 << 23) : magnitude << 13 | 0x7F800000);
}

// To nearest, ties to even; to the largest number in place of infinity.
__device__ __forceinline__ u32 narrowed(u32 bits, bool is_bfloat16) {
    const u32 sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (is_bfloat16) {
        if (magnitude >= 0x7F800000) return bits >> 16;
        const u32 rounded = (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16;
        return sign | (rounded < 0x7F7F ? rounded : 0x7F7F);
    }
    if (magnitude >= 0x7F800000) return sign | 0x7C00 | (magnitude >> 13 & 0x03FF);
    // The sum with 2^23 is rounded to a whole number, which is its lower bits.
    const float whole = __uint_as_float(magnitude) * 0x1p24f + 0x1p23f;
    if (magnitude < 0x38800000) return sign | (__float_as_uint(whole) - __float_as_uint(0x1p23f));
    const u32 rounded = (magnitude + 0x0FFF + (magnitude >> 13 & 1) - (112 << 23)) >> 13;
    return sign | (rounded < 0x7BFF ? rounded : 0x7BFF);
}

// What one CTA converts of a chunk, eight numbers at a time: convert(16-bit numbers, f32). The last eight may reach
// past the chunk, into what lies between it and the next one.
template <class Convert>
__device__ __forceinline__ void convert_eights(const HalfArgs& args, Convert convert) {
    const u32 chunk = blockIdx.x / args.parts, part = blockIdx.x % args.parts;
    uint4* halves = (uint4*)(args.halves + chunk * args.halves_step);
    uint4* wide = (uint4*)(args.wide + chunk * args.wide_step);
    const u64 eights = (args.values + 7) / 8;
    for (u64 i = part * THREADS + threadIdx.x; i < eights; i += (u64)args.parts * THREADS) {
        convert(halves[i], wide[2 * i], wide[2 * i + 1]);
    }
}

__device__ __forceinline__ void copy(const CopyArgs& args) {
    const BoxCopy* boxes = (const BoxCopy*)args.boxes;
    // The last box that begins at this CTA or before.
    u32 low = 0, high = args.box_count;
    while (high - low > 1) {
        const u32 mid = (low + high) / 2;
        if (boxes[mid].first_cta <= blockIdx.x) {
            low = mid;
        } else {
            high = mid;
        }
    }
    const BoxCopy& b = boxes[low];
    const u32 cta = blockIdx.x - b.first_cta;
    switch (b.width) {
        case 16: return copy_box<uint4>(b, cta);
        case 8: return copy_box<uint2>(b, cta);
        case 4: return copy_box<u32>(b, cta);
        case 2: return copy_box<u16>(b, cta);
        default: return copy_box<u8>(b, cta);
    }
}

__device__ __forceinline__ void widen(const HalfArgs& args) {
    const bool bf = args.is_bfloat16;
    const auto pair = [bf](u32 x) { return make_uint2(widened(x & 0xFFFF, bf), widened(x >> 16, bf)); };
    convert_eights(args, [&](const uint4& x, uint4& low, uint4& high) {
        const uint2 a = pair(x.x), b = pair(x.y), c = pair(x.z), d = pair(x.w);
        low = make_uint4(a.x, a.y, b.x, b.y);
        high = make_uint4(c.x, c.y, d.x, d.y);
    });
}

__device__ __forceinline__ void narrow(const HalfArgs& args) {
    const bool bf = args.is_bfloat16;
    const auto pair = [bf](u32 x, u32 y) { return narrowed(x, bf) | narrowed(y, bf) << 16; };
    convert_eights(args, [&](uint4& x, const uint4& low, const uint4& high) {
        const uint4 a = low, b = high;
        x = make_uint4(pair(a.x, a.y), pair(a.z, a.w), pair(b.x, b.y), pair(b.z, b.w));
    });
}

__device__ __forceinline__ void pack(const PackArgs& args) {
    __shared__ u64 sums[THREADS / 32];
    const u32 chunk = blockIdx.x / args.parts, part = blockIdx.x % args.parts;
    const u64* lengths = (const u64*)args.lengths;
    u64 sum = 0;
    for (u32 k = threadIdx.x; k < chunk; k += THREADS) {
        const u64 len = lengths[k];
        if (len <= args.limit) sum += (len + STEP - 1) / STEP * STEP;
    }
    sum = warp::sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    u64 at = 0;
#pragma unroll
    for (u32 w = 0; w < THREADS / 32; w++) at += sums[w];
    const u64 len = lengths[chunk];
    if (len > args.limit) return;
    const uint4* from = (const uint4*)((const EncodeChunk*)args.chunks)[chunk].frame;
    uint4* to = (uint4*)(args.packed + at);
    // Parts of whole CTAs' pieces; the last vector may reach past the frame, into its own step.
    const u32 vectors = (u32)((len + 15) / 16), each = 4 * THREADS;
    for (u32 begin = part * each; begin < vectors; begin += args.parts * each) {
        copy_piece(from + begin, to + begin, vectors - begin < each ? vectors - begin : each, threadIdx.x, THREADS);
    }
}

}  // namespace

ENTRY(array_copy, CopyArgs, (THREADS), copy(args))
ENTRY(array_widen, HalfArgs, (THREADS), widen(args))
ENTRY(array_narrow, HalfArgs, (THREADS), narrow(args))
ENTRY(array_pack, PackArgs, (THREADS), pack(args))
