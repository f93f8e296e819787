// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * Transposing squares of bits: halves of the square change places, then quarters within halves, and so on.
 *
 * <p>Row 0 is the first word. In words, bit 0 of the row is the highest one; in {@link #transpose8} the lowest.
 */
final class Bits {
    private Bits() {}

    static void transpose64(long[] rows) {
        long mask = 0x00000000FFFFFFFFL;
        for (int half = 32; half != 0; half >>= 1, mask ^= mask << half) {
            for (int k = 0; k < 64; k = (k + half + 1) & ~half) {
                long swap = (rows[k] ^ rows[k + half] >>> half) & mask;
                rows[k] ^= swap;
                rows[k + half] ^= swap << half;
            }
        }
    }

    static void transpose32(int[] rows) {
        int mask = 0x0000FFFF;
        for (int half = 16; half != 0; half >>= 1, mask ^= mask << half) {
            for (int k = 0; k < 32; k = (k + half + 1) & ~half) {
                int swap = (rows[k] ^ rows[k + half] >>> half) & mask;
                rows[k] ^= swap;
                rows[k + half] ^= swap << half;
            }
        }
    }

    /** Eight rows of eight bits, a byte each, the first one lowest: bit j of byte i becomes bit i of byte j. */
    static long transpose8(long rows) {
        long swap = (rows ^ rows >>> 7) & 0x00AA00AA00AA00AAL;
        rows ^= swap ^ swap << 7;
        swap = (rows ^ rows >>> 14) & 0x0000CCCC0000CCCCL;
        rows ^= swap ^ swap << 14;
        swap = (rows ^ rows >>> 28) & 0x00000000F0F0F0F0L;
        return rows ^ swap ^ swap << 28;
    }
}
