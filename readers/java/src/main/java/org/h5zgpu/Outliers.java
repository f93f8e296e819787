// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * The outliers of a tile of {@code lorenzo}, section 3.4 of its FORMAT.md: records of places that have the same bits,
 * or a mask of places that all have.
 *
 * <p>Both become a list of (first place, count, bits), which {@link #replace} writes over what the tile decoded to.
 */
final class Outliers {
    private static final int MASK = 1 << 31;
    private static final int DIFFERENCES = 1 << 30;

    private final int[] first = new int[8192];
    private final int[] places = new int[8192];
    private final long[] bits = new long[8192];
    private final boolean[] marked = new boolean[8192];
    private int count;

    void clear() {
        count = 0;
    }

    /** Reads those of a tile of the extents e; gives how many bytes they take. */
    int read(Section payload, int begin, int end, int width, int[] e) throws Refused {
        int n = e[0] * e[1] * e[2];
        Refused.when(end - begin < 4, "L20", "no count of outliers");
        int head = payload.i32(begin);
        boolean mask = (head & MASK) != 0;
        long said = mask ? head & DIFFERENCES - 1 : head;
        Refused.when(said < 1 || said > n, "L19", "%d outliers, or runs of them, in %d values", said, n);
        int entries = (int) said;
        if (mask) {
            return mask(payload, begin, end, width, e, (head & DIFFERENCES) != 0, entries);
        }
        int length = 4 + entries * (4 + width);
        Refused.when(length > end - begin, "L20", "%d bytes of outliers in %d", length, end - begin);
        int last = -1;
        for (int k = 0; k < entries; k++) {
            int from = payload.u16(begin + 4 + 4 * k);
            int many = payload.u16(begin + 6 + 4 * k) + 1;
            Refused.when(from <= last, "L21", "a record of outliers at place %d, the one before ends at %d", from,
                    last);
            last = from + many - 1;
            Refused.when(last >= n, "L22", "outliers up to place %d of %d", last, n);
            add(from, many, payload.bits(begin + 4 + 4 * entries + width * k, width));
        }
        return length;
    }

    private int mask(Section payload, int begin, int end, int width, int[] e, boolean differences, int runs)
            throws Refused {
        int n = e[0] * e[1] * e[2];
        int list = begin + 4 + width;
        int length = 4 + width + (runs + 1) / 2 * 4;
        Refused.when(length > end - begin, "L20", "%d bytes of outliers in %d", length, end - begin);
        Refused.when(runs % 2 == 1 && payload.u16(list + 2 * runs) != 0, "L32", "bytes behind the runs are not 0");
        // The slowest axis of more than one value: planes, or rows where there is one plane.
        int step = e[0] > 1 ? e[1] * e[2] : e[1] > 1 ? e[2] : 0;
        Refused.when(differences && step == 0, "L34", "a mask of differences in one row");
        java.util.Arrays.fill(marked, 0, n, false);
        int at = 0;
        for (int k = 0; k < runs; k++) {
            at += payload.u8(list + 2 * k);
            int ones = payload.u8(list + 2 * k + 1);
            Refused.when(at + ones > n, "L33", "runs of a mask up to place %d of %d", at + ones, n);
            java.util.Arrays.fill(marked, at, at + ones, true);
            at += ones;
        }
        for (int i = step; differences && i < n; i++) {
            marked[i] ^= marked[i - step];
        }
        long value = payload.bits(begin + 4, width);
        for (int i = 0; i < n; i++) {
            if (marked[i]) {
                int from = i;
                while (i + 1 < n && marked[i + 1]) {
                    i++;
                }
                add(from, i - from + 1, value);
            }
        }
        return length;
    }

    private void add(int from, int many, long value) {
        first[count] = from;
        places[count] = many;
        bits[count++] = value;
    }

    void replace(int[] values) {
        for (int k = 0; k < count; k++) {
            java.util.Arrays.fill(values, first[k], first[k] + places[k], (int) bits[k]);
        }
    }

    void replace(long[] values) {
        for (int k = 0; k < count; k++) {
            java.util.Arrays.fill(values, first[k], first[k] + places[k], bits[k]);
        }
    }
}
