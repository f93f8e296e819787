// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

import java.util.Arrays;

/**
 * Vectors of the codec {@code dense}, section 4.5 of its FORMAT.md: positions of atoms, say, in frames one after the
 * other. Atoms that belong together keep their distances, and so an atom lies on a sphere around a neighbour, on a
 * circle around two, at a point beside three.
 *
 * <pre>
 * for each frame, for each atom:
 *     errors of predictions, and distances from the three atoms before:
 *         what is known of this atom and of the one that has its role           estimate
 *     the cheapest way to predict it by these                                   choose, weigh
 *     its components, each in a context and beside a guess that the way has     error, distance, sphere, circle, point
 *     what is known now                                                         learn
 * </pre>
 */
@SuppressWarnings("strictfp") // what Java 17 does anyway, and Java 8 with this word
final strictfp class DenseVectors {
    private static final int MOST_ATOMS = 4096;
    private static final int UNKNOWN = -1;
    // Ways to predict; those before are the errors e0 to e3.
    private static final int DISTANCE = 4;
    private static final int SPHERE = 5;
    private static final int CIRCLE = 6;
    private static final int POINT = 7;
    private static final double[] PARTS = {0.125, 0.25, 0.5, 0.75};
    private static final double[] STEEP = {0.5, 1, 2, 4};

    private final Dense coder;
    private final int[] weights;

    /** Of atom i at 4 · i: errors from 0 on, of the lags 1 to 3 lengths and deviations. */
    private final int[] errors = new int[4 * MOST_ATOMS];
    private final long[] lengths = new long[4 * MOST_ATOMS];
    private final long[] deviations = new long[4 * MOST_ATOMS];

    // Of the tile: its quanta, how many components an atom has, and numbers a frame.
    private int[] q;
    private int components;
    private int frame;

    // Of the atom at hand: its frame, where its quanta and its estimates are, lags that predict it.
    private int t;
    private int at;
    private int own;
    private int first;
    private int second;
    private int third;
    private int way;
    private int least;
    /** What the components are more than predicted. */
    private final int[] v = new int[4];

    DenseVectors(Dense coder, int[] weights) {
        this.coder = coder;
        this.weights = weights;
    }

    /** Decodes a tile of the extents e. */
    void read(int period, int[] e, int[] into) throws Refused {
        q = into;
        components = e[2];
        frame = e[1] * components;
        Arrays.fill(errors, 0, 4 * e[1], UNKNOWN);
        Arrays.fill(lengths, 0, 4 * e[1], UNKNOWN);
        for (t = 0, at = 0; t < e[0]; t++) {
            for (int i = 0; i < e[1]; i++, at += components) {
                own = 4 * i;
                if (i >= period) {
                    estimate(own - 4 * period);
                }
                choose();
                numbers(i, period);
                for (int c = 0; c < components; c++) {
                    q[at + c] = v[c] + predicted(c);
                }
                learn(i);
            }
        }
    }

    private static int magnitude(long n) {
        return Dense.magnitude((int) Math.min(n, Integer.MAX_VALUE));
    }

    private static int round(double x) {
        return (int) Math.floor(x + 0.5);
    }

    /** What is known of the atom with the same role joins what is known of this one. */
    private void estimate(int role) {
        for (int k = 0; k < 4; k++) {
            int e = errors[role + k];
            int old = errors[own + k];
            errors[own + k] = old < 0 ? e : e < 0 ? old : (3 * old + e) / 4;
            long l = lengths[role + k];
            long d = deviations[role + k];
            long oldL = lengths[own + k];
            long oldD = deviations[own + k];
            if (oldL < 0) {
                lengths[own + k] = l;
                deviations[own + k] = d;
            } else if (l >= 0 && Math.abs(oldL - l) <= 32 + 2 * Math.min(oldD, d)) {
                lengths[own + k] = (oldL + l) / 2;
                deviations[own + k] = (oldD + d) / 2;
            } else if (l >= 0) {
                deviations[own + k] = Math.max(oldD, d);
            }
        }
    }

    /** A component by time: T with the first two weights, B with the others. */
    private int timed(int place, int by) {
        int last = q[place - frame];
        long s1 = t > 1 ? last - q[place - 2 * frame] : 0;
        long s2 = t > 2 ? q[place - 2 * frame] - q[place - 3 * frame] : 0;
        return last + (int) (weights[by] * s1 + weights[by + 1] * s2 + 32 >> 6);
    }

    private int bond(int c, int lag) {
        return timed(at + c, 2) - timed(at - lag * components + c, 2);
    }

    private boolean rigid(int lag) {
        return lengths[own + lag] >= 0 && 6 * deviations[own + lag] < lengths[own + first];
    }

    private int spread(int lag) {
        return Math.max(32, magnitude(deviations[own + lag]));
    }

    private void weigh(int other, int cost) {
        if (cost < least) {
            way = other;
            least = cost;
        }
    }

    private void choose() {
        first = 0;
        second = 0;
        third = 0;
        for (int k = 1; k < 4; k++) {
            if (lengths[own + k] >= 0 && (first == 0 || lengths[own + k] < lengths[own + first])) {
                first = k;
            }
        }
        for (int k = 1; k < 4; k++) {
            if (k != first && rigid(k)) {
                boolean before = second != 0 && deviations[own + k] < deviations[own + second];
                third = before ? second : second != 0 ? k : 0;
                second = before || second == 0 ? k : second;
            }
        }
        way = UNKNOWN;
        least = Integer.MAX_VALUE;
        if (first != 0) {
            int m = magnitude(lengths[own + first]);
            weigh(DISTANCE, 3 * m + 24);
            if (components == 3 && rigid(first)) {
                weigh(SPHERE, 2 * m + spread(first) + 39);
                if (second != 0) {
                    weigh(CIRCLE, m + 2 * Math.max(spread(first), spread(second)) + 41);
                }
                if (third != 0) {
                    weigh(POINT, 3 * Math.max(spread(first), spread(third)) + 54);
                }
            }
        }
        for (int k = 0; k < 4; k++) {
            if (errors[own + k] >= 0) {
                weigh(k, 3 * (errors[own + k] / 16) + 114);
            }
        }
    }

    private int predicted(int c) {
        switch (way) {
            case 0:
                return 0;
            case 1:
                return timed(at + c, 0);
            case 2:
            case 3:
                return q[at - (way - 1) * components + c] + bond(c, way - 1);
            case UNKNOWN:
                return own == 0 ? 0 : q[at - components + c];
            default:
                return q[at - first * components + c];
        }
    }

    private void numbers(int i, int period) throws Refused {
        double r = apart(first);
        if (way == UNKNOWN) {
            for (int c = 0; c < components; c++) {
                v[c] = coder.coded(23, 0);
            }
        } else if (way < DISTANCE) {
            error(errors[own + way] / 16);
        } else if (way <= SPHERE) {
            double left = r * r;
            for (int c = 0; c < (way == SPHERE ? 2 : components); c++) {
                v[c] = expected(Math.min(15 + c, 17), left);
                left -= (double) v[c] * v[c];
            }
            if (way == SPHERE) {
                sphere(r, Math.sqrt(Math.max(left, 0)));
            }
        } else {
            double[] u = between(at - first * components, at - second * components);
            // Where this atom, or the one with its role, was before.
            if (way == CIRCLE || !point(r, u, t > 0 ? at - frame : at - period * components)) {
                circle(r, u);
            }
        }
    }

    private void error(int g) throws Refused {
        int m = g;
        int before = g;
        for (int c = 0; c < components; c++) {
            int mean = c == 0 ? g : (g + (c == 1 ? m : (before + m) / 2)) / 2;
            v[c] = coder.coded(Math.min(12 + c, 14), Dense.bin(16 * mean));
            before = m;
            m = magnitude(Math.abs((long) v[c]));
        }
    }

    /** By G of a square: 64 times its logarithm, of its exponent and the first 7 bits of its mantissa. */
    private int expected(int group, double square) throws Refused {
        long logarithm = (Double.doubleToRawLongBits(square) >> 45) - (1023 << 7);
        return coder.coded(group, Dense.bin(square < 1 ? 0 : (int) logarithm / 2));
    }

    private void sphere(double r, double rho) throws Refused {
        int n = round(rho);
        int sign = n >= 1 ? coder.coded(23, 16) : 1;
        v[2] = sign * (coder.coded(18, 8 * deviation(first) + reached(PARTS, rho, r)) + n);
    }

    /** κ. */
    private int deviation(int... lags) {
        long most = 0;
        for (int lag : lags) {
            most = Math.max(most, deviations[own + lag]);
        }
        return Math.max(0, Math.min(7, magnitude(most) / 8 - 2));
    }

    private static int reached(double[] of, double y, double times) {
        int count = 0;
        for (double part : of) {
            count += y >= part * times ? 1 : 0;
        }
        return count;
    }

    private double apart(int lag) {
        return lengths[own + lag] / 16.0;
    }

    private double[] between(int from, int place) {
        return new double[] {q[place] - q[from], q[place + 1] - q[from + 1], q[place + 2] - q[from + 2]};
    }

    private static double dot(double[] a, double[] b) {
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    }

    private static double[] cross(double[] a, double[] b) {
        return new double[] {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    }

    private void circle(double r, double[] u) throws Refused {
        double r2 = apart(second);
        double x = u[0];
        double y = u[1];
        double z = u[2];
        double b = Math.max(1, dot(u, u));
        double alpha = (r * r + b - r2 * r2) / 2;
        double omega = Math.max(0, r * r - alpha * alpha / b) * Math.max(0, 1 - x * x / b);
        v[0] = round(alpha * x / b) + expected(19, omega);
        double vx = v[0];
        double g = Math.max(1, Math.sqrt(y * y + z * z));
        double left = r * r - vx * vx;
        alpha = (alpha - vx * x) / g;
        double h = Math.sqrt(Math.max(0, left - alpha * alpha));
        double side = coder.coded(23, 17) < 0 ? -h : h;
        double y0 = (alpha * y - side * z) / g;
        double z0 = (alpha * z + side * y) / g;
        int bin = 8 * deviation(first, second);
        v[1] = round(y0) + coder.coded(20, bin + reached(PARTS, h, r));
        double vy = v[1];
        double guess;
        double steep;
        if (Math.abs(z * y0) < Math.abs(z0 * y) || Math.abs(z) < 4) {
            double rho = Math.sqrt(Math.max(0, left - vy * vy));
            guess = z0 < 0 ? -rho : rho;
            steep = rho < 1 ? 16 : Math.abs(y0) / rho;
        } else {
            guess = z0 - (vy - y0) * y / z;
            steep = Math.abs(y / z);
        }
        v[2] = round(guess) + coder.coded(21, bin + reached(STEEP, steep, 1));
    }

    /** Nothing is read where the neighbours are nearly on a line: then it is a circle. */
    private boolean point(double r, double[] u, int was) throws Refused {
        double r2 = apart(second);
        double r3 = apart(third);
        double[] w = between(at - first * components, at - third * components);
        double a = dot(u, u);
        double c = dot(u, w);
        double d = dot(w, w);
        double delta = a * d - c * c;
        if (delta <= 0.02 * (a * d)) {
            return false;
        }
        double alpha = (r * r + a - r2 * r2) / 2;
        double beta = (r * r + d - r3 * r3) / 2;
        double byU = (alpha * d - beta * c) / delta;
        double byW = (beta * a - alpha * c) / delta;
        double[] foot = {byU * u[0] + byW * w[0], byU * u[1] + byW * w[1], byU * u[2] + byW * w[2]};
        double eta = r * r - dot(foot, foot);
        double sigma = 0;
        if (eta >= 4 + 0.002 * (r * r)) {
            int origin = was - first * components;
            double[] side = cross(between(origin, was - second * components),
                    between(origin, was - third * components));
            sigma = dot(side, between(origin, was)) < 0 ? -Math.sqrt(eta / delta) : Math.sqrt(eta / delta);
        }
        double[] normal = cross(u, w);
        int bin = 8 * deviation(first, second, third);
        int sum = 0;
        for (int k = 0; k < 3; k++) {
            int j = k == 0 ? 0 : k == 1 ? 1 + Math.min(3, sum / 8) : 5 + Math.min(2, sum / 16);
            int coded = coder.coded(22, bin + j);
            sum += magnitude(Math.abs((long) coded));
            v[k] = round(foot[k] + sigma * normal[k]) + coded;
        }
        return true;
    }

    private void learn(int i) {
        long[] sizes = new long[4];
        for (int c = 0; c < components; c++) {
            int here = q[at + c];
            sizes[0] += Math.abs((long) here);
            if (t > 0) {
                sizes[1] += Math.abs((long) (here - timed(at + c, 0)));
                for (int lag = 1; lag <= 2 && lag <= i; lag++) {
                    sizes[1 + lag] += Math.abs((long) (here - q[at - lag * components + c] - bond(c, lag)));
                }
            }
        }
        for (int k = 0; k < (t > 0 ? Math.min(4, 2 + i) : 1); k++) {
            int x = 16 * magnitude(sizes[k]);
            int e = errors[own + k];
            errors[own + k] = e < 0 ? x : e + (5 * (x - e) >> 4);
        }
        for (int lag = 1; lag <= 3 && lag <= i; lag++) {
            double sum = 0;
            for (int c = 0; c < components; c++) {
                double step = q[at + c] - q[at - lag * components + c];
                sum += step * step;
            }
            length(own + lag, (long) (16 * Math.sqrt(sum)));
        }
    }

    private void length(int place, long x) {
        long l = lengths[place];
        long d = deviations[place];
        long y = Math.abs(x - l);
        boolean other = l >= 0 && y > 128 + 6 * d;
        deviations[place] = l < 0 ? x / 2 : other ? Math.min(y, x) : d + (3 * (y - d) >> 3);
        lengths[place] = l < 0 || other ? x : l + (x - l >> 2);
    }
}
