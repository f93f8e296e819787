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
// By arithmetic: the compiler makes four stores of 4 bytes where an array of 8-byte numbers is seen as words.
__device__ __forceinline__ uint4 pack(const u32* x) { return make_uint4(x[0], x[1], x[2], x[3]); }
__device__ __forceinline__ uint4 pack(const u64* x) {
    return make_uint4((u32)x[0], (u32)(x[0] >> 32), (u32)x[1], (u32)(x[1] >> 32));
}

// Four numbers. Written out: in a loop the compiler makes loads and stores of 4 and 8 bytes of them. ONCE: they are
// read once; or nobody reads soon what is written, to global memory.
template <bool ONCE = false, class T>
__device__ __forceinline__ void load4(const T* at, T (&x)[4]) {
    const uint4* from = (const uint4*)at;
    const auto load = [](const uint4* from) { return ONCE ? __ldcs(from) : *from; };
    if constexpr (sizeof(T) == 4) {
        unpack(load(from), x);
    } else {
        const uint4 v = load(from), w = load(from + 1);
        unpack(v, x), unpack(w, x + 2);
    }
}
template <bool ONCE = false, class T>
__device__ __forceinline__ void store4(T* at, const T (&x)[4]) {
    uint4* to = (uint4*)at;
    const auto store = [](uint4* to, uint4 v) { ONCE ? __stcs(to, v) : (void)(*to = v); };
    store(to, pack(x));
    if constexpr (sizeof(T) == 8) store(to + 1, pack(x + 2));
}
