// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers as multiples of a unit: what the codec `scaled` does before its codes are encoded, in the order 0 and without
// corrections (codecs/src/codec/scaled/FORMAT.md §4, §5, §8). The codes are then integers for the kernels of `planes`
// or `lorenzo`, and the host puts the frame around theirs.
//
// A thread takes a number, finds its code, and maps the code again: if the bits are not the number's, the number is an
// exception. An exception has the code of the nearest number before that is neither an exception nor the special
// number: the thread maps the numbers before, too, which seldom takes more than a step. Exceptions are listed in any
// order; the host sorts them.
//
// All operations are those of codecs/src/codec/scaled/scale.rs, rounded in the same places. Only what is made of a NaN
// has other bits here, and a NaN is the special number or an exception, whose own code nobody sees. Each number is read
// once and its code written once; there are about twenty operations in f64 and a division a number, so half of the
// memory's speed is to be had where f64 are as fast as on a server's GPU.
#include "base/scalar.cuh"
#include "prim/dependent.cuh"
#include "prim/warp.cuh"

namespace {

using i64 = long long;

constexpr u32 THREADS = 256;
// Numbers before an exception that are looked at.
constexpr u32 FARTHEST = 1 << 12;
// FORMAT.md §3.1.
enum Map : u32 { WHOLE, QUOTIENT, PRODUCT, SHORT_PRODUCT, ORDERED };

// 1.5 * 2^52: a whole number below 2^51 is added to its lowest bits as to its value.
constexpr double ROUNDING = 6755399441055744.0;
constexpr u64 LARGE = 1ull << 51;

__device__ __forceinline__ i64 bits_of(double x) { return __double_as_longlong(x); }

// The whole number nearest to x, if it is below 2^51.
__device__ __forceinline__ i64 nearest(double x) {
    return (i64)((u64)bits_of(__dadd_rn(x, ROUNDING)) - (u64)bits_of(ROUNDING));
}

// A chunk whose numbers have the bits of `S`.
template <class S>
struct Numbers {
    using T = Traits<S>;
    using Bits = typename T::Bits;
    static constexpr Bits LOWEST = (Bits)1 << (8 * T::W - 1);

    const ScaledChunk& c;

    // A whole number of as many bytes.
    static __device__ __forceinline__ i64 wide(Bits k) { return T::W == 4 ? (i64)(int)(u32)k : (i64)k; }

    // A float's bits as a whole number in the same order, and back.
    static __device__ __forceinline__ Bits ordered(Bits x) {
        return (Bits)(wide(x) ^ (i64)((u64)(wide(x) >> 63) >> (65 - 8 * T::W)));
    }

    __device__ __forceinline__ Bits number(u64 i) const {
        const Bits x = ((const Bits*)c.numbers)[i];
        return c.flags & FLAG_SWAP ? swapped(x) : x;
    }

    __device__ __forceinline__ bool is_special(Bits x) const { return c.flags & FLAG_FILL && x == (Bits)c.special; }

    // The number that the map makes of a whole one.
    __device__ __forceinline__ Bits map(Bits q) const {
        switch (c.map) {
            case QUOTIENT: return T::bits(T::round(__ddiv_rn((double)wide(q), c.factor)));
            case PRODUCT: return T::bits(T::round(__dadd_rn(__dmul_rn((double)wide(q), c.factor), c.addend)));
            case SHORT_PRODUCT: {
                const float product = __fmul_rn((float)wide(q), __double2float_rn(c.factor));
                return T::bits(T::round((double)__fadd_rn(product, __double2float_rn(c.addend))));
            }
            case ORDERED: return ordered(q);
            default: return q;
        }
    }

    // The whole number that a number is made of, if it is made of any.
    __device__ __forceinline__ i64 whole(Bits x) const {
        switch (c.map) {
            case QUOTIENT: return nearest(__dmul_rn((double)T::value(x), c.factor));
            case PRODUCT:
            case SHORT_PRODUCT: return nearest(__ddiv_rn(__dsub_rn((double)T::value(x), c.addend), c.factor));
            case ORDERED: return wide(ordered(x));
            default: return wide(x);
        }
    }

    // Whole numbers over the unit, without the fraction: by f64 where those of the host are.
    __device__ __forceinline__ i64 over_unit(i64 k) const {
        const bool is_exact = c.map == WHOLE || c.map == ORDERED;
        if (c.unit < LARGE && (T::W == 4 || !is_exact)) {
            const double x = __dsub_rn(__longlong_as_double((i64)((u64)bits_of(ROUNDING) + (u64)k)), ROUNDING);
            return nearest(trunc(c.unit == 1 ? x : __ddiv_rn(x, (double)c.unit)));
        }
        return c.unit == 1 ? k : k / (i64)c.unit;
    }

    // A number's code. False: it is an exception.
    __device__ __forceinline__ bool code(Bits x, Bits& k) const {
        k = (Bits)over_unit((i64)((u64)whole(x) - c.origin));
        const bool is_lowest = c.flags & FLAG_FILL && k == LOWEST;
        return map((Bits)(c.origin + c.unit * (u64)wide(k))) == x && !is_lowest;
    }

    // The code of the exception at place i. False: what it is was not found.
    __device__ __forceinline__ bool instead(u64 i, Bits& k) const {
        k = 0;
        for (u32 steps = 0; i > 0; steps++) {
            if (steps == FARTHEST) return false;
            const Bits x = number(--i);
            if (!is_special(x) && code(x, k)) return true;
            k = 0;
        }
        return true;
    }

    __device__ __forceinline__ void divide(u32 part, u32 parts) const {
        u32* counts = (u32*)c.found;
        u64* bits = (u64*)(c.found + 8);
        u32* places = (u32*)(bits + c.most);
        u32 seen = 0;
        for (u64 i = (u64)part * THREADS + threadIdx.x; i < c.values; i += (u64)parts * THREADS) {
            const Bits x = number(i);
            Bits k;
            if (is_special(x)) {
                k = LOWEST;
            } else if (!code(x, k)) {
                const u32 at = atomicAdd(&counts[0], 1u);
                // The CPU codes a chunk with more of them.
                if (at < c.most) {
                    bits[at] = x;
                    places[at] = (u32)i;
                    if (!instead(i, k)) seen |= SCALED_FAR;
                }
            }
            ((Bits*)c.codes)[i] = k;
            if (k != 0) seen |= SCALED_SOME;
        }
        __syncwarp();
        seen = warp::any(seen);
        if (seen && threadIdx.x % 32 == 0) atomicOr(&counts[1], seen);
    }
};

template <class S>
__device__ __forceinline__ void divide(const ScaledArgs& args) {
    const ScaledChunk& c = ((const ScaledChunk*)args.chunks)[blockIdx.x / args.parts];
    Numbers<S>{c}.divide(blockIdx.x % args.parts, args.parts);
}

}  // namespace

ENTRY(scaled_divide_f32, ScaledArgs, (THREADS), divide<float>(args))
ENTRY(scaled_divide_f64, ScaledArgs, (THREADS), divide<double>(args))
