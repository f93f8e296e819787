// SPDX-License-Identifier: MIT OR Apache-2.0
// The codec lorenzo, writing: codecs/src/codec/lorenzo/FORMAT.md, after cuSZ (Tian et al., PACT 2020,
// doi:10.1145/3410463.3414624) and cuSZ+ (Tian et al., CLUSTER 2021, doi:10.1109/Cluster48925.2021.00047). One CTA
// codes one tile of up to 8192 values; six launches at most.
//
// `widen` comes first where a chunk holds integers: they are coded as f64 under the bound 1/2.
//
// `plan` quantises a tile, takes differences and counts their symbols; it leaves a byte a value, and what does not fit
// one, in the chunk's working memory. `interpolate` does the same where that may be shorter; both in one kernel would
// be more code than a multiprocessor keeps at hand. `codebook` makes a chunk's codebook of the counts. `write` turns
// bytes into a stream, and once its next tile is announced finds the place of this one and lets it go; the CTA that
// finishes a chunk seals it. The three that go through a tile have a file each in `lorenzo/`; `range` comes before all
// where a bound is relative to it.
#include "base/integers.cuh"
#include "base/range.cuh"
#include "lorenzo/interpolate.cuh"
#include "lorenzo/plan.cuh"
#include "lorenzo/write.cuh"
#include "prim/dependent.cuh"
#include "stage/codebook.cuh"

namespace {

// --- codebook ------------------------------------------------------------------------------------------------------

__device__ __forceinline__ u64 aligned(u64 x) { return (x + fmt::SECTION_ALIGN - 1) & ~(fmt::SECTION_ALIGN - 1); }

template <class S>
__device__ __forceinline__ void make_codebook(const EncodeArgs& args) {
    using namespace huffman;
    __shared__ codebook::Shared sh;
    const u32 t = threadIdx.x;
    const EncodeChunk& c = ((const EncodeChunk*)args.chunks)[blockIdx.x];
    Codebook* codebook = (Codebook*)args.shared + blockIdx.x;
    const u32 apart = codebook::choose_codebook(sh, codebook->counts);
    const codebook::Shared::Half& book = sh.half[apart];
    Codes& codes = codebook->codes;
    auto code = [&](u32 symbol) { return code_of(book.codewords[symbol], book.lengths[symbol]); };
    if (t < 256) {
        u32 bytes = 0;
        if (t > 0 && symbol_of(t) < JOINT) {
            const u32 symbol = symbol_of(t), length = book.lengths[symbol], lower = t < FAR ? lower_bits(t) : 0;
            bytes = code_of(book.codewords[symbol] | (t & ((1u << lower) - 1)) << length, length + lower);
        }
        codes.bytes[t] = bytes;
    } else if (t - 256 < codebook::MOST) {
        const u32 symbol = t - 256;
        u32 length = 0;
        if (symbol < SYMBOLS) {
            length = book.lengths[symbol] + lower_bits_of(symbol);
            if (apart && symbol >= JOINT) {
                length += book.lengths[FIRST_RUN + (symbol - JOINT) / 2] + book.lengths[FIRST_DIRECT + symbol % 2];
            }
        }
        codes.symbols[symbol] = symbol < SYMBOLS ? code(symbol) : 0;
        codes.lens[symbol] = (u8)length;
    }
    // The base comes last.
    const S base = (S)codebook->base;
    const u32 n = book.used, base_at = 1 + (n + 1) / 2, head_len = base_at + (base != S(0) ? Traits<S>::W : 0);
    const u32 pairs = (c.tiles + 1) / 2;
    const u64 head_at = c.table_at, kinds_at = aligned(head_at + head_len), lengths_at = aligned(kinds_at + c.tiles);
    const u64 starts_at = lengths_at + 4ull * pairs;
    const u64 ends_at = starts_at + 4ull * ((c.tiles - 1) / (u32)fmt::LORENZO_START_EVERY),
              payload_at = aligned(ends_at);
    if (t == 0) {
        codes.joint = !apart;
        codebook->kinds_at = kinds_at;
        codebook->lengths_at = lengths_at;
        codebook->starts_at = starts_at;
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
                if (at == 0) byte = n;
                if (at > 0 && at < base_at) byte = book.lengths[2 * at - 2] | book.lengths[2 * at - 1] << 4;
                if (at >= base_at && at < head_len) byte = (u32)(Traits<S>::bits(base) >> (8 * (at - base_at))) & 255u;
                word |= byte << (8 * j);
            }
            out[head_at / 4 + t] = word;
            sum += frame::term(word, head_at / 4 + t);
        }
        // What fills up kinds and lengths lies in words that tiles write parts of; what fills the starts up in one of
        // its own.
        const u64 tail = (kinds_at + c.tiles) / 4 + t;
        if (tail < lengths_at / 4) out[tail] = 0;
        if (t == 0) out[lengths_at / 4 + pairs - 1] = 0;
        if (ends_at / 4 + t < payload_at / 4) out[ends_at / 4 + t] = 0;
        sum = warp::sum(sum);
        if (t == 0) atomicAdd(&((ChunkState*)args.states + blockIdx.x)->sum, sum);
    }
}

}  // namespace

#define ENTRIES(S, name)                                                                                     \
    ENTRY(lorenzo_encode_range_##name, EncodeArgs, (THREADS), frame::find_range<S, THREADS, TILE>(args))     \
    ENTRY(lorenzo_encode_plan_##name, EncodeArgs, (THREADS, LorenzoTuning::PLAN_CTAS), plan<S, false>(args)) \
    ENTRY(lorenzo_encode_interpolate_##name, EncodeArgs, (THREADS, LorenzoTuning::INTERPOLATE_CTAS),         \
          interpolate_tile<S, false>(args))                                                                  \
    ENTRY(lorenzo_encode_codebook_##name, EncodeArgs, (codebook::THREADS), make_codebook<S>(args))           \
    ENTRY(lorenzo_encode_write_##name, EncodeArgs, (THREADS, LorenzoTuning::WRITE_CTAS), write<S>(args))
ENTRIES(float, f32)
ENTRIES(double, f64)
ENTRY(lorenzo_encode_widen_f64, EncodeArgs, (THREADS), integers::widen_all<THREADS>(args))
