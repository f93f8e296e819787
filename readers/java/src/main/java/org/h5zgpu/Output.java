// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/**
 * The chunk's bytes while a codec fills them. A codec hands over the bits of its numbers, in words of 4 or 8 bytes;
 * what section 5 of codecs/src/FORMAT.md does last of all happens here: numbers become shorter ones, and take the
 * type's byte order.
 *
 * <pre>
 * class 1, 16 bits        from f32: the nearest finite number, ties to even; infinities and NaN by their upper bits
 * planes, 1 and 2 bytes   from integers of 4 bytes: the lowest bytes
 * lorenzo, mode 9         from f64: the nearest whole number, ties to even, held within 64 bits; its lowest bytes
 * all others              as they are
 * </pre>
 */
final class Output {
    private enum From { SAME, F32, WORDS, QUANTA }

    final byte[] bytes;
    private final int size;
    private final From from;
    private final boolean bfloat16;
    private final ShortBuffer shorts;
    private final IntBuffer ints;
    private final LongBuffer longs;

    Output(Header header) {
        bytes = new byte[(int) header.rawLength];
        size = header.size();
        bfloat16 = header.bfloat16();
        boolean quanta = header.codec == Header.LORENZO && header.mode == 9;
        from = header.is16Bits() ? From.F32 : quanta ? From.QUANTA : size < 4 ? From.WORDS : From.SAME;
        ByteOrder order = header.bigEndian() ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
        ByteBuffer all = ByteBuffer.wrap(bytes).order(order);
        shorts = all.asShortBuffer();
        ints = all.asIntBuffer();
        longs = all.asLongBuffer();
    }

    /** Numbers of 4 bytes, the first one to the place {@code at}, each further one {@code stride} places behind. */
    void put(int at, int stride, int[] words, int first, int count) {
        if (from == From.SAME && stride == 1) {
            ints.position(at);
            ints.put(words, first, count);
            return;
        }
        for (int i = 0; i < count; i++, at += stride) {
            int word = words[first + i];
            if (from == From.SAME) {
                ints.put(at, word);
            } else if (size == 1) {
                bytes[at] = (byte) word;
            } else {
                shorts.put(at, (short) (from == From.WORDS ? word : bfloat16 ? bfloat16(word) : f16(word)));
            }
        }
    }

    /** The same for numbers of 8 bytes. */
    void put(int at, int stride, long[] words, int first, int count) {
        if (from == From.SAME && stride == 1) {
            longs.position(at);
            longs.put(words, first, count);
            return;
        }
        for (int i = 0; i < count; i++, at += stride) {
            long word = words[first + i];
            if (from == From.QUANTA) {
                // A cast is what the section asks for: 0 for NaN, and the ends of the range beyond it.
                word = (long) Math.rint(Double.longBitsToDouble(word));
            }
            switch (size) {
                case 1:
                    bytes[at] = (byte) word;
                    break;
                case 2:
                    shorts.put(at, (short) word);
                    break;
                case 4:
                    ints.put(at, (int) word);
                    break;
                default:
                    longs.put(at, word);
            }
        }
    }

    /** The number of 16 bits nearest to an f32: 5 exponent and 10 mantissa bits. */
    static int f16(int f32) {
        int sign = f32 >>> 16 & 0x8000;
        int magnitude = f32 & 0x7FFFFFFF;
        if (magnitude >= 0x7F800000) {
            return sign | 0x7C00 | (magnitude >>> 13 & 0x3FF);
        }
        if (magnitude < 0x38800000) { // below 2^-14: a multiple of 2^-24
            return sign | (int) Math.rint(Float.intBitsToFloat(magnitude) * 0x1p24);
        }
        int rounded = (magnitude + 0xFFF + (magnitude >>> 13 & 1) >>> 13) - (112 << 10);
        return sign | Math.min(rounded, 0x7BFF);
    }

    /** The same with 8 and 7. */
    static int bfloat16(int f32) {
        int sign = f32 >>> 16 & 0x8000;
        int magnitude = f32 & 0x7FFFFFFF;
        if (magnitude >= 0x7F800000) {
            return f32 >>> 16;
        }
        return sign | Math.min(magnitude + 0x7FFF + (magnitude >>> 16 & 1) >>> 16, 0x7F7F);
    }
}
