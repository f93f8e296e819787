// SPDX-License-Identifier: MIT OR Apache-2.0
package ucar.nc2.filter;

import java.util.Map;

/** As {@link Filter} here: netCDF-Java's interface, to be compiled against alone. */
public interface FilterProvider {
    String getName();

    int getId();

    Filter create(Map<String, Object> properties);
}
