// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.zstd;

/**
 * A decoder of Zstandard frames, RFC 8878, for content whose length is known: it writes into a buffer of that length
 * and no more, and allocates nothing that a frame asks for.
 *
 * <pre>
 * frame header; then blocks until the last one:
 *     raw: copy           one byte: repeat it
 *     compressed:
 *         literals        as they are, one byte, or by Huffman codes, in one or four streams     literals
 *         sequences       (literals to copy, length and distance of a match), by three tables    sequences
 *         run them: each copies literals, then a match from what was written
 *         the literals that are left
 * the content's checksum, where there is one
 * </pre>
 *
 * <p>Since the whole content is in one buffer there is no window to keep, however large one the frame states. Matches
 * that reach further back than that window are not refused. There are no dictionaries.
 */
public final class Zstd {
    private static final int MAGIC = 0xFD2FB528;
    private static final int BLOCK = 1 << 17;

    private byte[] in;
    private byte[] out;
    private int outBegin;
    private int outAt;
    private int outEnd;

    private BackwardBits bits;
    private final byte[] literals = new byte[BLOCK];
    private int literalCount;
    private final HuffmanTable huffman = new HuffmanTable();
    private boolean huffmanKept;
    private final Sequences sequences = new Sequences();

    /**
     * Decodes the frame that {@code in} holds from {@code from} to {@code to} into {@code count} bytes.
     *
     * @throws Damaged unless that is exactly one frame, whose content has that length
     */
    public void decompress(byte[] in, int from, int to, byte[] out, int at, int count) throws Damaged {
        if (this.in != in) {
            this.in = in;
            bits = new BackwardBits(in);
        }
        this.out = out;
        outBegin = at;
        outAt = at;
        outEnd = at + count;
        huffmanKept = false;
        sequences.begin();
        need(from, 6, to);
        if (number(from, 4) != MAGIC) {
            throw new Damaged("no Zstandard frame");
        }
        int descriptor = in[from + 4] & 0xFF;
        from = blocks(header(from + 5, to, descriptor, count), to);
        if (outAt != outEnd) {
            throw new Damaged("a content of " + (outAt - outBegin) + " bytes, expected are " + count, true);
        }
        if ((descriptor & 4) != 0) {
            need(from, 4, to);
            if ((int) number(from, 4) != (int) XxHash64.of(out, outBegin, count)) {
                throw new Damaged("another checksum of the content");
            }
            from += 4;
        }
        if (from != to) {
            throw new Damaged((to - from) + " bytes behind the Zstandard frame");
        }
    }

    private static void need(int at, int count, int to) throws Damaged {
        if (count > to - at) {
            throw new Damaged("the Zstandard frame ends too early");
        }
    }

    /** A number of 1 to 8 bytes, the lowest one first; of 4 it has the sign of an int. */
    private long number(int at, int count) {
        long value = 0;
        for (int i = count - 1; i >= 0; i--) {
            value = value << 8 | (in[at + i] & 0xFF);
        }
        return count == 4 ? (int) value : value;
    }

    private int header(int at, int to, int descriptor, int count) throws Damaged {
        boolean single = (descriptor & 0x20) != 0;
        if ((descriptor & 8) != 0) {
            throw new Damaged("a reserved bit of the frame's header is 1");
        }
        at += single ? 0 : 1;
        int[] widths = {0, 1, 2, 4};
        int dictionary = widths[descriptor & 3];
        need(at, dictionary, to);
        if (number(at, dictionary) != 0) {
            throw new Damaged("a dictionary is needed");
        }
        at += dictionary;
        int sizeFlag = descriptor >> 6;
        int width = sizeFlag == 0 ? (single ? 1 : 0) : 1 << sizeFlag;
        need(at, width, to);
        if (width != 0) {
            long stated = number(at, width) & (width == 4 ? 0xFFFFFFFFL : -1L);
            stated += width == 2 ? 256 : 0;
            if (stated != count) {
                throw new Damaged("a content of " + Long.toUnsignedString(stated) + " bytes is stated, expected are "
                        + count, true);
            }
        }
        return at + width;
    }

    private int blocks(int at, int to) throws Damaged {
        boolean last = false;
        while (!last) {
            need(at, 3, to);
            int head = (int) number(at, 3);
            last = (head & 1) != 0;
            int kind = head >> 1 & 3;
            int size = head >> 3;
            at += 3;
            if (kind == 3 || size > BLOCK) {
                throw new Damaged("a block of kind " + kind + " and " + size + " bytes");
            }
            int length = kind == 1 ? 1 : size;
            need(at, length, to);
            if (kind == 0) {
                room(size);
                System.arraycopy(in, at, out, outAt, size);
                outAt += size;
            } else if (kind == 1) {
                room(size);
                java.util.Arrays.fill(out, outAt, outAt + size, in[at]);
                outAt += size;
            } else {
                compressed(at, at + size);
            }
            at += length;
        }
        return at;
    }

    private void room(int size) throws Damaged {
        if (size > outEnd - outAt) {
            throw new Damaged("a content of more than " + (outEnd - outBegin) + " bytes", true);
        }
    }

    private void compressed(int at, int end) throws Damaged {
        int began = outAt;
        at = readLiterals(at, end);
        int count = sequences.open(in, at, end, bits);
        int literal = 0;
        for (int i = 0; i < count; i++) {
            sequences.next(bits, i == count - 1);
            int plain = sequences.literals;
            int length = sequences.match;
            if (plain > literalCount - literal) {
                throw new Damaged("a sequence takes more literals than there are");
            }
            room(plain + length);
            System.arraycopy(literals, literal, out, outAt, plain);
            literal += plain;
            outAt += plain;
            copy(sequences.distance, length);
        }
        if (count > 0 && bits.left != 0) {
            throw new Damaged("sequences that do not take the bits of their block");
        }
        int rest = literalCount - literal;
        room(rest);
        System.arraycopy(literals, literal, out, outAt, rest);
        outAt += rest;
        if (outAt - began > BLOCK) {
            throw new Damaged("a block of more than " + BLOCK + " bytes");
        }
    }

    /** A match: it may reach into itself, and then repeats. */
    private void copy(int distance, int length) throws Damaged {
        int from = outAt - distance;
        if (distance <= 0 || from < outBegin) {
            throw new Damaged("a match before the content's begin");
        }
        if (distance >= length) {
            System.arraycopy(out, from, out, outAt, length);
            outAt += length;
        } else {
            for (int end = outAt + length; outAt < end; ) {
                out[outAt++] = out[from++];
            }
        }
    }

    /** Section 3.1.1.3.1. Gives the place behind the literals. */
    private int readLiterals(int at, int end) throws Damaged {
        need(at, 1, end);
        int first = in[at] & 0xFF;
        int kind = first & 3;
        int form = first >> 2 & 3;
        if (kind < 2) {
            int width = form == 1 ? 2 : form == 3 ? 3 : 1;
            need(at, width, end);
            literalCount = (int) number(at, width) >> (width == 1 ? 3 : 4);
            at += width;
            int length = kind == 1 ? 1 : literalCount;
            need(at, length, end);
            if (literalCount > BLOCK) {
                throw new Damaged("a block of " + literalCount + " literals");
            }
            if (kind == 1) {
                java.util.Arrays.fill(literals, 0, literalCount, in[at]);
            } else {
                System.arraycopy(in, at, literals, 0, literalCount);
            }
            return at + length;
        }
        int width = form < 2 ? 3 : form + 2;
        int sizeBits = form < 2 ? 10 : form == 2 ? 14 : 18;
        need(at, width, end);
        // Of 4 bytes the head has the sign of an int, above what is looked at.
        long head = number(at, width) >>> 4;
        literalCount = (int) (head & (1 << sizeBits) - 1);
        int length = (int) (head >>> sizeBits & (1 << sizeBits) - 1);
        at += width;
        need(at, length, end);
        if (literalCount > BLOCK) {
            throw new Damaged("a block of " + literalCount + " literals");
        }
        huffman(kind == 2, form != 0, at, at + length);
        return at + length;
    }

    private void huffman(boolean withTable, boolean four, int at, int end) throws Damaged {
        if (withTable) {
            at = huffman.read(in, at, end);
            huffmanKept = true;
        } else if (!huffmanKept) {
            throw new Damaged("literals by a Huffman table that is not there");
        }
        if (!four) {
            huffman.decode(bits, at, end, literals, 0, literalCount);
            return;
        }
        need(at, 6, end);
        int each = (literalCount + 3) / 4;
        int begin = at + 6;
        for (int k = 0; k < 4; k++) {
            int behind = k == 3 ? end : begin + (int) number(at + 2 * k, 2);
            int count = k == 3 ? literalCount - 3 * each : each;
            if (behind > end || count < 0) {
                throw new Damaged("four streams of literals that do not fit");
            }
            huffman.decode(bits, begin, behind, literals, k * each, count);
            begin = behind;
        }
    }
}
