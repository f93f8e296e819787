// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * The head of a frame of {@code dense}, section 3.2 of its FORMAT.md: filters, and tables of frequencies.
 *
 * <pre>
 * u16 length; u8 filtered sets of axes; 9 weights for each; u8 tables, and 4 weights of vectors where bit 7 is 1
 * bits, the lowest of each byte first:
 *     for each table but the first: the first context that has it
 *     for each table: how many classes, and for each the difference of its level from what is expected
 * </pre>
 *
 * <p>Levels become frequencies of 129 tokens, which add up to 4096. A decoder looks a token up by its slot, a number
 * below 4096.
 */
final class DenseTables {
    static final int TOKENS = 129;
    static final int WEIGHTS = 9;
    static final int BINS = 64;

    private static final int CONTEXTS = 24 * BINS;
    private static final int TABLES = 64;
    private static final int WITH_VECTORS = 128;
    private static final int CLASSES = 121;
    private static final int HIGHEST_LEVEL = 49;
    private static final int SCALE = 4096;
    private static final int LONG = 6;
    private static final int LEAST_LONG = 24;
    private static final int[] MANTISSA = {16, 19, 23, 27};

    /** Frequencies of tokens and what follows from them. */
    static final class Table {
        final byte[] token = new byte[SCALE]; // by slot
        final int[] frequency = new int[TOKENS];
        final int[] start = new int[TOKENS];
    }

    /** By set of axes; null where the set has no filter. */
    final int[][] filters = new int[8][];
    /** Null where the head has none. */
    int[] vectors;
    /** By context. */
    final Table[] tables = new Table[CONTEXTS];
    /** How many tables there are. */
    int count;

    private Section head;
    private long next; // bit
    private long end;

    /** Reads the head; gives the place behind it, where a base may follow. */
    int read(Section section) throws Refused {
        head = section;
        int length = head.length < 4 ? 0 : head.u16(0);
        Refused.when(length < 4 || length > head.length, "D1", "a head of %d bytes, which says %d", head.length,
                length);
        int sets = head.u8(2);
        int at = 3;
        Refused.when(at + WEIGHTS * Integer.bitCount(sets) >= length, "D2", "%d filters in a head of %d bytes",
                Integer.bitCount(sets), length);
        for (int a = 0; a < filters.length; a++) {
            if ((sets >> a & 1) != 0) {
                filters[a] = weights(at, WEIGHTS);
                at += WEIGHTS;
            }
        }
        count = head.u8(at) & WITH_VECTORS - 1;
        boolean withVectors = head.u8(at++) >= WITH_VECTORS;
        Refused.when(count > TABLES, "D3", "%d tables, allowed are %d", count, TABLES);
        if (withVectors) {
            Refused.when(length - at < 4, "D2", "weights of vectors in the last %d bytes of the head", length - at);
            vectors = weights(at, 4);
            at += 4;
        }
        next = 8L * at;
        end = 8L * length;
        readTables();
        while (next < end && next % 8 != 0) {
            Refused.when(take(1) != 0, "D8", "a bit behind the last table is not 0");
        }
        Refused.when(next < end, "D8", "%d bytes behind the last table", (end - next) / 8);
        return length;
    }

    private int[] weights(int at, int number) {
        int[] found = new int[number];
        for (int k = 0; k < number; k++) {
            found[k] = (byte) head.u8(at + k);
        }
        return found;
    }

    private int take(int bits) throws Refused {
        Refused.when(next + bits > end, "D2", "tables that end beyond a head of %d bytes", end / 8);
        int value = 0;
        for (int i = 0; i < bits; i++, next++) {
            value |= (head.u8((int) (next / 8)) >> (int) (next % 8) & 1) << i;
        }
        return value;
    }

    private void readTables() throws Refused {
        int[] begin = new int[count + 1];
        for (int k = 1; k < count; k++) {
            begin[k] = take(11);
            Refused.when(begin[k] <= begin[k - 1] || begin[k] >= CONTEXTS, "D4",
                    "table %d begins at context %d, the one before at %d", k, begin[k], begin[k - 1]);
        }
        begin[count] = CONTEXTS;
        int[] before = {};
        for (int k = 0; k < count; k++) {
            before = levels(k, before);
            java.util.Arrays.fill(tables, begin[k], begin[k + 1], table(before));
        }
    }

    private int[] levels(int number, int[] before) throws Refused {
        int classes = take(7);
        Refused.when(classes < 1 || classes > CLASSES, "D5", "table %d of %d classes, allowed are 1 to %d", number,
                classes, CLASSES);
        int[] levels = new int[classes];
        for (int i = 0; i < classes; i++) {
            int ones = 0;
            while (ones < LONG && take(1) != 0) {
                ones++;
            }
            int z = ones == LONG ? take(8) : 4 * ones + take(2);
            int expected = i < before.length ? before[i] : i > 0 ? levels[i - 1] : HIGHEST_LEVEL;
            levels[i] = expected + (z >>> 1 ^ -(z & 1));
            Refused.when(levels[i] < 0 || levels[i] > HIGHEST_LEVEL || (ones == LONG && z < LEAST_LONG), "D6",
                    "level %d of class %d of table %d, by z = %d behind %d ones", levels[i], i, number, z, ones);
        }
        Refused.when(levels[classes - 1] == 0, "D7", "the last class of table %d, %d, does not occur", number,
                classes - 1);
        return levels;
    }

    /** Section 4.1: the class of a token. */
    static int classOf(int token) {
        return token <= 16 ? (token + 1) / 2 : token - 8;
    }

    private static Table table(int[] levels) {
        Table table = new Table();
        long[] weight = new long[TOKENS];
        long sum = 0;
        int used = 0;
        for (int token = 0; token < TOKENS; token++) {
            int level = classOf(token) < levels.length ? levels[classOf(token)] : 0;
            if (level > 0) {
                weight[token] = (long) MANTISSA[(level - 1) % 4] << (level - 1) / 4;
                sum += weight[token];
                used++;
            }
        }
        int left = SCALE;
        int most = 0;
        for (int token = 0; token < TOKENS; token++) {
            if (weight[token] > 0) {
                table.frequency[token] = 1 + (int) (weight[token] * (SCALE - used) / sum);
                left -= table.frequency[token];
            }
            if (table.frequency[token] > table.frequency[most]) {
                most = token;
            }
        }
        table.frequency[most] += left;
        int start = 0;
        for (int token = 0; token < TOKENS; token++) {
            table.start[token] = start;
            start += table.frequency[token];
            java.util.Arrays.fill(table.token, table.start[token], start, (byte) token);
        }
        return table;
    }
}
