// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The frame's checksum, section 4.2 of codecs/src/FORMAT.md: each word of 32 bits is multiplied by an odd key that
 * depends on its place, the product's upper half is folded into the lower one, and all are added modulo 2^64. Words 10
 * and 11 are the checksum itself. Every change inside one word changes the sum.
 */
final class Checksum {
    private static final long C = 0x9E3779B97F4A7C15L;

    private Checksum() {}

    static long of(byte[] frame) {
        ByteBuffer words = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        int whole = frame.length / 4;
        long sum = 0;
        long t = C; // (2i + 1) · C
        for (int i = 0; i < whole; i++, t += 2 * C) {
            if (i != 10 && i != 11) {
                sum += term(words.getInt(4 * i) & 0xFFFFFFFFL, t);
            }
        }
        if (frame.length % 4 != 0) {
            long last = 0;
            for (int at = frame.length - 1; at >= 4 * whole; at--) {
                last = last << 8 | (frame[at] & 0xFF);
            }
            sum += term(last, t);
        }
        return sum;
    }

    private static long term(long word, long t) {
        long p = word * (t ^ (t << 32));
        return p ^ (p >>> 32);
    }
}
