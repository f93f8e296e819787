// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.zstd;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** XXH64 with the seed 0, of which a Zstandard frame may carry the lower half: RFC 8878, section 3.1.1. */
final class XxHash64 {
    private static final long P1 = 0x9E3779B185EBCA87L;
    private static final long P2 = 0xC2B2AE3D27D4EB4FL;
    private static final long P3 = 0x165667B19E3779F9L;
    private static final long P4 = 0x85EBCA77C2B2AE63L;
    private static final long P5 = 0x27D4EB2F165667C5L;

    private XxHash64() {}

    static long of(byte[] bytes, int from, int count) {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int at = from;
        int end = from + count;
        long h = P5;
        if (count >= 32) {
            long[] lane = {P1 + P2, P2, 0, -P1};
            for (; at + 32 <= end; at += 32) {
                for (int i = 0; i < 4; i++) {
                    lane[i] = round(lane[i], in.getLong(at + 8 * i));
                }
            }
            h = Long.rotateLeft(lane[0], 1) + Long.rotateLeft(lane[1], 7) + Long.rotateLeft(lane[2], 12)
                    + Long.rotateLeft(lane[3], 18);
            for (long l : lane) {
                h = (h ^ round(0, l)) * P1 + P4;
            }
        }
        h += count;
        for (; at + 8 <= end; at += 8) {
            h = Long.rotateLeft(h ^ round(0, in.getLong(at)), 27) * P1 + P4;
        }
        if (at + 4 <= end) {
            h = Long.rotateLeft(h ^ (in.getInt(at) & 0xFFFFFFFFL) * P1, 23) * P2 + P3;
            at += 4;
        }
        for (; at < end; at++) {
            h = Long.rotateLeft(h ^ (bytes[at] & 0xFF) * P5, 11) * P1;
        }
        h = (h ^ h >>> 33) * P2;
        h = (h ^ h >>> 29) * P3;
        return h ^ h >>> 32;
    }

    private static long round(long lane, long word) {
        return Long.rotateLeft(lane + word * P2, 31) * P1;
    }
}
