/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Ranks write one variable of a netCDF-4 file through the filter, in two calls each, and it grows:
 * collective FILE TIMES, the number of times in a chunk. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_filter.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>

enum { NT = 16, NY = 24, NX = 32 };

static void must(int status) {
    if (status == NC_NOERR)
        return;
    fprintf(stderr, "%s\n", nc_strerror(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    static float part[NT][NY][NX];
    int rank, ranks, file, tas, dims[3];
    const unsigned bound[] = {511002}; /* absolute, 1.0e-2, by planes */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const size_t chunk[] = {(size_t)atoi(argv[2]), NY, NX}, count = NT / 2 / ranks;

    must(nc_create_par(argv[1], NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    must(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    must(nc_def_dim(file, "lat", NY, &dims[1]));
    must(nc_def_dim(file, "lon", NX, &dims[2]));
    must(nc_def_var(file, "tas", NC_FLOAT, 3, dims, &tas));
    must(nc_def_var_chunking(file, tas, NC_CHUNKED, chunk));
    must(nc_def_var_filter(file, tas, 443, 1, bound));
    must(nc_enddef(file));
    must(nc_var_par_access(file, tas, NC_COLLECTIVE));
    for (size_t half = 0; half < 2; half++) {
        size_t start[] = {half * NT / 2 + rank * count, 0, 0}, shape[] = {count, NY, NX};
        for (size_t t = 0; t < count; t++)
            for (size_t y = 0; y < NY; y++)
                for (size_t x = 0; x < NX; x++)
                    part[t][y][x] = 250 + (start[0] + t) + (y * 37 + x * 11 + (start[0] + t) * 5) % 101 / 1024.0f;
        must(nc_put_vara_float(file, tas, start, shape, &part[0][0][0]));
    }
    must(nc_close(file));
    return MPI_Finalize();
}
