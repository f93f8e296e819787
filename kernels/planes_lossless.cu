// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec planes without a bound: src/codec/planes/FORMAT.md. A warp, which is a CTA, codes a tile of 4096 values.
//
// Encoding: a warp takes its tiles from a ticket, one after another, and reads each of them twice: first to choose predictor
// and classes of lengths (planes/survey.cuh), then to put its planes and fields together in shared memory (planes/lengths.cuh).
// There a tile waits until the next one is surveyed: by then those before it are announced, its place is found without a stop,
// and it leaves in whole words, summed for the checksum on the way. Decoding: a tile's payload comes into shared memory,
// summed on the way, and everything goes backwards, a block of 1024 values at a time.
//
// Shared memory is as large as a tile, so that few warps run at once; each has many registers, and 32 values of a lane are
// on their way together. Through memory that is a warp's and stays in the cache, with 16 warps instead of 9, it was not faster.
#include "base/frame_reader.cuh"
#include "base/frame_writer.cuh"
#include "planes/decode_any.cuh"
#include "planes/encode_any.cuh"
#include "tuning.cuh"

namespace {

using namespace planes;

// Words of a tile's values.
template <class S>
constexpr u32 VALUES = TILE * sizeof(S) / 4;

// Bit planes of a tile: numbers of classes, and masks.
constexpr u32 PLANES = BLOCKS * (3 + 1);

// A warp's work, in shared memory.
template <class S>
struct Stage {
    // The chunk: its values, tiles of the batch before it; addresses of the look-back's words, of the table and of the payloads; the
    // checksum's key of the first payload.
    Array array;
    u32 flags, first_tile;
    u64 fill, offsets, table, table_key, payloads, key;
    // Its tiles that are written and not yet counted.
    u32 done;
    // The tile that waits: its number in the chunk and its words, none where none waits; words of its front, ballots included.
    u32 index, total, front_words;
    Plan plan, special;
    Counts counts;
    // Its parts. A bit plane has 128 bytes at most: bytes stand at the beginning of `planes`, whole planes at its end, the first last.
    // Exceptions' values stand behind the fields.
    u32 front[6 + PLANES], nibbles[PLANES * 32 / 8], planes[PLANES * 32], bits[VALUES<S> + 8];
};

// A tile's values.
template <class S>
__device__ __forceinline__ Source<S, false> source(const Stage<S>& s, u32 index, int lane) {
    return {s.array, tile_at(s.array, index, lane), {}, s.flags, s.fill};
}

// Puts the parts of a tile into shared memory, as its plan says; what each has, into the plan.
template <bool PLAIN, class S>
__device__ __forceinline__ void code(Stage<S>& s, const Source<S, false>& in, Plan& plan, int lane) {
    Sink out;
    out.write = true;
    out.ballots = s.front + front_of<S>(plan), out.nibbles = s.nibbles, out.words = s.planes + PLANES * 32, out.falling = true;
    out.bytes = (u8*)s.planes, out.bits = s.bits;
    code_lengths<PLAIN>(in, plan, s.counts.table, out, lane);
    plan.n = out.n, plan.bits = out.bit_words;
}

// The same for what few tiles need, out of the way: `special` is the plan meanwhile, as the one of a tile that waits is needed.
template <class S>
__device__ __noinline__ void survey_special(Stage<S>& s, u32 index, u32 inside, int lane) {
    const Source<S, false> in = source(s, index, lane);
    Plan plan;
    survey_bits(in, plan, inside, lane);
    survey_lengths<false>(in, plan, s.counts, lane);
    if (lane == 0) s.special = plan;
    __syncwarp();
}
template <class S>
__device__ __noinline__ void code_special(Stage<S>& s, u32 index, int lane) {
    Plan plan = s.special;
    code<false>(s, source(s, index, lane), plan, lane);
    __syncwarp();
    if (lane == 0) s.special = plan;
    __syncwarp();
}
template <class S>
__device__ __noinline__ void put_special(const Stage<S>& s, u32 index, const Plan& plan, u32* to, int lane) {
    put_values(source(s, index, lane), plan, to, lane);
}

// Places and writes the tile that waits; returns what it adds to the checksum.
template <class S>
__device__ __noinline__ u64 flush(Stage<S>& s, int lane) {
    const u32 total = s.total, index = s.index;
    if (total == 0) return 0;
    const u32 start = lookback::place((u64*)s.offsets, index, total, lane);
    u64 sum = 0;
    if (lane == 0) {
        ((u32*)s.table)[index] = start + total;
        sum += frame::term(start + total, index + s.table_key);
    }
    u32* to = (u32*)s.payloads + start;
    u64 key = s.key + start * frame::KEY_STEP;
    if (s.plan.head == RAW) {
        put_raw(source(s, index, lane), index, (total - 1) / (sizeof(S) / 4), to, lane);
        __syncwarp();
        sum += sum_words(to, key, total, lane);
    } else {
        const Parts n = s.plan.n;
        sum += write_words(to, key, s.front, s.front_words, lane);
        sum += write_words(to, key, s.nibbles, (n.nibbles + 7) / 8, lane);
        for (u32 k = 32; k <= n.words; k += 32) sum += write_words(to, key, s.planes + PLANES * 32 - k, 32, lane);
        sum += write_words(to, key, s.planes, (n.bytes + 3) / 4, lane);
        sum += write_words(to, key, s.bits, s.plan.bits + values_of<S>(s.plan), lane);
    }
    __syncwarp();
    if (lane == 0) s.done++, s.total = 0;
    __syncwarp();
    return sum;
}

// Codes a tile, and places the one before; returns what that one adds to the checksum.
template <class S>
__device__ __forceinline__ u64 put_tile(Stage<S>& s, u32 index, int lane) {
    constexpr u32 W = sizeof(S) / 4;
    const Source<S, false> in = source(s, index, lane);
    const u32 inside = warp::from(inside_of(s.array, in.p), 0);
    Plan plan;
    const bool plain = survey_plain(in, plan, lane) && survey_lengths<true>(in, plan, s.counts, lane);
    if (!plain) survey_special(s, index, inside, lane);
    const u64 sum = flush(s, lane);
    for (u32 k = lane; k < sizeof(s.nibbles) / 4; k += 32) s.nibbles[k] = 0;
    __syncwarp();
    if (plain) {
        code<true>(s, in, plan, lane);
    } else {
        code_special(s, index, lane);
        plan = s.special;
    }
    u32 total = total_of<S>(plan);
    if (total >= 1 + W * inside) {
        plan.head = RAW, total = 1 + W * inside;
    } else {
        __syncwarp();
        if (lane < 3 && plan.n.bytes % 4 != 0 && plan.n.bytes % 4 + lane < 4) ((u8*)s.planes)[plan.n.bytes + lane] = 0;
        u32* values = s.bits + plan.bits;
        if (lane == 0) {
            put_front<S>(s.front, plan);
            if (plan.uniform) put_value(values, (Int<S>)plan.value);
        }
        if (plan.marked && !plan.uniform) put_special(s, index, plan, values, lane);
    }
    if (lane == 0) {
        lookback::announce((u64*)s.offsets, index, total);
        s.index = index, s.total = total, s.front_words = front_of<S>(plan) + plan.n.ballots, s.plan = plan;
    }
    __syncwarp();
    return sum;
}

template <class S>
__device__ __forceinline__ void encode(const EncodeArgs& args) {
    __shared__ Stage<S> s;
    const int lane = threadIdx.x;
    const EncodeChunk* chunks = (const EncodeChunk*)args.chunks;
    frame::Ticket next = frame::ticket(args, lane);
    while (next.tile < args.tiles) {
        const u32 chunk = next.chunk;
        const EncodeChunk& c = chunks[chunk];
        if (lane == 0) {
            s.array = array_of(c, c.input);
            s.flags = flags_of(c), s.first_tile = c.first_tile;
            s.fill = c.fill;
            s.offsets = (u64)frame::offsets(args, c);
            s.table = c.frame + c.table_at;
            s.table_key = c.table_at / 4;
            s.payloads = c.frame + c.payload_at;
            s.key = frame::key_of(c.payload_at / 4);
            s.total = s.done = 0;
        }
        __syncwarp();
        u64 sum = 0;
        do {
            sum += put_tile(s, next.tile - s.first_tile, lane);
            next = frame::ticket(args, lane);
        } while (next.tile < args.tiles && next.chunk == chunk);
        sum = warp::sum(sum + flush(s, lane));
        if (frame::last(args, c, chunk, s.done, sum, lane)) frame::seal(args, c, chunk, 4, 0.0, lane);
    }
}

template <class S>
struct DecodeShared {
    alignas(16) Int<S> buffer[512];
    // No writer's tile is longer; one word more is read.
    alignas(16) u32 stage[VALUES<S> + 4];
};

template <class S>
__device__ __forceinline__ void decode(const DecodeArgs& args) {
    __shared__ DecodeShared<S> sh;
    const int lane = threadIdx.x;
    const DecodeChunk* chunks = (const DecodeChunk*)args.chunks;
    const u32 chunk = frame::chunk_of(chunks, args.chunk_count, blockIdx.x, lane);
    const DecodeChunk& c = chunks[chunk];
    const u32 t = blockIdx.x - c.first_tile;
    const u32* in = (const u32*)c.frame;
    const u64 table = c.table_at / 4, word0 = c.payload_at / 4;
    const frame::Span span(in + table, t, c.tiles, c.payload_len / 4);
    const u32 words = span.to - span.from;
    u64 sum = lane == 0 ? frame::term(span.to, table + t) : 0;
    if (t == 0) sum += frame::sum_rest<32>(c, table, table + c.tiles, lane);
    bool right = span.right && words > 0;
    if (right) {
        const u64 at = word0 + span.from;
        const u32* from = in + at;
        if (words <= VALUES<S> + 1) {
            sum += fetch(sh.stage, from, at, words, lane);
            from = sh.stage;
        } else {
            sum += sum_words(from, frame::key_of(at), words, lane);
        }
        __syncwarp();
        const Array array = array_of(c, c.output);
        const Tile p = tile_at(array, t, lane);
        const u32 kind = from[0] & 3;
        if (kind == RAW) {
            right = take_raw<S>(array, p, c.flags & FLAG_SWAP, from, words, lane);
        } else {
            right = kind == 2 && take_wide<S>(array, p, {}, c.flags, from, words, sh.buffer, lane);
        }
    }
    sum = warp::sum(sum);
    ChunkState* state = (ChunkState*)args.states + chunk;
    if (lane == 0) {
        atomicAdd(&state->sum, sum);
        if (!right) atomicOr(&state->fault, 1u);
    }
}

}  // namespace

#define ENTRIES(S, name)                                                                          \
    extern "C" __global__ __launch_bounds__(32, PlanesTuning<S>::LOSSLESS_ENCODE) void            \
        planes_lossless_encode_##name(EncodeArgs args) {                                          \
        encode<S>(args);                                                                          \
    }                                                                                             \
    extern "C" __global__ __launch_bounds__(32, PlanesTuning<S>::LOSSLESS_DECODE) void            \
        planes_lossless_decode_##name(DecodeArgs args) {                                          \
        decode<S>(args);                                                                          \
    }                                                                                             \
    extern "C" __global__ __launch_bounds__(32) void planes_lossless_verdict_##name(DecodeArgs args) { \
        if (threadIdx.x == 0) frame::verdict(args, blockIdx.x);                                   \
    }
ENTRIES(float, f32)
ENTRIES(double, f64)
