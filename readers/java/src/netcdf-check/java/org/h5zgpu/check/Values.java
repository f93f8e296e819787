// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.check;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import ucar.ma2.Array;
import ucar.nc2.NetcdfFile;
import ucar.nc2.NetcdfFiles;
import ucar.nc2.Variable;

/**
 * Reads files by netCDF-Java, as Panoply and THREDDS do, and prints for each variable
 *
 * <pre>
 * NAME  TYPE  COUNT  SHA-256 of its values, little-endian        or       NAME  refused  why
 * </pre>
 *
 * <p>The reader is told where the hash of a part is wanted: a variable of more than one value is read again without
 * its first and last index along each axis that has three, and that hash follows.
 */
public final class Values {
    private Values() {}

    public static void main(String[] args) throws Exception {
        for (String path : args) {
            try (NetcdfFile file = NetcdfFiles.open(path)) {
                for (Variable v : file.getVariables()) {
                    print(v);
                }
            }
        }
    }

    private static void print(Variable v) throws Exception {
        try {
            Array all = v.read();
            int[] origin = new int[v.getRank()];
            int[] shape = v.getShape();
            for (int k = 0; k < shape.length; k++) {
                if (shape[k] > 2) {
                    origin[k] = 1;
                    shape[k] -= 2;
                }
            }
            System.out.println(v.getFullName() + "\t" + v.getDataType() + "\t" + all.getSize() + "\t" + hash(all) + "\t"
                    + hash(v.read(origin, shape)));
        } catch (IOException | RuntimeException e) {
            System.out.println(v.getFullName() + "\trefused\t" + e);
        }
    }

    /** Bit for bit: NaN with what it carries. */
    private static byte[] bytes(Object values) {
        int n = java.lang.reflect.Array.getLength(values);
        ByteBuffer out = ByteBuffer.allocate(8 * n).order(ByteOrder.LITTLE_ENDIAN);
        if (values instanceof float[]) {
            for (float x : (float[]) values) {
                out.putInt(Float.floatToRawIntBits(x));
            }
        } else if (values instanceof double[]) {
            for (double x : (double[]) values) {
                out.putLong(Double.doubleToRawLongBits(x));
            }
        } else if (values instanceof long[]) {
            out.asLongBuffer().put((long[]) values);
            out.position(8 * n);
        } else if (values instanceof int[]) {
            out.asIntBuffer().put((int[]) values);
            out.position(4 * n);
        } else if (values instanceof short[]) {
            out.asShortBuffer().put((short[]) values);
            out.position(2 * n);
        } else if (values instanceof byte[]) {
            out.put((byte[]) values);
        } else {
            throw new IllegalArgumentException("values of " + values.getClass());
        }
        return java.util.Arrays.copyOf(out.array(), out.position());
    }

    private static String hash(Array values) throws NoSuchAlgorithmException {
        StringBuilder hex = new StringBuilder();
        for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes(values.copyTo1DJavaArray()))) {
            hex.append(String.format("%02x", b));
        }
        return hex.toString();
    }
}
