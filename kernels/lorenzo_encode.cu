// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec lorenzo, writing: src/codec/lorenzo/FORMAT.md, after cuSZ (Tian et al., PACT 2020,
// doi:10.1145/3410463.3414624) and cuSZ+ (Tian et al., CLUSTER 2021, doi:10.1109/Cluster48925.2021.00047). One CTA
// codes one tile of up to 8192 values; five launches at most.
//
// `plan` quantises a tile, takes differences and counts their symbols; it leaves a byte a value, and what does not fit
// one, in the chunk's working memory. `interpolate` does the same where that may be shorter; both in one kernel would
// be more code than a multiprocessor keeps at hand. `codebook` makes a chunk's codebook of the counts. `write` turns
// bytes into a stream, and once its next tile is announced finds the place of this one and lets it go; the CTA that
// finishes a chunk seals it. The three that go through a tile have a file each in `lorenzo/`; `range` comes before all
// where a bound is relative to it.
#include "base/range.cuh"
#include "lorenzo/interpolate.cuh"
#include "lorenzo/plan.cuh"
#include "lorenzo/write.cuh"
#include "stage/codebook.cuh"

namespace {

// --- codebook ------------------------------------------------------------------------------------------------------

__device__ __forceinline__ u64 aligned(u64 x) { return (x + fmt::SECTION_ALIGN - 1) & ~(fmt::SECTION_ALIGN - 1); }

__device__ __forceinline__ void make_codebook(const EncodeArgs& args) {
    __shared__ codebook::Shared sh;
    __shared__ u32 used;
    const u32 t = threadIdx.x;
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[blockIdx.x];
    Codebook* codebook = (Codebook*)args.shared + blockIdx.x;
    if (t == 0) used = 0;
    codebook::make(sh, codebook->counts);
    if (t < huffman::SYMBOLS && sh.lengths[t]) atomicMax(&used, t + 1);
    auto code = [&](u32 symbol) { return huffman::code_of(sh.codewords[symbol], sh.lengths[symbol]); };
    u32 bytes = 0;
    if (t > 0 && huffman::symbol_of(t) < huffman::SYMBOLS) {
        const u32 symbol = huffman::symbol_of(t), lower = t < huffman::FAR ? huffman::lower_bits(t) : 0;
        bytes = huffman::code_of(sh.codewords[symbol] | (t & ((1u << lower) - 1)) << sh.lengths[symbol],
                                 sh.lengths[symbol] + lower);
    }
    codebook->codes.bytes[t] = bytes;
    if (t < 128) codebook->codes.symbols[t] = t < huffman::SYMBOLS ? code(t) : 0;
    __syncthreads();
    const u32 n = used, head_len = 2 + (n + 1) / 2;
    const u64 head_at = c.table_at, kinds_at = aligned(head_at + head_len), ends_at = aligned(kinds_at + c.tiles);
    const u64 payload_at = aligned(ends_at + 4ull * c.tiles);
    if (t == 0) {
        codebook->kinds_at = kinds_at;
        codebook->ends_at = ends_at;
        codebook->payload_at = payload_at;
        codebook->head_len = head_len;
    }
    if (t < 32) {
        u32* out = (u32*)c.frame;
        u64 sum = 0;
        // The head and what fills it up.
        if (head_at / 4 + t < kinds_at / 4) {
            u32 word = 0;
            for (u32 j = 0; j < 4; j++) {
                const u32 at = 4 * t + j;
                u32 byte = 0;
                if (at == 0) byte = (u32)fmt::SUBSEQUENCE_LOG2;
                if (at == 1) byte = n;
                if (at >= 2 && at < head_len) byte = sh.lengths[2 * (at - 2)] | sh.lengths[2 * (at - 2) + 1] << 4;
                word |= byte << (8 * j);
            }
            out[head_at / 4 + t] = word;
            sum += frame::term(word, head_at / 4 + t);
        }
        // What fills the kinds up lies in words that tiles write bytes of; what fills the ends up in one of its own.
        const u64 tail = (kinds_at + c.tiles) / 4 + t;
        if (tail < ends_at / 4) out[tail] = 0;
        const u64 gap = ends_at / 4 + c.tiles + t;
        if (gap < payload_at / 4) out[gap] = 0;
        sum = warp::sum(sum);
        if (t == 0) atomicAdd(&((ChunkState*)args.states + blockIdx.x)->sum, sum);
    }
}

}  // namespace

#define ENTRIES(S, name)                                                                                    \
    extern "C" __global__ __launch_bounds__(THREADS) void lorenzo_encode_range_##name(EncodeArgs args) {    \
        frame::find_range<S, THREADS, TILE>(args);                                                          \
    }                                                                                                       \
    extern "C" __global__ __launch_bounds__(                                                                \
        THREADS, LorenzoTuning::PLAN_CTAS) void lorenzo_encode_plan_##name(EncodeArgs args) {               \
        plan<S>(args);                                                                                      \
    }                                                                                                       \
    extern "C" __global__ __launch_bounds__(                                                                \
        THREADS, LorenzoTuning::INTERPOLATE_CTAS) void lorenzo_encode_interpolate_##name(EncodeArgs args) { \
        interpolate_tile<S>(args);                                                                          \
    }                                                                                                       \
    extern "C" __global__ __launch_bounds__(THREADS) void lorenzo_encode_codebook_##name(EncodeArgs args) { \
        make_codebook(args);                                                                                \
    }                                                                                                       \
    extern "C" __global__ __launch_bounds__(                                                                \
        THREADS, LorenzoTuning::WRITE_CTAS) void lorenzo_encode_write_##name(EncodeArgs args) {             \
        write<S>(args);                                                                                     \
    }
ENTRIES(float, f32)
ENTRIES(double, f64)
