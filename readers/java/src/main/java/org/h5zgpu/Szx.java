// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.util.Arrays;

/**
 * The codec {@code szx}, codecs/src/codec/szx/FORMAT.md: blocks of 128 values, of which 32 are a tile.
 *
 * <p>A tile's payload has six parts, in each of which the blocks follow in order. So one walk over the kinds counts the
 * parts' lengths, and a second one decodes block by block with a cursor into each part:
 *
 * <pre>
 * A  kinds          what each block is: zero, constant, raw, or coded with q bits
 * B  bases          of constant blocks, and of coded ones unless the mode is 3
 * C  bitmaps        which values are outliers
 * D  outliers       their bits, or those of all of them once
 * E  codes          how many leading bytes of a word are those of the word before
 * F  mid bytes      the words' other bytes, by their position in the word; raw values
 * </pre>
 *
 * <p>A coded value is base + k · g, in the arithmetic of its type, where g is a power of two and k the word; in mode 3
 * its bits are the word's, shifted up.
 */
@SuppressWarnings("strictfp") // what Java 17 does anyway, and Java 8 with this word
final strictfp class Szx {
    private static final int BLOCK = 128;
    private static final int TILE = 4096;
    private static final int BITMAP = 16;
    private static final int CODES = 32;

    private final Section table;
    private final Section payload;
    private final int n;
    private final int width;
    private final int mantissa;
    private final int exponent;
    private final boolean relative;
    private final boolean usable;
    private final double step;

    // The tile at hand.
    private final long[] values = new long[TILE];
    private final int[] narrow = new int[TILE];
    private final long[] words = new long[BLOCK];
    private final byte[] codes = new byte[BLOCK];
    private int tile;
    private int bases;
    private int bitmaps;
    private int outliers;
    private int lows;
    private int mids;
    private int end;

    Szx(Header header, Section[] sections) {
        table = sections[0];
        payload = sections[1];
        n = header.values();
        width = header.size();
        mantissa = width == 4 ? 23 : 52;
        exponent = width == 4 ? 8 : 11;
        relative = header.mode == 3;
        int e = Math.getExponent(header.bound) + 1; // 1024 and more for what is not normal: below the range
        usable = header.bound >= Double.MIN_NORMAL && (width == 4 ? e >= -126 && e <= 126 : e >= -1022 && e <= 1022);
        step = usable ? Math.scalb(1.0, e) : 0;
    }

    byte[] decode(Header header) throws Refused {
        int tiles = (n - 1) / TILE + 1;
        Refused.when(table.length != 4L * tiles, "S1", "a table of %d bytes for %d tiles", table.length, tiles);
        long last = 0;
        for (int t = 0; t < tiles; t++) {
            long ends = table.u32(4 * t);
            Refused.when(ends < last || 4 * ends > payload.length, "S2",
                    "tile %d ends at word %d, the one before at %d, the payload has %d bytes", t, ends, last,
                    payload.length);
            last = ends;
        }
        Refused.when(4 * last != payload.length, "S3", "the last tile ends at word %d of %d bytes", last,
                payload.length);
        Output out = new Output(header);
        int begin = 0;
        for (tile = 0; tile < tiles; tile++) {
            end = 4 * table.i32(4 * tile);
            int first = tile * TILE;
            int count = Math.min(TILE, n - first);
            tile(begin, count);
            if (width == 8) {
                out.put(first, 1, values, 0, count);
            } else {
                for (int i = 0; i < count; i++) {
                    narrow[i] = (int) values[i];
                }
                out.put(first, 1, narrow, 0, count);
            }
            begin = end;
        }
        return out.bytes;
    }

    private void tile(int begin, int count) throws Refused {
        int blocks = (count - 1) / BLOCK + 1;
        int at = begin + (blocks + 3 & -4);
        need(at);
        Refused.when(payload.any(begin + blocks, at), "S7", "tile %d: a byte behind the kinds is not 0", tile);
        count(begin, blocks, at, count);
        for (int block = 0; block < blocks; block++) {
            block(payload.u8(begin + block), block * BLOCK, Math.min(BLOCK, count - block * BLOCK));
        }
        Refused.when(end - mids > 3, "S10", "tile %d has %d bytes more than its blocks say", tile, end - mids);
        Refused.when(payload.any(mids, end), "S11", "tile %d: a byte behind its last block is not 0", tile);
    }

    /** Adds up the parts' lengths, which places the cursors. */
    private void count(int kinds, int blocks, int at, int count) throws Refused {
        bases = at;
        for (int b = 0; b < blocks; b++) {
            int kind = payload.u8(kinds + b);
            allowed(kind);
            at += hasBase(kind) ? width : 0;
        }
        bitmaps = at;
        for (int b = 0; b < blocks; b++) {
            at += hasOutliers(payload.u8(kinds + b)) ? BITMAP : 0;
        }
        outliers = at;
        need(at);
        int map = bitmaps;
        for (int b = 0; b < blocks; b++) {
            int kind = payload.u8(kinds + b);
            if (hasOutliers(kind)) {
                int ones = ones(map, Math.min(BLOCK, count - b * BLOCK));
                at += width * (kind >> 6 == 3 ? 1 : ones);
                map += BITMAP;
            }
        }
        lows = at;
        for (int b = 0; b < blocks; b++) {
            at += hasCodes(payload.u8(kinds + b)) ? CODES : 0;
        }
        mids = at;
        need(at);
    }

    private static boolean coded(int kind) {
        return (kind & 63) > 2;
    }

    private boolean hasBase(int kind) {
        return (kind & 63) == 1 || (coded(kind) && !relative);
    }

    private static boolean hasOutliers(int kind) {
        return kind >= 0x80;
    }

    private static boolean hasCodes(int kind) {
        return coded(kind) && kind >> 6 != 1;
    }

    private void allowed(int kind) throws Refused {
        int q = (kind & 63) - 2;
        if (q < 1) {
            Refused.when(kind >> 6 == 1 || (q == 0 && kind >> 6 != 0), "S4", "tile %d: kind %02x", tile, kind);
            return;
        }
        int least = relative ? 1 + exponent : 1;
        int most = relative ? Math.min(8 * width, 61) : mantissa;
        Refused.when(q < least || q > most, "S5", "tile %d: %d bits, allowed are %d to %d", tile, q, least, most);
        Refused.when(!relative && !usable, "S6", "tile %d: coded, under a bound without a usable step", tile);
    }

    private void need(int at) throws Refused {
        if (at > end) {
            throw new Refused("S10", "tile " + tile + " is " + (at - end) + " bytes shorter than its blocks say");
        }
    }

    /** How many values a bitmap marks. */
    private int ones(int map, int count) throws Refused {
        long low = payload.i64(map);
        long high = payload.i64(map + 8);
        long beyond = count < 64 ? low >>> count | high : count < BLOCK ? high >>> count - 64 : 0;
        Refused.when((low | high) == 0 || beyond != 0, "S8", "tile %d: a bitmap marks none, or a value beyond %d", tile,
                count);
        return Long.bitCount(low) + Long.bitCount(high);
    }

    private void block(int kind, int at, int count) throws Refused {
        long base = 0;
        if (hasBase(kind)) {
            base = payload.bits(bases, width);
            bases += width;
        }
        if ((kind & 63) < 2) {
            Arrays.fill(values, at, at + count, base);
        } else if (!coded(kind)) {
            need(mids + width * count);
            for (int i = 0; i < count; i++, mids += width) {
                values[at + i] = payload.bits(mids, width);
            }
        } else {
            words((kind & 63) - 2, hasCodes(kind));
            numbers((kind & 63) - 2, base, at, count);
        }
        if (hasOutliers(kind)) {
            replace(kind >> 6 == 3, at);
        }
    }

    /** The 128 words of a coded block: section 3.3. */
    private void words(int q, boolean withCodes) throws Refused {
        int bytes = (q + 7) / 8;
        int[] with = new int[4]; // how many words have this code
        if (withCodes) {
            codes(Math.min(3, bytes), with);
        } else {
            Arrays.fill(codes, (byte) 0);
            with[0] = BLOCK;
        }
        Arrays.fill(words, 0);
        byte[] from = payload.bytes;
        int have = 0;
        for (int p = 0; p < bytes; p++) {
            have += p < 4 ? with[p] : 0;
            need(mids + have);
            int at = payload.begin + mids;
            mids += have;
            if (have == BLOCK) {
                for (int i = 0; i < BLOCK; i++) {
                    words[i] = words[i] << 8 | (from[at + i] & 0xFF);
                }
                continue;
            }
            for (int i = 0; i < BLOCK; i++) {
                long next = codes[i] <= p ? from[at++] & 0xFF : 0;
                words[i] = words[i] << 8 | next;
            }
        }
        for (int i = 1; withCodes && i < BLOCK; i++) {
            words[i] ^= words[i - 1];
        }
    }

    private void codes(int most, int[] with) throws Refused {
        int highest = 0;
        for (int k = 0; k < 16; k++) {
            int low = payload.u8(lows + k);
            int high = payload.u8(lows + 16 + k);
            for (int i = 0; i < 8; i++) {
                int code = (low >> i & 1) | (high >> i & 1) << 1;
                codes[8 * k + i] = (byte) code;
                with[code]++;
                highest = Math.max(highest, code);
            }
        }
        lows += CODES;
        if (highest > most) {
            throw new Refused("S9", "tile " + tile + ": code " + highest + ", " + most + " at most");
        }
    }

    /** Section 5. */
    private void numbers(int q, long base, int at, int count) {
        if (relative) {
            int cut = 8 * width - q;
            for (int i = 0; i < count; i++) {
                values[at + i] = words[i] << cut;
            }
        } else if (width == 4) {
            float begin = Float.intBitsToFloat((int) base);
            float g = (float) step;
            int one = Float.floatToRawIntBits(0x1p23f);
            for (int i = 0; i < count; i++) {
                float k = Float.intBitsToFloat(one + (int) words[i]) - 0x1p23f;
                values[at + i] = Float.floatToRawIntBits(begin + k * g);
            }
        } else {
            double begin = Double.longBitsToDouble(base);
            long one = Double.doubleToRawLongBits(0x1p52);
            for (int i = 0; i < count; i++) {
                double k = Double.longBitsToDouble(one + words[i]) - 0x1p52;
                values[at + i] = Double.doubleToRawLongBits(begin + k * step);
            }
        }
    }

    private void replace(boolean uniform, int at) {
        for (int half = 0; half < 2; half++) {
            for (long map = payload.i64(bitmaps + 8 * half); map != 0; map &= map - 1) {
                values[at + 64 * half + Long.numberOfTrailingZeros(map)] = payload.bits(outliers, width);
                outliers += uniform ? 0 : width;
            }
        }
        outliers += uniform ? width : 0;
        bitmaps += BITMAP;
    }
}
