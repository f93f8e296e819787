// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.math.BigInteger;

/**
 * The header of a frame, section 2 of codecs/src/FORMAT.md, checked by the rules F1 to F14 and F18.
 *
 * <p>Lengths are unsigned numbers of 64 bits: a negative {@code rawLength} is one of 2^63 and more.
 */
final class Header {
    static final int STORED = 0;
    static final int SZX = 1;
    static final int LORENZO = 2;
    static final int NDZIP = 3;
    static final int BYTES = 4;
    static final int PLANES = 5;
    static final int SCALED = 6;
    static final int DENSE = 7;

    static final int INTEGER = 0;
    static final int FLOAT = 1;

    private static final int VERSION = 2;
    /** Of the format: what the version may have as its draft, section 1. */
    private static final int STATE = 0xbc1478e8;
    private static final int FIXED = 56;
    private static final byte[] MAGIC = {(byte) 0x89, 0x48, 0x35, 0x5A, 0x47, 0x0D, 0x0A, 0x1A};
    private static final String[] NAMES = {"stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"};
    private static final int[] SECTIONS = {1, 2, 4, 2, 3, 2, 3, 4};
    // Bit m is 1 where the codec allows mode m.
    private static final int[] MODES = {0x200, 0x01E, 0x21E, 0x200, 0x200, 0x216, 0x200, 0x01E};
    private static final int[] HIGHEST_RANK = {0, 8, 8, 8, 0, 8, 8, 8};
    private static final int BIG_ENDIAN = 1 << 12;
    private static final int F16 = 0x0A054021;
    private static final int BFLOAT16 = 0x07084021;
    private static final int F32 = 0x17084041;
    private static final int F64 = 0x340B4081;

    final int codec;
    final int mode;
    final boolean swapped;
    final int type;
    final long rawLength;
    final double bound;
    final long[] extents;
    final long[] sectionLengths;

    private Header(int codec, int mode, boolean swapped, int type, long rawLength, double bound, long[] extents,
            long[] sectionLengths) {
        this.codec = codec;
        this.mode = mode;
        this.swapped = swapped;
        this.type = type;
        this.rawLength = rawLength;
        this.bound = bound;
        this.extents = extents;
        this.sectionLengths = sectionLengths;
    }

    /** The same frame with numbers of another type, as section 5 of codecs/src/FORMAT.md reads short ones. */
    Header as(int newType, int newMode, double newBound) {
        return new Header(codec, newMode, swapped, newType, rawLength, newBound, extents, sectionLengths);
    }

    Header asF32() {
        return as(F32, mode, bound);
    }

    /** Integers of 4 bytes in place of shorter ones. */
    Header asWords() {
        return as((type & ~0xFF0) | 4 << 4, mode, bound);
    }

    /** f64 in mode 1 with the bound 1/2, whose quanta the integers are. */
    Header asQuanta() {
        return as(F64, 1, 0.5);
    }

    int numberClass() {
        return type & 15;
    }

    int size() {
        return type >>> 4 & 0xFF;
    }

    boolean bigEndian() {
        return (type & BIG_ENDIAN) != 0;
    }

    int mantissa() {
        return type >>> 24;
    }

    boolean is16Bits() {
        return is(type, F16) || is(type, BFLOAT16);
    }

    boolean bfloat16() {
        return is(type, BFLOAT16);
    }

    /** How many values the extents hold. Fits: whoever asks has a raw length that a Java array can have. */
    int values() {
        int n = 1;
        for (long e : extents) {
            n *= (int) e;
        }
        return n;
    }

    /** Where the sections begin, filling not counted. */
    int end() {
        return FIXED + 4 * extents.length + 8 * sectionLengths.length;
    }

    static Header read(byte[] frame) throws Refused {
        Refused.when(frame.length < FIXED, "F1", "%d bytes, a frame has at least %d", frame.length, FIXED);
        for (int i = 0; i < MAGIC.length; i++) {
            Refused.when(frame[i] != MAGIC[i], "F2", "the magic is another one: this is no frame of h5z-gpu");
        }
        Section s = new Section(frame, 0, frame.length);
        int version = s.u8(8);
        Refused.when(version == 1, "F3", "written by a build before 0.1.0; read it with that build and write it again");
        Refused.when(version != VERSION, "F3", "version %d, this reader knows %d", version, VERSION);
        Refused.when(s.i64(24) != frame.length, "F4", "the frame has %s bytes, %d are given",
                Long.toUnsignedString(s.i64(24)), frame.length);
        long sum = Checksum.of(frame);
        Refused.when(s.i64(40) != sum, "F5", "damaged: the checksum is %016x, the header says %016x", sum, s.i64(40));
        int draft = s.i32(52);
        Refused.when(draft != 0 && draft != STATE, "F18",
                "written by an unreleased build, in state %08x of the format", draft);
        int codec = s.u8(9);
        Refused.when(codec >= NAMES.length, "F6", "codec %d, known are 0 to %d", codec, NAMES.length - 1);
        String name = NAMES[codec];
        int mode = s.u8(10);
        int type = s.i32(12);
        boolean quanta = codec == LORENZO && mode == 9;
        Refused.when(mode > 9 || (MODES[codec] >> mode & 1) == 0 || (quanta && (type & 15) != INTEGER), "F7",
                "mode %d, which %s does not allow for this type", mode, name);
        int rank = s.u8(11) & 127;
        boolean swapped = s.u8(11) >= 128;
        Refused.when(rank > HIGHEST_RANK[codec], "F8", "rank %d, %s has %d at most", rank, name, HIGHEST_RANK[codec]);
        Refused.when(swapped && (rank < 2 || codec == SZX || codec == NDZIP), "F8",
                "rank %d, of which the first two axes are swapped, with %s", rank, name);
        Refused.when(!typeAllowed(codec, mode, type), "F9", "type %08x, which %s does not allow in mode %d", type,
                name, mode);
        long boundBits = s.i64(32);
        double bound = Double.longBitsToDouble(boundBits);
        boolean finite = boundBits >= 0 && bound < Double.POSITIVE_INFINITY;
        Refused.when(!finite || (mode == 9 && boundBits != 0), "F10", "bound %s in mode %d", bound, mode);
        int count = s.i32(48);
        boolean corrections = codec == SCALED && count == 4;
        Refused.when(count != SECTIONS[codec] && !corrections, "F11", "%d sections, %s has %d", count, name,
                SECTIONS[codec]);
        return shape(s, new Header(codec, mode, swapped, type, s.i64(16), bound, new long[rank],
                new long[count]));
    }

    /** Reads extents and section lengths, the part of the header whose length the other fields tell. */
    private static Header shape(Section s, Header h) throws Refused {
        Refused.when(h.end() > s.length, "F12", "a header of %d bytes in a frame of %d", h.end(), s.length);
        BigInteger values = BigInteger.ONE;
        for (int k = 0; k < h.extents.length; k++) {
            h.extents[k] = s.u32(FIXED + 4 * k);
            Refused.when(h.extents[k] < 2, "F13", "extent %d of axis %d, 2 and more are allowed", h.extents[k], k);
            values = values.multiply(BigInteger.valueOf(h.extents[k]));
        }
        Refused.when(values.bitLength() > 64, "F13", "extents of %s values, below 2^64 are allowed", values);
        boolean shaped = h.codec != STORED && h.codec != BYTES;
        Refused.when(shaped && !values.multiply(BigInteger.valueOf(h.size())).equals(unsigned(h.rawLength)), "F14",
                "%s values of %d bytes in %s raw bytes", values, h.size(), Long.toUnsignedString(h.rawLength));
        for (int k = 0; k < h.sectionLengths.length; k++) {
            h.sectionLengths[k] = s.i64(FIXED + 4 * h.extents.length + 8 * k);
        }
        return h;
    }

    private static BigInteger unsigned(long x) {
        return new BigInteger(Long.toUnsignedString(x));
    }

    private static boolean is(int type, int which) {
        return (type & ~BIG_ENDIAN) == which;
    }

    /** F9: section 2.1, then section 2 of the codec's document. */
    private static boolean typeAllowed(int codec, int mode, int type) {
        int number = type & 15;
        int size = type >>> 4 & 0xFF;
        boolean known = (number == INTEGER || number == FLOAT || number == 15) && (type & 0xA000) == 0;
        boolean full = is(type, F32) || is(type, F64);
        boolean half = is(type, F16) || is(type, BFLOAT16);
        boolean words = number != 15 && (size == 4 || size == 8);
        switch (codec) {
            case SZX:
            case DENSE:
                return full || half;
            case LORENZO:
                return mode == 9 ? known && (size == 1 || size == 2 || size == 4 || size == 8) : full || half;
            case NDZIP:
                return known && words;
            case PLANES:
                return mode != 9 ? full || half : half || (known && (words || (number == INTEGER && (size == 1
                        || size == 2))));
            case SCALED:
                return number == FLOAT ? full : known && words;
            default:
                return known;
        }
    }
}
