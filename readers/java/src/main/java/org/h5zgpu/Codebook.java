// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * The one Huffman code of a frame of {@code lorenzo}, sections 3.2 and 4.2 of its FORMAT.md.
 *
 * <p>A stream's first bit is the lowest one of its first word, and a codeword comes with its highest bit first. So a
 * codeword is looked up by the next eleven bits of the stream, of which the first is the lowest: the table is that of
 * codewords turned round. What a symbol means was worked out before:
 *
 * <pre>
 * zeros (fixed part, more bits)     then a residual z (fixed part, more bits), or none
 * </pre>
 */
final class Codebook {
    private static final int SYMBOLS = 188;
    private static final int LONGEST = 11;
    private static final int TO_THE_END = 0;
    private static final int RUNS = 1;
    private static final int RESIDUALS = 35;
    private static final int ESCAPES = 66;
    private static final int JOINT = 120;

    private static final int[] ZEROS = new int[SYMBOLS];
    private static final int[] ZERO_BITS = new int[SYMBOLS];
    private static final int[] Z = new int[SYMBOLS]; // 0: no residual
    private static final int[] Z_BITS = new int[SYMBOLS];

    static {
        for (int s = RUNS; s < SYMBOLS; s++) {
            if (s < RESIDUALS) {
                run(s, s - RUNS);
            } else if (s < ESCAPES) {
                Z[s] = s - RESIDUALS + 1;
            } else if (s < JOINT) {
                int k = s - ESCAPES;
                int e = 5 + k / 2;
                Z[s] = 2 + k % 2 << e - 1;
                Z_BITS[s] = e - 1;
            } else {
                run(s, (s - JOINT) / 2);
                Z[s] = s % 2 == 0 ? 1 : 2;
            }
        }
    }

    /** By the next 11 bits: the symbol above 4 bits with the codeword's length. */
    private final short[] entry = new short[1 << LONGEST];
    private int symbols;

    private static void run(int symbol, int runClass) {
        int k = 4 + (runClass - 16) / 2;
        ZEROS[symbol] = runClass < 16 ? runClass + 1 : (1 << k) + (runClass % 2 << k - 1);
        ZERO_BITS[symbol] = runClass < 16 ? 0 : k - 1;
    }

    /** Reads the lengths of section 3.2; gives the place behind them. */
    int read(Section head) throws Refused {
        Refused.when(head.length < 1, "L1", "a head without bytes");
        symbols = head.u8(0);
        Refused.when(symbols > SYMBOLS, "L2", "%d symbols, there are %d", symbols, SYMBOLS);
        int behind = 1 + (symbols + 1) / 2;
        Refused.when(head.length < behind, "L1", "a head of %d bytes, its symbols take %d", head.length, behind);
        if (symbols == 0) {
            return behind;
        }
        Refused.when(symbols % 2 == 1 && head.u8(behind - 1) >> 4 != 0, "L3", "behind the last length are bits");
        Refused.when(length(head, symbols - 1) == 0, "L4", "the last symbol has no codeword");
        int used = 0;
        for (int s = 0; s < symbols; s++) {
            int length = length(head, s);
            Refused.when(length > LONGEST, "L5", "symbol %d has a codeword of %d bits", s, length);
            used += length == 0 ? 0 : 1 << LONGEST - length;
        }
        Refused.when(used > 1 << LONGEST, "L6", "a codebook that is over-full: %d of 2048", used);
        Refused.when(used < 1 << LONGEST, "L7", "a codebook that is under-full: %d of 2048", used);
        int code = 0;
        for (int length = 1; length <= LONGEST; length++) {
            code *= 2;
            for (int s = 0; s < symbols; s++) {
                if (length(head, s) == length) {
                    int turned = Integer.reverse(code++) >>> 32 - length;
                    for (int at = turned; at < entry.length; at += 1 << length) {
                        entry[at] = (short) (s << 4 | length);
                    }
                }
            }
        }
        return behind;
    }

    private static int length(Section head, int symbol) {
        return head.u8(1 + symbol / 2) >> 4 * (symbol % 2) & 15;
    }

    /** Section 4.2: the residuals of a stream, into an array of zeros. */
    void stream(Section payload, int begin, int end, int[] residuals, int n) throws Refused {
        Refused.when(end == begin || symbols == 0, "L26", "a stream of %d bytes by %d symbols", end - begin, symbols);
        short[] entries = entry;
        long buffer = 0; // bits that were read and not taken, the next one lowest
        int have = 0;
        int at = begin;
        int i = 0;
        while (i < n) {
            if (have <= 32 && at < end) {
                buffer |= payload.u32(at) << have;
                have += 32;
                at += 4;
            }
            int found = entries[(int) buffer & entries.length - 1];
            int length = found & 15;
            int symbol = found >> 4;
            buffer >>>= length;
            have -= length;
            if (symbol >= RESIDUALS && symbol < ESCAPES) {
                int z = symbol - RESIDUALS + 1;
                residuals[i++] = z >>> 1 ^ -(z & 1);
                // Beyond the end are zeros, which are symbols too: what they took is refused below.
                continue;
            }
            if (symbol == TO_THE_END) {
                i = n;
                break;
            }
            if (have <= 32 && at < end) {
                buffer |= payload.u32(at) << have;
                have += 32;
                at += 4;
            }
            int more = ZERO_BITS[symbol] + Z_BITS[symbol]; // never both
            int extra = (int) buffer & (1 << more) - 1;
            buffer >>>= more;
            have -= more;
            if (ZEROS[symbol] != 0) {
                i += ZEROS[symbol] + extra;
                extra = 0;
            }
            int z = Z[symbol] + extra;
            if (i > n || (i == n && z != 0)) {
                throw new Refused(have < 0 ? "L27" : "L28", have < 0 ? "a stream that ends before its last residual"
                        : "a run of zeros, or the residual behind it, goes beyond the tile");
            }
            if (z != 0) {
                residuals[i++] = z >>> 1 ^ -(z & 1);
            }
        }
        Refused.when(have < 0, "L27", "a stream that ends before its last residual");
        Refused.when(have + 8L * (end - at) >= 32, "L29", "%d bits behind the last residual", have + 8L * (end - at));
        Refused.when(buffer != 0, "L30", "a bit behind the last residual is not 0");
    }
}
