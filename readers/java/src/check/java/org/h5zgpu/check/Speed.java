// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.h5zgpu.Frame;

/**
 * How fast frames are decoded, on one thread: {@code java org.h5zgpu.check.Speed FRAME-OR-FOLDER...} prints a line for
 * each frame, decoded again and again for two seconds after one of warming up, in MB of raw bytes a second (10^6). Of
 * a folder the frames with the most raw bytes of each codec are taken.
 */
public final class Speed {
    private static final String[] NAMES = {
        "stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"
    };

    private Speed() {}

    public static void main(String[] args) throws IOException {
        List<Path> frames = new ArrayList<>();
        for (String name : args) {
            Path path = Paths.get(name);
            if (Files.isDirectory(path)) {
                frames.addAll(largest(path));
            } else {
                frames.add(path);
            }
        }
        for (Path path : frames) {
            byte[] frame = Files.readAllBytes(path);
            byte[] first = Frame.decode(frame, Frame.ANY_LENGTH);
            best(frame, 1_000_000_000L);
            double rate = best(frame, 2_000_000_000L);
            if (!Arrays.equals(first, Frame.decode(frame, Frame.ANY_LENGTH))) {
                throw new AssertionError(path + ": decoded differently later");
            }
            System.out.printf("%-8s %8.1f MB/s  %9d raw bytes, %6.2f : 1  %s%n", NAMES[frame[9]], rate, first.length,
                    (double) first.length / frame.length, path.getFileName());
        }
    }

    private static List<Path> largest(Path folder) throws IOException {
        Path[] best = new Path[NAMES.length];
        long[] most = new long[NAMES.length];
        for (Path path : Vectors.frames(folder)) {
            byte[] frame = Files.readAllBytes(path);
            long raw = Frame.rawLength(frame);
            if (raw > most[frame[9]]) {
                most[frame[9]] = raw;
                best[frame[9]] = path;
            }
        }
        List<Path> found = new ArrayList<>();
        for (Path path : best) {
            if (path != null) {
                found.add(path);
            }
        }
        return found;
    }

    /** The best of all rounds: others share the machine. */
    private static double best(byte[] frame, long nanoseconds) throws IOException {
        double best = 0;
        for (long begin = System.nanoTime(); System.nanoTime() - begin < nanoseconds; ) {
            long now = System.nanoTime();
            int length = Frame.decode(frame, Frame.ANY_LENGTH).length;
            best = Math.max(best, 1e3 * length / (System.nanoTime() - now));
        }
        return best;
    }
}
