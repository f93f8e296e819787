/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An application in C that writes a dataset through the filter and reads it back.
 *
 * It knows nothing of h5z-gpu but the filter's number and the bound. Set HDF5_PLUGIN_PATH first (see README.md); then:
 *
 *     cc -o dataset dataset.c $(pkg-config --cflags --libs hdf5) -lm && ./dataset OUT.h5 */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>

enum { NZ = 64, NY = 128, NX = 128 };
static float temperature[NZ][NY][NX], back[NZ][NY][NX];

int main(int argc, char **argv) {
    hsize_t shape[3] = {NZ, NY, NX}, chunk[3] = {32, NY, NX};
    unsigned bound[1] = {11002}; /* absolute, 1.0e-2: no value changes by more than 0.01 */
    double error = 0;

    if (argc != 2)
        return fprintf(stderr, "give the file to write, such as out.h5\n"), 2;
    for (int z = 0; z < NZ; z++)
        for (int y = 0; y < NY; y++)
            for (int x = 0; x < NX; x++)
                temperature[z][y][x] = (float)(280 + 10 * sin(6.0 * x / (NX - 1)) * cos(6.0 * y / (NY - 1))
                                               + 6.0 * z / (NZ - 1));

    /* HDF5 leaves out an optional filter that it does not find, and says nothing. */
    if (H5Zfilter_avail(443) <= 0)
        return fprintf(stderr, "filter 443 is not found: is HDF5_PLUGIN_PATH set?\n"), 1;
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, shape, NULL), plan = H5Pcreate(H5P_DATASET_CREATE);
    if (file < 0 || H5Pset_chunk(plan, 3, chunk) < 0 || H5Pset_filter(plan, 443, H5Z_FLAG_OPTIONAL, 1, bound) < 0)
        return 1;
    hid_t dataset = H5Dcreate2(file, "temperature", H5T_IEEE_F32LE, space, H5P_DEFAULT, plan, H5P_DEFAULT);
    if (dataset < 0 || H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, temperature) < 0)
        return 1;
    if (H5Dclose(dataset) < 0 || H5Pclose(plan) < 0 || H5Sclose(space) < 0 || H5Fclose(file) < 0)
        return 1;

    /* A reader says nothing about the filter. */
    file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "temperature", H5P_DEFAULT);
    if (dataset < 0 || H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) < 0)
        return 1;
    for (size_t i = 0; i < NZ * NY * NX; i++)
        error = fmax(error, fabs((double)(&back[0][0][0])[i] - (&temperature[0][0][0])[i]));
    printf("[%d, %d, %d] values, largest error %.4f, %.1f times smaller on disk\n", NZ, NY, NX, error,
           (double)sizeof back / (double)H5Dget_storage_size(dataset));
    return H5Dclose(dataset) < 0 || H5Fclose(file) < 0;
}
