// SPDX-License-Identifier: MIT OR Apache-2.0
// Tiles of every class, with exceptions or without: FORMAT.md §3.2, §4, §8. A warp a tile, and no tile is too long.
//
// Nearly all tiles are of class 0, and planes.cu codes them from registers. Any other comes here, and what that has no room
// for: nothing of it is tuned, and planes.cu calls it where it keeps nothing in registers. Numbers are as wide as the values,
// 32 of a block in a lane.
//
//   encode    survey       what each value becomes, for class 0 and for class 1: the class, the base, the exceptions
//             code         block after block: quanta less the base, exceptions filled in, differences, bit planes; counts
//                          what it would write
//             plan_tile    both; where that is not shorter than the values, class 3. Now the tile's place can be found
//             write_tile   the head; `code` again, which writes; exceptions' values. Then the words are read once more, for
//                          the checksum
//   decode    open_any     all lengths, from what stands in front: nothing read later is beyond the tile
//             take_any     block after block: bit planes, sums, values, exceptions
//
// Values are read anew for each step; what the first ones found is the Plan. The order of a lane's 32 values is that of
// planes, rows and columns, [4 * (plane mod 2) + row][column]; that of a bit plane's bits is `bit_of`.
#pragma once
#include "../base/checksum.cuh"
#include "exceptions.cuh"

namespace planes {

// The head of a tile of class 3.
constexpr u32 RAW = 3;

template <class I>
struct SignedOf;
template <>
struct SignedOf<u32> {
    using Type = int;
};
template <>
struct SignedOf<u64> {
    using Type = long long;
};

// All ones where a number is negative.
template <class I>
__device__ __forceinline__ I minus(I v) {
    return (I)0 - (v >> (8 * sizeof(I) - 1));
}

// Between a float's bits and a number of the same order; undoes itself.
template <class I>
__device__ __forceinline__ I ordered(I bits) {
    return bits ^ (minus(bits) & ~((I)1 << (8 * sizeof(I) - 1)));
}

// Slices of a block, as its tile's head says.
__device__ __forceinline__ u32 slices_of(u32 head, u32 block) {
    return (head & 3) == 0 ? 1 + (head >> (4 + block) & 1) : head >> (16 + 4 * block) & 15;
}
__device__ __forceinline__ u32 slices_of(u32 head) {
    return slices_of(head, 0) + slices_of(head, 1) + slices_of(head, 2) + slices_of(head, 3);
}

// The place of a lane's row among the tile's values that lie in the array, in order of z, y, x.
__device__ __forceinline__ u32 place_of_row(const Array& c, const Tile& p, int plane, int r, int lane) {
    if (c.rank == 1) return 512 * plane + 128 * r + 4 * lane;
    const int x = 4 * (lane % 8), y = 4 * (lane / 8);
    const int width = p.left ? p.values() + x : 32, height = p.left ? min(p.rows() + y, 16) : 16;
    return (u32)((plane * (c.rank == 2 ? 16 : height) + y + r) * width + x);
}

// --- differences and sums -----------------------------------------------------------------------------------------------

// What goes from one block of a tile to the next, forth or back.
template <class I>
struct Edge {
    I left = 0;         // grid rank 1: the value before
    I up[4] = {};       // grid rank 2: the row before
    I back[4][4] = {};  // grid rank 3: the plane before
};

// Differences of a block along as many axes as the predictor says.
template <class I>
__device__ __forceinline__ void forward(I (&v)[8][4], u32 predictor, u32 rank, Edge<I>& edge, int lane) {
    if (predictor > 0) {
        I row = edge.left;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            I left = warp::from(v[k][3], (lane + 31) & 31);
            if (rank == 1) {
                const I last = left;
                if (lane == 0) left = row;
                row = last;
            } else if (lane % 8 == 0) {
                left = 0;
            }
#pragma unroll
            for (int i = 3; i > 0; i--) v[k][i] -= v[k][i - 1];
            v[k][0] -= left;
        }
        edge.left = row;
    }
    if (predictor > 1) {
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const I last = warp::from(v[k + 3][i], (lane + 24) & 31), up = lane < 8 ? edge.up[i] : last;
                if (rank == 2) edge.up[i] = last;
#pragma unroll
                for (int r = 3; r > 0; r--) v[k + r][i] -= v[k + r - 1][i];
                v[k][i] -= up;
            }
        }
    }
    if (predictor > 2) {
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const int r = k / 4, i = k % 4;
            const I next = v[4 + r][i];
            v[4 + r][i] -= v[r][i];
            v[r][i] -= edge.back[r][i];
            edge.back[r][i] = next;
        }
    }
}

// Undoes it.
template <class I>
__device__ __forceinline__ void backward(I (&v)[8][4], u32 predictor, u32 rank, Edge<I>& edge, int lane) {
    if (predictor > 2) {
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const int r = k / 4 % 4, i = k % 4;
            v[k / 4][i] = edge.back[r][i] += v[k / 4][i];
        }
    }
    if (predictor > 1) {
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int r = 1; r < 4; r++) v[k + r][i] += v[k + r - 1][i];
                I upto = v[k + 3][i];
#pragma unroll
                for (int by = 8; by < 32; by *= 2) {
                    const I x = __shfl_up_sync(warp::ALL, upto, by);
                    if (lane >= by) upto += x;
                }
                const I less = upto - v[k + 3][i] + edge.up[i];
                if (rank == 2) edge.up[i] += warp::from(upto, 24 + lane % 8);
#pragma unroll
                for (int r = 0; r < 4; r++) v[k + r][i] += less;
            }
        }
    }
    if (predictor > 0) {
        const int reach = rank == 1 ? 32 : 8, at = lane & (reach - 1);
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 1; i < 4; i++) v[k][i] += v[k][i - 1];
            I upto = v[k][3];
#pragma unroll 1
            for (int by = 1; by < reach; by *= 2) {
                const I x = __shfl_up_sync(warp::ALL, upto, by);
                if (at >= by) upto += x;
            }
            const I less = upto - v[k][3] + edge.left;
            if (rank == 1) edge.left += warp::from(upto, 31);
#pragma unroll
            for (int i = 0; i < 4; i++) v[k][i] += less;
        }
    }
}

// The cheapest predictor for a tile with this first block.
template <class S>
__device__ __forceinline__ u32 choose(const Int<S> (&v)[8][4], u32 rank, int lane) {
    u32 least = ~0u, best = 0;
#pragma unroll 1
    for (u32 predictor = 0; predictor <= rank; predictor++) {
        Int<S> d[8][4], all = 0;
        Edge<Int<S>> none;
#pragma unroll
        for (int k = 0; k < 32; k++) d[k / 4][k % 4] = v[k / 4][k % 4];
        forward(d, predictor, rank, none, lane);
#pragma unroll
        for (int k = 16; k < 32; k++) all |= d[k / 4][k % 4] ^ minus(d[k / 4][k % 4]);
        const u32 cost = warp::total((u32)Traits<S>::length(all));
        if (cost < least) least = cost, best = predictor;
    }
    return best;
}

// --- encode -------------------------------------------------------------------------------------------------------------

// A tile's values, and what the bound makes of them: FORMAT.md §8.1.
template <class S>
struct Source {
    using T = Traits<S>;
    using I = Int<S>;
    const Array& array;
    Tile p;
    Rule<S> r;
    // Bits that count as fill; those of an infinity, which never holds, where there is none.
    I fill;
    bool swap;

    // Of the growing tile.
    __device__ __forceinline__ Source(const Stage& s, const Rule<S>& r, int lane)
        : array(s.array), p(tile_at(s.array, s.number - s.first_tile, lane)), r(r),
          fill(fill_of<S>(s)), swap(s.flags & FLAG_SWAP) {}

    __device__ __forceinline__ void load(u32 block, S (&x)[8][4]) const {
        load_block(array, p, block, x);
        if (swap) swap_block(x);
    }

    __device__ __forceinline__ Judged<S> judge(S x) const { return {x, r, fill}; }

    // The bits of r(x).
    __device__ __forceinline__ I settled(S x) const {
        return judge(x).settled(x, r);
    }

    // A value as a number of its tile's class, less the base; whether it is an exception.
    __device__ __forceinline__ I number(S x, u32 kind, I base, bool& exception) const {
        if (kind == 2) {
            exception = false;
            return ordered(settled(x)) - base;
        }
        const Judged<S> j = judge(x);
        const I v = j.quantum - base;
        exception = !j.holds || (kind == 0 && v + REACH >= 2 * REACH);
        return v;
    }

    // A lane's exceptions in a block, in order of bits, also beyond the array.
    __device__ __forceinline__ u32 exceptions(const S (&x)[8][4], u32 kind, I base) const {
        u32 found = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            bool exception;
            number(x[k / 4][k % 4], kind, base, exception);
            found |= (u32)exception << bit_of(k / 4, k % 4);
        }
        return found;
    }
};

// Exceptions of a tile: how many, and whether all have the same bits.
template <class S>
struct Exceptions {
    using I = Int<S>;
    u32 count = 0;
    I first = 0;
    bool same = true;

    __device__ __forceinline__ void add(const Source<S>& in, const S (&x)[8][4], u32 found) {
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
};

// The class of a tile, its base and its exceptions. Whole warp.
template <class S>
__device__ __forceinline__ Plan survey(const Source<S>& in, u32 inside) {
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
    if (found) {
        const long long base = middle<S>(lo, hi), mid = (lo + hi) >> 1;
        const bool may = narrow<S>(base);
        Exceptions<S> near, wide;
#pragma unroll 1
        for (u32 block = 0; block < BLOCKS; block++) {
            in.load(block, x);
            const u32 among = inside_block(in.array, in.p, block);
            near.add(in, x, in.exceptions(x, 0, (I)base) & among);
            wide.add(in, x, in.exceptions(x, 1, (I)mid) & among);
        }
        const bool is_near = near.allowed(inside) && may, is_wide = wide.allowed(inside);
        if (is_near || is_wide) {
            const Exceptions<S>& e = is_near ? near : wide;
            const u32 flags = e.count == 0 ? 0 : e.same ? WITH_EXCEPTIONS | UNIFORM : WITH_EXCEPTIONS;
            const u32 head = is_near ? (u32)(base >> Quantizer<S>::UNIT_LOG2) << 11 : 1;
            return {head | flags, e.count << 8, 0, 0, 0, 0, (u64)(is_near ? base : mid), e.first};
        }
    }
    // Plane 0 gives the base; numbers are ordered as unsigned ones.
    constexpr I TOP = (I)1 << (8 * sizeof(I) - 1);
    in.load(0, x);
    I least = ~(I)0, most = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) {
        const I m = ordered(in.settled(x[k / 4][k % 4])) ^ TOP;
        least = min(least, m), most = max(most, m);
    }
    warp::range(least, most);
    return {2, 0, 0, 0, 0, 0, (u64)((least + (most - least) / 2) ^ TOP), 0};
}

// Where bit planes go: the parts of a payload, and how much each has. Where there are none, they are counted only.
struct Sink {
    bool write = false;
    u32 *ballots, *nibbles, *words;
    u8* bytes;
    u16* modes;
    Parts n = {0};

    // Puts a bit plane; returns its mode. `full`: it and what comes after it in the block is stored whole. FORMAT.md §8.3.
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
            const u32 some = nonzero_bytes(word), count = (u32)__popc(some);
            const u32 upto = warp::inclusive(count, lane), all = warp::from(upto, 31);
            if (8 + lanes + 2 * all < (u32)fmt::PLANES_FULL && n.bytes + all <= most_bytes) {
                if (write) {
                    const u32 at = n.nibbles + before;
                    u8* to = bytes + n.bytes + upto - count;
                    if (lane == 0) ballots[n.ballots] = ballot;
                    if (word != 0) atomicOr(nibbles + at / 8, some << 4 * (at % 8));
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        if (some >> k & 1) *to++ = (u8)(word >> 8 * k);
                    }
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

// Byte `slice` of a lane's values of a block, in order of bits.
template <class I>
__device__ __forceinline__ void bytes_of(const I (&v)[8][4], u32 slice, u32 (&x)[8]) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        x[k] = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) x[k] |= (u32)(u8)(v[k][i] >> 8 * slice) << 8 * byte_of(i);
    }
}

// Codes a tile as its plan says. The plan's counts, predictor and slices are found where nothing is written. Whole warp.
template <class S>
__device__ __noinline__ void code(Stage& s, Rule<S> r, Sink& out, int lane) {
    using I = Int<S>;
    Plan& plan = s.plan;
    const Source<S> in(s, r, lane);
    const bool dense = s.flags & FLAG_DENSE;
    const u32 rank = in.array.rank, kind = plan.head & 3;
    const I base = (I)plan.base;
    u32 head = plan.head, masks = plan.masks, first = 0;
    I last = 0;
    Edge<I> edge;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        I v[8][4];
        u32 mask = 0;
        {
            S x[8][4];
            in.load(block, x);
#pragma unroll
            for (int k = 0; k < 32; k++) {
                bool exception;
                v[k / 4][k % 4] = in.number(x[k / 4][k % 4], kind, base, exception);
                mask |= (u32)exception << bit_of(k / 4, k % 4);
            }
        }
        // In place of an exception stands its predecessor; at first the lane's first number that is none.
#pragma unroll
        for (int k = 31; k >= 0; k--) {
            if ((mask >> bit_of(k / 4, k % 4) & 1) == 0) last = v[k / 4][k % 4];
        }
#pragma unroll
        for (int k = 0; k < 32; k++) {
            if (mask >> bit_of(k / 4, k % 4) & 1) v[k / 4][k % 4] = last;
            last = v[k / 4][k % 4];
        }
        if (!out.write && block == 0) head |= choose<S>(v, rank, lane) << 2;
        forward(v, head >> 2 & 3, rank, edge, lane);
        // How long they are, and what stands for them.
        I any = 0, folded = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) any |= v[k / 4][k % 4], folded |= v[k / 4][k % 4] ^ minus(v[k / 4][k % 4]);
        const u32 mine = any == 0 ? 0 : (u32)Traits<S>::length(folded) / 8 + 1;
        const u32 slices = max(~warp::least(~mine), kind == 0 ? 1u : 0u);
        const I sign_bit = slices == 0 ? 0 : (I)1 << (8 * slices - 1), below = sign_bit - (slices != 0);
#pragma unroll
        for (int k = 0; k < 32; k++) {
            I& d = v[k / 4][k % 4];
            const I negative = minus(d);
            d ^= negative;
            if (kind != 0) d -= negative;
            d = (d & below) | (negative & sign_bit);
        }
        // Bit planes: the signs, which are the highest one, at last.
        u32 sign = 0, upper = 0;
        bool full = false;
#pragma unroll 1
        for (int slice = (int)slices - 1; slice >= 0; slice--) {
            const bool top = slice == (int)slices - 1;
            u32 x[8], modes = 0;
            bytes_of(v, slice, x);
            transpose(x);
            if (top) sign = x[7];
            const Parts less = out.n;
#pragma unroll 1
            for (int p = 7; p >= 0; p--) {
                if (p < 7 || !top) {
                    modes |= out.put(x[7], dense, (u32)fmt::PLANES_BYTES, full, lane) << 2 * p;
                }
#pragma unroll
                for (int k = 7; k > 0; k--) x[k] = x[k - 1];
            }
            if (top) {
                upper = modes;
                continue;
            }
            if (out.write && modes == 0x5555u) {
                // All eight planes full: they stand as bytes, those of class 0 as they are in the residuals.
                bytes_of(v, slice, x);
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    const u32 negative = kind == 0 ? (sign >> k & 0x01010101u) * 255 : 0;
                    out.words[less.words + 32 * k + lane] = x[k] ^ negative;
                }
            }
            if (out.write && lane == 0) out.modes[first + slice] = (u16)modes;
        }
        if (slices > 0) {
            upper |= out.put(sign, dense, (u32)fmt::PLANES_BYTES, full, lane) << 14;
            if (out.write && lane == 0) out.modes[first + slices - 1] = (u16)upper;
        }
        first += slices;
        if (!out.write) head |= kind != 0 ? slices << (16 + 4 * block) : (slices - 1) << (4 + block);
        if (head & WITH_EXCEPTIONS) {
            bool alone = false;
            mask &= inside_block(in.array, in.p, block);
            const u32 mode = out.put(mask, true, ~0u, alone, lane);
            if (!out.write) masks |= mode << 2 * block;
        }
    }
    __syncwarp();
    if (!out.write && lane == 0) {
        plan.head = head, plan.masks = masks;
        plan.ballots = out.n.ballots, plan.nibbles = out.n.nibbles, plan.words = out.n.words, plan.bytes = out.n.bytes;
    }
    __syncwarp();
}

// Words of a tile before its ballots.
template <class S>
__device__ __forceinline__ u32 front_of(u32 head) {
    return 1 + ((head & 3) == 0 ? 0 : Traits<S>::W / 4) + (head & WITH_EXCEPTIONS ? 1 : 0) + (slices_of(head) + 1) / 2;
}

// Plans the growing tile, whatever its class; returns the words that it will have. Whole warp.
template <class S>
__device__ __forceinline__ u32 plan_tile(Stage& s, Rule<S> r, int lane) {
    constexpr u32 W = Traits<S>::W / 4;
    const u32 inside = s.inside;
    Plan& plan = s.plan;
    const Plan found = survey(Source<S>(s, r, lane), inside);
    if (lane == 0) plan = found;
    __syncwarp();
    Sink none;
    code<S>(s, r, none, lane);
    const u32 head = plan.head, values = head & UNIFORM ? 1 : head & WITH_EXCEPTIONS ? plan.masks >> 8 : 0;
    // One with nothing but absent planes is its head alone.
    const bool alone = (head & (3 | WITH_EXCEPTIONS)) == 0 && plan.ballots + plan.words == 0;
    u32 total = front_of<S>(head) + plan.ballots + (plan.nibbles + 7) / 8 + plan.words + (plan.bytes + 3) / 4 + W * values;
    if (alone) total = 1;
    const bool raw = total >= 1 + W * inside;
    if (raw) total = 1 + W * inside;
    __syncwarp();
    if (lane == 0 && raw) plan.head = RAW;
    if (lane == 0 && alone) plan.head = head & ~0xf0u;
    __syncwarp();
    return total;
}

// What a tile's words add to the checksum, the first under `key`.
__device__ __forceinline__ u64 sum_words(const u32* words, u64 key, u32 count, int lane) {
    u64 sum = 0;
#pragma unroll 4
    for (u32 k = lane; k < count; k += 32) sum += frame::keyed(words[k], key + k * frame::KEY_STEP);
    return sum;
}

// Writes the tile that was planned; returns what its words add to the checksum, the first under `key`. Whole warp.
template <class S>
__device__ __forceinline__ u64 write_tile(Stage& s, Rule<S> r, u32* to, u32 total, u64 key, int lane) {
    using I = Int<S>;
    constexpr u32 W = Traits<S>::W / 4;
    Plan& plan = s.plan;
    const u32 head = plan.head, kind = head & 3;
    if (lane == 0) to[0] = head;
    const bool each = (head & (WITH_EXCEPTIONS | UNIFORM)) == WITH_EXCEPTIONS;
    u32* values = to + 1;
    if (total > 1 && kind != RAW) {
        Sink out;
        u32* at = to + 1;
        if (kind != 0) {
            if (lane == 0) put_value(at, (I)plan.base);
            at += W;
        }
        if (head & WITH_EXCEPTIONS) {
            if (lane == 0) *at = plan.masks;
            at++;
        }
        out.write = true;
        out.modes = (u16*)at, out.ballots = to + front_of<S>(head), out.nibbles = out.ballots + plan.ballots;
        out.words = out.nibbles + (plan.nibbles + 7) / 8;
        out.bytes = (u8*)(out.words + plan.words);
        values = (u32*)out.bytes + (plan.bytes + 3) / 4;
        // What is not written in whole words is 0 first.
        if (lane == 0 && out.ballots != at) out.ballots[-1] = 0;
        if (lane == 0 && plan.bytes != 0) values[-1] = 0;
        for (u32* k = out.nibbles + lane; k < out.words; k += 32) *k = 0;
        __syncwarp();
        code<S>(s, r, out, lane);
        if (head & UNIFORM && lane == 0) put_value(values, (I)plan.value);
    }
    if (each || kind == RAW) {
        const Source<S> in(s, r, lane);
        u32 before = 0;
#pragma unroll 1
        for (u32 block = 0; block < BLOCKS; block++) {
            S x[8][4];
            in.load(block, x);
            u32 found = inside_block(in.array, in.p, block);
            if (each) found &= in.exceptions(x, kind, (I)plan.base);
            const u32 count = (u32)__popc(found), upto = warp::inclusive(count, lane);
#pragma unroll
            for (int k = 0; k < 32; k++) {
                const int bit = bit_of(k / 4, k % 4);
                if ((found >> bit & 1) == 0) continue;
                const u32 place = each ? before + upto - count + __popc(found & ((1u << bit) - 1))
                                       : place_of_row(in.array, in.p, 2 * block + k / 16, k / 4 % 4, lane) + k % 4;
                put_value(values + W * place, in.settled(x[k / 4][k % 4]));
            }
            before += warp::from(upto, 31);
        }
    }
    __syncwarp();
    return sum_words(to, key, total, lane);
}

// --- decode -------------------------------------------------------------------------------------------------------------

// A tile whose lengths were found right.
struct Layout {
    Taker parts;
    const u16* modes;
    const u32 *base, *values;
    u32 masks;
};

// How many lanes have words in planes of mode 2, and in those of mode 3, where a tile has both.
__device__ __forceinline__ void count_both(const u16* modes, u32 head, u32 masks, const u32* ballots, u32& words,
                                           u32& nibbles) {
    words = nibbles = 0;
    auto see = [&](u32 mode) {
        if ((mode & 3) == 2) words += __popc(*ballots++);
        if ((mode & 3) == 3) nibbles += __popc(*ballots++);
    };
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        const int top = (int)slices_of(head, block) - 1;
#pragma unroll 1
        for (int k = 8 * top + 6; k >= 0; k--) see((u32)modes[k / 8] >> 2 * (k % 8));
        if (top >= 0) see((u32)modes[top] >> 14);
        see(masks >> 2 * block);
        modes += top + 1;
    }
}

// Finds and checks the parts of a tile of class 0, 1 or 2, whose head is right. FORMAT.md §7, P8 to P11. Whole warp.
template <class S>
__device__ __forceinline__ bool open_any(Layout& l, const u32* in, u32 words, int lane) {
    constexpr u32 W = Traits<S>::W / 4;
    const u32 head = in[0], slices = slices_of(head), front = front_of<S>(head);
    if (words < front) return false;
    const u32* at = in + 1;
    l.base = at;
    if ((head & 3) != 0) at += W;
    l.masks = 0;
    if (head & WITH_EXCEPTIONS) {
        l.masks = *at++;
        if (l.masks >> 8 < 1 || l.masks >> 8 > TILE) return false;
    }
    l.modes = (const u16*)at;
    if (slices % 2 && l.modes[slices] != 0) return false;
    // A word of modes a lane, those of masks too.
    const u32 modes = lane < (int)((slices + 1) / 2) ? at[lane] : lane == 31 ? l.masks & 0xff : 0;
    const u32 upper = modes >> 1 & 0x55555555u, lower = modes & 0x55555555u;
    const u32 counts = warp::total((u32)__popc(upper & ~lower) | (u32)__popc(lower & ~upper) << 10 |
                                   (u32)__popc(upper & lower) << 20);
    const u32 of_words = counts & 1023, full = counts >> 10 & 1023, of_bytes = counts >> 20, ballots = of_words + of_bytes;
    u32 least = front + ballots + 32 * full;
    if (words < least) return false;
    Taker& t = l.parts;
    t.ballots = in + front;
    t.nibble_words = t.ballots + ballots;
    u32 some = 0;
    for (u32 k = lane; k < ballots; k += 32) some += __popc(t.ballots[k]);
    some = warp::total(some);
    u32 sparse = of_words ? some : 0, nibbles = some - sparse;
    if (of_words != 0 && of_bytes != 0) count_both(l.modes, head, l.masks, t.ballots, sparse, nibbles);
    const u32 nibble_words = (nibbles + 7) / 8;
    least += nibble_words + sparse;
    if (words < least) return false;
    t.words = t.nibble_words + nibble_words;
    t.bytes = (const u8*)(t.words + 32 * full + sparse);
    u32 bytes = 0;
    for (u32 k = lane; k < nibble_words; k += 32) bytes += __popc(t.nibble_words[k]);
    bytes = warp::total(bytes);
    const u32 values = head & UNIFORM ? 1 : l.masks >> 8;
    if (words != least + (bytes + 3) / 4 + W * values) return false;
    l.values = in + least + (bytes + 3) / 4;
    // Filling.
    const u32 over = nibbles % 8 ? t.nibble_words[nibble_words - 1] >> 4 * (nibbles % 8) : 0,
              beyond = bytes % 4 ? l.values[-1] >> 8 * (bytes % 4) : 0;
    return (over | beyond) == 0;
}

// Whether a head is a right one of class 0, 1 or 2, P5 to P7.
template <class S>
__device__ __forceinline__ bool right_head(u32 head, u32 rank, bool usable) {
    const u32 kind = head & 3;
    if ((head >> 2 & 3) > rank || (head & (WITH_EXCEPTIONS | UNIFORM)) == UNIFORM || (head & 0x100)) return false;
    if (kind == 0) return usable;
    if (head & (kind == 1 ? 0xf8f0u : 0xfff0u)) return false;
    for (u32 block = 0; block < BLOCKS; block++) {
        if (slices_of(head, block) > Traits<S>::W) return false;
    }
    return kind == 2 || usable;
}

__device__ __forceinline__ void take_value(const u32* from, u32& bits) { bits = *from; }
__device__ __forceinline__ void take_value(const u32* from, u64& bits) { bits = from[0] | (u64)from[1] << 32; }

// Puts a lane's rows of a block where they belong, what lies in the array.
template <class I>
__device__ __forceinline__ void store_block(const Array& c, const Tile& p, u32 block, bool swap, I (&v)[8][4]) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const int plane = 2 * (int)block + k / 4, n = inside_row(c, p, plane, k % 4);
        I* to = (I*)c.values + (p.first + plane * c.plane + k % 4 * c.row);
        if (swap) {
#pragma unroll
            for (int i = 0; i < 4; i++) v[k][i] = swapped(v[k][i]);
        }
        if (p.left == 0) {
            store4(to, v[k]);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (i < n) to[i] = v[k][i];
            }
        }
    }
}

// Takes tile `t` of a chunk, of any class, from its `words` words. False: it is not right. Whole warp.
template <class S>
__device__ __forceinline__ bool take_any(const DecodeChunk& chunk, u32 t, const u32* in, u32 words, int lane) {
    using T = Traits<S>;
    using I = Int<S>;
    constexpr u32 W = T::W / 4;
    using Signed = typename SignedOf<I>::Type;
    const Array c = array_of(chunk, chunk.output);
    const Tile p = tile_at(c, t, lane);
    const Rule<S> r = rule<S>(chunk.bound);
    const bool swap = chunk.flags & FLAG_SWAP;
    const u32 head = in[0], kind = head & 3, rank = c.rank, predictor = head >> 2 & 3;
    if (kind == RAW) {
        if (head != RAW || words != 1 + W * warp::from(inside_of(c, p), 0)) return false;
#pragma unroll 1
        for (u32 block = 0; block < BLOCKS; block++) {
            const u32 inside = inside_block(c, p, block);
            I v[8][4];
#pragma unroll
            for (int k = 0; k < 32; k++) {
                const u32 place = place_of_row(c, p, 2 * block + k / 16, k / 4 % 4, lane) + k % 4;
                v[k / 4][k % 4] = 0;
                if (inside >> bit_of(k / 4, k % 4) & 1) take_value(in + 1 + W * place, v[k / 4][k % 4]);
            }
            store_block(c, p, block, swap, v);
        }
        return true;
    }
    if (!right_head<S>(head, rank, r.usable)) return false;
    Layout l;
    const bool zero = kind == 0 && words == 1;
    if (zero ? (head & 0x7f0) != 0 : !open_any<S>(l, in, words, lane)) return false;
    I base = (I)((long long)((int)head >> 11) * (1 << Quantizer<S>::UNIT_LOG2));
    if (kind != 0) take_value(l.base, base);
    const u16* modes = l.modes;
    u32 found = 0, wrong = 0;
    Edge<I> edge;
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
        I v[8][4];
#pragma unroll
        for (int k = 0; k < 32; k++) v[k / 4][k % 4] = 0;
        const u32 slices = zero ? 0 : slices_of(head, block);
        // Class 0: the bits that the sign's plane turns.
        I turned = ~(I)0;
#pragma unroll 1
        for (int slice = (int)slices - 1; slice >= 0; slice--) {
            const u32 m = modes[slice];
            const bool top = slice == (int)slices - 1;
            u32 x[8];
            if (!top && m == 0x5555u) {
#pragma unroll
                for (int k = 0; k < 8; k++) x[k] = l.parts.words[32 * k + lane];
                l.parts.words += 256;
                turned &= ~((I)0xff << 8 * slice);
            } else {
#pragma unroll
                for (int k = 0; k < 8; k++) x[k] = 0;
#pragma unroll 1
                for (int p = top ? 6 : 7; p >= 0; p--) {
#pragma unroll
                    for (int k = 7; k > 0; k--) x[k] = x[k - 1];
                    x[0] = take_plane(l.parts, m >> 2 * p & 3, lane);
                }
                transpose(x);
            }
#pragma unroll
            for (int k = 0; k < 32; k++) {
                v[k / 4][k % 4] |= (I)(x[k / 4] >> 8 * byte_of(k % 4) & 0xff) << 8 * slice;
            }
        }
        if (slices > 0) {
            const u32 sign = take_plane(l.parts, (u32)modes[slices - 1] >> 14, lane);
            const I sign_bit = (I)1 << (8 * slices - 1);
#pragma unroll
            for (int k = 0; k < 32; k++) {
                I& d = v[k / 4][k % 4];
                if ((sign >> bit_of(k / 4, k % 4) & 1) == 0) continue;
                d = kind == 0 ? d ^ turned : (I)0 - (d == 0 ? sign_bit : d);
            }
        }
        modes += slices;
        backward(v, predictor, rank, edge, lane);
#pragma unroll
        for (int k = 0; k < 32; k++) {
            I& d = v[k / 4][k % 4];
            if (kind == 0) wrong |= d + REACH >= 2 * REACH;
            d += base;
            d = kind == 2 ? ordered(d) : T::bits(T::mul((S)(Signed)d, r.step));
        }
        if (head & WITH_EXCEPTIONS) {
            const u32 mask = take_plane(l.parts, l.masks >> 2 * block & 3, lane), count = (u32)__popc(mask);
            const u32 upto = warp::inclusive(count, lane), first = found + upto - count;
            found += warp::from(upto, 31);
            if (found > l.masks >> 8) return false;
#pragma unroll
            for (int k = 0; k < 32; k++) {
                const int bit = bit_of(k / 4, k % 4);
                if ((mask >> bit & 1) == 0) continue;
                const u32 place = head & UNIFORM ? 0 : first + __popc(mask & ((1u << bit) - 1));
                take_value(l.values + W * place, v[k / 4][k % 4]);
            }
        }
        store_block(c, p, block, swap, v);
    }
    return found == (zero ? 0 : l.masks >> 8) && !__any_sync(warp::ALL, wrong != 0);
}

}  // namespace planes
