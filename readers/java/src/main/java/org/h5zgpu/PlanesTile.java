// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.util.Arrays;

/**
 * A tile of {@code planes}: sections 3.2 to 5 of its FORMAT.md. 4096 values in eight layers; two layers are a block,
 * whose 1024 values are bits of 32 words in each bit plane.
 *
 * <pre>
 * head: class, predictor, what the parts need to know                        head0, headWide
 * base, mask, modes
 * ballots, nibbles, full, scattered: the bit planes that are there           PlanesParts
 * class 0:     eight bit planes of a lane at a time become eight bytes       narrowResiduals
 * class 1, 2:  three bit planes say how wide each field is                   PlanesFields
 * sums along the predictor's axes                                            integrate
 * integers to numbers; exceptions replace what came out                      numbers, PlanesNumbers
 * </pre>
 *
 * <p>Class 0 has 32 bits in every step, the others 64: of sums modulo 2^32 the lower half of 64 bits is right.
 */
final class PlanesTile {
    static final int TILE = 4096;
    private static final int BLOCKS = 4;
    private static final int RAW = 3;

    /** The values' bits; of numbers of 4 bytes in {@code narrow}, of 8 in {@code wide}. */
    final int[] narrow = new int[TILE];
    final long[] wide = new long[TILE];
    /** Whether the tile was raw: its values are then those inside the array alone. */
    boolean raw;

    private final int size;
    private final int bits;
    private final int rank;
    private final boolean floats;
    private final boolean lossless;
    private final Section payload;
    private final PlanesParts parts;
    private final PlanesFields fields;
    private final PlanesNumbers numbers;
    /** Where in the tile bit b of word l lies, at 32 · l + b, in the first of a block's two layers. */
    private final int[] place = new int[1024];

    private int tileClass;
    private int predictor;
    private boolean exceptions;
    private boolean uniform;

    PlanesTile(Header header, int rank, Section payload) {
        this.rank = rank;
        this.payload = payload;
        size = header.size();
        bits = 8 * size;
        floats = header.numberClass() == Header.FLOAT;
        lossless = header.mode == 9;
        parts = new PlanesParts(payload);
        fields = new PlanesFields(payload, bits);
        numbers = new PlanesNumbers(header);
        for (int l = 0; l < 32; l++) {
            for (int b = 0; b < 32; b++) {
                int p = b >> 3;
                int c = p == 1 ? 2 : p == 2 ? 1 : p;
                int layer = b >> 2 & 1;
                int r = b & 3;
                int inLayer = rank == 1 ? 128 * r + 4 * l + c : (4 * (l / 8) + r) * 32 + 4 * (l % 8) + c;
                place[32 * l + b] = 512 * layer + inLayer;
            }
        }
    }

    /** Decodes the payload from word to word; {@code inside} values of the tile lie in the array. */
    void decode(int begin, int end, int inside) throws Refused {
        int head = payload.i32(4 * begin);
        tileClass = head & 3;
        raw = tileClass == RAW;
        if (raw) {
            Refused.when(head != RAW, "P5", "raw, with a head of %08x", head);
            Refused.when(end - begin != 1 + (long) inside * size / 4, "P10", "raw, with %d words for %d values",
                    end - begin, inside);
            if (size == 4) {
                payload.words(4 * begin + 4, narrow, 0, inside);
            } else {
                payload.words(4 * begin + 4, wide, 0, inside);
            }
            return;
        }
        Refused.when(tileClass < 2 && (lossless || !numbers.usable), "P6", "class %d without a usable step", tileClass);
        predictor = head >> 2 & 3;
        Refused.when(predictor > rank, "P5", "predictor %d, %d at most", predictor, rank);
        parts.open(begin, end);
        if (tileClass == 0) {
            quanta(head, end - begin);
        } else {
            wideTile(head);
        }
        if (exceptions) {
            replace();
        }
    }

    private void quanta(int head, int words) throws Refused {
        exceptions = (head >> 9 & 1) != 0;
        uniform = (head >> 10 & 1) != 0;
        Refused.when((head >> 8 & 1) != 0 || (uniform && !exceptions), "P5", "a head of %08x", head);
        int base = (head >> 11) * (size == 4 ? 2 : 512);
        parts.skip(1);
        int[] v = fields.small;
        Arrays.fill(v, 0);
        if (words == 1) {
            Refused.when((head & 0x7F0) != 0, "P5", "a head of %08x alone", head);
        } else {
            int[] slices = new int[BLOCKS];
            for (int k = 0; k < BLOCKS; k++) {
                slices[k] = 1 + (head >> 4 + k & 1);
            }
            parts.readMask(exceptions);
            parts.readSlices(slices);
            parts.readPlanes();
            parts.readEnd(exceptions ? uniform ? 1 : -1 : 0, size);
            for (int k = 0; k < BLOCKS; k++) {
                narrowResiduals(k, slices[k], v);
            }
        }
        integrate(v);
        int out = 0;
        for (int i = 0; i < TILE; i++) {
            out |= v[i] + 4096;
        }
        Refused.when(out >>> 13 != 0, "P13", "a quantum that is not within 4096 of the base");
        if (size == 4) {
            numbers.quanta(v, base, narrow);
        } else {
            numbers.quanta(v, base, wide);
        }
    }

    /** Section 4, class 0: a byte of each of eight bit planes holds the bits of eight values of a lane. */
    private void narrowResiduals(int block, int slices, int[] v) {
        int[][] planes = parts.planes(block);
        int from = 1024 * block;
        for (int slice = slices - 1; slice >= 0; slice--) {
            boolean top = slice == slices - 1;
            if (!parts.present(block, 8 * slice, 8 * slice + 8) && top) {
                continue;
            }
            int first = 8 * slice;
            for (int l = 0; l < 32; l++) {
                residualsOfLane(planes, first, l, top, slices, from, v);
            }
        }
    }

    private void residualsOfLane(int[][] planes, int first, int l, boolean top, int slices, int from, int[] v) {
        for (int q = 0; q < 4; q++) {
            long rows = 0;
            for (int p = 7; p >= 0; p--) {
                rows = rows << 8 | (planes[first + p][l] >>> 8 * q & 0xFF);
            }
            if (rows == 0 && top) {
                continue;
            }
            long bytes = Bits.transpose8(rows);
            for (int b = 0; b < 8; b++, bytes >>>= 8) {
                int at = from + place[32 * l + 8 * q + b];
                if (top) {
                    v[at] = (byte) bytes;
                } else {
                    v[at] = v[at] << 8 | (int) bytes & 0xFF;
                }
                if (first == 0) {
                    int d = v[at];
                    v[at] = d ^ d >> 31 & (slices == 1 ? 0x7F : 0x7FFF);
                }
            }
        }
    }

    private void wideTile(int head) throws Refused {
        Refused.when((head & (tileClass == 1 ? 0xA0 : 0xE0)) != 0, "P5", "a head of %08x", head);
        boolean halves = (head & 64) != 0;
        boolean map = (head & 16) != 0;
        int second = parts.word(1);
        int third = parts.word(2);
        Refused.when((second & 1 << 19) != 0 || third >>> 26 != 0, "P5", "a head of %08x %08x", second, third);
        int z = second >> 13 & 63;
        int longest = second >> 6 & 127;
        Refused.when(z > bits - 1 || longest + z > bits, "P14", "lengths up to %d, shifted by %d", longest, z);
        int e = second >> 20;
        boolean range = size == 4 ? e >= -126 && e <= 127 : e >= -1022 && e <= 1023;
        Refused.when(map ? tileClass == 1 || !floats || !range : e != 0, "P15", "map %d in class %d, e %d",
                map ? 1 : 0, tileClass, e);
        exceptions = (third >> 24 & 1) != 0;
        uniform = (third >> 25 & 1) != 0;
        Refused.when(uniform && !exceptions, "P5", "a head of %08x %08x", second, third);
        parts.skip(3);
        long base = parts.base(size);
        parts.readMask(exceptions);
        parts.readNumbers(head >>> 8);
        parts.readPlanes();
        fields.open(second & 63, longest, z, third);
        int at = parts.fieldsBegin();
        for (int k = 0; k < BLOCKS; k++) {
            at = fields.measure(k, parts.planes(k), at);
        }
        parts.skipFields(at);
        parts.readEnd(exceptions ? uniform ? 1 : -1 : 0, size);
        for (int k = 0; k < BLOCKS; k++) {
            fields.decode(k, parts.planes(k), place);
        }
        integrate(fields.large);
        numbers.large(fields.large, base, tileClass, halves, map, e, size == 4 ? narrow : null, wide);
    }

    /** Section 4: sums along x, then y, then z, as many as the predictor says. */
    private void integrate(int[] v) {
        int[] side = {rank == 1 ? TILE : 32, rank == 2 ? 128 : 16, 8};
        int step = 1;
        for (int k = 0; k < predictor; k++) {
            int run = step * side[k];
            for (int begin = 0; begin < TILE; begin += run) {
                for (int i = begin + step; i < begin + run; i++) {
                    v[i] += v[i - step];
                }
            }
            step = run;
        }
    }

    private void integrate(long[] v) {
        int[] side = {rank == 1 ? TILE : 32, rank == 2 ? 128 : 16, 8};
        int step = 1;
        for (int k = 0; k < predictor; k++) {
            int run = step * side[k];
            for (int begin = 0; begin < TILE; begin += run) {
                for (int i = begin + step; i < begin + run; i++) {
                    v[i] += v[i - step];
                }
            }
            step = run;
        }
    }

    /** The values of a mask's ones, in order of blocks, lanes and bits. */
    private void replace() {
        int at = parts.valuesBegin();
        for (int k = 0; k < BLOCKS; k++) {
            int[] mask = parts.mask(k);
            for (int l = 0; l < 32; l++) {
                for (int word = mask[l]; word != 0; word &= word - 1) {
                    int to = 1024 * k + place[32 * l + Integer.numberOfTrailingZeros(word)];
                    if (size == 4) {
                        narrow[to] = payload.i32(4 * at);
                    } else {
                        wide[to] = payload.i64(4 * at);
                    }
                    at += uniform ? 0 : size / 4;
                }
            }
        }
    }
}
