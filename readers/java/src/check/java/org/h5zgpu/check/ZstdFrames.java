// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.check;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Random;
import org.h5zgpu.zstd.Damaged;
import org.h5zgpu.zstd.Zstd;

/**
 * Decodes frames of zstd itself: a file of records, each the lengths of frame and content as u32, then both.
 *
 * <pre>
 * every frame gives its content, bit for bit, and nothing beside it is touched
 * every frame is refused where a byte less or more is expected, and where its last byte is missing
 * a frame with a changed byte is refused or gives other bytes, and nothing else happens
 * </pre>
 *
 * <p>{@code java org.h5zgpu.check.ZstdFrames FILE}
 */
public final class ZstdFrames {
    private static final int MARGIN = 16;

    private ZstdFrames() {}

    public static void main(String[] args) throws IOException {
        ByteBuffer all = ByteBuffer.wrap(Files.readAllBytes(Paths.get(args[0]))).order(ByteOrder.LITTLE_ENDIAN);
        Zstd zstd = new Zstd();
        Random random = new Random(1);
        int count = 0;
        int wrong = 0;
        int damaged = 0;
        while (all.hasRemaining()) {
            byte[] frame = new byte[all.getInt()];
            byte[] content = new byte[all.getInt()];
            all.get(frame).get(content);
            count++;
            byte[] out = new byte[content.length + 2 * MARGIN];
            Arrays.fill(out, (byte) 0xA5);
            byte[] want = out.clone();
            System.arraycopy(content, 0, want, MARGIN, content.length);
            try {
                zstd.decompress(frame, 0, frame.length, out, MARGIN, content.length);
                wrong += Arrays.equals(out, want) ? 0 : 1;
            } catch (Damaged e) {
                wrong++;
                System.out.println("WRONG frame " + count + ": " + e.getMessage());
            }
            wrong += refused(zstd, frame, frame.length, content.length + 1) ? 0 : 1;
            wrong += refused(zstd, frame, frame.length, content.length - 1) ? 0 : 1;
            wrong += refused(zstd, frame, frame.length - 1, content.length) ? 0 : 1;
            for (int k = 0; k < 5; k++) {
                byte[] other = frame.clone();
                other[random.nextInt(frame.length)] ^= (byte) (1 + random.nextInt(255));
                damaged += refused(zstd, other, frame.length, content.length) ? 1 : 0;
            }
        }
        System.out.println("zstd: " + count + " frames, " + wrong + " wrong; of " + 5 * count + " changed ones "
                + damaged + " refused");
        System.exit(count > 0 && wrong == 0 ? 0 : 1);
    }

    private static boolean refused(Zstd zstd, byte[] frame, int length, int content) {
        try {
            zstd.decompress(frame, 0, length, new byte[Math.max(content, 0)], 0, content);
            return false;
        } catch (Damaged e) {
            return true;
        }
    }
}
