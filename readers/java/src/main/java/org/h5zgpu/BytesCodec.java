// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import org.h5zgpu.zstd.Damaged;
import org.h5zgpu.zstd.Zstd;

/**
 * The codec {@code bytes}, codecs/src/codec/bytes/FORMAT.md: tiles that zstd coded after their bytes, or bits, of equal
 * place in an element were brought together. A tile that takes as many bytes as it is long is the bytes themselves.
 */
final class BytesCodec {
    private static final int MOST = 1048576;

    private final Section head;
    private final Section ends;
    private final Section payload;
    private final int raw;

    BytesCodec(Header header, Section[] sections) {
        head = sections[0];
        ends = sections[1];
        payload = sections[2];
        raw = (int) header.rawLength;
    }

    byte[] decode() throws Refused {
        Refused.when(head.length != 8, "B1", "a head of %d bytes, it has 8", head.length);
        int stride = head.u16(0);
        int unit = head.u16(2);
        long tileBytes = head.u32(4);
        Refused.when(stride < 1 || stride > 255, "B2", "a stride of %d", stride);
        Refused.when(tileBytes < 1 || tileBytes > MOST || tileBytes % stride != 0, "B3", "tiles of %d bytes",
                tileBytes);
        Refused.when(unit > 1, "B10", "unit %d", unit);
        int length = (int) tileBytes;
        int tiles = raw / length + (raw % length == 0 ? 0 : 1);
        Refused.when(ends.length != 8L * tiles, "B4", "ends of %d bytes for %d tiles", ends.length, tiles);
        check(tiles, length);
        byte[] out = new byte[raw];
        byte[] shuffled = new byte[Math.min(length, raw)];
        Zstd zstd = new Zstd();
        int begin = 0;
        for (int t = 0; t < tiles; t++) {
            int end = (int) ends.i64(8 * t);
            int at = t * length;
            int n = Math.min(length, raw - at);
            if (end - begin == n) {
                System.arraycopy(payload.bytes, payload.begin + begin, out, at, n);
            } else {
                boolean plain = unit == 0 && stride == 1;
                decompress(zstd, t, begin, end, plain ? out : shuffled, plain ? at : 0, n);
                if (!plain) {
                    unshuffle(shuffled, n, stride, unit == 1, out, at);
                }
            }
            begin = end;
        }
        return out;
    }

    /** B5 to B7, before a tile is decoded. */
    private void check(int tiles, int length) throws Refused {
        long last = 0;
        for (int t = 0; t < tiles; t++) {
            long end = ends.i64(8 * t);
            long n = Math.min(length, raw - (long) t * length);
            // Ends of 2^63 and more are negative here.
            Refused.when(end < 0 || end > payload.length, "B7", "tile %d ends at %s of %d bytes", t,
                    Long.toUnsignedString(end), payload.length);
            Refused.when(end <= last, "B5", "tile %d ends at %d, the one before at %d", t, end, last);
            Refused.when(end - last > n, "B6", "tile %d takes %d bytes, it has %d", t, end - last, n);
            last = end;
        }
        Refused.when(last != payload.length, "B7", "the last tile ends at %d of %d bytes", last, payload.length);
    }

    private void decompress(Zstd zstd, int tile, int begin, int end, byte[] to, int at, int n) throws Refused {
        try {
            zstd.decompress(payload.bytes, payload.begin + begin, payload.begin + end, to, at, n);
        } catch (Damaged e) {
            throw new Refused(e.length ? "B9" : "B8", "tile " + tile + ": " + e.getMessage());
        }
    }

    /** Section 4: byte j of element i lies at j · m + i; with bits, bit t of it in the plane 8j + t. */
    private static void unshuffle(byte[] b, int n, int s, boolean bits, byte[] out, int at) {
        int done;
        if (!bits) {
            int m = n / s;
            for (int j = 0; j < s; j++) {
                for (int i = 0, to = at + j, from = j * m; i < m; i++, to += s) {
                    out[to] = b[from + i];
                }
            }
            done = m * s;
        } else {
            int q = n / (8 * s);
            for (int j = 0; j < s; j++) {
                for (int k = 0; k < q; k++) {
                    long planes = 0;
                    for (int t = 7; t >= 0; t--) {
                        planes = planes << 8 | (b[(8 * j + t) * q + k] & 0xFF);
                    }
                    long elements = Bits.transpose8(planes);
                    for (int c = 0; c < 8; c++) {
                        out[at + (8 * k + c) * s + j] = (byte) (elements >>> 8 * c);
                    }
                }
            }
            done = 8 * q * s;
        }
        System.arraycopy(b, done, out, at + done, n - done);
    }
}
