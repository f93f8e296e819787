// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu;

/** Section 5 of the FORMAT.md of {@code planes}: what integers mean, in the arithmetic of the type. */
@SuppressWarnings("strictfp") // what Java 17 does anyway, and Java 8 with this word
final strictfp class PlanesNumbers {
    final boolean usable;
    private final float step4;
    private final double step8;
    private final boolean floats;

    PlanesNumbers(Header header) {
        step8 = header.bound * 1.9921875;
        step4 = (float) step8;
        floats = header.numberClass() == Header.FLOAT;
        usable = header.size() == 4 ? step4 >= 0x1p-100f && step4 <= 0x1p100f : step8 >= 0x1p-1000 && step8 <= 0x1p1000;
    }

    void quanta(int[] v, int base, int[] out) {
        for (int i = 0; i < PlanesTile.TILE; i++) {
            out[i] = Float.floatToRawIntBits((base + v[i]) * step4);
        }
    }

    void quanta(int[] v, int base, long[] out) {
        for (int i = 0; i < PlanesTile.TILE; i++) {
            out[i] = Double.doubleToRawLongBits((base + v[i]) * step8);
        }
    }

    /**
     * Classes 1, in half steps where {@code halves}, and 2: numbers of 4 bytes into {@code narrow}, where that is not
     * null, else into {@code wide}.
     */
    void large(long[] v, long base, int tileClass, boolean halves, boolean map, int e, int[] narrow, long[] wide)
            throws Refused {
        int mantissa = narrow != null ? 23 : 52;
        for (int i = 0; map && i < PlanesTile.TILE; i++) {
            long m = narrow != null ? (int) (base + v[i]) : base + v[i];
            Refused.when(m + (1L << mantissa) >>> mantissa + 1 != 0, "P13", "an integer %d of map 1", m);
        }
        if (narrow != null) {
            float step = map ? Math.scalb(1f, e) : halves ? step4 / 2 : step4;
            boolean multiples = map || tileClass == 1;
            for (int i = 0; i < PlanesTile.TILE; i++) {
                int m = (int) (base + v[i]);
                narrow[i] = multiples ? Float.floatToRawIntBits(m * step)
                        : floats ? m ^ (m >> 31 & Integer.MAX_VALUE) : m;
            }
        } else {
            double step = map ? Math.scalb(1.0, e) : halves ? step8 / 2 : step8;
            boolean multiples = map || tileClass == 1;
            for (int i = 0; i < PlanesTile.TILE; i++) {
                long m = base + v[i];
                wide[i] = multiples ? Double.doubleToRawLongBits(m * step)
                        : floats ? m ^ (m >> 63 & Long.MAX_VALUE) : m;
            }
        }
    }
}
