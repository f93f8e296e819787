// SPDX-License-Identifier: MIT OR Apache-2.0
// Integers of 1 and 2 bytes, which are coded as words with the same value (FORMAT.md §2): read from a chunk and written
// to it, one or four that lie beside each other. `integer` says what they are, as in EncodeChunk. Kernels of their own
// take them: asked while they run, those of f32 were 4 to 8 % slower.
#pragma once
#include "../tuning.cuh"

namespace planes {

// The type of their values, of which nothing is computed but with bits.
struct Short {
    u32 bits;
};
template <class S>
constexpr bool IS_SHORT = false;
template <>
constexpr bool IS_SHORT<Short> = true;

}  // namespace planes

template <>
struct Traits<planes::Short> : Traits<float> {
    static __device__ __forceinline__ u32 bits(planes::Short x) { return x.bits; }
    static __device__ __forceinline__ planes::Short value(u32 bits) { return {bits}; }
};
template <>
struct PlanesTuning<planes::Short> : PlanesTuning<float> {};

namespace planes::shorts {

__device__ __forceinline__ bool is_byte(u32 integer) { return (integer & 15) == 1; }

// Makes words of integers that lie beside each other, each by one byte permutation. Upper bytes are those of a word of
// zeros, or copies of the sign.
struct Unpacker {
    u32 size, select[4];
    __device__ __forceinline__ explicit Unpacker(u32 integer) : size(integer & 15) {
        const bool is_signed = integer & INTEGER_SIGNED, swap = integer & INTEGER_SWAP;
        const u32 first = is_byte(integer) ? is_signed ? 0x8880 : 0x4440
                          : swap           ? is_signed ? 0x8801 : 0x4401
                          : is_signed      ? 0x9910
                                           : 0x4410;
        const u32 step = is_byte(integer) ? is_signed ? 0x1111 : 1 : is_signed ? 0x2222 : 0x22;
        // Told to the compiler as unknown numbers: it would choose among them for each value.
#pragma unroll
        for (u32 i = 0; i < 4; i++) select[i] = opaque(first + (is_byte(integer) ? i : i % 2) * step);
    }
    // `place` is a multiple of 4.
    __device__ __forceinline__ void load4(u64 values, u32 place, u32 (&x)[4]) const {
        const u64 at = values + (u64)place * size;
        uint2 words;
        if (size == 1) {
            words.x = words.y = *(const u32*)at;
        } else {
            words = *(const uint2*)at;
        }
        x[0] = take(words.x, select[0]), x[1] = take(words.x, select[1]);
        x[2] = take(words.y, select[2]), x[3] = take(words.y, select[3]);
    }
    static __device__ __forceinline__ u32 take(u32 word, u32 which) {
        u32 x = 0;
#ifdef __CUDA_ARCH__
        // The intrinsic function copies no signs.
        asm("prmt.b32 %0, %1, 0, %2;" : "=r"(x) : "r"(word), "r"(which));
#else
        for (u32 k = 0; k < 16; k += 4) {
            const u32 one = which >> k & 15, byte = one & 4 ? 0 : word >> 8 * (one & 3) & 0xff;
            x |= (one & 8 ? (byte >> 7) * 0xff : byte) << 2 * k;
        }
#endif
        return x;
    }
};

// Two integers of 2 bytes in the order that a device has.
__device__ __forceinline__ u32 ordered(u32 pair, u32 integer) {
    return integer & INTEGER_SWAP ? __byte_perm(pair, 0, 0x2301) : pair;
}

__device__ __forceinline__ u32 load(u64 values, u32 place, u32 integer) {
    const u32 word = is_byte(integer) ? ((const u8*)values)[place] : ((const u16*)values)[place];
    return Unpacker::take(word, Unpacker(integer).select[0]);
}

// Of words that no integer makes, the lowest bytes.
__device__ __forceinline__ void store(u64 values, u32 place, u32 integer, u32 x) {
    if (is_byte(integer)) {
        ((u8*)values)[place] = (u8)x;
    } else {
        ((u16*)values)[place] = (u16)ordered(x, integer);
    }
}

// `place` is a multiple of 4.
__device__ __forceinline__ void store4(u64 values, u32 place, u32 integer, const u32 (&x)[4]) {
    const u32 low = __byte_perm(x[0], x[1], 0x5410), high = __byte_perm(x[2], x[3], 0x5410);
    if (is_byte(integer)) {
        *(u32*)((u8*)values + place) = __byte_perm(low, high, 0x6420);
    } else {
        *(uint2*)((u16*)values + place) = make_uint2(ordered(low, integer), ordered(high, integer));
    }
}

}  // namespace planes::shorts
