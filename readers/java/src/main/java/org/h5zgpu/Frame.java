// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * Reads a frame of h5z-gpu: what filter 443 stores for one chunk of an HDF5 dataset. Written from codecs/src/FORMAT.md
 * and the FORMAT.md of each codec alone; "section" and the rules F1, S1, L1, ... are theirs.
 *
 * <pre>
 * check magic, version, length, checksum, then the fields       Header
 * the raw length must be the one that the caller expects
 * find the sections, and see that only zeros lie between        sections
 * a codec makes numbers of them                                 Szx, Lorenzo (dense too), Ndzip, BytesCodec, Planes,
 *                                                               Scaled
 * numbers become short ones, their bytes are swapped            Output
 * the first two axes change places where the header says so     exchanged
 * </pre>
 *
 * <p>Memory: the chunk, twice where axes are swapped, and a constant for the tile at hand. A codec compares its
 * tables with the frame's length before the chunk is allocated, so a few bytes cannot ask for gigabytes.
 * One thread; frames are independent of each other, and nothing here is shared.
 */
public final class Frame {
    /** The caller does not know how long the chunk is. */
    public static final long ANY_LENGTH = -1;

    private static final int LONGEST_ARRAY = Integer.MAX_VALUE - 8;

    private Frame() {}

    /**
     * The raw bytes of a chunk, in the dataset's own byte order.
     *
     * @param frame what HDF5 stores, from the first byte to the last
     * @param expected how long the chunk is, or {@link #ANY_LENGTH}
     * @throws Refused where the frame is damaged, of a newer version, or of another length
     */
    public static byte[] decode(byte[] frame, long expected) throws Refused {
        Header header = Header.read(frame);
        Refused.when(expected != ANY_LENGTH && expected != header.rawLength, "F15", "%s raw bytes, expected are %d",
                Long.toUnsignedString(header.rawLength), expected);
        Refused.when(header.rawLength < 0 || header.rawLength > LONGEST_ARRAY, "F15",
                "%s raw bytes, a Java array holds %d", Long.toUnsignedString(header.rawLength), LONGEST_ARRAY);
        Section[] sections = sections(new Section(frame, 0, frame.length), header);
        byte[] raw = numbers(header, sections);
        return header.swapped ? exchanged(raw, header) : raw;
    }

    /** The type of a frame that was found right: section 2.1. */
    public static int type(byte[] frame) throws Refused {
        return Header.read(frame).type;
    }

    /** The raw length of a frame that was found right. */
    public static long rawLength(byte[] frame) throws Refused {
        return Header.read(frame).rawLength;
    }

    private static byte[] numbers(Header header, Section[] sections) throws Refused {
        switch (header.codec) {
            case Header.SZX:
                return new Szx(header.is16Bits() ? header.asF32() : header, sections).decode(header);
            case Header.LORENZO:
            case Header.DENSE:
                Header plain = header.mode == 9 ? header.asQuanta() : header.is16Bits() ? header.asF32() : header;
                return new Lorenzo(plain, sections).decode(header);
            case Header.NDZIP:
                return new Ndzip(header, sections).decode();
            case Header.BYTES:
                return new BytesCodec(header, sections).decode();
            case Header.PLANES:
                boolean integers = header.numberClass() == Header.INTEGER && header.size() < 4;
                Header wide = integers ? header.asWords() : header.is16Bits() ? header.asF32() : header;
                return new Planes(wide, sections).decode(header);
            case Header.SCALED:
                return new Scaled(header, sections).decode();
            default:
                Refused.when(sections[0].length != header.rawLength, "F15", "a section of %d bytes, %d raw bytes",
                        sections[0].length, header.rawLength);
                return java.util.Arrays.copyOfRange(sections[0].bytes, sections[0].begin,
                        sections[0].begin + sections[0].length);
        }
    }

    /** Section 4.1: each section begins at a multiple of 8, zeros fill the gaps, the last one ends the frame. */
    private static Section[] sections(Section frame, Header header) throws Refused {
        Section[] found = new Section[header.sectionLengths.length];
        long end = header.end();
        for (int k = 0; k < found.length; k++) {
            long begin = end + 7 & -8;
            long length = header.sectionLengths[k];
            Refused.when(begin > frame.length || length < 0 || length > frame.length - begin, "F16",
                    "section %d has %s bytes from %d on, the frame %d", k, Long.toUnsignedString(length), begin,
                    frame.length);
            Refused.when(frame.any((int) end, (int) begin), "F17", "before section %d is a byte that is not 0", k);
            end = begin + length;
            found[k] = frame.part((int) begin, (int) end);
        }
        Refused.when(end != frame.length, "F16", "the last section ends at %d, the frame at %d", end, frame.length);
        return found;
    }

    /** The codec's array of the extents e, f, … as one of f, e, …: value (i, j, …) comes to (j, i, …). */
    private static byte[] exchanged(byte[] raw, Header header) {
        int e = (int) header.extents[0];
        int f = (int) header.extents[1];
        int row = raw.length / e / f;
        byte[] out = new byte[raw.length];
        for (int i = 0; i < e; i++) {
            for (int j = 0; j < f; j++) {
                System.arraycopy(raw, (i * f + j) * row, out, (j * e + i) * row, row);
            }
        }
        return out;
    }
}
