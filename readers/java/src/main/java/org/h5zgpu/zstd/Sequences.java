// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.zstd;

/**
 * The sequences of a compressed block, RFC 8878, sections 3.1.1.3.2 to 3.1.1.5: three tables give codes, bits of the
 * stream what is added to them, and three distances are remembered.
 */
final class Sequences {
    private static final int LITERALS = 0;
    private static final int OFFSETS = 1;
    private static final int MATCHES = 2;
    private static final int[] MOST_LOG = {9, 8, 9};
    private static final int[] MOST_CODE = {35, 31, 52};

    // Section 3.1.1.3.2.1.1: how many extra bits follow each code; its baseline is the sum of what the codes before it
    // can say.
    private static final int[] LITERAL_BITS = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
        16
    };
    private static final int[] MATCH_BITS = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2,
        2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
    };
    private static final int[] LITERAL_BASE = bases(LITERAL_BITS, 0);
    private static final int[] MATCH_BASE = bases(MATCH_BITS, 3);

    // Section 3.1.1.3.2.2: the tables of blocks that bring none.
    private static final short[][] DEFAULT = {
        {
            4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1,
            -1
        },
        {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
        {
            1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1
        }
    };
    private static final int[] DEFAULT_LOG = {6, 5, 6};

    int literals;
    int match;
    int distance;

    private final StateTable[] tables = {new StateTable(), new StateTable(), new StateTable()};
    private final boolean[] kept = new boolean[3];
    private final int[] recent = new int[3];
    private int literalState;
    private int offsetState;
    private int matchState;

    private static int[] bases(int[] bits, int first) {
        int[] base = new int[bits.length];
        for (int code = 0; code < bits.length; code++) {
            base[code] = first;
            first += 1 << bits[code];
        }
        return base;
    }

    /** A new frame. */
    void begin() {
        java.util.Arrays.fill(kept, false);
        recent[0] = 1;
        recent[1] = 4;
        recent[2] = 8;
    }

    /** Reads the section's head and its tables, and the first states. Gives the number of sequences. */
    int open(byte[] in, int at, int end, BackwardBits bits) throws Damaged {
        int first = at < end ? in[at] & 0xFF : 0;
        int width = first < 128 ? 1 : first < 255 ? 2 : 3;
        if (at + width > end) {
            throw new Damaged("sequences that are not there");
        }
        int second = width > 1 ? in[at + 1] & 0xFF : 0;
        int count = width == 1 ? first
                : width == 2 ? first - 128 << 8 | second
                : (second | (in[at + 2] & 0xFF) << 8) + 0x7F00;
        at += width;
        if (count == 0) {
            if (at != end) {
                throw new Damaged("bytes behind a block without sequences");
            }
            return 0;
        }
        if (at >= end) {
            throw new Damaged("sequences without tables");
        }
        int modes = in[at++] & 0xFF;
        if ((modes & 3) != 0) {
            throw new Damaged("a reserved bit of the sequences' head is 1");
        }
        for (int which = LITERALS; which <= MATCHES; which++) {
            at = table(which, modes >> 6 - 2 * which & 3, in, at, end);
        }
        bits.open(at, end);
        literalState = (int) bits.take(tables[LITERALS].log);
        offsetState = (int) bits.take(tables[OFFSETS].log);
        matchState = (int) bits.take(tables[MATCHES].log);
        return count;
    }

    private int table(int which, int mode, byte[] in, int at, int end) throws Damaged {
        StateTable table = tables[which];
        if (mode == 0) {
            table.of(DEFAULT[which], DEFAULT[which].length, DEFAULT_LOG[which]);
        } else if (mode == 1) {
            if (at >= end || (in[at] & 0xFF) > MOST_CODE[which]) {
                throw new Damaged("a code that is not there, or too high");
            }
            table.only(in[at++]);
        } else if (mode == 2) {
            at = table.read(in, at, end, MOST_LOG[which], MOST_CODE[which]);
        } else if (!kept[which]) {
            throw new Damaged("sequences by a table that is not there");
        }
        kept[which] = true;
        return at;
    }

    /** The next sequence; behind the last one no states follow. */
    void next(BackwardBits bits, boolean last) throws Damaged {
        StateTable lengths = tables[LITERALS];
        StateTable offsets = tables[OFFSETS];
        StateTable matches = tables[MATCHES];
        int literalCode = lengths.symbol[literalState];
        int offsetCode = offsets.symbol[offsetState];
        int matchCode = matches.symbol[matchState];
        long offset = (1L << offsetCode) + bits.take(offsetCode);
        match = MATCH_BASE[matchCode] + (int) bits.take(MATCH_BITS[matchCode]);
        literals = LITERAL_BASE[literalCode] + (int) bits.take(LITERAL_BITS[literalCode]);
        remember(offset);
        if (!last) {
            literalState = lengths.base[literalState] + (int) bits.take(lengths.bits[literalState]);
            matchState = matches.base[matchState] + (int) bits.take(matches.bits[matchState]);
            offsetState = offsets.base[offsetState] + (int) bits.take(offsets.bits[offsetState]);
        }
        if (bits.left < 0) {
            throw new Damaged("sequences that end too early");
        }
    }

    /** Section 3.1.1.5: 1 to 3 mean a distance of before, in another order where no literals are copied. */
    private void remember(long offset) {
        if (offset > 3) {
            recent[2] = recent[1];
            recent[1] = recent[0];
            recent[0] = (int) Math.min(offset - 3, Integer.MAX_VALUE);
        } else {
            int which = (int) offset - (literals == 0 ? 0 : 1);
            int found = which == 3 ? recent[0] - 1 : recent[which];
            if (which > 1) {
                recent[2] = recent[1];
            }
            if (which > 0) {
                recent[1] = recent[0];
            }
            recent[0] = found;
        }
        distance = recent[0];
    }
}
