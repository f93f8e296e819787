// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * The codec {@code planes}, codecs/src/codec/planes/FORMAT.md: how the chunk is cut into tiles, and where their rows
 * lie. What a tile's payload says is {@link PlanesTile}'s.
 *
 * <pre>
 * components first: where the last axis is short, it is seen as the first one
 * grid rank: 3, 2 or 1, whichever is the highest whose tiles do not hold much more than there is
 * for each tile: decode its 4096 values; those inside the array go to the chunk, row by row
 * </pre>
 */
final class Planes {
    private static final int TILE = 4096;
    private static final int[][] SIDES = {null, {1, 1, 4096}, {1, 128, 32}, {8, 16, 32}};

    private final Header header;
    private final Section table;
    private final Section payload;
    private final int n;
    /** How many components a value has, and how many values there are of each. */
    private int components = 1;
    private int each;
    /** Z, Y, X of the array, of a tile, and how many tiles. */
    private final int[] extent = {1, 1, 1};
    private int[] side;
    private final int[] tiles = {1, 1, 1};
    private int rank;

    Planes(Header header, Section[] sections) {
        this.header = header;
        table = sections[0];
        payload = sections[1];
        n = header.values();
        cut();
    }

    /** Section 3.1. */
    private void cut() {
        int axes = header.extents.length;
        int[] e = new int[axes];
        for (int k = 0; k < axes; k++) {
            e[k] = (int) header.extents[k];
        }
        if (axes >= 2 && e[axes - 1] < 16) {
            components = e[axes - 1];
            System.arraycopy(e, 0, e, 1, axes - 1);
            e[0] = components;
        }
        each = n / components;
        int own = components > 1 ? axes - 1 : axes;
        for (rank = Math.max(1, Math.min(3, own)); rank > 1 && !cutIn(rank, e); rank--) {
            continue;
        }
        if (rank == 1) {
            cutIn(1, e);
        }
    }

    /** Cuts the array by a grid rank; whether the tiles hold at most three times what there is. */
    private boolean cutIn(int rank, int[] e) {
        int last = e.length;
        extent[2] = rank == 1 ? n : e[last - 1];
        extent[1] = rank == 1 ? 1 : rank == 2 ? n / extent[2] : e[last - 2];
        extent[0] = rank == 3 ? n / extent[2] / extent[1] : 1;
        side = SIDES[rank];
        long held = TILE;
        for (int k = 0; k < 3; k++) {
            tiles[k] = (extent[k] - 1) / side[k] + 1;
            held *= tiles[k];
        }
        return held <= 3L * n;
    }

    byte[] decode(Header asked) throws Refused {
        long count = (long) tiles[0] * tiles[1] * tiles[2];
        Refused.when(table.length != 4 * count, "P1", "a table of %d bytes for %d tiles", table.length, count);
        long last = 0;
        for (int t = 0; t < count; t++) {
            long end = table.u32(4 * t);
            Refused.when(end < last || 4 * end > payload.length, "P2",
                    "tile %d ends at word %d, the one before at %d, the payload has %d bytes", t, end, last,
                    payload.length);
            Refused.when(end == last, "P4", "tile %d has no words", t);
            last = end;
        }
        Refused.when(4 * last != payload.length, "P3", "the last tile ends at word %d of %d bytes", last,
                payload.length);
        Output out = new Output(asked);
        PlanesTile tile = new PlanesTile(header, rank, payload);
        int begin = 0;
        for (int t = 0; t < count; t++) {
            int end = table.i32(4 * t);
            int x = t % tiles[2] * side[2];
            int y = t / tiles[2] % tiles[1] * side[1];
            int z = t / tiles[2] / tiles[1] * side[0];
            int ez = Math.min(side[0], extent[0] - z);
            int ey = Math.min(side[1], extent[1] - y);
            int ex = Math.min(side[2], extent[2] - x);
            try {
                tile.decode(begin, end, ez * ey * ex);
            } catch (Refused r) {
                throw new Refused(r.rule, "tile " + t + r.getMessage().substring(r.rule.length()));
            }
            // A tile that holds nothing but its values has them row behind row; others have whole rows and planes.
            int rowStep = tile.raw ? ex : side[2];
            int planeStep = tile.raw ? ey * ex : side[1] * side[2];
            for (int k = 0; k < ez; k++) {
                for (int j = 0; j < ey; j++) {
                    row(out, tile, ((z + k) * extent[1] + y + j) * extent[2] + x, k * planeStep + j * rowStep, ex);
                }
            }
            begin = end;
        }
        return out.bytes;
    }

    /** A row of the array, from a place on: value i of component k is value i · components + k of the chunk. */
    private void row(Output out, PlanesTile tile, int at, int from, int count) {
        while (count > 0) {
            int component = at / each;
            int inside = at - component * each;
            int run = Math.min(count, each - inside);
            int to = inside * components + component;
            if (header.size() == 4) {
                out.put(to, components, tile.narrow, from, run);
            } else {
                out.put(to, components, tile.wide, from, run);
            }
            at += run;
            from += run;
            count -= run;
        }
    }
}
