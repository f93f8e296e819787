// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.check;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.h5zgpu.Frame;
import org.h5zgpu.Refused;
import org.h5zgpu.StoredWords;

/**
 * Reads all golden vectors: tests/vectors, whose README.md says what is there.
 *
 * <pre>
 * every frame decodes to bytes with the hash that is written beside it, and to those of its .raw where there is one
 * every frame is refused where the caller expects a byte less or more
 * every frame of v2/refused is refused, and by the rule that it breaks where it breaks that one alone
 * the filter's words tell a chunk's length, and nothing where one of them was changed
 * </pre>
 *
 * <p>{@code java org.h5zgpu.check.Vectors tests/vectors [FOLDER]} prints the counts, and ends with 1 where one is
 * wrong. In a FOLDER lie frames with the library's answers, which tests/promises/readers.rs leaves there.
 */
public final class Vectors {
    private static final Pattern VECTOR = Pattern.compile(
            "^\"([^\"]+)\" = .* raw_bytes = (\\d+), .*decoded_fnv = \"(\\w+)\".*");
    private static final Pattern REFUSED = Pattern.compile(
            "^\"([^\"]+)\" = \\{ rule = \"(\\w+)\", codec = \"\\w+\", raw_bytes = (\\d+),.*");
    private static final Pattern KEY = Pattern.compile("^\"([^\"]+)\" = .*");

    private final Map<Path, Map<String, Matcher>> tables = new HashMap<>();
    private int failures;

    private Vectors() {}

    public static void main(String[] args) throws IOException {
        Vectors all = new Vectors();
        Path root = Paths.get(args[0]);
        all.decodeAll(root.resolve("v2"));
        all.refuseAll(root);
        all.words();
        if (args.length > 1) {
            all.answers(Paths.get(args[1]));
        }
        System.exit(all.failures == 0 ? 0 : 1);
    }

    /** The frames of a folder, but those to be refused. */
    static List<Path> frames(Path folder) throws IOException {
        List<Path> found = new ArrayList<>();
        try (Stream<Path> walk = Files.walk(folder)) {
            walk.filter(p -> p.toString().endsWith(".bin") && !p.getParent().endsWith("refused")).sorted()
                    .forEach(found::add);
        }
        return found;
    }

    static Path beside(Path frame, String ending) {
        return Paths.get(frame.toString().replaceAll("[.]bin$", ending));
    }

    /** FNV-1a of 64 bits. */
    static long hash(byte[] bytes) {
        long h = 0xCBF29CE484222325L;
        for (byte b : bytes) {
            h = (h ^ b & 0xFF) * 0x100000001B3L;
        }
        return h;
    }

    private void wrong(Object which, String why) {
        failures++;
        System.out.println("WRONG " + which + ": " + why);
    }

    /** The rows of a codec's vectors.toml, by their names. */
    private Map<String, Matcher> rows(Path codec) throws IOException {
        Map<String, Matcher> rows = tables.get(codec);
        if (rows == null) {
            rows = new HashMap<>();
            for (String line : Files.readAllLines(codec.resolve("vectors.toml"), StandardCharsets.UTF_8)) {
                Matcher m = VECTOR.matcher(line);
                if (m.matches()) {
                    rows.put(m.group(1), m);
                }
            }
            tables.put(codec, rows);
        }
        return rows;
    }

    private void decodeAll(Path folder) throws IOException {
        Map<String, Integer> counts = new TreeMap<>();
        long bytes = 0;
        for (Path path : frames(folder)) {
            Matcher row = rows(path.getParent()).get(path.getFileName().toString().replaceAll("[.]bin$", ""));
            if (row == null) {
                wrong(path, "no row in vectors.toml");
                continue;
            }
            byte[] frame = Files.readAllBytes(path);
            long raw = Long.parseLong(row.group(2));
            try {
                byte[] decoded = Frame.decode(frame, raw);
                long want = Long.parseUnsignedLong(row.group(3), 16);
                Path whole = beside(path, ".raw");
                if (decoded.length != raw || hash(decoded) != want) {
                    wrong(path, "decoded to other bytes");
                } else if (Files.exists(whole) && !Arrays.equals(decoded, Files.readAllBytes(whole))) {
                    wrong(path, "decoded to other bytes than its .raw");
                }
                bytes += raw;
            } catch (Refused | RuntimeException e) {
                wrong(path, e.toString());
            }
            for (long other : new long[] {raw + 1, Math.max(raw - 1, 0)}) {
                if (other == raw) {
                    continue;
                }
                try {
                    Frame.decode(frame, other);
                    wrong(path, "decoded though " + other + " bytes were expected");
                } catch (Refused e) {
                    if (!e.rule.equals("F15")) {
                        wrong(path, e.toString());
                    }
                }
            }
            counts.merge(path.getParent().getFileName().toString(), 1, Integer::sum);
        }
        int total = counts.values().stream().mapToInt(Integer::intValue).sum();
        System.out.println("vectors: " + total + " decoded, " + bytes + " bytes " + counts);
        if (total == 0) {
            wrong(folder, "no vectors");
        }
    }

    private void answers(Path folder) throws IOException {
        int decoded = 0;
        int refused = 0;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
            for (Path file : files) {
                ByteBuffer left = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
                while (left.hasRemaining()) {
                    byte[] frame = new byte[left.getInt()];
                    long raw = left.getInt();
                    long want = left.getLong();
                    left.get(frame);
                    try {
                        long got = hash(Frame.decode(frame, raw));
                        decoded++;
                        if (got != want) {
                            wrong(file, left.position() + " ends a frame that is decoded to " + Long.toHexString(got)
                                    + ", by the library to " + Long.toHexString(want) + " (0: not at all)");
                        }
                    } catch (Refused e) {
                        refused++;
                        // Bits left of a stream, for one: codecs/src/codec/bytes/FORMAT.md, section 3.3.
                        if (want != 0 && !e.rule.equals("B8")) {
                            wrong(file, left.position() + " ends a frame that the library decodes: " + e);
                        }
                    }
                }
            }
        }
        System.out.println("answers of the library: " + decoded + " decoded, " + refused + " refused");
    }

    /** A list of codecs/src/words/stored.rs: szx of a chunk of 4 × 1 × 32 f32. */
    private void words() {
        int[] list = {
            (int) 4055948803L, 50331918, 386416705, 33751825, (int) 3539053052L, 1062232653, 0, 1621981420, 0, 111003,
            (int) 4038455941L, 4, 32, 90000
        };
        if (StoredWords.chunkLength(list) != 512) {
            wrong("words", "a chunk of " + StoredWords.chunkLength(list) + " bytes, not 512");
        }
        for (int k = 0; k < list.length; k++) {
            for (int bit = 0; bit < 32; bit++) {
                int[] other = list.clone();
                other[k] ^= 1 << bit;
                if (StoredWords.chunkLength(other) != Frame.ANY_LENGTH) {
                    wrong("words", "believed though bit " + bit + " of word " + k + " was changed");
                }
            }
            if (StoredWords.chunkLength(Arrays.copyOf(list, k)) != Frame.ANY_LENGTH) {
                wrong("words", "believed though the last " + (list.length - k) + " are missing");
            }
        }
    }

    private void refuseAll(Path root) throws IOException {
        Set<String> notAlone = new HashSet<>();
        Set<String> rules = new HashSet<>();
        boolean frames = false;
        for (String line : Files.readAllLines(root.resolve("not_alone.toml"), StandardCharsets.UTF_8)) {
            frames |= line.equals("[frames]");
            Matcher m = KEY.matcher(line);
            if (frames && m.matches()) {
                notAlone.add(m.group(1));
            }
        }
        int count = 0;
        Path folder = root.resolve("v2/refused");
        for (String line : Files.readAllLines(folder.resolve("index.toml"), StandardCharsets.UTF_8)) {
            Matcher m = REFUSED.matcher(line);
            if (!m.matches()) {
                continue;
            }
            count++;
            byte[] frame = Files.readAllBytes(folder.resolve(m.group(1) + ".bin"));
            try {
                Frame.decode(frame, Long.parseLong(m.group(3)));
                wrong(m.group(1), "was decoded");
            } catch (Refused e) {
                rules.add(m.group(2));
                if (!e.rule.equals(m.group(2)) && !notAlone.contains(m.group(1))) {
                    wrong(m.group(1), "is refused by another rule: " + e.getMessage());
                }
            } catch (RuntimeException | OutOfMemoryError e) {
                wrong(m.group(1), e.toString());
            }
        }
        System.out.println("refused: " + count + " frames, of " + rules.size() + " rules");
        if (count == 0) {
            wrong(folder, "no frames");
        }
    }
}
