// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.zstd;

/** The code of literals, RFC 8878, section 4.2: 2^log places, each a byte and how many bits it takes. */
final class HuffmanTable {
    private static final int MOST_BITS = 11;

    int log;
    /** The byte in the lower 8 bits, its bits above. */
    final short[] entry = new short[1 << MOST_BITS];
    private final byte[] weights = new byte[256];
    private final StateTable states = new StateTable();

    /** Reads the weights and makes the table. Gives the place behind them. */
    int read(byte[] from, int at, int end) throws Damaged {
        if (at >= end) {
            throw new Damaged("a Huffman table that is not there");
        }
        int head = from[at++] & 0xFF;
        int count = head - 127;
        int behind = head >= 128 ? at + (count + 1) / 2 : at + head;
        if (behind > end) {
            throw new Damaged("a Huffman table longer than its block");
        }
        if (head >= 128) {
            for (int i = 0; i < count; i++) {
                weights[i] = (byte) (from[at + i / 2] >> (i % 2 == 0 ? 4 : 0) & 15);
            }
        } else {
            count = compressedWeights(from, at, behind);
        }
        fill(count);
        return behind;
    }

    /** Two states take turns, until one has no bits to go on with: then the other one's symbol is the last. */
    private int compressedWeights(byte[] from, int at, int end) throws Damaged {
        int begin = states.read(from, at, end, 6, 255);
        BackwardBits in = new BackwardBits(from);
        in.open(begin, end);
        int[] state = {(int) in.take(states.log), (int) in.take(states.log)};
        if (in.left < 0) {
            throw new Damaged("Huffman weights without bits");
        }
        int count = 0;
        for (int turn = 0; ; turn ^= 1) {
            if (count >= 254) {
                throw new Damaged("more than 255 Huffman weights");
            }
            int now = state[turn];
            weights[count++] = states.symbol[now];
            if (states.bits[now] > in.left) {
                weights[count++] = states.symbol[state[turn ^ 1]];
                return count;
            }
            state[turn] = states.base[now] + (int) in.take(states.bits[now]);
        }
    }

    /** The last symbol's weight is what makes the sum a power of two. */
    private void fill(int count) throws Damaged {
        int sum = 0;
        for (int i = 0; i < count; i++) {
            if (weights[i] > MOST_BITS) {
                throw new Damaged("a Huffman weight of " + weights[i]);
            }
            sum += 1 << weights[i] >> 1;
        }
        log = 32 - Integer.numberOfLeadingZeros(sum);
        int rest = (1 << log) - sum;
        if (sum == 0 || log > MOST_BITS || Integer.bitCount(rest) != 1) {
            throw new Damaged("Huffman weights that do not add up");
        }
        weights[count++] = (byte) (Integer.numberOfTrailingZeros(rest) + 1);
        int at = 0;
        for (int weight = 1; weight <= log; weight++) {
            for (int s = 0; s < count; s++) {
                if (weights[s] == weight) {
                    int behind = at + (1 << weight - 1);
                    short value = (short) (log + 1 - weight << 8 | s);
                    while (at < behind) {
                        entry[at++] = value;
                    }
                }
            }
        }
    }

    /** A stream of {@code count} literals, which takes all its bits. */
    void decode(BackwardBits in, int from, int to, byte[] out, int at, int count) throws Damaged {
        in.open(from, to);
        int width = log;
        int end = at + count;
        short[] entries = entry;
        int mask = (1 << width) - 1;
        // Five codewords of 11 bits fit 56 bits: while 56 bits are left, one look at the stream serves five codewords.
        while (end - at >= 5 && in.left >= 56) {
            long ahead = in.ahead56();
            int free = 56 - width;
            for (int k = 0; k < 5; k++) {
                int found = entries[(int) (ahead >>> free) & mask];
                out[at++] = (byte) found;
                free -= found >> 8;
            }
            in.left -= 56 - width - free;
        }
        for (; at < end; at++) {
            int found = entry[in.peek(width)];
            out[at] = (byte) found;
            in.left -= found >> 8;
        }
        if (in.left != 0) {
            throw new Damaged("a stream of literals of another length");
        }
    }
}
