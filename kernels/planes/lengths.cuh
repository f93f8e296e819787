// SPDX-License-Identifier: MIT OR Apache-2.0
// Residuals of classes 1 and 2 as classes of lengths and the bits below them: FORMAT.md §3.3, §8.2. What it is for and
// how it was chosen tells codecs/src/codec/planes/lengths.rs.
//
//   cheapest_of   counts of lengths are summed up; lane k tries L = k and sorts its counts in registers; the least cost
//                 wins
//   look_up       a table in shared memory gives a length's number and width. Three planes of numbers go where other
//                 bit planes go
//   put_fields    the lane's sum of widths, scanned over the warp, says where its fields begin, which it puts together
//                 in a word that is stored when it is full
//   take          planes of numbers become nibbles; a byte permutation looks up four widths at once, their sum and a
//                 scan say where a lane's fields begin; then each field is a funnel shift of two words
#pragma once
#include "wide_differences.cuh"

namespace planes {

// Lengths that are counted, and a look beyond the highest.
constexpr u32 LENGTHS = 96;

// Classes of lengths, as a tile's head has them.
struct Classes {
    u32 least, top, zeros, numbers;
};

// The highest length of class k, of 8: 0, L, L + 1, L + 2, L + 3, L + 4, L + 6, T.
__device__ __forceinline__ u32 highest(u32 k, u32 least, u32 top) {
    return min(k == 0 ? 0 : k == 7 ? top : least + k - (k < 6), top);
}

// Class `lane`, of 8.
struct Range {
    u32 highest, width;
    // The first bit is left out; it holds no length.
    bool hidden, empty;
    __device__ __forceinline__ Range(const Classes& c, int lane) {
        highest = planes::highest(lane & 7, c.least, c.top);
        const u32 before = __shfl_up_sync(warp::ALL, highest, 1);
        hidden = highest == (lane == 0 ? 0 : before + 1) && highest > 0;
        width = highest - hidden;
        empty = lane > 0 && highest == before;
    }
};

// Puts the larger first.
__device__ __forceinline__ void exchange(u32& a, u32& b) {
    const u32 more = max(a, b);
    b = min(a, b), a = more;
}

// What classes with this L cost, `upto` values having a length or a shorter one.
__device__ __forceinline__ u32 cost_of(const u32* upto, u32 least, u32 top) {
    u32 n[8], cost = 0, next = 0, before = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const u32 h = highest(k, least, top), all = upto[h];
        n[k] = all - before;
        cost += n[k] * (h - (h == next && h > 0));
        next = h + 1, before = all;
    }
    exchange(n[0], n[2]), exchange(n[1], n[3]), exchange(n[4], n[6]), exchange(n[5], n[7]);
    exchange(n[0], n[4]), exchange(n[1], n[5]), exchange(n[2], n[6]), exchange(n[3], n[7]);
    exchange(n[0], n[1]), exchange(n[2], n[3]), exchange(n[4], n[5]), exchange(n[6], n[7]);
    exchange(n[2], n[4]), exchange(n[3], n[5]);
    exchange(n[1], n[4]), exchange(n[3], n[6]);
    exchange(n[1], n[2]), exchange(n[3], n[4]), exchange(n[5], n[6]);
    const u32 ones[3] = {n[1] + n[3] + n[5] + n[7], n[2] + n[3] + n[6] + n[7], n[4] + n[5] + n[6] + n[7]};
#pragma unroll
    for (int p = 0; p < 3; p++) cost += ones[p] == 0 ? 0 : min(min(64 + 10 * ones[p], 1500 + 3 * ones[p]), 4096u);
    return cost;
}

// Makes of the counts of a quarter of the tile's values, low zeros counted, how many of all have each length or a
// shorter one. Whole warp.
__device__ __forceinline__ void sum_lengths(const u32* counts, u32* upto, u32 zeros, int lane) {
    u32 sum = 0;
#pragma unroll
    for (u32 k = 0; k < LENGTHS; k += 32) {
        // What is not 0 has more bits than low zeros.
        const u32 len = k + lane, at = len == 0 ? 0 : len + zeros;
        const u32 all = sum + warp::inclusive(at < LENGTHS ? 4 * counts[at] : 0, lane);
        __syncwarp();
        upto[len] = all;
        sum = warp::from(all, 31);
    }
    __syncwarp();
}

// The cheapest L, the lowest among equals: 0 where no length is above it. Whole warp.
__device__ __forceinline__ u32 cheapest_of(const u32* upto, u32 top, int lane) {
    u32 best = ~0u;
#pragma unroll 1
    for (u32 least = lane; least < max(top, 1u); least += 32) best = min(best, cost_of(upto, least, top) << 6 | least);
    return warp::least(best) & 63;
}

// The classes with this L, numbered by falling frequency. Whole warp.
__device__ __forceinline__ Classes classes_of(u32 least, const u32* upto, u32 zeros, u32 top, int lane) {
    Classes c = {least, top, zeros, 0};
    const u32 all = upto[highest(lane & 7, least, top)];
    const u32 before = __shfl_up_sync(warp::ALL, all, 1), mine = lane == 0 ? all : all - before;
    u32 number = 0;
#pragma unroll
    for (u32 k = 0; k < 8; k++) {
        const u32 other = warp::from(mine, k);
        number += other > mine || (other == mine && k < (u32)lane);
    }
    c.numbers = warp::total(lane < 8 ? (u32)lane << 3 * number : 0);
    return c;
}

// By length: the number of its class in the lower byte, the width of a field in the upper one. Whole warp.
__device__ __forceinline__ void fill_table(u16* table, const Classes& c, int lane) {
    const Range range(c, lane);
    u32 number = 0;
#pragma unroll
    for (u32 k = 0; k < 8; k++) {
        if ((c.numbers >> 3 * k & 7) == (u32)lane) number = k;
    }
    const u32 entry = number | range.width << 8;
#pragma unroll
    for (u32 len = lane; len < LENGTHS; len += 32) {
        u32 k = 0;
#pragma unroll
        for (int i = 0; i < 7; i++) k += warp::from(range.highest, i) < len;
        table[len] = (u16)warp::from(entry, k);
    }
    __syncwarp();
}

// By number: widths, and 1 where the first bit is left out, EMPTY where no value may have the number; bytes, the first
// lowest.
constexpr u32 EMPTY = 2;
struct ByNumber {
    u32 width[2], hidden[2];
    __device__ __forceinline__ ByNumber(const Classes& c, int lane) {
        const Range range(c, lane);
        const u32 k = c.numbers >> 3 * (lane & 7) & 7, shift = 8 * (lane & 3);
        const u32 w = warp::from(range.width, k) << shift, h = warp::from(range.empty ? EMPTY : range.hidden, k)
                                                               << shift;
        const bool low = lane < 4, high = lane >= 4 && lane < 8;
        width[0] = warp::total(low ? w : 0), width[1] = warp::total(high ? w : 0);
        hidden[0] = warp::total(low ? h : 0), hidden[1] = warp::total(high ? h : 0);
    }
};

// The sign in the lowest bit, and back.
template <class I>
__device__ __forceinline__ I zigzag(I d) {
    return d << 1 ^ minus(d);
}
template <class I>
__device__ __forceinline__ I unzigzag(I u) {
    return u >> 1 ^ ((I)0 - (u & 1));
}

// A word whose `n` lowest bits are ones, n <= 32.
__device__ __forceinline__ u32 ones(u32 n) { return __funnelshift_lc(~0u, 0, n); }

// A number's lowest bits, `width` of them, at most 32.
__device__ __forceinline__ u32 low_bits(u32 x, u32 width) {
#ifdef __CUDA_ARCH__
    u32 low;
    asm("szext.clamp.u32 %0, %1, %2;" : "=r"(low) : "r"(x), "r"(width));
    return low;
#else
    return x & ones(width);
#endif
}

// Puts fields one after another, from bit `at` on, into words in shared memory: those that this lane fills up, the bits
// of lanes before it being 0. What is left when all lanes have done so is added to the words that other lanes have
// written. On a device by addresses of 32 bits, and a predicate that is found once.
struct FieldWriter {
#ifdef __CUDA_ARCH__
    u32 to, word = 0, at;
    __device__ __forceinline__ FieldWriter(u32* bits, u32 at)
        : to((u32)__cvta_generic_to_shared(bits) + at / 32 * 4), at(at) {}
#else
    u32 *to, word = 0, at;
    FieldWriter(u32* bits, u32 at) : to(bits + at / 32), at(at) {}
#endif
    // At most 32 bits.
    __device__ __forceinline__ void put(u32 field, u32 width) {
        word |= __funnelshift_l(0, field, at);
        const u32 over = __funnelshift_l(field, 0, at), next = at + width;
#ifdef __CUDA_ARCH__
        asm volatile(
            "{ .reg .pred full; .reg .b32 changed;\n"
            "lop3.b32 changed, %2, %3, 0xffffffe0, 0x28;\n"
            "setp.ne.u32 full, changed, 0;\n"
            "@full st.shared.u32 [%1], %0;\n"
            "@full mov.b32 %0, %4;\n"
            "@full add.u32 %1, %1, 4; }"
            : "+r"(word), "+r"(to)
            : "r"(at), "r"(next), "r"(over)
            : "memory");
#else
        if ((at ^ next) & ~31u) *to++ = word, word = over;
#endif
        at = next;
    }
    __device__ __forceinline__ void put_low(u32 u, u32 width) { put(low_bits(u, width), width); }
    __device__ __forceinline__ void put_low(u64 u, u32 width) {
        const u32 low = min(width, 32u);
        put_low((u32)u, low);
        put_low((u32)(u >> 32), width - low);
    }
    __device__ __forceinline__ void end() const {
        __syncwarp();
#ifdef __CUDA_ARCH__
        if (at % 32 != 0) asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
#else
        if (at % 32 != 0) atomicOr(to, word);
#endif
    }
};

// What the table says of a block's numbers, u = zigzag of residuals without low zeros: bit planes of the classes'
// numbers, and fields' widths, four in a word. The sum of these.
template <class S>
__device__ __forceinline__ u32 look_up(const u16* table, const Int<S> (&u)[8][4], u32 (&planes)[3], u32 (&widths)[8]) {
    u32 rows[8], sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        u32 e[4];
#pragma unroll
        for (int i = 0; i < 4; i++) e[i] = table[Traits<S>::length(u[k][i])];
        rows[k] = __byte_perm(__byte_perm(e[0], e[2], 0x0040), __byte_perm(e[1], e[3], 0x0040), 0x5410);
        widths[k] = __byte_perm(__byte_perm(e[0], e[1], 0x0051), __byte_perm(e[2], e[3], 0x0051), 0x5410);
        sum = __dp4a(widths[k], 0x01010101u, sum);
    }
    // Bit p of the numbers of rows k and k + 4.
#pragma unroll
    for (int k = 0; k < 4; k++) rows[k] |= rows[k + 4] << 4;
#pragma unroll
    for (int p = 0; p < 3; p++) {
        planes[p] = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) planes[p] |= (rows[k] >> p & 0x11111111u) << k;
    }
    return sum;
}

// Four fields beside each other, of 16 bits at most, as two.
struct Joined {
    u32 low, high, low_width, high_width;
    __device__ __forceinline__ Joined(const u32 (&u)[4], u32 widths) {
        const u32 first = widths & 0xff, third = __byte_perm(widths, 0, 0x4442),
                  second = __byte_perm(widths, 0, 0x4441), fourth = widths >> 24;
        low = low_bits(u[0], first) | low_bits(u[1], second) << first, low_width = first + second;
        high = low_bits(u[2], third) | low_bits(u[3], fourth) << third, high_width = third + fourth;
    }
};

// Puts a block's fields into `words` words, this lane's from bit `at` on; `most`: bits of the longest, where they are
// short integers', which leave two or four at a time. Whole warp.
template <bool SHORT, class I>
__device__ __forceinline__ void put_fields(u32* bits, u32 words, u32 at, const I (&u)[8][4], const u32 (&widths)[8],
                                           u32 most, int lane) {
    // The last word, which may not be filled up.
    if (lane == 0 && words != 0) bits[words - 1] = 0;
    __syncwarp();
    FieldWriter to(bits, at);
    if constexpr (SHORT) {
        if (most <= 8) {
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const Joined j(u[k], widths[k]);
                to.put(j.low | j.high << j.low_width, j.low_width + j.high_width);
            }
            to.end();
            return;
        }
        if (LIKELY(most <= 16)) {
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const Joined j(u[k], widths[k]);
                to.put(j.low, j.low_width), to.put(j.high, j.high_width);
            }
            to.end();
            return;
        }
    }
#pragma unroll
    for (int k = 0; k < 32; k++) to.put_low(u[k / 4][k % 4], __byte_perm(widths[k / 4], 0, 0x4440 + k % 4));
    to.end();
}

// A field of u.
__device__ __forceinline__ void take_field(const u32* bits, u32 at, u32 width, u32 hidden, u32& u) {
    const u32* from = bits + at / 32;
    u = low_bits(__funnelshift_r(from[0], from[1], at), width) | hidden << (width & 31);
}
__device__ __forceinline__ void take_field(const u32* bits, u32 at, u32 width, u32 hidden, u64& u) {
    const u32* from = bits + at / 32;
    const u32 middle = from[1], low = low_bits(__funnelshift_r(from[0], middle, at), min(width, 32u)),
              high = low_bits(__funnelshift_r(middle, from[2], at), max(width, 32u) - 32);
    u = ((u64)high << 32 | low) | (u64)hidden << (width & 63);
}

// What a block's planes of numbers say of its fields: their widths, and whether the first bit is left out. Bytes, of
// rows k and k + 4: of columns 0 and 2, and of 1 and 3.
struct Fields {
    u32 widths[4][2], hidden[4][2];
    // A number is that of a class which holds no length.
    bool any_empty;
    // Returns the sum of the widths.
    __device__ __forceinline__ u32 look_up(const u32 (&planes)[3], const ByNumber& of) {
        u32 sum = 0, any = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const u32 numbers = (planes[0] >> k & 0x11111111u) | (planes[1] >> k & 0x11111111u) << 1 |
                                (planes[2] >> k & 0x11111111u) << 2;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                widths[k][i] = __byte_perm(of.width[0], of.width[1], numbers >> 16 * i);
                hidden[k][i] = __byte_perm(of.hidden[0], of.hidden[1], numbers >> 16 * i);
                sum = __dp4a(widths[k][i], 0x01010101u, sum), any |= hidden[k][i];
            }
        }
        any_empty = any & EMPTY * 0x01010101u;
        return sum;
    }
    // Width of the field in row k and column i, and whether its first bit is left out.
    __device__ __forceinline__ u32 width(int k, int i) const {
        return __byte_perm(widths[k % 4][i % 2], 0, 0x4440 + i / 2 * 2 + k / 4);
    }
    __device__ __forceinline__ u32 first(int k, int i) const {
        return __byte_perm(hidden[k % 4][i % 2], 0, 0x4440 + i / 2 * 2 + k / 4);
    }
    // Takes short residuals, `COUNT` at a time, which have 32 bits together at most.
    template <int COUNT>
    __device__ __forceinline__ void take_joined(const u32* bits, u32 at, u32 zeros, u32 (&d)[8][4]) const {
#pragma unroll
        for (int k = 0; k < 32; k += COUNT) {
            const u32* from = bits + at / 32;
            u32 fields = __funnelshift_r(from[0], from[1], at);
#pragma unroll
            for (int i = k; i < k + COUNT; i++) {
                const u32 w = width(i / 4, i % 4);
                d[i / 4][i % 4] = unzigzag(low_bits(fields, w) | first(i / 4, i % 4) << w) << zeros;
                fields >>= w, at += w;
            }
        }
    }
    // Takes residuals, from bit `at` on.
    template <class I>
    __device__ __forceinline__ void take(const u32* bits, u32 at, u32 zeros, I (&d)[8][4]) const {
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 w = width(k, i);
                I u;
                take_field(bits, at, w, first(k, i), u);
                d[k][i] = unzigzag(u) << zeros;
                at += w;
            }
        }
    }
};

}  // namespace planes
