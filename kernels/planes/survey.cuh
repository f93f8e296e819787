// SPDX-License-Identifier: MIT OR Apache-2.0
// Which class a tile is of, and what stands for its values then: FORMAT.md §8.1, §8.2, rules 1 to 6. A warp a tile.
//
//   Source         a tile's values: as they are (lossless), or as the bound makes them; each as a number of a class
//   survey         classes 0 and 1: the base, how many exceptions there would be
//   survey_bits    class 2: exceptions, map, base, predictor
//   survey_lengths classes 1 and 2: the classes of lengths
//
// Values are read anew for each step; what the first ones found is the Plan.
#pragma once
#include "exceptions.cuh"
#include "lengths.cuh"

namespace planes {

// A tile's values, and what the bound makes of them: FORMAT.md §8.1.
template <class S, bool LOSSY>
struct Source {
    using T = Traits<S>;
    using I = Int<S>;
    const Array& array;
    Tile p;
    Rule<S> r;
    // The user's fill value; the bits of an infinity, which never holds, where there is none.
    I fill;
    bool fills, swap, is_float;

    __device__ __forceinline__ Source(const Array& array, const Tile& p, const Rule<S>& r, u32 flags, u64 fill)
        : array(array),
          p(p),
          r(r),
          fill(flags & FLAG_FILL ? (I)fill : T::EXPONENT),
          fills(flags & FLAG_FILL),
          swap(flags & FLAG_SWAP),
          is_float(LOSSY || (flags & FLAG_FLOAT)) {}

    __device__ __forceinline__ void load(u32 block, S (&x)[8][4]) const {
        load_block(array, p, block, x);
        if (swap) swap_block(x);
    }

    __device__ __forceinline__ void load_row(int plane, int r, S (&x)[4]) const {
        planes::load_row(array, p, plane, r, swap, x);
    }

    __device__ __forceinline__ Judged<S> judge(S x) const { return {x, r, fill}; }

    // The bits of r(x).
    __device__ __forceinline__ I settled(S x) const {
        if constexpr (LOSSY) return judge(x).settled(x, r);
        return T::bits(x);
    }

    // Whether bits of class 2 are an exception's; `low`: those whose low 29 bits are not 0 too.
    __device__ __forceinline__ bool special(I y, bool low) const {
        constexpr I LOW = (I)(1u << 29) - 1;
        return (is_float && (y & T::EXPONENT) == T::EXPONENT) || (fills && y == fill) || (low && (y & LOW) != 0);
    }

    // Whether any of these, as they are, is special.
    __device__ __forceinline__ bool any_special(const S (&x)[8][4]) const {
        constexpr I SIGN = (I)1 << (8 * T::W - 1);
        I most = 0;
        bool any = false;
#pragma unroll
        for (int k = 0; k < 32; k++) most = max(most, T::bits(x[k / 4][k % 4]) & ~SIGN);
        if (fills) {
#pragma unroll
            for (int k = 0; k < 32; k++) any |= T::bits(x[k / 4][k % 4]) == fill;
        }
        return any || (is_float && most >= T::EXPONENT);
    }

    // False: more values of a block have low bits than a tile may have as exceptions, and not all the same ones.
    __device__ __forceinline__ bool few_low(const S (&x)[8][4], u32 among) const {
        const I first = settled(x[0][0]);
        const bool mine = special(first, true) && (among & 1);
        u32 found = 0;
        bool differ = false;
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const I y = settled(x[k][i]);
                const bool low = special(y, true) && (among >> bit_of(k, i) & 1);
                found += low, differ |= low && mine && y != first;
            }
            // Mostly after three rows.
            if (__any_sync(warp::ALL, differ) && warp::total(found) > (u32)fmt::PLANES_EXCEPTIONS) return false;
        }
        return true;
    }

    // An exception of class 0 or 1.
    __device__ __forceinline__ bool far(const Judged<S>& j, u32 kind, I base) const {
        return !j.holds || (kind == 0 && j.quantum - base + REACH >= 2 * REACH);
    }

    // A lane's exceptions in a block, in order of bits, also beyond the array.
    __device__ __forceinline__ u32 exceptions(const S (&x)[8][4], u32 kind, I base, bool low) const {
        u32 found = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const S y = x[k / 4][k % 4];
            const bool is = kind == 2 ? special(settled(y), low) : far(judge(y), kind, base);
            found |= (u32)is << bit_of(k / 4, k % 4);
        }
        return found;
    }

    // An integer of map 1: bits over a power of two, which is `most` less the mantissa's length.
    static __device__ __forceinline__ I integer(I y, int most) {
        const I mantissa = (y & (((I)1 << T::M) - 1)) | (I)1 << T::M;
        const u32 less = (u32)most - ((u32)(y >> T::M) & ((1u << T::E) - 1));
        const I number = mantissa >> (less & (8 * T::W - 1)), sign = minus(y);
        return y == 0 ? 0 : (number ^ sign) - sign;
    }

    // A block's values as numbers, `plan.base` not taken off yet; those of exceptions mean nothing.
    __device__ __forceinline__ void numbers(const S (&x)[8][4], const Plan& plan, I (&v)[8][4]) const {
        if (LOSSY && (plan.head & 3) < 2) {
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] = judge(x[k / 4][k % 4]).quantum;
        } else if (plan.head & SCALED) {
            const int most = plan.exponent + (1 << (T::E - 1)) - 1 + T::M;
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] = integer(settled(x[k / 4][k % 4]), most);
        } else {
            bits(x, v);
        }
    }
    // Map 0.
    __device__ __forceinline__ void bits(const S (&x)[8][4], I (&v)[8][4]) const {
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] = settled(x[k / 4][k % 4]);
        if (is_float) {
#pragma unroll
            for (int k = 0; k < 32; k++) v[k / 4][k % 4] = ordered(v[k / 4][k % 4]);
        }
    }
};

// Exceptions of a tile: how many, and whether all have the same bits.
template <class S>
struct Exceptions {
    using I = Int<S>;
    u32 count = 0;
    I first = 0;
    bool same = true;

    template <class Source>
    __device__ __forceinline__ void add(const Source& in, const S (&x)[8][4], u32 found) {
        if (found == 0) return;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            if ((found >> bit_of(k / 4, k % 4) & 1) == 0) continue;
            const I bits = in.settled(x[k / 4][k % 4]);
            if (count++ == 0) first = bits;
            same = same && bits == first;
        }
    }
    // Of all lanes; whether a tile with so many values in the array may have them.
    __device__ __forceinline__ bool allowed(u32 inside) {
        const u32 some = __ballot_sync(warp::ALL, count != 0);
        const I one = warp::from(first, some ? __ffs((int)some) - 1 : 0);
        same = __all_sync(warp::ALL, count == 0 || (same && first == one));
        first = one;
        count = warp::total(count);
        return (same || count <= (u32)fmt::PLANES_EXCEPTIONS) && count < inside;
    }
    __device__ __forceinline__ void into(Plan& plan) const {
        plan.masks = count << 8;
        plan.value = first;
        plan.marked = count != 0;
        plan.uniform = same && count != 0;
    }
};

// Gives a block's exceptions the numbers that stand for them. Whole warp.
template <class I>
__device__ __forceinline__ void bridge(I (&v)[8][4], u32 mask, int lane) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const u32 gone = exceptions_of(mask, k);
        if (__any_sync(warp::ALL, gone != 0)) bridge_row(v[k], gone, (I)0, lane);
    }
}

// What map 1 asks of a tile: FORMAT.md §8.2, rule 6.
template <class S>
struct Integers {
    using T = Traits<S>;
    using I = Int<S>;
    // The exponents of the lowest bit that is one, and of the values, as they stand in bits.
    u32 lo = ~0u, hi = 0;
    bool can = true;

    // A row, its exceptions in `gone`. Whole warp.
    __device__ __forceinline__ void add_row(const I (&bits)[4], u32 gone) {
        bool wrong = false;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const I y = bits[i], mantissa = (y & (((I)1 << T::M) - 1)) | (I)1 << T::M;
            const u32 power = (u32)(y >> T::M) & ((1u << T::E) - 1);
            if (y == 0 || (gone >> i & 1)) continue;
            wrong |= power == 0 || power == (1u << T::E) - 1;
            lo = min(lo, power + T::length(mantissa & ((I)0 - mantissa)) - 1), hi = max(hi, power);
        }
        lo = warp::least(lo), hi = ~warp::least(~hi);
        can = !__any_sync(warp::ALL, wrong) && (hi == 0 || hi < lo);
    }
    // A block: mostly the first row tells.
    template <class Source>
    __device__ __forceinline__ void add(const Source& in, const S (&x)[8][4], u32 mask) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            I y[4];
#pragma unroll
            for (int i = 0; i < 4; i++) y[i] = in.settled(x[k][i]);
            add_row(y, exceptions_of(mask, k));
            if (!can) return;
        }
    }
    __device__ __forceinline__ int exponent() const { return (int)lo - ((1 << (T::E - 1)) - 1) - T::M; }
    __device__ __forceinline__ bool some() const { return can && hi > 0 && (int)lo > T::M; }
};

// A block's numbers of classes 1 and 2, exceptions bridged; their mask.
template <class S>
__device__ __forceinline__ u32 numbers_of(const Source<S, true>& in, const Plan& plan, const S (&x)[8][4],
                                          Int<S> (&v)[8][4], int lane) {
    const u32 mask = plan.marked ? in.exceptions(x, plan.head & 3, (Int<S>)plan.base, plan.low) : 0;
    in.numbers(x, plan, v);
#pragma unroll
    for (int k = 0; k < 32; k++) v[k / 4][k % 4] -= (Int<S>)plan.base;
    if (plan.marked) bridge(v, mask, lane);
    return mask;
}

// Puts the cheapest predictor for this first block into the plan; what it costs in plane 1. `zeros`: low zeros of all
// numbers of the tile. Whole warp.
template <class S>
__device__ __forceinline__ u32 cheapest(Int<S> (&v)[8][4], u32 rank, u32 zeros, Plan& plan, int lane) {
    u32 least = ~0u, best = 0;
    // An axis more each time.
    Edge<Int<S>> none;
#pragma unroll
    for (u32 predictor = 0; predictor < 4; predictor++) {
        if (predictor > rank) break;
        if (predictor == 1) forward_x(v, rank, none, lane);
        if (predictor == 2) forward_y(v, rank, none, lane);
        if (predictor == 3) forward_z(v, none);
        u32 cost = 0, some = 0;
#pragma unroll
        for (int k = 16; k < 32; k++) {
            const Int<S> one = v[k / 4][k % 4];
            cost += (u32)Traits<S>::length(zigzag(one));
            some += one != 0;
        }
        cost = warp::total(cost - zeros * some);
        if (cost < least) least = cost, best = predictor;
    }
    plan.head |= best << 2;
    return least;
}

// The same where the first block has not been looked at. Whole warp.
template <class S>
__device__ __forceinline__ u32 choose_wide(const Source<S, true>& in, Plan& plan, int lane) {
    using I = Int<S>;
    S x[8][4];
    I v[8][4], any = 0;
    // Low zeros of all numbers: mostly the first block has none.
    u32 block = 0;
    do {
        in.load(block, x);
        numbers_of(in, plan, x, v, lane);
#pragma unroll
        for (int k = 0; k < 32; k++) any |= v[k / 4][k % 4];
        any = warp::any(any);
    } while ((any & 1) == 0 && ++block < BLOCKS);
    if (block > 0) {
        in.load(0, x);
        numbers_of(in, plan, x, v, lane);
    }
    const u32 zeros = any == 0 ? 0 : (u32)Traits<S>::length(any & ((I)0 - any)) - 1;
    return cheapest<S>(v, in.array.rank, zeros, plan, lane);
}

// Classes 0 and 1: false where neither takes the tile. Whole warp.
template <class S>
__device__ __forceinline__ bool survey(const Source<S, true>& in, Plan& plan, u32 inside, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    S x[8][4];
    bool found = false;
    long long lo = 0, hi = 0;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS && !found; block++) {
        in.load(block, x);
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
            S least = T::infinity(), most = -T::infinity();
#pragma unroll
            for (int i = 0; i < 16; i++) {
                const auto j = in.judge(x[k + i / 4][i % 4]);
                if (j.within) least = T::least(least, j.number), most = T::most(most, j.number);
            }
            warp::range(least, most);
            if (!found && least <= most) found = true, lo = (long long)least, hi = (long long)most;
        }
    }
    if (!found) return false;
    const long long base = middle<S>(lo, hi), mid = (lo + hi) >> 1;
    const bool may = narrow<S>(base);
    Exceptions<S> near, wide;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        in.load(block, x);
        const u32 among = inside_block(in.array, in.p, block);
        near.add(in, x, in.exceptions(x, 0, (I)base, false) & among);
        wide.add(in, x, in.exceptions(x, 1, (I)mid, false) & among);
    }
    const bool is_near = near.allowed(inside) && may, is_wide = wide.allowed(inside);
    if (!is_near && !is_wide) return false;
    (is_near ? near : wide).into(plan);
    plan.head = is_near ? (u32)(base >> Quantizer<S>::UNIT_LOG2) << 11 : 1;
    plan.base = (u64)(is_near ? base : mid);
    if (!is_near) choose_wide(in, plan, lane);
    return true;
}

// A class-2 tile's base: of the first plane that has a number which is no exception. False: neither of this block's.
template <class S>
__device__ __forceinline__ bool base_of(const Int<S> (&v)[8][4], u32 mask, Int<S>& base) {
    using I = Int<S>;
    constexpr I TOP = (I)1 << (8 * sizeof(I) - 1);
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
        I least = ~(I)0, most = 0;
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const I m = v[k + i / 4][i % 4] ^ TOP;
            if (mask >> bit_of(k + i / 4, i % 4) & 1) continue;
            least = min(least, m), most = max(most, m);
        }
        warp::range(least, most);
        if (least <= most) {
            base = (least + (most - least) / 2) ^ TOP;
            return true;
        }
    }
    return false;
}

// Class 2: exceptions, map, base and predictor. Whole warp.
template <class S>
__device__ __forceinline__ void survey_bits(const Source<S, true>& in, Plan& plan, u32 inside, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    plan = {2};
    S x[8][4];
    Integers<S> integers;
    // Mostly there are none of one set, and too many of the other.
    bool some = false, low = T::W == 8 && in.is_float;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        in.load(block, x);
        some |= in.any_special(x);
        if (T::W == 8 && low) low = in.few_low(x, inside_block(in.array, in.p, block));
    }
    some = __any_sync(warp::ALL, some);
    while (low || some) {
        Exceptions<S> found;
#pragma unroll 1
        for (u32 block = 0; block < BLOCKS; block++) {
            in.load(block, x);
            found.add(in, x, in.exceptions(x, 2, 0, low) & inside_block(in.array, in.p, block));
        }
        const bool allowed = found.allowed(inside);
        if (allowed) found.into(plan), plan.low = low;
        if (allowed || !low) break;
        low = false;
    }
    low = plan.low;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS && in.is_float && integers.can; block++) {
        in.load(block, x);
        integers.add(in, x, plan.marked ? in.exceptions(x, 2, 0, low) : 0);
    }
    u32 least = ~0u;
    const bool scaled = in.is_float && integers.some();
    const Plan bits = plan;
#pragma unroll 1
    for (u32 map = 0; map <= (u32)scaled; map++) {
        Plan p = bits;
        if (map) p.head |= SCALED, p.exponent = integers.exponent();
        I base = 0;
        bool found = false;
#pragma unroll 1
        for (u32 block = 0; block < BLOCKS && !found; block++) {
            I v[8][4];
            in.load(block, x);
            in.numbers(x, p, v);
            found = base_of<S>(v, p.marked ? in.exceptions(x, 2, 0, low) : 0, base);
        }
        p.base = base;
        const u32 cost = choose_wide(in, p, lane);
        if (cost <= least) least = cost, plan = p;
    }
}

// Where lengths are counted, in shared memory.
struct Counts {
    u32 of[LENGTHS];
    u16 table[LENGTHS];
};

// Classes 1 and 2: the classes of lengths, into the plan. Whole warp.
template <class S>
__device__ __forceinline__ void survey_lengths(const Source<S, true>& in, Plan& plan, Counts& counts, int lane) {
    using I = Int<S>;
#pragma unroll
    for (u32 k = lane; k < LENGTHS; k += 32) counts.of[k] = 0;
    __syncwarp();
    I any = 0, longest = 0;
    Edge<I> edge;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        S x[8][4];
        I v[8][4];
        in.load(block, x);
        numbers_of(in, plan, x, v, lane);
        forward(v, plan.head >> 2 & 3, in.array.rank, edge, lane);
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const I d = v[k / 4][k % 4], u = zigzag(d);
            any |= d, longest |= u;
            if (k / 4 % 4 == 1) atomicAdd(&counts.of[Traits<S>::length(u)], 1u);
        }
    }
    any = warp::any(any), longest = warp::any(longest);
    const u32 zeros = any == 0 ? 0 : (u32)Traits<S>::length(any & ((I)0 - any)) - 1,
              top = (u32)Traits<S>::length(longest) - zeros;
    __syncwarp();
    const Classes c = choose_classes(counts.of, zeros, top, lane);
    plan.classes = c;
    plan.head |= c.shape << 5;
    fill_table(counts.table, c, lane);
}

}  // namespace planes
