// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * Lengths and fields of wide residuals, section 3.4 of the FORMAT.md of {@code planes}: three bit planes give each
 * value a number, the number a bin of lengths, the bin the width of the value's field and what is added to it.
 *
 * <p>Fields stand block by block, in a block lane by lane, in a lane by layer, row and column, so their bits are one
 * stream. {@link #measure} finds how long a block's is before anything is decoded.
 */
final class PlanesFields {
    /** The residuals of class 0, and of the other classes. */
    final int[] small = new int[PlanesTile.TILE];
    final long[] large = new long[PlanesTile.TILE];

    // Bits of a lane's words in the order of fields: even layer then odd, r, c.
    private static final int[] ORDER = new int[32];

    static {
        for (int i = 0; i < 32; i++) {
            int c = i & 3;
            int p = c == 1 ? 2 : c == 2 ? 1 : c;
            ORDER[i] = 8 * p + 4 * (i >> 4) + (i >> 2 & 3);
        }
    }

    private final Section payload;
    private final int bits;
    private final int[] widths = new int[8];
    private final long[] added = new long[8];
    /** Numbers whose bins hold no length. */
    private final boolean[] empty = new boolean[8];
    private final int[] begin = new int[5];
    private int shift;

    PlanesFields(Section payload, int bits) {
        this.payload = payload;
        this.bits = bits;
    }

    /** Works out widths by number, from L, T, z and the bins of numbers. */
    void open(int first, int longest, int z, int bins) {
        shift = z;
        int[] h = {0, first, first + 1, first + 2, first + 3, first + 4, first + 6, longest};
        for (int number = 0; number < 8; number++) {
            int bin = bins >> 3 * number & 7;
            int high = Math.min(h[bin], longest);
            int low = bin == 0 ? -1 : Math.min(h[bin - 1], longest);
            boolean one = bin != 0 && high == low + 1;
            empty[number] = high == low;
            widths[number] = one ? high - 1 : high;
            added[number] = one ? 1L << high - 1 : 0;
        }
    }

    /** How long the fields of a block are, from a word on; gives the word behind them. */
    int measure(int block, int[][] planes, int at) throws Refused {
        int total = 0;
        for (int l = 0; l < 32; l++) {
            int a = planes[0][l];
            int b = planes[1][l];
            int c = planes[2][l];
            for (int number = 0; number < 8; number++) {
                int those = ((number & 1) != 0 ? a : ~a) & ((number & 2) != 0 ? b : ~b) & ((number & 4) != 0 ? c : ~c);
                Refused.when(empty[number] && those != 0, "P14", "number %d, of a bin that holds no length", number);
                total += widths[number] * Integer.bitCount(those);
            }
        }
        begin[block] = at;
        begin[block + 1] = at + (total + 31) / 32;
        return begin[block + 1];
    }

    /** The residuals of a block; place says where bit b of lane l lies. */
    void decode(int block, int[][] planes, int[] place) throws Refused {
        int at = 4 * begin[block];
        int end = 4 * begin[block + 1];
        long buffer = 0;
        int have = 0;
        long mod = bits == 64 ? -1L : (1L << bits) - 1;
        for (int l = 0; l < 32; l++) {
            int a = planes[0][l];
            int b = planes[1][l];
            int c = planes[2][l];
            for (int bit : ORDER) {
                int number = a >>> bit & 1 | (b >>> bit & 1) << 1 | (c >>> bit & 1) << 2;
                int width = widths[number];
                long field = 0;
                int low = 0;
                if (width > 32) {
                    // Two steps of 32 bits and less.
                    if (have < 32) {
                        buffer |= payload.u32(at) << have;
                        have += 32;
                        at += 4;
                    }
                    field = buffer & 0xFFFFFFFFL;
                    buffer >>>= 32;
                    have -= 32;
                    low = 32;
                }
                int rest = width - low;
                if (have < rest) {
                    buffer |= payload.u32(at) << have;
                    have += 32;
                    at += 4;
                }
                field |= (buffer & (1L << rest) - 1) << low;
                buffer >>>= rest;
                have -= rest;
                long u = field + added[number] & mod;
                large[1024 * block + place[32 * l + bit]] = (u >>> 1 ^ -(u & 1)) << shift;
            }
        }
        Refused.when(buffer != 0 || at != end, "P16", "behind the last field of block %d are bits", block);
    }
}
