// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.util.HashMap;
import java.util.Map;

/**
 * The codec {@code lorenzo}, codecs/src/codec/lorenzo/FORMAT.md: integers that are predicted from their neighbours in
 * tiles of up to 8192 values, and what the prediction misses by, in one Huffman code. And {@code dense}, which codes
 * what the prediction misses by otherwise.
 *
 * <pre>
 * head: the code, and a base where there is one                          Codebook, or DenseTables
 * kinds and lengths: what each tile is, and where its payload ends
 * for each tile:
 *     raw: its values
 *     outliers: their places and bits                                    Outliers
 *     residuals: none, of fixed width, or of a stream                    Codebook.stream, fixedWidth, or Dense
 *     sums along axes, or interpolation from coarse to fine              integrate, Lattices
 *     integers to numbers; outliers replace what came out                numbers
 *     rows of the tile to their places
 * </pre>
 */
@SuppressWarnings("strictfp") // what Java 17 does anyway, and Java 8 with this word
final strictfp class Lorenzo {
    private static final int TILE = 8192;
    private static final int EMPTY = 0;
    private static final int HUFFMAN = 1;
    private static final int FIXED = 2;
    private static final int RAW = 3;
    private static final int INTERPOLATED = 8;
    private static final int WITH_OUTLIERS = 64;
    private static final int FINER = 128;
    private static final int STARTS = 64;

    private final Header header;
    private final Section head;
    private final Section kinds;
    private final Section lengths;
    private final Section payload;
    private final int width;
    private final boolean relative;
    private final Codebook codebook;
    /** Null where the codec is {@code lorenzo}. */
    private final Dense dense;
    /** Bytes that lengths of tiles count in. */
    private final int unit;

    // Section 3.1: the chunk and its tiles, slowest axis first.
    private final int[] extent = {1, 1, 1};
    private final int[] side = {1, 1, 1};
    private final int[] tiles = {1, 1, 1};

    // Section 5.
    private final double quantumStep;
    private final double latticeStep;
    private final long relativeStep;
    private boolean based;
    private double base;

    // The tile at hand: its extents, how many values, and these.
    private final int[] e = {1, 1, 1};
    private int n;
    private final int[] residuals = new int[TILE];
    private final int[] integers = new int[TILE];
    private final int[] narrow;
    private final long[] wide;
    private final Outliers outliers = new Outliers();
    private final Map<Long, Lattices> lattices = new HashMap<>();

    Lorenzo(Header header, Section[] sections) {
        this.header = header;
        head = sections[0];
        kinds = sections[1];
        lengths = sections[2];
        payload = sections[3];
        width = header.size();
        relative = header.mode == 3;
        codebook = new Codebook();
        dense = header.codec == Header.DENSE ? new Dense() : null;
        unit = dense != null ? 2 : 4;
        quantumStep = 2 * header.bound;
        latticeStep = 2 * header.bound / 257;
        relativeStep = relativeStep(header.bound, width == 4 ? 24 : 53);
        narrow = new int[width == 4 ? TILE : 0];
        wide = new long[width == 8 ? TILE : 0];
    }

    /** min(max(⌊b · 2^power⌋, 1), 2^64 − 1), as 64 bits. */
    private static long relativeStep(double bound, int power) {
        double step = Math.floor(bound * (1L << power));
        if (step >= 0x1p64) {
            return -1;
        }
        return step >= 0x1p63 ? (long) (step - 0x1p63) + Long.MIN_VALUE : Math.max((long) step, 1);
    }

    byte[] decode(Header asked) throws Refused {
        cut();
        readHead();
        // Widened: a chunk of one byte a value has as many tiles as one of eight.
        long count = (long) tiles[0] * tiles[1] * tiles[2];
        Refused.when(kinds.length != count, "L8", "%d bytes of kinds for %d tiles", kinds.length, count);
        int starts = (kinds.length - 1) / STARTS;
        int evened = (kinds.length + 1) / 2 * 4;
        Refused.when(lengths.length != evened + 4L * starts, "L9", "%d bytes of lengths for %d tiles", lengths.length,
                count);
        Refused.when(kinds.length % 2 == 1 && lengths.u16(2 * kinds.length) != 0, "L10",
                "the 2 bytes behind the lengths are not 0");
        long sum = 0;
        for (int t = 0; t < kinds.length; t++) {
            Refused.when(t > 0 && t % STARTS == 0 && lengths.u32(evened + 4 * (t / STARTS - 1)) != sum, "L11",
                    "tile %d does not begin at unit %d, as the lengths say", t, sum);
            sum += lengths.u16(2 * t);
        }
        Refused.when(unit * sum != payload.length, "L12", "tiles of %d bytes in a payload of %d", unit * sum,
                payload.length);
        Output out = new Output(asked);
        int begin = 0;
        for (int t = 0; t < kinds.length; t++) {
            int end = begin + unit * lengths.u16(2 * t);
            tile(t, begin, end, out);
            begin = end;
        }
        return out.bytes;
    }

    /** Section 3.1. */
    private void cut() {
        int rank = header.extents.length;
        for (int k = 0; k < rank; k++) {
            extent[Math.max(0, k + 3 - rank)] *= (int) header.extents[k];
        }
        while (true) {
            int best = -1;
            for (int k = 2; k >= 0; k--) {
                long grown = Math.min(2L * side[k], extent[k]);
                boolean fits = (long) side[0] * side[1] * side[2] / side[k] * grown <= TILE;
                if (side[k] < extent[k] && fits && (best < 0 || side[k] < side[best])) {
                    best = k;
                }
            }
            if (best < 0) {
                break;
            }
            side[best] = (int) Math.min(2L * side[best], extent[best]);
        }
        for (int k = 0; k < 3; k++) {
            tiles[k] = (extent[k] - 1) / side[k] + 1;
        }
    }

    private void readHead() throws Refused {
        int at = dense != null ? dense.read(head) : codebook.read(head);
        boolean longer = !relative && head.length == at + width;
        Refused.when(head.length != at && !longer, dense != null ? "D1" : "L1", "a head of %d bytes, of which %d are "
                + "known", head.length, at);
        based = longer;
        if (longer) {
            base = width == 4 ? Float.intBitsToFloat(head.i32(at)) : Double.longBitsToDouble(head.i64(at));
            Refused.when(base == 0 || Double.isNaN(base) || Double.isInfinite(base), "L31", "a base of %s", base);
        }
    }

    private void tile(int number, int begin, int end, Output out) throws Refused {
        int x = number % tiles[2] * side[2];
        int y = number / tiles[2] % tiles[1] * side[1];
        int z = number / tiles[2] / tiles[1] * side[0];
        e[0] = Math.min(side[0], extent[0] - z);
        e[1] = Math.min(side[1], extent[1] - y);
        e[2] = Math.min(side[2], extent[2] - x);
        n = e[0] * e[1] * e[2];
        try {
            values(kinds.u8(number), begin, end);
        } catch (Refused r) {
            throw new Refused(r.rule, "tile " + number + r.getMessage().substring(r.rule.length()));
        }
        int row = 0;
        for (int k = z; k < z + e[0]; k++) {
            for (int j = y; j < y + e[1]; j++, row += e[2]) {
                int at = (k * extent[1] + j) * extent[2] + x;
                if (width == 4) {
                    out.put(at, 1, narrow, row, e[2]);
                } else {
                    out.put(at, 1, wide, row, e[2]);
                }
            }
        }
    }

    private void values(int kind, int begin, int end) throws Refused {
        int kindClass = kind >> 4 & 3;
        boolean interpolated = (kind & INTERPOLATED) != 0;
        if (dense != null) {
            dense.check(kind, e);
        }
        if (kindClass == RAW) {
            Refused.when(kind != RAW << 4, "L16", "raw, with kind %02x", kind);
            Refused.when(end - begin != n * width, "L17", "raw, with %d bytes for %d values", end - begin, n);
            if (width == 4) {
                payload.words(begin, narrow, 0, n);
            } else {
                payload.words(begin, wide, 0, n);
            }
            return;
        }
        Refused.when(dense == null && (kind & FINER) != 0 && !interpolated, "L13", "finer steps without interpolation");
        Refused.when(interpolated && !interpolates(kind & 7), "L14", "interpolated along axes %d", kind & 7);
        Refused.when(interpolated && relative, "L15", "interpolated in mode 3");
        outliers.clear();
        if ((kind & WITH_OUTLIERS) != 0) {
            begin += outliers.read(payload, begin, end, width, e);
        }
        java.util.Arrays.fill(residuals, 0, n, 0);
        if (kindClass == EMPTY) {
            Refused.when(begin != end, "L18", "empty, with %d bytes behind its outliers", end - begin);
        } else if (dense != null) {
            dense.residuals(kind, payload, begin, end, interpolated ? lattices() : null, e, residuals);
        } else if (kindClass == FIXED) {
            fixedWidth(begin, end);
        } else if (kindClass == HUFFMAN) {
            codebook.stream(payload, begin, end, residuals, n);
        }
        if (interpolated) {
            lattices().interpolate(residuals, kind & 7, (kind & FINER) != 0, integers);
            numbers(integers, latticeStep);
        } else {
            integrate(kind & 7);
            numbers(residuals, quantumStep);
        }
        if (width == 4) {
            outliers.replace(narrow);
        } else {
            outliers.replace(wide);
        }
    }

    private boolean interpolates(int axes) {
        for (int k = 0; k < 3; k++) {
            if ((axes >> k & 1) != 0 && e[2 - k] == 1) {
                return false;
            }
        }
        return axes != 0;
    }

    private Lattices lattices() {
        long key = (long) e[0] << 40 | (long) e[1] << 20 | e[2];
        Lattices found = lattices.get(key);
        if (found == null) {
            found = new Lattices(e[0], e[1], e[2]);
            lattices.put(key, found);
        }
        return found;
    }

    private void fixedWidth(int begin, int end) throws Refused {
        long bits = end - begin < 4 ? 0 : payload.u32(begin);
        Refused.when(bits < 1 || bits > 32, "L23", "a fixed width of %d", bits);
        int each = (int) bits;
        int at = begin + 4;
        Refused.when(end - at != (n * each + 31) / 32 * 4, "L24", "%d bytes for %d residuals of %d bits", end - at, n,
                each);
        long buffer = 0;
        int have = 0;
        long mask = (1L << each) - 1;
        for (int i = 0; i < n; i++) {
            if (have < each) {
                buffer |= payload.u32(at) << have;
                have += 32;
                at += 4;
            }
            int z = (int) (buffer & mask);
            buffer >>>= each;
            have -= each;
            residuals[i] = z >>> 1 ^ -(z & 1);
        }
        Refused.when(buffer != 0, "L25", "a bit behind the last residual is not 0");
    }

    /** Section 4.3: sums along the kind's axes, in place. */
    private void integrate(int axes) {
        int[] r = residuals;
        int x = e[2];
        int plane = e[1] * x;
        if ((axes & 1) != 0) {
            for (int row = 0; row < n; row += x) {
                int sum = 0;
                for (int i = row; i < row + x; i++) {
                    sum += r[i];
                    r[i] = sum;
                }
            }
        }
        if ((axes & 2) != 0) {
            for (int begin = 0; begin < n; begin += plane) {
                for (int i = begin + x; i < begin + plane; i++) {
                    r[i] += r[i - x];
                }
            }
        }
        if ((axes & 4) != 0) {
            for (int i = plane; i < n; i++) {
                r[i] += r[i - plane];
            }
        }
    }

    /** Section 5. */
    private void numbers(int[] q, double step) {
        if (relative) {
            relativeNumbers(q);
        } else if (width == 4) {
            float v = (float) base;
            for (int i = 0; i < n; i++) {
                float x = (float) (q[i] * step);
                narrow[i] = Float.floatToRawIntBits(based ? v + x : x);
            }
        } else {
            for (int i = 0; i < n; i++) {
                double x = q[i] * step;
                wide[i] = Double.doubleToRawLongBits(based ? base + x : x);
            }
        }
    }

    private void relativeNumbers(int[] q) {
        for (int i = 0; i < n; i++) {
            long bits = Math.abs((long) q[i]) * relativeStep;
            if (width == 4) {
                narrow[i] = (int) bits & Integer.MAX_VALUE | q[i] & Integer.MIN_VALUE;
            } else {
                wide[i] = bits & Long.MAX_VALUE | (long) q[i] & Long.MIN_VALUE;
            }
        }
    }
}
