// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A part of a frame: little-endian numbers at places that count from its begin.
 *
 * <p>Nothing is checked here but what Java checks by itself, the end of the whole frame. Who reads has compared places
 * with {@link #length} before.
 */
final class Section {
    final byte[] bytes;
    final int begin;
    final int length;
    private final ByteBuffer frame;

    Section(byte[] bytes, int begin, int length) {
        this.bytes = bytes;
        this.begin = begin;
        this.length = length;
        this.frame = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    int u8(int at) {
        return bytes[begin + at] & 0xFF;
    }

    int u16(int at) {
        return frame.getShort(begin + at) & 0xFFFF;
    }

    int i32(int at) {
        return frame.getInt(begin + at);
    }

    long u32(int at) {
        return frame.getInt(begin + at) & 0xFFFFFFFFL;
    }

    long i64(int at) {
        return frame.getLong(begin + at);
    }

    /** A value's bits: of 8 bytes, or of 4 as the lower half. */
    long bits(int at, int size) {
        return size == 8 ? i64(at) : u32(at);
    }

    /** {@code count} words of 4 bytes. */
    void words(int at, int[] into, int from, int count) {
        frame.position(begin + at);
        frame.asIntBuffer().get(into, from, count);
    }

    /** {@code count} words of 8 bytes. */
    void words(int at, long[] into, int from, int count) {
        frame.position(begin + at);
        frame.asLongBuffer().get(into, from, count);
    }

    /** Whether a byte of these is not 0. */
    boolean any(int from, int to) {
        for (int at = from; at < to; at++) {
            if (bytes[begin + at] != 0) {
                return true;
            }
        }
        return false;
    }

    Section part(int from, int to) {
        return new Section(bytes, begin + from, to - from);
    }
}
