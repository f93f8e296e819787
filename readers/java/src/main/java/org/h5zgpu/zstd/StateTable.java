// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.zstd;

/**
 * A decoding table of finite state entropy, RFC 8878, section 4.1: each state gives a symbol, and how the next one
 * follows from it and some bits of the stream.
 */
final class StateTable {
    int log;
    final byte[] symbol = new byte[512];
    final byte[] bits = new byte[512];
    final short[] base = new short[512];
    private final short[] counts = new short[256];
    private final int[] next = new int[256];

    /** One symbol, which takes no bits. */
    void only(int value) {
        log = 0;
        symbol[0] = (byte) value;
        bits[0] = 0;
        base[0] = 0;
    }

    /** From counts, of which -1 means below 1. */
    void of(short[] given, int symbols, int accuracy) {
        log = accuracy;
        int size = 1 << accuracy;
        int high = size;
        for (int s = 0; s < symbols; s++) {
            next[s] = given[s];
            if (given[s] == -1) {
                symbol[--high] = (byte) s;
                next[s] = 1;
            }
        }
        int step = (size >> 1) + (size >> 3) + 3;
        int at = 0;
        for (int s = 0; s < symbols; s++) {
            for (int i = 0; i < given[s]; i++) {
                symbol[at] = (byte) s;
                do {
                    at = at + step & size - 1;
                } while (at >= high);
            }
        }
        for (int state = 0; state < size; state++) {
            int count = next[symbol[state] & 0xFF]++;
            int width = accuracy - (31 - Integer.numberOfLeadingZeros(count));
            bits[state] = (byte) width;
            base[state] = (short) ((count << width) - size);
        }
    }

    /**
     * Reads the counts, section 4.1.1, and makes the table. Gives the place behind them.
     *
     * @param most the last symbol that is allowed
     */
    int read(byte[] from, int at, int end, int mostLog, int most) throws Damaged {
        if (at >= end) {
            throw new Damaged("a table that is not there");
        }
        ForwardBits in = new ForwardBits(from, at, end);
        int accuracy = in.take(4) + 5;
        if (accuracy > mostLog) {
            throw new Damaged("a table of 2^" + accuracy + " states, 2^" + mostLog + " at most");
        }
        int remaining = 1 << accuracy;
        int s = 0;
        while (remaining > 0) {
            if (s > most) {
                throw new Damaged("a table of more than " + (most + 1) + " symbols");
            }
            int width = 32 - Integer.numberOfLeadingZeros(remaining + 1);
            int value = in.take(width - 1);
            int few = (1 << width) - 1 - (remaining + 1);
            // Small values take a bit less than the others.
            if (value >= few) {
                value |= in.take(1) << width - 1;
                value -= value >= 1 << width - 1 ? few : 0;
            }
            int count = value - 1;
            remaining -= Math.abs(count);
            counts[s++] = (short) count;
            for (int zeros = count == 0 ? 3 : 0; zeros == 3; ) {
                zeros = in.take(2);
                if (s + zeros > most + 1) {
                    throw new Damaged("a table of more than " + (most + 1) + " symbols");
                }
                for (int i = 0; i < zeros; i++) {
                    counts[s++] = 0;
                }
            }
        }
        if (remaining < 0 || in.overrun()) {
            throw new Damaged("a table whose counts do not add up");
        }
        of(counts, s, accuracy);
        return in.behind();
    }

    /** Bits from the lowest one on. */
    private static final class ForwardBits {
        private final byte[] from;
        private final int begin;
        private final int end;
        private int place;

        ForwardBits(byte[] from, int begin, int end) {
            this.from = from;
            this.begin = begin;
            this.end = end;
        }

        int take(int count) {
            int value = 0;
            for (int i = 0; i < count; i++, place++) {
                int at = begin + (place >> 3);
                value |= (at < end ? from[at] >> (place & 7) & 1 : 0) << i;
            }
            return value;
        }

        boolean overrun() {
            return behind() > end;
        }

        int behind() {
            return begin + (place + 7 >> 3);
        }
    }
}
