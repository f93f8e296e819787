// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The codec {@code scaled}, codecs/src/codec/scaled/FORMAT.md: whole numbers times a unit. The whole numbers, or their
 * differences, are the codes of a frame inside the frame.
 *
 * <pre>
 * codes of the inner frame, little-endian, in the chunk's own bytes
 * for each number: k from the codes; q = origin + unit · k; x from q by the map
 * corrections move numbers by units in the last place
 * exceptions take their places
 * </pre>
 *
 * <p>A number replaces its code, so the differences before it are kept beside: one for the orders 1 and 2, a row of
 * them for order 3.
 */
@SuppressWarnings("strictfp") // what Java 17 does anyway, and Java 8 with this word
final strictfp class Scaled {
    private static final int HEAD = 56;
    private static final int DICTIONARY = 5;
    /** Bit k: the map may have differences of order k. */
    private static final int[] ORDERS = {0b1011, 0b1111, 0b1001, 0b1001, 0b1111, 0b0001};

    private final Header header;
    private final Section head;
    private final Section exceptions;
    private final Section codes;
    /** {@code null} without one. */
    private final Section corrections;
    private final int size;
    private final int n;

    private int map;
    private int order;
    private boolean special;
    private long unit;
    private long origin;
    private long step;
    private double factor;
    private double addend;
    private long specialBits;
    /** Numbers of the dictionary, little-endian; {@code null} without one. */
    private ByteBuffer dictionary;

    Scaled(Header header, Section[] sections) {
        this.header = header;
        head = sections[0];
        exceptions = sections[1];
        codes = sections[2];
        corrections = sections.length > 3 ? sections[3] : null;
        size = header.size();
        n = header.values();
    }

    byte[] decode() throws Refused {
        readHead();
        int listed = exceptions.length / (4 + size);
        Refused.when(exceptions.length % (4 + size) != 0, "K7", "%d bytes of exceptions", exceptions.length);
        long last = -1;
        for (int k = 0; k < listed; k++) {
            long place = exceptions.u32(4 * k);
            Refused.when(place <= last || place >= n, "K7", "an exception at place %d of %d, the one before at %d",
                    place, n, last);
            last = place;
        }
        byte[] raw = codes.length == 0 ? new byte[(int) header.rawLength] : inner(codes, size, "K8");
        ByteBuffer in = ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer out = ByteBuffer.wrap(raw).order(header.bigEndian() ? ByteOrder.BIG_ENDIAN
                : ByteOrder.LITTLE_ENDIAN);
        if (size == 8) {
            numbers(in, out);
        } else {
            shortNumbers(in, out);
        }
        if (corrections != null) {
            correct(out);
        }
        for (int k = 0; k < listed; k++) {
            int place = exceptions.i32(4 * k);
            int at = 4 * listed + size * k;
            if (size == 8) {
                out.putLong(8 * place, exceptions.i64(at));
            } else {
                out.putInt(4 * place, exceptions.i32(at));
            }
        }
        return raw;
    }

    private void readHead() throws Refused {
        boolean hasDictionary = head.length > 0 && head.u8(0) == DICTIONARY;
        Refused.when(head.length < HEAD || head.length > HEAD != hasDictionary, "K1", "a head of %d bytes, it has %d, "
                + "more with a dictionary", head.length, HEAD);
        map = head.u8(0);
        order = head.u8(1);
        Refused.when(map > DICTIONARY || order > 3 || head.u8(2) > 1 || head.any(3, 8), "K2",
                "map %d, order %d, special %d, or a byte behind them that is not 0", map, order, head.u8(2));
        special = head.u8(2) == 1;
        Refused.when(corrections != null && map != 1, "K10", "corrections with map %d", map);
        boolean integers = header.numberClass() == Header.INTEGER;
        boolean fits = integers ? map == 0 : map != 0 && (map != 3 || size == 4);
        fits &= (ORDERS[map] >> order & 1) == 1 && (order < 3 || header.extents.length > 1);
        Refused.when(!fits, "K3", "map %d, order %d for this type and rank", map, order);
        unit = head.i64(8);
        origin = head.i64(16);
        step = head.i64(24);
        Refused.when(unit == 0 || (step != 0 && order % 3 == 0 && !hasDictionary), "K4",
                "unit %d, step %d with order %d", unit, step, order);
        factor = Double.longBitsToDouble(head.i64(32));
        addend = Double.longBitsToDouble(head.i64(40));
        boolean exact = map == 0 || map == 4 || map == DICTIONARY;
        boolean factorFits = exact ? head.i64(32) == 0 : factor > 0 && factor < Double.POSITIVE_INFINITY;
        boolean addendFits = exact || map == 1 ? head.i64(40) == 0 : Math.abs(addend) < Double.POSITIVE_INFINITY;
        Refused.when(!factorFits || !addendFits, "K5", "factor %s, addend %s in map %d", factor, addend, map);
        specialBits = head.i64(48);
        Refused.when(special ? size == 4 && specialBits >>> 32 != 0 : specialBits != 0, "K6", "special bits %016x",
                specialBits);
        if (hasDictionary) {
            Refused.when(unit != 1, "K9", "unit %d with a dictionary", unit);
            readDictionary();
        }
    }

    private void readDictionary() throws Refused {
        byte[] frame = Arrays.copyOfRange(head.bytes, head.begin + HEAD, head.begin + head.length);
        Header h = Header.read(frame);
        boolean whole = h.rawLength % size == 0 && h.rawLength > 0 && h.rawLength <= header.rawLength;
        Refused.when(h.codec != Header.BYTES || h.mode != 9 || h.type != (size << 4 | 1 << 14) || !whole, "K9",
                "a dictionary by codec %d in mode %d, of type %08x, %s bytes", h.codec, h.mode, h.type,
                Long.toUnsignedString(h.rawLength));
        dictionary = ByteBuffer.wrap(Frame.decode(frame, h.rawLength)).order(ByteOrder.LITTLE_ENDIAN);
        for (int k = 0; k < dictionary.capacity() / size; k++) {
            if (size == 8) {
                dictionary.putLong(8 * k, k == 0 ? origin : listed(k - 1) + step + listed(k));
            } else {
                dictionary.putInt(4 * k, (int) (k == 0 ? origin : listed(k - 1) + step + listed(k)));
            }
        }
        origin = 0; // that of the places
    }

    /** The number at place k of the dictionary. */
    private long listed(long k) throws Refused {
        Refused.when(k < 0 || k >= dictionary.capacity() / size, "K9", "a code %d with a dictionary of %d numbers", k,
                dictionary.capacity() / size);
        return size == 8 ? dictionary.getLong(8 * (int) k) : dictionary.getInt(4 * (int) k);
    }

    /** Codes or corrections, integers of {@code bytes} bytes. */
    private byte[] inner(Section section, int bytes, String rule) throws Refused {
        byte[] frame = Arrays.copyOfRange(section.bytes, section.begin, section.begin + section.length);
        Header h = Header.read(frame);
        boolean codec = h.codec == Header.LORENZO || h.codec == Header.BYTES
                || (h.codec == Header.PLANES && bytes > 1);
        boolean shaped = h.codec == Header.BYTES || (Arrays.equals(h.extents, header.extents) && !h.swapped);
        // Class 0, of this size, signed, and no other bit.
        int type = bytes << 4 | 1 << 14;
        long rawLength = (long) n * bytes;
        Refused.when(!codec || h.mode != 9 || h.type != type || h.rawLength != rawLength || !shaped, rule,
                "integers by codec %d in mode %d, of type %08x, %s bytes", h.codec, h.mode, h.type,
                Long.toUnsignedString(h.rawLength));
        return Frame.decode(frame, rawLength);
    }

    /** Adds corrections to the numbers' bits, in the order of the numbers. */
    private void correct(ByteBuffer out) throws Refused {
        byte[] more = inner(corrections, 1, "K10");
        for (int i = 0; i < n; i++) {
            if (size == 8) {
                out.putLong(8 * i, ordered(ordered(out.getLong(8 * i)) + more[i]));
            } else {
                out.putInt(4 * i, ordered(ordered(out.getInt(4 * i)) + more[i]));
            }
        }
    }

    /** From a float's bits to a whole number of the same order, and back. */
    private static long ordered(long q) {
        return q ^ q >> 63 >>> 1;
    }

    private static int ordered(int q) {
        return q ^ q >> 31 >>> 1;
    }

    /** Section 4, of 8 bytes. */
    private void numbers(ByteBuffer in, ByteBuffer out) throws Refused {
        int row = order == 3 ? (int) header.extents[header.extents.length - 1] : 1;
        long[] before = new long[row];
        long r = 0;
        for (int i = 0, column = 0; i < n; i++) {
            long c = in.getLong(8 * i);
            boolean isSpecial = special && c == Long.MIN_VALUE;
            if (order == 0) {
                r = c;
            } else {
                long d = isSpecial ? 0 : difference(i, c, before[column]);
                before[column] = d;
                r += d;
                column = column + 1 == row ? 0 : column + 1;
                isSpecial = special && (isSpecial || r == Long.MIN_VALUE);
            }
            out.putLong(8 * i, isSpecial ? specialBits : number(origin + unit * r));
        }
    }

    /** The same of 4 bytes, whose sums wrap around earlier. */
    private void shortNumbers(ByteBuffer in, ByteBuffer out) throws Refused {
        int row = order == 3 ? (int) header.extents[header.extents.length - 1] : 1;
        int[] before = new int[row];
        int r = 0;
        for (int i = 0, column = 0; i < n; i++) {
            int c = in.getInt(4 * i);
            boolean isSpecial = special && c == Integer.MIN_VALUE;
            if (order == 0) {
                r = c;
            } else {
                int d = isSpecial ? 0 : (int) difference(i, c, before[column]);
                before[column] = d;
                r += d;
                column = column + 1 == row ? 0 : column + 1;
                isSpecial = special && (isSpecial || r == Integer.MIN_VALUE);
            }
            out.putInt(4 * i, isSpecial ? (int) specialBits : shortNumber((int) origin + (int) unit * r));
        }
    }

    /** d(i) from the code and the difference one before, or one row before with order 3. */
    private long difference(int i, long c, long before) {
        switch (order) {
            case 1:
                return i == 0 ? 0 : step + c;
            case 2:
                return i == 0 ? 0 : i == 1 ? step : before + c;
            default:
                return before + c;
        }
    }

    /** Section 5. */
    private long number(long k) throws Refused {
        long q = map == DICTIONARY ? listed(k) : k;
        if (map == 0) {
            return q;
        }
        if (map == 4 || map == DICTIONARY) {
            return ordered(q);
        }
        double x = map == 1 ? q / factor : q * factor + addend;
        return Double.doubleToRawLongBits(x);
    }

    private int shortNumber(int k) throws Refused {
        int q = map == DICTIONARY ? (int) listed(k) : k;
        switch (map) {
            case 0:
                return q;
            case 1:
                return Float.floatToRawIntBits((float) (q / factor));
            case 2:
                return Float.floatToRawIntBits((float) (q * factor + addend));
            case 4:
            case DICTIONARY:
                return ordered(q);
            default:
                return Float.floatToRawIntBits((float) q * (float) factor + (float) addend);
        }
    }
}
