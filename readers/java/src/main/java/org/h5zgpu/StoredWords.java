// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * The filter's words in an HDF5 file, its cd_values, as far as a reader of chunks can use them: they say how long a
 * chunk is, which frames are then held to.
 *
 * <p>codecs/src/words.rs describes them. Frames need no words; where these are short, of another layout, or changed, a
 * reader goes on without.
 */
public final class StoredWords {
    private static final int LAYOUT_3 = 0xF1C0DE03;
    private static final int READER_3 = 3;
    private static final int CHECK = 10;
    private static final int HEAD = 11;
    private static final int HIGHEST_RANK = 8;
    private static final int LAST = 90000;
    private static final int SEES_THE_CHUNK = 2;

    private StoredWords() {}

    /** How long a chunk is, or {@link Frame#ANY_LENGTH} where the words do not tell. */
    public static long chunkLength(int[] words) {
        if (words == null || words.length <= HEAD || words[0] != LAYOUT_3 || words[1] >>> 24 != READER_3) {
            return Frame.ANY_LENGTH;
        }
        int count = words[1] & 0xFF;
        int rank = words[3] >>> 24;
        if (rank > HIGHEST_RANK || count != HEAD + rank + 1 || words.length < count || words[count - 1] != LAST
                || words[CHECK] != check(words, count - 1) || (words[3] >>> 8 & SEES_THE_CHUNK) == 0) {
            return Frame.ANY_LENGTH;
        }
        double length = words[2] >>> 4 & 0xFF;
        for (int k = HEAD; k < count - 1; k++) {
            length *= words[k] & 0xFFFFFFFFL;
        }
        // Below 2^53 the product is exact; no chunk is longer.
        return length > 0 && length < 0x1p53 ? (long) length : Frame.ANY_LENGTH;
    }

    private static int check(int[] words, int count) {
        int sum = 0;
        for (int k = 0; k < count; k++) {
            if (k != CHECK) {
                int product = (sum ^ words[k]) * 0x9E3779B1;
                sum = product ^ product >>> 15;
            }
        }
        return sum;
    }
}
