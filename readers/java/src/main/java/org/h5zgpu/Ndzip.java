// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * The codec {@code ndzip}, codecs/src/codec/ndzip/FORMAT.md: cubes of 4096 numbers, and a border of numbers that are in
 * none.
 *
 * <pre>
 * for each cube:
 *     columns of B numbers: a head says which of their B bit planes are there; transpose them     column
 *     sign and magnitude back to two's complement
 *     sums along each axis, modulo 2^B                                                           integrate
 *     floats: the sign back to the top
 *     rows of the cube to their places in the grid
 * </pre>
 *
 * <p>Numbers of 4 bytes are the lower halves of longs: sums do not care for what is above.
 */
final class Ndzip {
    private static final int CUBE = 4096;
    private static final int[] SIDES = {0, 4096, 64, 16};

    private final Header header;
    private final Section grid;
    private final Section stream;
    private final int size;
    private final int bits;
    private final int columns;

    // The grid as planes of rows: z, y, x. Axes that the rank does not have are 1 long, and a cube is 1 thick there.
    private final int[] extent = {1, 1, 1};
    private final int[] side = {1, 1, 1};
    private final int[] cubes = {1, 1, 1};

    private final long[] x = new long[CUBE];
    private final long[] column = new long[64];
    private final int[] narrow = new int[CUBE];

    Ndzip(Header header, Section[] sections) {
        this.header = header;
        grid = sections[0];
        stream = sections[1];
        size = header.size();
        bits = 8 * size;
        columns = CUBE / bits;
    }

    byte[] decode() throws Refused {
        int total = readGrid();
        int whole = total * CUBE;
        int values = header.values();
        int table = whole(4L * total);
        Refused.when(stream.length % size != 0 || stream.length < (long) size * (table + (long) values - whole), "N3",
                "a stream of %d bytes, table and border need %d", stream.length,
                (long) size * (table + (long) values - whole));
        Refused.when(stream.any(4 * total, size * table), "N4", "the filling behind the table is not 0");
        int border = stream.length / size - (values - whole);
        long end = 0;
        for (int i = 0; i < total; i++) {
            long next = stream.u32(4 * i);
            Refused.when(next < end, "N5", "cube %d ends at word %d, the one before at %d", i, next, end);
            Refused.when(next - end < columns || next - end > columns + CUBE, "N6",
                    "cube %d has %d words, allowed are %d to %d", i, next - end, columns, columns + CUBE);
            end = next;
        }
        Refused.when(table + end != border, "N7", "the cubes end at word %d, the border begins at %d", table + end,
                border);
        Output out = new Output(header);
        int begin = 0;
        for (int i = 0; i < total; i++) {
            int next = stream.i32(4 * i);
            cube(i, table + begin, table + next);
            place(i, out);
            begin = next;
        }
        border(border, out);
        return out.bytes;
    }

    private int whole(long length) {
        return (int) ((length + size - 1) / size);
    }

    /** Section 3.1; gives the number of cubes. */
    private int readGrid() throws Refused {
        long rank = grid.length < 4 ? 0 : grid.u32(0);
        Refused.when(rank < 1 || rank > 3 || grid.length != 4 + 4 * rank, "N1", "a grid of %d bytes with rank %d",
                grid.length, rank);
        long product = 1;
        int total = 1;
        for (int k = 0; k < rank; k++) {
            long e = grid.u32(4 + 4 * k);
            // A product that has passed the number of values only grows, and need not be kept exact.
            product = e == 0 || product > header.values() ? 0 : product * e;
            Refused.when(product == 0, "N2", "an extent of %d, or extents of more values than there are", e);
            int axis = (int) (3 - rank) + k;
            extent[axis] = (int) e;
            side[axis] = SIDES[(int) rank];
            cubes[axis] = (int) (e / side[axis]);
            total *= cubes[axis];
        }
        Refused.when(product != header.values(), "N2", "extents of %d values, there are %d", product, header.values());
        return total;
    }

    private void cube(int number, int begin, int end) throws Refused {
        int at = begin + columns;
        for (int c = 0; c < columns; c++) {
            long head = stream.bits(size * (begin + c), size);
            int count = Long.bitCount(head);
            if (at + count > end) {
                throw lengthOf(number);
            }
            if (size == 8) {
                for (int p = 0; p < 64; p++) {
                    column[p] = head << p < 0 ? stream.i64(8 * at++) : 0;
                }
                Bits.transpose64(column);
            } else {
                for (int p = 0; p < 32; p++) {
                    narrow[p] = (int) head << p < 0 ? stream.i32(4 * at++) : 0;
                }
                Bits.transpose32(narrow);
                for (int p = 0; p < 32; p++) {
                    column[p] = narrow[p];
                }
            }
            for (int j = 0; j < bits; j++) {
                // The highest bit set: flip all others. The sign of a long is that of an int that was widened.
                long word = column[j];
                x[c * bits + j] = word ^ (word >> 63 & (size == 8 ? Long.MAX_VALUE : Integer.MAX_VALUE));
            }
        }
        if (at != end) {
            throw lengthOf(number);
        }
        integrate();
    }

    private static Refused lengthOf(int cube) {
        return new Refused("N8", "cube " + cube + " is not as long as its heads say");
    }

    /** Sums along each axis: the step along it is how far apart neighbours lie. */
    private void integrate() {
        for (int step = 1; step < CUBE; step *= side[2]) {
            int run = step * side[2];
            for (int begin = 0; begin < CUBE; begin += run) {
                for (int i = begin + step; i < begin + run; i++) {
                    x[i] += x[i - step];
                }
            }
        }
        if (header.numberClass() == Header.FLOAT && size == 8) {
            for (int i = 0; i < CUBE; i++) {
                x[i] = Long.rotateRight(x[i], 1);
            }
        }
        if (size == 4) {
            boolean rotate = header.numberClass() == Header.FLOAT;
            for (int i = 0; i < CUBE; i++) {
                narrow[i] = rotate ? Integer.rotateRight((int) x[i], 1) : (int) x[i];
            }
        }
    }

    /** The rows of a cube to their places. */
    private void place(int number, Output out) {
        int cx = number % cubes[2] * side[2];
        int cy = number / cubes[2] % cubes[1] * side[1];
        int cz = number / cubes[2] / cubes[1] * side[0];
        int row = 0;
        for (int z = cz; z < cz + side[0]; z++) {
            for (int y = cy; y < cy + side[1]; y++, row += side[2]) {
                int at = (z * extent[1] + y) * extent[2] + cx;
                if (size == 8) {
                    out.put(at, 1, x, row, side[2]);
                } else {
                    out.put(at, 1, narrow, row, side[2]);
                }
            }
        }
    }

    /** What lies outside whole cubes, row by row: the end of a row that cubes begin, or all of it. */
    private void border(int word, Output out) {
        for (int z = 0; z < extent[0]; z++) {
            for (int y = 0; y < extent[1]; y++) {
                boolean begun = z < cubes[0] * side[0] && y < cubes[1] * side[1];
                int at = (z * extent[1] + y) * extent[2];
                int first = begun ? cubes[2] * side[2] : 0;
                while (first < extent[2]) {
                    int count = Math.min(CUBE, extent[2] - first);
                    if (size == 8) {
                        stream.words(8 * word, x, 0, count);
                        out.put(at + first, 1, x, 0, count);
                    } else {
                        stream.words(4 * word, narrow, 0, count);
                        out.put(at + first, 1, narrow, 0, count);
                    }
                    first += count;
                    word += count;
                }
            }
        }
    }
}
