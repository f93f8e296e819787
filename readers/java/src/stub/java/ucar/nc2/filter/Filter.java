// SPDX-License-Identifier: MIT OR Apache-2.0
package ucar.nc2.filter;

import java.io.IOException;

/**
 * What {@code org.h5zgpu.netcdf} needs of netCDF-Java's class of this name, to be compiled against where netCDF-Java is
 * not at hand. It comes into no jar: at run time there is netCDF-Java's own.
 */
public abstract class Filter {
    public abstract String getName();

    public abstract int getId();

    public abstract byte[] encode(byte[] dataIn) throws IOException;

    public abstract byte[] decode(byte[] dataIn) throws IOException;
}
