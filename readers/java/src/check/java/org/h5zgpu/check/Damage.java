// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.check;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.h5zgpu.Frame;
import org.h5zgpu.Refused;

/**
 * Changes frames at random.
 *
 * <pre>
 * changed:  up to four bytes, a range, or the end of a golden frame; all must be refused, by the checksum if by nothing
 *           else
 * sealed:   the same with a new checksum, so that decoders see what is wrong; each must be refused, or decoded to as
 *           many bytes as expected, within a second and the memory that there is
 * </pre>
 *
 * <p>{@code java org.h5zgpu.check.Damage tests/vectors ROUNDS SEED [FOLDER]} prints the counts, and ends with 1 where
 * one is wrong. With a FOLDER it writes the sealed frames there, {@code frames} with (length as u32, expected as u32,
 * bytes), and {@code verdicts}, a line each: the hash of what was decoded, or the rule. Another reader must come to the
 * same.
 */
public final class Damage {
    private static final long LONGEST = 1_000_000_000L;

    private final Random random;
    private int failures;
    private int decoded;
    private int refused;
    private long slowest;

    private Damage(long seed) {
        random = new Random(seed);
    }

    public static void main(String[] args) throws IOException {
        Damage all = new Damage(Long.parseLong(args[2]));
        List<byte[]> frames = new ArrayList<>();
        for (Path path : Vectors.frames(Paths.get(args[0]).resolve("v2"))) {
            frames.add(Files.readAllBytes(path));
        }
        int rounds = Integer.parseInt(args[1]);
        all.changed(frames, rounds);
        if (args.length > 3) {
            Path folder = Files.createDirectories(Paths.get(args[3]));
            try (OutputStream bytes = Files.newOutputStream(folder.resolve("frames"));
                    BufferedWriter verdicts = Files.newBufferedWriter(folder.resolve("verdicts"),
                            StandardCharsets.US_ASCII)) {
                all.sealed(frames, rounds, bytes, verdicts);
            }
        } else {
            all.sealed(frames, rounds, null, null);
        }
        System.exit(all.failures == 0 ? 0 : 1);
    }

    private void changed(List<byte[]> frames, int rounds) throws IOException {
        int count = 0;
        for (int round = 0; round < rounds; round++) {
            for (byte[] frame : frames) {
                byte[] other = change(frame, 0);
                if (java.util.Arrays.equals(other, frame)) {
                    continue;
                }
                count++;
                try {
                    Frame.decode(other, Frame.ANY_LENGTH);
                    wrong(other, "was decoded");
                } catch (Refused e) {
                    // as it should be
                } catch (RuntimeException | OutOfMemoryError e) {
                    wrong(other, e.toString());
                }
            }
        }
        System.out.println("changed: " + count + " frames, " + failures + " not refused");
    }

    private void sealed(List<byte[]> frames, int rounds, OutputStream bytes, BufferedWriter verdicts)
            throws IOException {
        for (int round = 0; round < rounds; round++) {
            for (byte[] frame : frames) {
                // Half of them behind the header, where the codecs' own rules are.
                byte[] other = change(frame, random.nextBoolean() ? 0 : 56);
                if (other.length < 56) {
                    continue;
                }
                seal(other);
                long raw = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).getLong(16);
                String verdict = verdict(other, raw);
                if (bytes != null) {
                    byte[] head = new byte[8];
                    ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).putInt(other.length).putInt((int) raw);
                    bytes.write(head);
                    bytes.write(other);
                    verdicts.write(verdict + "\n");
                }
            }
        }
        System.out.println("sealed: " + refused + " refused, " + decoded + " decoded, the slowest took "
                + slowest / 1000000 + " ms");
        if (slowest > LONGEST) {
            failures++;
            System.out.println("WRONG that is too slow");
        }
    }

    private String verdict(byte[] frame, long raw) {
        long began = System.nanoTime();
        try {
            byte[] out = Frame.decode(frame, raw);
            decoded++;
            if (out.length != raw) {
                wrong(frame, out.length + " bytes, expected are " + raw);
            }
            return String.format("%016x", Vectors.hash(out));
        } catch (Refused e) {
            refused++;
            return e.rule;
        } catch (RuntimeException | OutOfMemoryError e) {
            wrong(frame, e.toString());
            e.printStackTrace(System.out);
            return "failed";
        } finally {
            slowest = Math.max(slowest, System.nanoTime() - began);
        }
    }

    /** A few bytes, or a range of them, or the length, from a place on. */
    private byte[] change(byte[] frame, int least) {
        byte[] other = frame.clone();
        int first = Math.min(least, frame.length - 1);
        switch (random.nextInt(8)) {
            case 0:
                return java.util.Arrays.copyOf(frame, random.nextInt(frame.length));
            case 1: {
                int at = first + random.nextInt(frame.length - first);
                int end = Math.min(frame.length, at + 1 + random.nextInt(16));
                java.util.Arrays.fill(other, at, end, (byte) (random.nextBoolean() ? 0 : 255));
                return other;
            }
            default:
                for (int k = random.nextInt(4); k >= 0; k--) {
                    int at = first + random.nextInt(frame.length - first);
                    other[at] ^= (byte) (random.nextBoolean() ? 1 << random.nextInt(8) : random.nextInt(256));
                }
                return other;
        }
    }

    /** The length and the checksum of what the frame is now: section 4.2 of codecs/src/FORMAT.md, again. */
    static void seal(byte[] frame) {
        ByteBuffer words = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        words.putLong(24, frame.length);
        byte[] filled = java.util.Arrays.copyOf(frame, (frame.length + 3) / 4 * 4);
        ByteBuffer all = ByteBuffer.wrap(filled).order(ByteOrder.LITTLE_ENDIAN);
        long sum = 0;
        for (int i = 0; i < filled.length / 4; i++) {
            long t = (2L * i + 1) * 0x9E3779B97F4A7C15L;
            long p = (all.getInt(4 * i) & 0xFFFFFFFFL) * (t ^ t << 32);
            sum += i == 10 || i == 11 ? 0 : p ^ p >>> 32;
        }
        words.putLong(40, sum);
    }

    private void wrong(byte[] frame, String why) throws RuntimeException {
        failures++;
        System.out.println("WRONG a frame of " + frame.length + " bytes, codec " + (frame.length > 9 ? frame[9] : -1)
                + ": " + why);
        if (failures > 20) {
            throw new IllegalStateException("too many failures");
        }
    }
}
