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

// The type of a chunk's rule, which chunks without a bound do not use.
template <class S>
struct RuledAs {
    using Type = S;
};
template <>
struct RuledAs<Short> {
    using Type = float;
};

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

// The lowest 32 - `unused` bits of a word as an integer.
__device__ __forceinline__ u32 extended(u32 x, u32 unused, u32 integer) {
    const u32 high = x << unused;
    return integer & INTEGER_SIGNED ? (u32)((int)high >> unused) : high >> unused;
}

// Two integers of 2 bytes in the order that a device has.
__device__ __forceinline__ u32 ordered(u32 pair, u32 integer) {
    return integer & INTEGER_SWAP ? __byte_perm(pair, 0, 0x2301) : pair;
}

__device__ __forceinline__ u32 load(u64 values, u32 place, u32 integer) {
    if (is_byte(integer)) return extended(((const u8*)values)[place], 24, integer);
    return extended(ordered(((const u16*)values)[place], integer), 16, integer);
}

// `place` is a multiple of 4.
__device__ __forceinline__ void load4(u64 values, u32 place, u32 integer, u32 (&x)[4]) {
    if (is_byte(integer)) {
        const u32 four = *(const u32*)((const u8*)values + place);
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = extended(four >> 8 * i, 24, integer);
    } else {
        const uint2 four = *(const uint2*)((const u16*)values + place);
        const u32 low = ordered(four.x, integer), high = ordered(four.y, integer);
        x[0] = extended(low, 16, integer), x[1] = extended(low >> 16, 16, integer);
        x[2] = extended(high, 16, integer), x[3] = extended(high >> 16, 16, integer);
    }
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
