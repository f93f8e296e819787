// SPDX-License-Identifier: MIT OR Apache-2.0
// Decoding of the codec lorenzo: codecs/src/codec/lorenzo/FORMAT.md. Three launches at most.
//
// `decode_book` takes a CTA a frame, which makes the codebook's decode tables. `decode` takes a CTA a tile and does all
// the rest in shared memory: residuals as lorenzo/payload.cuh tells; then the inverse of the tile's prediction, sums
// along its axes (Lorenzo, as in cuSZ+: Tian et al., CLUSTER 2021, doi:10.1109/Cluster48925.2021.00047) or
// interpolation; values leave; outliers over them. `narrow` makes integers of the values of a frame that holds such.
#include "base/integers.cuh"
#include "lorenzo/payload.cuh"
#include "prim/block.cuh"
#include "prim/dependent.cuh"
#include "prim/load.cuh"
#include "stage/interpolate/points.cuh"
#include "stage/lorenzo.cuh"

namespace {

// Quanta or points → bits of values.
template <class S, bool LOG>
struct Dequantizer {
    using T = Traits<S>;
    double step;
    u64 distance;
    S base;
    __device__ __forceinline__ explicit Dequantizer(const DecodeChunk& c, double step_)
        : step(step_), distance(c.distance), base((S)c.base) {}
    __device__ __forceinline__ typename T::Bits operator()(int q) const {
        if (!LOG) return T::bits(T::add(base, T::round(__dmul_rn((double)q, step))));
        const u64 size = q < 0 ? (u64)(0u - (u32)q) : (u64)(u32)q;
        constexpr u64 SIGN = 1ull << (8 * T::W - 1);
        return (typename T::Bits)((size * distance & (SIGN - 1)) | (q < 0 ? SIGN : 0));
    }
};

__device__ __forceinline__ void store2(u32* at, u32 a, u32 b) { *(uint2*)at = make_uint2(a, b); }
__device__ __forceinline__ void store2(u64* at, u64 a, u64 b) {
    *(uint4*)at = make_uint4((u32)a, (u32)(a >> 32), (u32)b, (u32)(b >> 32));
}

// Where a tile's values go.
template <class S>
struct Out {
    using Bits = typename Traits<S>::Bits;
    Bits* at;
    u64 row, plane;
    Three e;
    bool swap, vec4;
    __device__ __forceinline__ Out(const DecodeChunk& c, const Tile& t)
        : at((Bits*)c.output + t.start),
          row(c.extents[2]),
          plane((u64)c.extents[1] * c.extents[2]),
          e(t.extents),
          swap(c.flags & FLAG_SWAP),
          vec4(e.x % 4 == 0 && c.extents[2] % 4 == 0 && t.start % 4 == 0) {}
    __device__ __forceinline__ Bits* of(u32 z, u32 y) const { return at + z * plane + y * row; }
    __device__ __forceinline__ Bits ordered(Bits x) const { return swap ? swapped(x) : x; }
    // Two or four values, where the tile's rows begin at multiples of four.
    __device__ __forceinline__ void put2(Bits* to, Bits a, Bits b) const {
        if (swap) {
            a = swapped(a);
            b = swapped(b);
        }
        store2(to, a, b);
    }
    __device__ __forceinline__ void put4(Bits* to, Bits (&x)[4]) const {
        if (swap) {
#pragma unroll
            for (int j = 0; j < 4; j++) x[j] = swapped(x[j]);
        }
        store4(to, x);
    }
};

// The same for places in the tile's order.
template <class S>
struct Places {
    using Bits = typename Traits<S>::Bits;
    const Out<S>& out;
    tiles::Divisor by_x, by_y;
    __device__ __forceinline__ explicit Places(const Out<S>& out) : out(out), by_x(out.e.x), by_y(out.e.y) {}
    __device__ __forceinline__ Bits* of(u32 i) const {
        const u32 r = by_x.of(i), z = by_y.of(r);
        return out.of(z, r - z * out.e.y) + (i - r * out.e.x);
    }
    __device__ __forceinline__ void put(u32 i, Bits x) const { *of(i) = out.ordered(x); }
};

// Writes values that are in the tile's order.
template <class S, class Value>
__device__ __forceinline__ void write_all(const int* values, const Out<S>& out, u32 n, Value value, int lane, int w) {
    using Bits = typename Traits<S>::Bits;
    const Places<S> places(out);
    if (out.vec4) {
        for (u32 i = 4 * threadIdx.x; i < n; i += 4 * THREADS) {
            const int4 q = *(const int4*)(values + i);
            Bits x[4] = {value(q.x), value(q.y), value(q.z), value(q.w)};
            out.put4(places.of(i), x);
        }
    } else {
        // A row a warp, or several short ones.
        const u32 side = min(out.e.x, 32u), each = 32 / side, sub = lane / side;
        if (sub == each) return;
        for (u32 r = w * each + sub; r < out.e.z * out.e.y; r += WARPS * each) {
            const u32 z = places.by_y.of(r);
            Bits* to = out.of(z, r - z * out.e.y);
            for (u32 x = lane - sub * side; x < out.e.x; x += side) to[x] = out.ordered(value(values[r * out.e.x + x]));
        }
    }
}

// Writes the points of an interpolated whole tile. 1024 values on, a thread has the same distance to go in the chunk.
template <u32 RANK, class S, class Value>
__device__ __forceinline__ void write_points(const int* points, const Out<S>& out, Value value) {
    using Bits = typename Traits<S>::Bits;
    using Whole = interpolate::Whole<RANK>;
    constexpr u32 STEPS = tiles::MOST / 4 / THREADS;
    if (out.vec4) {
        const u64 step = RANK == 3 ? 2 * out.plane : RANK == 2 ? 8 * out.row : 4 * THREADS;
        const Three first = Whole::where(4 * threadIdx.x);
        Bits* to = out.of(first.z, first.y) + first.x;
#pragma unroll 2
        for (u32 k = 0; k < STEPS; k++, to += step) {
            const Three p = Whole::where(4 * (threadIdx.x + k * THREADS));
            const typename Whole::Row row = Whole::row(p.z, p.y);
            const int *even = points + row.even + p.x / 2, *odd = points + row.odd + p.x / 2;
            Bits v[4] = {value(even[0]), value(odd[0]), value(even[1]),
                         value((p.x + 4 == Whole::SIDE_X ? even + 2 : odd + 1)[0])};
            out.put4(to, v);
        }
    } else {
        for (u32 i = threadIdx.x; i < tiles::MOST; i += THREADS) {
            const Three p = Whole::where(i);
            out.of(p.z, p.y)[p.x] = out.ordered(value(points[Whole::address(p)]));
        }
    }
}

template <class S>
__device__ __forceinline__ typename Traits<S>::Bits stored(const u32* words, u32 i) {
    if (Traits<S>::W == 4) return (typename Traits<S>::Bits)words[i];
    return (typename Traits<S>::Bits)(words[2 * i] | (u64)words[2 * i + 1] << 32);
}

// Outliers over values that are there. Short runs by a lane each, long ones by a warp.
template <class S>
__device__ __forceinline__ void restore(const u32* records, u32 count, const Places<S>& out, int lane, int w) {
    const u32* values = records + count;
    for (u32 from = 32 * w; from < count; from += THREADS) {
        const u32 k = from + lane, r = k < count ? records[k] : 0, length = k < count ? (r >> 16) + 1 : 0;
        if (length <= 8) {
            for (u32 i = 0; i < length; i++) out.put((r & 0xffffu) + i, stored<S>(values, k));
        }
        for (u32 rest = __ballot_sync(warp::ALL, length > 8); rest; rest &= rest - 1) {
            const int which = __ffs((int)rest) - 1;
            const u32 its = warp::from(r, which);
            const auto x = stored<S>(values, from + which);
            for (u32 i = lane; i <= its >> 16; i += 32) out.put((its & 0xffffu) + i, x);
        }
    }
}

// The same of a mask. Its bits come together in shared memory first. All threads; a function of its own as the others
// below.
template <class S>
__device__ __noinline__ void restore_mask(const DecodeChunk& c, Shared& sh, const u32* payload, u32 head) {
    constexpr u32 MARKS = tiles::MOST / 32;
    static_assert(sizeof(sh.tables) >= 4 * MARKS, "bits take the place of tables");
    const u32 t = threadIdx.x, n = sh.tile.values(), count = count_of(head);
    const Three e = sh.tile.extents;
    const Out<S> out(c, sh.tile);
    const Places<S> places(out);
    const auto x = stored<S>(payload + 1, 0);
    const u32* runs = payload + 1 + sizeof(x) / 4;
    u32* marks = (u32*)&sh.tables;
    if (t < MARKS) marks[t] = 0;
    __syncthreads();
    for (u32 first = 0, before = 0; first < count; first += THREADS) {
        const u32 run = first + t < count ? mask_run(runs, first + t) : 0, ones = run >> 8;
        u32 all;
        const u32 from = before + block::sum_before<THREADS>((run & 255u) + ones, (u32*)sh.totals, all) + (run & 255u);
        before += all;
        for (u32 at = from; at < from + ones;) {
            const u32 end = min(from + ones, (at / 32 + 1) * 32), many = end - at;
            atomicOr(marks + at / 32, (many == 32 ? warp::ALL : (1u << many) - 1) << (at % 32));
            at = end;
        }
    }
    __syncthreads();
    // Places one `step` from each other are one thread's where a bit says whether the next one is like the last.
    const u32 step = head & DIFFERENCES ? (e.z > 1 ? e.y * e.x : e.x) : n;
    for (u32 column = t; column < step; column += THREADS) {
        u32 odd = 0;
        for (u32 i = column; i < n; i += step) {
            odd ^= marks[i / 32] >> (i % 32) & 1;
            if (odd) places.put(i, x);
        }
    }
}

// Functions of their own: inlined, they take registers from the stream's decoding, and all other tiles are 3 to 10 %
// slower.
template <class S, u32 RANK>
__device__ __noinline__ void finish_whole(const DecodeChunk& c, Shared& sh, u32 way) {
    interpolate::points<RANK>(sh.values, way);
    write_points<RANK>(sh.values, Out<S>(c, sh.tile), Dequantizer<S, false>(c, c.fine));
}

template <class S>
__device__ __noinline__ void finish_any(const DecodeChunk& c, Shared& sh, u32 way) {
    static_assert(sizeof(interpolate::AnyShared) <= sizeof(sh.tables), "it takes the place of tables");
    interpolate::points(sh.values, *(interpolate::AnyShared*)&sh.tables, sh.tile.extents, way);
    const int lane = threadIdx.x & 31, w = threadIdx.x / 32;
    const Out<S> out(c, sh.tile);
    write_all(sh.values, out, sh.tile.values(), Dequantizer<S, false>(c, c.fine), lane, w);
}

// Residuals become values, which leave; nothing can be wrong any more.
template <class S>
__device__ __forceinline__ void finish_tile(const DecodeChunk& c, Shared& sh, const u32* payload, const Parts& p,
                                            Kind kind, int lane, int w) {
    const Tile& t = sh.tile;
    const u32 n = t.values();
    if (kind.coding() == RAW) {
        const Out<S> out(c, t);
        const Places<S> places(out);
        for (u32 i = threadIdx.x; i < n; i += THREADS) places.put(i, stored<S>(payload, i));
        return;
    }
    if (kind.interpolated()) {
        switch (interpolate::shape_of(t.extents)) {
            case interpolate::BLOCK: finish_whole<S, 3>(c, sh, kind.way()); break;
            case interpolate::PLANE: finish_whole<S, 2>(c, sh, kind.way()); break;
            case interpolate::LINE: finish_whole<S, 1>(c, sh, kind.way()); break;
            default: finish_any<S>(c, sh, kind.way());
        }
    } else if (lorenzo::full(t.extents) && c.mode != 3) {
        lorenzo::rows_and_lines(sh.values, kind.axes(), (int*)sh.tables.several);
        const Out<S> out(c, t);
        const Dequantizer<S, false> linear(c, c.step);
        if (out.vec4) {
            // Two places a thread, in all planes.
            int2 q[16];
            lorenzo::planes(q, (const int2*)sh.values + threadIdx.x, kind.axes());
            auto* to = out.of(0, threadIdx.x / 16) + 2 * (threadIdx.x % 16);
#pragma unroll
            for (u32 k = 0; k < 16; k++, to += out.plane) out.put2(to, linear(q[k].x), linear(q[k].y));
        } else {
            for (u32 y = w; y < 16; y += WARPS) {
                int q[16];
                lorenzo::planes(q, sh.values + 32 * y + lane, kind.axes());
                auto* to = out.of(0, y) + lane;
#pragma unroll
                for (u32 k = 0; k < 16; k++, to += out.plane) *to = out.ordered(linear(q[k]));
            }
        }
    } else {
        lorenzo::integrate(sh.values, t.extents, kind.axes(), sh.totals, lane, w);
        const Out<S> out(c, t);
        if (c.mode == 3) {
            write_all(sh.values, out, n, Dequantizer<S, true>(c, 0.0), lane, w);
        } else {
            write_all(sh.values, out, n, Dequantizer<S, false>(c, c.step), lane, w);
        }
    }
    if (p.outliers) {
        __syncthreads();
        if (p.outliers & MASK) {
            restore_mask<S>(c, sh, payload, p.outliers);
            return;
        }
        const Out<S> out(c, t);
        restore<S>(payload + 1, p.outliers, Places<S>(out), lane, w);
    }
}

template <class S>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    decode_tile<Traits<S>::W, true>(
        args, [](const DecodeChunk& c, Shared& sh, const u32* payload, const Parts& p, Kind kind, int lane, int w) {
            finish_tile<S>(c, sh, payload, p, kind, lane, w);
        });
}

constexpr int TABLE_THREADS = 1024;

// Tables, and the checksum's part of all that is not a tile's.
__device__ __forceinline__ void make_tables(const DecodeArgs& args) {
    const DecodeChunk& c = ((const DecodeChunk*)args.chunks)[blockIdx.x];
    huffman::make_tables((const u8*)(c.frame + c.table_at), c.table_len,
                         ((huffman::FrameTables*)args.tables)[blockIdx.x], TABLE_THREADS);
    const u64 lengths = c.lengths_at / 4, behind = lengths + (c.tiles + 1) / 2 + (c.tiles - 1) / START_EVERY;
    const u64 sum = warp::sum(frame::sum_rest<TABLE_THREADS>(c, lengths, behind, threadIdx.x));
    if ((threadIdx.x & 31) == 0) atomicAdd(&((ChunkState*)args.states)[blockIdx.x].sum, sum);
}

}  // namespace

#define ENTRIES(S, name)                                                                \
    ENTRY(lorenzo_decode_tables_##name, DecodeArgs, (TABLE_THREADS), make_tables(args)) \
    ENTRY(lorenzo_decode_##name, DecodeArgs, (THREADS, CTAS), decode<S>(args))
ENTRIES(float, f32)
ENTRIES(double, f64)
ENTRY(lorenzo_decode_narrow_f64, DecodeArgs, (THREADS), integers::narrow_all<THREADS>(args))
