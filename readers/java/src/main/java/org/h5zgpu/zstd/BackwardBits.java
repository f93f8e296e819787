// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.zstd;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Bits that are read from their end towards their begin, RFC 8878, section 4.1: the highest bit that is 1 in the last
 * byte only says where they end.
 *
 * <p>{@link #left} is how many are still there. Below 0, more were taken than there are: those were zeros.
 */
final class BackwardBits {
    int left;
    private final byte[] bytes;
    private final ByteBuffer words;
    private int begin;

    BackwardBits(byte[] bytes) {
        this.bytes = bytes;
        this.words = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    void open(int from, int to) throws Damaged {
        if (to <= from || bytes[to - 1] == 0) {
            throw new Damaged("a bit stream without an end");
        }
        begin = from;
        left = 8 * (to - from) - Integer.numberOfLeadingZeros(bytes[to - 1] & 0xFF) + 23;
    }

    /** The next {@code count} bits, 0 to 56. */
    long take(int count) {
        left -= count;
        return at(left) & (1L << count) - 1;
    }

    /** The next 11 bits or fewer, which stay. */
    int peek(int count) {
        return (int) at(left - count) & (1 << count) - 1;
    }

    /** The next 56 bits, which stay; as many must be left. */
    long ahead56() {
        return at(left - 56);
    }

    /** 57 bits or more from a place on, with zeros before the begin. */
    private long at(int place) {
        if (place < 0) {
            return place <= -64 ? 0 : at(0) << -place;
        }
        int from = begin + (place >> 3);
        if (from + 8 <= bytes.length) {
            return words.getLong(from) >>> (place & 7);
        }
        long last = 0;
        for (int i = bytes.length - 1; i >= from; i--) {
            last = last << 8 | (bytes[i] & 0xFF);
        }
        return last >>> (place & 7);
    }
}
