// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.math.BigInteger;

/**
 * Residuals of the codec {@code dense}, codecs/src/codec/dense/FORMAT.md: an entropy coder (rANS) whose frequencies go
 * by the magnitudes of the residuals around. All else of a tile is that of {@code lorenzo}, see {@link Lorenzo}.
 *
 * <pre>
 * for each grid: the tile, or the classes of its lattices                Lattices.classes, grid
 *     for each place:
 *         the mean magnitude around it gives a context, and so a table   around
 *         a token by the table, and the bits that follow it              coded
 *         what the filter predicts is added
 * vectors: the same coder, whose contexts are others                     DenseVectors
 * </pre>
 */
final class Dense implements Lattices.Classes {
    private static final int TILE = 8192;
    private static final int CODED = 1;
    private static final int VECTORS = 2;
    private static final int INTERPOLATED = 8;
    private static final int FILTERED = 128;
    private static final int OF_RESIDUALS = FILTERED | INTERPOLATED | 7;
    private static final int LONGEST_PERIOD = 16;
    private static final int LEAST_STATE = 1 << 16;
    private static final int SLOTS = 4096;
    private static final int LAST_BIN = DenseTables.BINS - 1;
    private static final int ESCAPES = 17;
    private static final int MOST_BITS = 15;
    private static final int HIGHER = 11;
    private static final int[] MAGNITUDE = new int[256];

    static {
        for (int n = 0; n < MAGNITUDE.length; n++) {
            MAGNITUDE[n] = BigInteger.valueOf(1 + n).pow(16).bitLength() / 2;
        }
    }

    private final DenseTables head = new DenseTables();
    private DenseVectors vectors;

    // The tile at hand: where its words are, and its residuals in their order.
    private Section payload;
    private int next;
    private int end;
    private long state;
    private int[] residuals;
    private int begin;

    /** By the axes along which a class is new: its extents and magnitudes in the lattice at hand. 0: any other grid. */
    private final int[][] extents = new int[8][];
    private final int[][] magnitudes = new int[8][TILE];
    private int magnitude;

    // Of the place at hand: sums over what is around.
    private int total;
    private int weight;

    int read(Section section) throws Refused {
        return head.read(section);
    }

    /** Section 3.3. */
    void check(int kind, int[] e) throws Refused {
        int kindClass = kind >> 4 & 3;
        boolean filtered = (kind & (FILTERED | INTERPOLATED)) == FILTERED;
        boolean ofVectors = kindClass == VECTORS;
        Refused.when(ofVectors ? (kind & OF_RESIDUALS) != 0 : filtered && kindClass != CODED, "D9", "kind %02x: "
                + "class 2 with axes, bit 3 or bit 7, or filtered and not coded", kind);
        Refused.when(ofVectors && (head.vectors == null || e[2] < 2 || e[2] > 4), "D14",
                "vectors of %d components, in a frame with%s weights of vectors", e[2],
                head.vectors == null ? "out" : "");
        Refused.when(filtered && head.filters[kind & 7] == null, "D10", "no filter for the set of axes %d", kind & 7);
    }

    /** Sections 4.2 to 4.5: the residuals of a coded tile of the extents e, or the quanta of one of vectors. */
    void residuals(int kind, Section from, int at, int behind, Lattices lattices, int[] e, int[] into)
            throws Refused {
        boolean ofVectors = (kind >> 4 & 3) == VECTORS;
        int period = ofVectors && behind - at >= 2 ? from.u16(at) : 0;
        Refused.when(ofVectors && (period < 1 || period > LONGEST_PERIOD), "D15", "vectors of the period %d in %d "
                + "bytes", period, behind - at);
        next = ofVectors ? at + 2 : at;
        Refused.when(head.count == 0 || behind - next < 4, "D11",
                "coded, with %d bytes of words, by %d tables", behind - next, head.count);
        payload = from;
        end = behind;
        residuals = into;
        begin = 0;
        state = payload.u32(next);
        next += 4;
        Refused.when(state < LEAST_STATE, "D12", "a first state %x, below 2^16", state);
        if (ofVectors) {
            vectors = vectors == null ? new DenseVectors(this, head.vectors) : vectors;
            vectors.read(period, e, into);
        } else if ((kind & INTERPOLATED) != 0) {
            lattices.classes(this);
        } else {
            int axes = kind & 7;
            int group = 2 * Math.max(Integer.bitCount(axes) - 1, 0);
            grid(group, e, axes, (kind & FILTERED) != 0 ? head.filters[axes] : null, 0);
        }
        Refused.when(state != LEAST_STATE || next != end, "D13", "a last state %x, %d bytes left", state, end - next);
    }

    @Override
    public void of(int level, int fresh, int[] e) throws Refused {
        boolean first = fresh == 0;
        int group = first ? HIGHER : level == 0 ? 5 + Integer.bitCount(fresh) : Math.min(8 + level, HIGHER);
        grid(group, e, 0, null, fresh);
    }

    /** A grid of the extents e. axes: those that have a border; fresh: of a class, along which axes it is new. */
    private void grid(int group, int[] e, int axes, int[] filter, int fresh) throws Refused {
        extents[fresh] = e.clone();
        int[] m = magnitudes[fresh];
        int i = 0;
        for (int z = 0; z < e[0]; z++) {
            // The box of alike places begins here.
            int firstPlane = (axes & 4) != 0 && z > 0 ? 1 : 0;
            for (int y = 0; y < e[1]; y++) {
                int firstRow = (axes & 2) != 0 && y > 0 ? 1 : 0;
                for (int x = 0; x < e[2]; x++, i++) {
                    int firstPlace = (axes & 1) != 0 && x > 0 ? 1 : 0;
                    int behind = (axes & 1) != 0 && x == 0 ? 1 : e[2];
                    boolean border = ((axes & 1) != 0 && x == 0) || ((axes & 2) != 0 && y == 0)
                            || ((axes & 4) != 0 && z == 0);
                    total = 0;
                    weight = 0;
                    around(m, i, e, z - firstPlane, y - firstRow, x - firstPlace, x + 1 < behind);
                    if (Integer.bitCount(fresh) > 1) {
                        beside(fresh, z, y, x);
                    }
                    int c = coded(border ? group + 1 : group, weight == 0 ? LAST_BIN : bin(16 * total / weight));
                    m[i] = magnitude;
                    if (filter != null && !border) {
                        c += predicted(filter, begin + i, e, z - firstPlane, y - firstRow, x - firstPlace,
                                x + 1 < behind);
                    }
                    residuals[begin + i] = c;
                }
            }
        }
        begin += i;
    }

    /** Magnitudes around place i, of which so many planes, rows and places before it are alike, and one behind it. */
    private void around(int[] m, int i, int[] e, int planes, int rows, int places, boolean more) {
        int row = e[2];
        int plane = e[1] * row;
        if (places >= 1) {
            add(4, m[i - 1]);
        }
        if (places >= 2) {
            add(2, m[i - 2]);
        }
        if (rows >= 1) {
            add(3, m[i - row]);
            if (more) {
                add(2, m[i - row + 1]);
            }
        }
        if (rows >= 2) {
            add(1, m[i - 2 * row]);
        }
        if (planes >= 1) {
            add(3, m[i - plane]);
        }
        if (planes >= 2) {
            add(2, m[i - 2 * plane]);
        }
    }

    private void add(int by, int value) {
        weight += by;
        total += by * value;
    }

    /** Along each axis along which the class is new, the two places of the class that is new along the others. */
    private void beside(int fresh, int z, int y, int x) {
        for (int bit = 1; bit <= 4; bit *= 2) {
            if ((fresh & bit) != 0) {
                int[] e = extents[fresh ^ bit];
                int[] m = magnitudes[fresh ^ bit];
                add(1, m[(z * e[1] + y) * e[2] + x]);
                int right = bit == 1 ? Math.min(x + 1, e[2] - 1) : x;
                int below = bit == 2 ? Math.min(y + 1, e[1] - 1) : y;
                int deep = bit == 4 ? Math.min(z + 1, e[0] - 1) : z;
                add(1, m[(deep * e[1] + below) * e[2] + right]);
            }
        }
    }

    static int bin(int expected) {
        return expected < 128 ? expected / 8 : Math.min(16 + (expected - 128) / 32, LAST_BIN);
    }

    private int predicted(int[] f, int i, int[] e, int planes, int rows, int places, boolean more) {
        int[] r = residuals;
        int row = e[2];
        int plane = e[1] * row;
        int sum = 32;
        if (places >= 1) {
            sum += f[0] * r[i - 1];
        }
        if (places >= 2) {
            sum += f[1] * r[i - 2];
        }
        if (rows >= 1) {
            sum += f[2] * r[i - row] + (more ? f[3] * r[i - row + 1] : 0) + (places >= 1 ? f[4] * r[i - row - 1] : 0);
        }
        if (rows >= 2) {
            sum += f[5] * r[i - 2 * row];
        }
        if (planes >= 1) {
            sum += f[6] * r[i - plane] + (places >= 1 ? f[7] * r[i - plane - 1] : 0);
        }
        if (planes >= 1 && rows >= 1) {
            sum += f[8] * r[i - plane - row];
        }
        return sum >> 6;
    }

    /** Section 4.1, of a number without a sign. */
    static int magnitude(int n) {
        int shift = Math.max(24 - Integer.numberOfLeadingZeros(n), 0);
        return MAGNITUDE[n >>> shift] + 8 * shift;
    }

    /** Section 4.4: the next number in a context; sets its magnitude. */
    int coded(int group, int bin) throws Refused {
        DenseTables.Table table = head.tables[DenseTables.BINS * group + bin];
        int slot = (int) state & SLOTS - 1;
        int token = table.token[slot] & 0xFF;
        state = table.frequency[token] * (state / SLOTS) + slot - table.start[token];
        fill();
        if (token < ESCAPES) {
            int value = DenseTables.classOf(token);
            magnitude = MAGNITUDE[value];
            return token % 2 == 0 ? -value : value;
        }
        int k = (token - ESCAPES) / 4;
        int low = Math.min(k + 2, MOST_BITS);
        int x = bits(low);
        x |= bits(k + 2 - low) << low;
        // Up to 2^31, as an unsigned number.
        int m = (4 + (token - ESCAPES) % 4 << k + 1) + x / 2 + 1;
        magnitude = magnitude(m);
        return x % 2 == 0 ? m : -m;
    }

    private int bits(int count) throws Refused {
        int value = (int) state & (1 << count) - 1;
        state >>>= count;
        fill();
        return value;
    }

    private void fill() throws Refused {
        if (state < LEAST_STATE) {
            if (next == end) {
                throw new Refused("D13", "words that end before the last residual");
            }
            state = state << 16 | payload.u16(next);
            next += 2;
        }
    }
}
