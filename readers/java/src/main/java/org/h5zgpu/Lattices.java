// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/**
 * Interpolation in tiles of one shape, section 4.4 of the FORMAT.md of {@code lorenzo}: from a lattice of one point to
 * ever finer ones, each point from lines through it, and a residual on top.
 *
 * <pre>
 * R(the one point) = s · next residual
 * for each lattice, from coarse to fine:
 *     for each class of new points, by the axes along which they are new: x; y; z; xy; xz; yz; xyz
 *         for each row of them along x:
 *             predictions along each axis that counts, for the whole row      along, across
 *             combine them; R = prediction + s · next residual               row
 * </pre>
 *
 * <p>R stands at the points' own places in the tile. Where the points of each lattice lie along an axis, and the
 * weights of their neighbours, depends on the axis' length alone and is worked out once.
 */
final class Lattices {
    private static final int X = 2;
    private static final int Y = 1;
    private static final int Z = 0;
    // Bits 0 to 2 are x, y, z, as in a tile's kind.
    private static final int[] CLASSES = {1, 2, 4, 3, 5, 6, 7};

    private final int points;
    private final int[] stride;
    /** By axis, then by level. */
    private final Axis[][] axes = new Axis[3][];
    private final int top;
    private final int[][] predicted;

    private int[] residuals;
    private int[] r;
    private int next;

    /** Who is told of the classes of points, in the order in which residuals come. */
    interface Classes {
        /** A class that is new along these axes, with its extents; along none: the one point. */
        void of(int level, int fresh, int[] extents) throws Refused;
    }

    Lattices(int ez, int ey, int ex) {
        int[] e = {ez, ey, ex};
        points = ez * ey * ex;
        stride = new int[] {ey * ex, ex, 1};
        top = Math.max(levels(ex), Math.max(levels(ey), levels(ez)));
        for (int k = 0; k < 3; k++) {
            axes[k] = new Axis[top];
            for (int level = 0; level < top; level++) {
                axes[k][level] = new Axis(e[k], level);
            }
        }
        predicted = new int[3][ex];
    }

    /** How many lattices there are along an axis before one point is left. */
    private static int levels(int e) {
        return e == 1 ? 0 : 33 - Integer.numberOfLeadingZeros(e - 2);
    }

    private static int step(int level, boolean finer) {
        if (!finer) {
            return 256;
        }
        switch (level) {
            case 0:
                return 256;
            case 1:
                return 205;
            case 2:
                return 164;
            case 3:
                return 131;
            default:
                return 128;
        }
    }

    /** Tells of all classes that have points. */
    void classes(Classes to) throws Refused {
        to.of(top, 0, new int[] {1, 1, 1});
        for (int level = top - 1; level >= 0; level--) {
            for (int fresh : CLASSES) {
                int[] extents = new int[3];
                for (int k = 0; k < 3; k++) {
                    Axis axis = axes[k][level];
                    extents[k] = ((fresh >> 2 - k & 1) != 0 ? axis.fresh : axis.coarse).length;
                }
                if (extents[0] * extents[1] * extents[2] > 0) {
                    to.of(level, fresh, extents);
                }
            }
        }
    }

    /** Fills {@code into} with R of every point. */
    void interpolate(int[] residuals, int kind, boolean finer, int[] into) {
        this.residuals = residuals;
        r = into;
        next = 0;
        r[0] = step(top, finer) * residuals[next++];
        for (int level = top - 1; level >= 0; level--) {
            Axis x = axes[X][level];
            Axis y = axes[Y][level];
            Axis z = axes[Z][level];
            int s = step(level, finer);
            for (int fresh : CLASSES) {
                int[] xs = (fresh & 1) != 0 ? x.fresh : x.coarse;
                int[] ys = (fresh & 2) != 0 ? y.fresh : y.coarse;
                int[] zs = (fresh & 4) != 0 ? z.fresh : z.coarse;
                int lines = (fresh & kind) != 0 ? fresh & kind : fresh;
                for (int k = 0; k < zs.length && xs.length > 0; k++) {
                    for (int j = 0; j < ys.length; j++) {
                        int at = zs[k] * stride[Z] + ys[j] * stride[Y];
                        int have = 0;
                        if ((lines & 1) != 0) {
                            along(x, at, predicted[have++]);
                        }
                        if ((lines & 2) != 0) {
                            across(y, j, stride[Y], at, xs, predicted[have++]);
                        }
                        if ((lines & 4) != 0) {
                            across(z, k, stride[Z], at, xs, predicted[have++]);
                        }
                        row(have, s, at, xs);
                    }
                }
            }
        }
        assert next == points;
    }

    /** Predictions along the row itself. All but the first new point and the last two are regular on a long row. */
    private void along(Axis x, int at, int[] into) {
        int[] values = r;
        int h = x.h;
        int[] fresh = x.fresh;
        int from = x.regularFrom;
        int to = x.regularTo;
        for (int i = 0; i < from; i++) {
            into[i] = weighted(x, i, at + fresh[i], 1);
        }
        for (int i = from, p = at + (2 * from + 1) * h; i < to; i++, p += 2 * h) {
            int inner = values[p - h] + values[p + h];
            into[i] = (inner >> 1) + (inner - values[p - 3 * h] - values[p + 3 * h] >> 4);
        }
        for (int i = to; i < fresh.length; i++) {
            into[i] = weighted(x, i, at + fresh[i], 1);
        }
    }

    /** Predictions for a row along another axis: its neighbours are rows, and all points have the same weights. */
    private void across(Axis axis, int i, int stride, int at, int[] xs, int[] into) {
        int[] values = r;
        int count = xs.length;
        if (i < axis.regularFrom || i >= axis.regularTo) {
            for (int k = 0; k < count; k++) {
                into[k] = weighted(axis, i, at + xs[k], stride);
            }
            return;
        }
        int h = axis.h * stride;
        for (int k = 0; k < count; k++) {
            int p = at + xs[k];
            int inner = values[p - h] + values[p + h];
            into[k] = (inner >> 1) + (inner - values[p - 3 * h] - values[p + 3 * h] >> 4);
        }
    }

    private int weighted(Axis axis, int i, int p, int stride) {
        int b = r[p - axis.b[i] * stride];
        // One that does not exist has the place of the point itself, whatever stands there, and the weight 0.
        long sum = axis.wa[i] * (r[p - axis.a[i] * stride] - b)
                + axis.wc[i] * (r[p + axis.c[i] * stride] - b)
                + axis.wd[i] * (r[p + axis.d[i] * stride] - b);
        return b + (int) (sum + 32768 >> 16);
    }

    private void row(int lines, int s, int at, int[] xs) {
        int[] p = predicted[0];
        int[] q = predicted[1];
        int[] t = predicted[2];
        int[] from = residuals;
        int begin = next;
        if (lines == 1) {
            for (int i = 0; i < xs.length; i++) {
                r[at + xs[i]] = p[i] + s * from[begin + i];
            }
        } else if (lines == 2) {
            for (int i = 0; i < xs.length; i++) {
                r[at + xs[i]] = q[i] + (p[i] - q[i] >> 1) + s * from[begin + i];
            }
        } else {
            for (int i = 0; i < xs.length; i++) {
                int value = t[i] + (85 * (p[i] + q[i] - 2 * t[i]) + 128 >> 8);
                r[at + xs[i]] = value + s * from[begin + i];
            }
        }
        next += xs.length;
    }

    /** An axis at a level: the places of coarse and of new points, and what each new one is predicted from. */
    private static final class Axis {
        final int h;
        final int[] coarse;
        final int[] fresh;
        /** From this new point up to that one a, b, c and d are 3h, h, h and 3h away; of others the weights tell. */
        int regularFrom;
        int regularTo;
        /** How far away they are, in places; 0 for one that does not exist. */
        final int[] a;
        final int[] b;
        final int[] c;
        final int[] d;
        final long[] wa;
        final long[] wc;
        final long[] wd;

        Axis(int e, int level) {
            h = 1 << level;
            int n = level >= levels(e) ? 1 : (e - 2 + h) / h + 1;
            int news = n == 2 ? 1 : (n - 1) / 2;
            fresh = new int[news];
            coarse = new int[n - news];
            a = new int[news];
            b = new int[news];
            c = new int[news];
            d = new int[news];
            wa = new long[news];
            wc = new long[news];
            wd = new long[news];
            for (int i = 0, old = 0; i < n; i++) {
                boolean isNew = i % 2 == 1 && (i < n - 1 || n == 2);
                if (isNew) {
                    neighbours(i, n, e - 1);
                } else {
                    coarse[old++] = Math.min(i * h, e - 1);
                }
            }
        }

        private void neighbours(int i, int n, int last) {
            int k = i / 2;
            int x = Math.min(i * h, last);
            fresh[k] = x;
            b[k] = x - (i - 1) * h;
            a[k] = i >= 3 ? x - (i - 3) * h : 0;
            c[k] = n > 2 ? Math.min((i + 1) * h, last) - x : 0;
            if (i + 1 < n - 1) {
                int place = Math.min(Math.min(i + 3, n - 1) * h, last);
                d[k] = place - x - c[k] >= h ? place - x : 0;
            }
            if (a[k] == 3 * h && b[k] == h && c[k] == h && d[k] == 3 * h) {
                regularFrom = regularTo == 0 ? k : regularFrom;
                regularTo = k + 1;
            }
            wa[k] = weight(-a[k], -b[k], c[k], d[k]);
            wc[k] = weight(c[k], -a[k], -b[k], d[k]);
            wd[k] = weight(d[k], -a[k], -b[k], c[k]);
        }

        /** ⌊65536 · N / M + ½⌋ for the place own beside the others, of which those that are 0 do not exist. */
        private static long weight(long own, long... others) {
            if (own == 0) {
                return 0;
            }
            long over = 65536;
            long under = 1;
            for (long x : others) {
                over *= x == 0 ? 1 : -x;
                under *= x == 0 ? 1 : own - x;
            }
            return Math.floorDiv(2 * over + under, 2 * under);
        }
    }
}
