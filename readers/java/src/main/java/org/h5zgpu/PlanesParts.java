// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.util.Arrays;

/**
 * The parts of a tile's payload that bit planes are made of, section 3.3 of the FORMAT.md of {@code planes}.
 *
 * <p>Modes say of each bit plane, in order of coding, whether it is absent, full or sparse. A sparse one has a ballot
 * of the words that are not zero, for each of these a nibble of the bytes that are not zero, and these bytes. Each kind
 * of part stands together for all bit planes, so the lengths are counted first and four cursors go along.
 */
final class PlanesParts {
    private static final int FULL = 1;
    private static final int SPARSE = 2;
    private static final int MASK = 16;

    private final Section payload;
    /** The bit planes of a block, 16 at most, and its mask behind them. */
    private final int[][][] planes = new int[4][MASK + 1][32];
    private final boolean[][] present = new boolean[4][MASK + 1];
    // In order of coding: which bit plane, and its mode.
    private final int[] coded = new int[4 * (MASK + 1)];
    private final int[] modes = new int[4 * (MASK + 1)];
    private int count;
    private int maskWord;
    private int exceptions;

    // Words of the payload.
    private int at;
    private int end;
    private int values;

    PlanesParts(Section payload) {
        this.payload = payload;
    }

    void open(int begin, int end) {
        at = begin;
        this.end = end;
        maskWord = 0;
        exceptions = 0;
        count = 0;
    }

    int[][] planes(int block) {
        return planes[block];
    }

    int[] mask(int block) {
        return planes[block][MASK];
    }

    /** Whether one of these bit planes of a block is there. */
    boolean present(int block, int from, int to) {
        for (int p = from; p < to; p++) {
            if (present[block][p]) {
                return true;
            }
        }
        return false;
    }

    private void need(long words) throws Refused {
        if (words > end - at) {
            throw new Refused("P10", "its parts need " + (words - (end - at)) + " words more than it has");
        }
    }

    /** A word of the head. */
    int word(int index) throws Refused {
        need(index + 1);
        return payload.i32(4 * (at + index));
    }

    void skip(int words) throws Refused {
        need(words);
        at += words;
    }

    long base(int size) throws Refused {
        need(size / 4);
        long base = payload.bits(4 * at, size);
        at += size / 4;
        return base;
    }

    void readMask(boolean there) throws Refused {
        if (!there) {
            return;
        }
        maskWord = word(0);
        at++;
        exceptions = maskWord >> 8 & 0x1FFF;
        Refused.when(maskWord >>> 21 != 0 || exceptions < 1 || exceptions > PlanesTile.TILE, "P8", "a mask of %08x",
                maskWord);
    }

    /** The modes of class 0: 16 bits a slice, two slices in a word. */
    void readSlices(int[] slices) throws Refused {
        int total = slices[0] + slices[1] + slices[2] + slices[3];
        need((total + 1) / 2);
        Refused.when(total % 2 == 1 && payload.u16(4 * at + 2 * total) != 0, "P9",
                "a bit behind the last slice's modes is not 0");
        int slice = 0;
        for (int k = 0; k < 4; k++) {
            int top = 8 * slices[k] - 1;
            for (int p = top - 1; p >= 0; p--) {
                add(k, p, payload.u16(4 * at + 2 * (slice + p / 8)) >> 2 * (p % 8) & 3);
            }
            add(k, top, payload.u16(4 * at + 2 * (slice + top / 8)) >> 14);
            add(k, MASK, maskWord >> 2 * k & 3);
            slice += slices[k];
        }
        at += (total + 1) / 2;
    }

    /** The modes of classes 1 and 2: of three bit planes a block, the lowest one first. */
    void readNumbers(int bits) throws Refused {
        for (int k = 0; k < 4; k++) {
            for (int p = 2; p >= 0; p--) {
                add(k, p, bits >> 6 * k + 2 * p & 3);
            }
            add(k, MASK, maskWord >> 2 * k & 3);
        }
    }

    private void add(int block, int plane, int mode) throws Refused {
        Refused.when(mode == 3, "P7", "bit plane %d of block %d has mode 3", plane, block);
        present[block][plane] = mode != 0;
        if (mode == 0) {
            Arrays.fill(planes[block][plane], 0);
        } else {
            coded[count] = block * (MASK + 1) + plane;
            modes[count++] = mode;
        }
    }

    /** Ballots, nibbles, full and scattered. */
    void readPlanes() throws Refused {
        int sparse = 0;
        for (int i = 0; i < count; i++) {
            sparse += modes[i] == SPARSE ? 1 : 0;
        }
        need(sparse);
        int lanes = 0;
        for (int i = 0; i < sparse; i++) {
            lanes += Integer.bitCount(payload.i32(4 * (at + i)));
        }
        int ballot = 4 * at;
        at += sparse;
        need((lanes + 7) / 8);
        int nibbles = 4 * at;
        int bytes = 0;
        at += (lanes + 7) / 8;
        for (int byteAt = nibbles; byteAt < 4 * at; byteAt++) {
            bytes += Integer.bitCount(payload.u8(byteAt));
        }
        int full = 4 * at;
        need(32 * (count - sparse));
        at += 32 * (count - sparse);
        int scattered = 4 * at;
        // Nibbles behind the last one may name bytes that are not there: judged first.
        Refused.when(lanes % 8 != 0 && payload.i32(full - 4) >>> 4 * (lanes % 8) != 0, "P11",
                "behind the last nibble are bits");
        need((bytes + 3) / 4);
        at += (bytes + 3) / 4;
        Refused.when(payload.any(scattered + bytes, 4 * at), "P11", "behind the last scattered byte are bits");
        expand(ballot, nibbles, full, scattered);
    }

    private void expand(int ballot, int nibbles, int full, int scattered) {
        int nibble = 2 * nibbles;
        for (int i = 0; i < count; i++) {
            int[] words = planes[coded[i] / (MASK + 1)][coded[i] % (MASK + 1)];
            if (modes[i] == FULL) {
                payload.words(full, words, 0, 32);
                full += 128;
                continue;
            }
            Arrays.fill(words, 0);
            for (int lanes = payload.i32(ballot); lanes != 0; lanes &= lanes - 1, nibble++) {
                int named = payload.u8(nibble >> 1) >> 4 * (nibble & 1) & 15;
                int word = 0;
                for (; named != 0; named &= named - 1) {
                    word |= payload.u8(scattered++) << 8 * Integer.numberOfTrailingZeros(named);
                }
                words[Integer.numberOfTrailingZeros(lanes)] = word;
            }
            ballot += 4;
        }
    }

    int fieldsBegin() {
        return at;
    }

    /** The fields end at this word. */
    void skipFields(int behind) throws Refused {
        need(behind - at);
        at = behind;
    }

    int valuesBegin() {
        return values;
    }

    /** The values of exceptions, -1 for as many as there are, end the payload. */
    void readEnd(int many, int size) throws Refused {
        values = at;
        int stored = many < 0 ? exceptions : many;
        Refused.when(stored * size / 4 != end - at, "P10", "%d words for %d values of exceptions", end - at, stored);
        if (many == 0) {
            return;
        }
        int ones = 0;
        for (int[][] block : planes) {
            for (int word : block[MASK]) {
                ones += Integer.bitCount(word);
            }
        }
        Refused.when(ones != exceptions, "P12", "%d exceptions, the masks mark %d", exceptions, ones);
    }
}
