// SPDX-License-Identifier: MIT OR Apache-2.0
// Residuals of classes 1 and 2 as classes of lengths and the bits below them: FORMAT.md §3.3, §8.2. What it is for and
// how it was chosen tells src/codec/planes/lengths.rs.
//
//   choose_classes   counts of lengths are summed up; lane L tries each shape with L and sorts its counts in registers;
//                    the least cost wins
//   put_lengths      a table in shared memory gives a length's number and width. Three planes of numbers go where other
//                    bit planes go; the lane's sum of widths, scanned over the warp, says where its fields begin, which
//                    it puts together in a word that is stored when it is full
//   take_lengths     planes of numbers become nibbles; a byte permutation looks up four widths at once, their sum and a
//                    scan say where a lane's fields begin; then each field is a funnel shift of two words
#pragma once
#include "wide.cuh"

namespace planes {

// Lengths that are counted, and a look beyond the highest.
constexpr u32 LENGTHS = 96;

// The highest lengths of a shape's classes, four bits each, the first lowest: 14 is none, 15 is T, any other is above
// L.
constexpr u32 SHAPE_COUNT = 7;
__device__ __forceinline__ constexpr u32 highs_of(u32 shape) {
    return shape == 0   ? 0xffffffffu
           : shape == 1 ? 0xfffffffeu
           : shape == 2 ? 0xfffffff0u
           : shape == 3 ? 0xfffff210u
           : shape == 4 ? 0xfffff20eu
           : shape == 5 ? 0xf7543210u
                        : 0xf643210eu;
}
__device__ __forceinline__ constexpr u32 classes_of(u32 shape) {
    return shape == 0 ? 1 : shape < 3 ? 2 : shape < 5 ? 4 : 8;
}

__device__ __forceinline__ u32 highest(u32 highs, u32 k, u32 least, u32 top) {
    const u32 high = highs >> 4 * k & 15;
    return min(high == 15 ? top : high == 14 ? 0 : least + high, top);
}

// Class `lane`, of 8.
struct Range {
    u32 highest, width;
    // The first bit is left out.
    bool hidden;
    __device__ __forceinline__ Range(const Classes& c, int lane) {
        highest = planes::highest(highs_of(c.shape), lane & 7, c.least, c.top);
        const u32 before = __shfl_up_sync(warp::ALL, highest, 1);
        hidden = highest == (lane == 0 ? 0 : before + 1) && highest > 0;
        width = highest - hidden;
    }
};

// Puts the larger first.
__device__ __forceinline__ void exchange(u32& a, u32& b) {
    const u32 more = max(a, b);
    b = min(a, b), a = more;
}

// What a shape with this L costs, `upto` values having a length or a shorter one.
template <u32 SHAPE>
__device__ __forceinline__ u32 cost_of(const u32* upto, u32 least, u32 top) {
    constexpr int N = (int)classes_of(SHAPE);
    u32 n[8] = {}, cost = 0, next = 0, before = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const u32 h = highest(highs_of(SHAPE), k, least, top), all = upto[h];
        n[k] = all - before;
        cost += n[k] * (h - (h == next && h > 0));
        next = h + 1, before = all;
    }
    if (N == 2) exchange(n[0], n[1]);
    if (N == 4)
        exchange(n[0], n[1]), exchange(n[2], n[3]), exchange(n[0], n[2]), exchange(n[1], n[3]), exchange(n[1], n[2]);
    if (N == 8) {
        exchange(n[0], n[2]), exchange(n[1], n[3]), exchange(n[4], n[6]), exchange(n[5], n[7]);
        exchange(n[0], n[4]), exchange(n[1], n[5]), exchange(n[2], n[6]), exchange(n[3], n[7]);
        exchange(n[0], n[1]), exchange(n[2], n[3]), exchange(n[4], n[5]), exchange(n[6], n[7]);
        exchange(n[2], n[4]), exchange(n[3], n[5]);
        exchange(n[1], n[4]), exchange(n[3], n[6]);
        exchange(n[1], n[2]), exchange(n[3], n[4]), exchange(n[5], n[6]);
    }
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

// A choice of classes, the cheaper the less.
__device__ __forceinline__ constexpr u32 choice(u32 cost, u32 shape, u32 least) {
    return cost << 9 | shape << 6 | least;
}

// A shape's cheapest choice of those that this lane tries.
template <u32 SHAPE>
__device__ __forceinline__ u32 cheapest_of(const u32* upto, u32 top, int lane) {
    if (SHAPE < 2) return choice(cost_of<SHAPE>(upto, 0, top), SHAPE, 0);
    u32 best = ~0u;
#pragma unroll 1
    for (u32 least = lane; least < top; least += 32)
        best = min(best, choice(cost_of<SHAPE>(upto, least, top), SHAPE, least));
    return best;
}

// The classes of a choice, numbered by falling frequency. Whole warp.
__device__ __forceinline__ Classes classes_of(u32 best, const u32* upto, u32 zeros, u32 top, int lane) {
    Classes c = {best >> 6 & 7, best & 63, top, zeros, 0};
    const u32 count = classes_of(c.shape), all = upto[highest(highs_of(c.shape), lane & 7, c.least, top)];
    const u32 before = __shfl_up_sync(warp::ALL, all, 1), mine = lane == 0 ? all : all - before;
    u32 number = 0;
#pragma unroll
    for (u32 k = 0; k < 8; k++) {
        const u32 other = warp::from(mine, k);
        number += k < count && (other > mine || (other == mine && k < (u32)lane));
    }
    c.numbers = warp::total(lane < (int)count ? (u32)lane << 3 * number : 0);
    return c;
}

// The cheapest classes for counts, which become sums. Whole warp.
__device__ __forceinline__ Classes choose_classes(u32* upto, u32 zeros, u32 top, int lane) {
    sum_lengths(upto, upto, zeros, lane);
    u32 best = min(cheapest_of<0>(upto, top, lane), cheapest_of<1>(upto, top, lane));
    best = min(best, min(cheapest_of<2>(upto, top, lane), cheapest_of<3>(upto, top, lane)));
    best = min(best, min(cheapest_of<4>(upto, top, lane), cheapest_of<5>(upto, top, lane)));
    best = min(best, cheapest_of<6>(upto, top, lane));
    return classes_of(warp::least(best), upto, zeros, top, lane);
}

// By length: the number of its class in the lower byte, the width of a field in the upper one. Whole warp.
// Of several warps each fills a part.
__device__ __forceinline__ void fill_table(u16* table, const Classes& c, int lane, u32 part = 0, u32 parts = 1) {
    const Range range(c, lane);
    const u32 count = classes_of(c.shape);
    u32 number = 0;
#pragma unroll
    for (u32 k = 0; k < 8; k++) {
        if (k < count && (c.numbers >> 3 * k & 7) == (u32)lane) number = k;
    }
    const u32 entry = number | range.width << 8;
#pragma unroll
    for (u32 len = 32 * part + lane; len < LENGTHS; len += 32 * parts) {
        u32 k = 0;
#pragma unroll
        for (int i = 0; i < 7; i++) k += warp::from(range.highest, i) < len;
        table[len] = (u16)warp::from(entry, k);
    }
    __syncwarp();
}

// By number: widths, and 1 where the first bit is left out; bytes, the first lowest.
struct ByNumber {
    u32 width[2], hidden[2];
    __device__ __forceinline__ ByNumber(const Classes& c, int lane) {
        const Range range(c, lane);
        const u32 k = c.numbers >> 3 * (lane & 7) & 7, shift = 8 * (lane & 3);
        const u32 w = warp::from(range.width, k) << shift, h = warp::from((u32)range.hidden, k) << shift;
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

// So many ones, at most 32.
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

// Where bit planes go: the parts of a payload, and how much each has. Where there are none, they are counted only.
struct Sink {
    bool write = false;
    u32 *ballots, *nibbles, *words;
    u8* bytes;
    u16* modes;
    Parts n = {0};
    // Of classes 1 and 2: where fields go, words of them so far.
    u32* bits;
    u32 bit_words = 0;

    // Puts a bit plane; returns its mode. `full`: it and what comes after it in the block is stored whole. FORMAT.md
    // §8.3.
    __device__ __forceinline__ u32 put(u32 word, bool by_bytes, u32 most_bytes, bool& full, int lane) {
        const u32 lower = (1u << lane) - 1, ballot = __ballot_sync(warp::ALL, word != 0);
        if (ballot == 0) return 0;
        const u32 lanes = __popc(ballot), before = __popc(ballot & lower);
        if (!full && !by_bytes && lanes < 32) {
            if (write && lane == 0) ballots[n.ballots] = ballot;
            if (write && word != 0) words[n.words + before] = word;
            n.ballots++;
            n.words += lanes;
            return 2;
        }
        if (!full && by_bytes) {
            const Sparse sparse(word, ballot, lane);
            const u32 all = sparse.bytes();
            if (sparse.pays() && n.bytes + all <= most_bytes) {
                if (write) {
                    if (lane == 0) ballots[n.ballots] = ballot;
                    sparse.put(nibbles, n.nibbles, bytes + n.bytes);
                }
                n.ballots++;
                n.nibbles += lanes;
                n.bytes += all;
                return 3;
            }
        }
        full = true;
        if (write) words[n.words + lane] = word;
        n.words += 32;
        return 1;
    }
};

// Puts fields one after another, from bit `at` on, into words: those that this lane fills up, the bits of lanes before
// it being 0. What is left when all lanes have done so is added to the words that other lanes have written. SHARED: the
// words are in shared memory.
template <bool SHARED>
struct FieldWriter {
    u32 *to, word = 0, at;
    __device__ __forceinline__ FieldWriter(u32* bits, u32 at) : to(bits + at / 32), at(at) {}
    // At most 32 bits.
    __device__ __forceinline__ void put(u32 field, u32 width) {
        word |= __funnelshift_l(0, field, at);
        const u32 over = __funnelshift_l(field, 0, at), next = at + width;
        const bool full = ((at ^ next) & ~31u) != 0;
        if (full) *to = word;
        word = full ? over : word;
        to += full;
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
        if (at % 32 != 0) atomicOr(to, word);
    }
};

#ifdef __CUDA_ARCH__
// The same with addresses of 32 bits, and a predicate that is found once.
template <>
struct FieldWriter<true> {
    u32 to, word = 0, at;
    __device__ __forceinline__ FieldWriter(u32* bits, u32 at)
        : to((u32)__cvta_generic_to_shared(bits) + at / 32 * 4), at(at) {}
    __device__ __forceinline__ void put(u32 field, u32 width) {
        word |= __funnelshift_l(0, field, at);
        const u32 over = __funnelshift_l(field, 0, at), next = at + width;
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
        if (at % 32 != 0) asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
    }
};
#endif

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

// Puts a block's fields into `words` words, this lane's from bit `at` on. Whole warp.
template <bool SHARED, class I>
__device__ __forceinline__ void put_fields(u32* bits, u32 words, u32 at, const I (&u)[8][4], const u32 (&widths)[8],
                                           int lane) {
    // The last word, which may not be filled up.
    if (lane == 0 && words != 0) bits[words - 1] = 0;
    __syncwarp();
    FieldWriter<SHARED> to(bits, at);
#pragma unroll
    for (int k = 0; k < 32; k++) to.put_low(u[k / 4][k % 4], __byte_perm(widths[k / 4], 0, 0x4440 + k % 4));
    to.end();
}

// Puts a block's numbers; returns the modes of its planes. Whole warp.
template <class S>
__device__ __forceinline__ u32 put_lengths(Sink& out, const u16* table, const Int<S> (&u)[8][4], int lane) {
    u32 planes[3], widths[8], modes = 0;
    const u32 mine = look_up<S>(table, u, planes, widths);
    bool full = false;
#pragma unroll
    for (int p = 2; p >= 0; p--) modes |= out.put(planes[p], true, (u32)fmt::PLANES_BYTES, full, lane) << 2 * p;
    const u32 upto = warp::inclusive(mine, lane), words = (warp::from(upto, 31) + 31) / 32;
    if (out.write) {
        put_fields<false>(out.bits + out.bit_words, words, upto - mine, u, widths, lane);
        __syncwarp();
    }
    out.bit_words += words;
    return modes;
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
    // Returns the sum of the widths.
    __device__ __forceinline__ u32 look_up(const u32 (&planes)[3], const ByNumber& of) {
        u32 sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const u32 numbers = (planes[0] >> k & 0x11111111u) | (planes[1] >> k & 0x11111111u) << 1 |
                                (planes[2] >> k & 0x11111111u) << 2;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                widths[k][i] = __byte_perm(of.width[0], of.width[1], numbers >> 16 * i);
                hidden[k][i] = __byte_perm(of.hidden[0], of.hidden[1], numbers >> 16 * i);
                sum = __dp4a(widths[k][i], 0x01010101u, sum);
            }
        }
        return sum;
    }
    // Takes residuals, from bit `at` on.
    template <class I>
    __device__ __forceinline__ void take(const u32* bits, u32 at, u32 zeros, I (&d)[8][4]) const {
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 select = 0x4440 + i / 2 * 2 + k / 4;
                const u32 width = __byte_perm(widths[k % 4][i % 2], 0, select),
                          first = __byte_perm(hidden[k % 4][i % 2], 0, select);
                I u;
                take_field(bits, at, width, first, u);
                d[k][i] = unzigzag(u) << zeros;
                at += width;
            }
        }
    }
};

// Takes a block's residuals, whose planes have these modes, from the bits at `bits`, and leaves what stands behind them
// there. False: they reach beyond `end`, or are followed by bits that are not 0. Whole warp.
template <class I>
__device__ __forceinline__ bool take_lengths(Taker& t, u32 modes, const ByNumber& of, u32 zeros, const u32*& bits,
                                             const u32* end, I (&d)[8][4], int lane) {
    u32 planes[3];
#pragma unroll
    for (int p = 2; p >= 0; p--) planes[p] = take_plane(t, modes >> 2 * p & 3, lane);
    Fields fields;
    const u32 mine = fields.look_up(planes, of);
    const u32 upto = warp::inclusive(mine, lane), all = warp::from(upto, 31), words = (all + 31) / 32;
    if (words > (u32)(end - bits)) return false;
    const bool filled = all % 32 == 0 || bits[words - 1] >> all % 32 == 0;
    fields.take(bits, upto - mine, zeros, d);
    bits += words;
    return filled;
}

}  // namespace planes
