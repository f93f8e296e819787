// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers of 4 or 8 bytes, 16 bytes a load or store. Addresses are multiples of 16.
#pragma once
#include "../base/scalar.cuh"

// 16 bytes as two or four numbers, and back.
template <class T>
__device__ __forceinline__ void unpack(const uint4& v, T* x) {
    u32* words = (u32*)x;
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
}
template <class T>
__device__ __forceinline__ uint4 pack(const T* x) {
    const u32* words = (const u32*)x;
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// Four numbers.
template <class T>
__device__ __forceinline__ void load4(const T* at, T (&x)[4]) {
#pragma unroll
    for (int k = 0; k < (int)sizeof(T) / 4; k++) unpack(((const uint4*)at)[k], x + 16 / sizeof(T) * k);
}
template <class T>
__device__ __forceinline__ void store4(T* at, const T (&x)[4]) {
#pragma unroll
    for (int k = 0; k < (int)sizeof(T) / 4; k++) ((uint4*)at)[k] = pack(x + 16 / sizeof(T) * k);
}
