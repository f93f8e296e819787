// SPDX-License-Identifier: MIT OR Apache-2.0
package org.h5zgpu.netcdf;

import java.util.Map;
import ucar.nc2.filter.Filter;
import ucar.nc2.filter.FilterProvider;

/**
 * How netCDF-Java finds the filter: by the file META-INF/services/ucar.nc2.filter.FilterProvider of this jar. HDF5
 * files name the filter and its number; the number decides.
 */
public final class H5zGpuFilterProvider implements FilterProvider {
    @Override
    public String getName() {
        return H5zGpuFilter.NAME;
    }

    @Override
    public int getId() {
        return H5zGpuFilter.ID;
    }

    @Override
    public Filter create(Map<String, Object> properties) {
        return new H5zGpuFilter(properties);
    }
}
