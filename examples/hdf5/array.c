/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An application in C that writes a whole array into a dataset, many chunks at a time, and reads a part of it back.
 *
 * HDF5 makes the file and the dataset, as in dataset.c, with HDF5_PLUGIN_PATH set. Then h5z_gpu.h encodes on all cores
 * while
 * H5Dwrite_chunk writes; the file is the one that H5Dwrite would have made. With the root of the project in H5Z:
 *
 *     cc -o array array.c -I$H5Z/plugin/include $H5Z/target/plugin/libh5zgpu.so -Wl,-rpath,$H5Z/target/plugin \
 *         $(pkg-config --cflags --libs hdf5) -lm && ./array OUT.h5 */
#include <h5z_gpu.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 256, C = 64 };

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, h5z_gpu_last_error());
    return 1;
}

/* Goes on with a transfer to its end. Between two steps a program may look for a signal, or show how far it is. */
static int64_t finish(h5z_gpu_transfer *transfer) {
    int64_t n;
    while ((n = h5z_gpu_step(transfer)) > 0)
        ;
    h5z_gpu_end_transfer(&transfer);
    return n;
}

int main(int argc, char **argv) {
    hsize_t shape[3] = {N, N, N}, chunk[3] = {C, C, C};
    unsigned bound[1] = {11002}; /* absolute, 1.0e-2: no value changes by more than 0.01 */
    float *v = malloc(sizeof *v * N * N * N);
    if (argc != 2 || !v)
        return fprintf(stderr, "give the file to write, such as out.h5\n"), 2;
    for (int i = 0; i < N * N * N; i++)
        v[i] = (float)(sin(0.02 * (i % N)) * cos(0.03 * (i / N % N)) + 0.01 * (i / N / N));

    if (H5Zfilter_avail(443) <= 0)
        return fprintf(stderr, "filter 443 is not found: set HDF5_PLUGIN_PATH\n"), 1;
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, shape, NULL), plan = H5Pcreate(H5P_DATASET_CREATE);
    if (file < 0 || H5Pset_chunk(plan, 3, chunk) < 0 || H5Pset_filter(plan, 443, H5Z_FLAG_OPTIONAL, 1, bound) < 0)
        return 1;
    hid_t dataset = H5Dcreate2(file, "v", H5T_IEEE_F32LE, space, H5P_DEFAULT, plan, H5P_DEFAULT);

    uint64_t start[3] = {0, 0, 0}, extents[3] = {N, N, N};
    h5z_gpu_array array = {.data = v, .device = -1, .type = "<f4", .rank = 3, .shape = extents};
    h5z_gpu_transfer *transfer = NULL;
    const h5z_gpu_hdf5 hdf5 = (h5z_gpu_hdf5)H5Dwrite; /* any function: by it the library finds HDF5 */
    if (h5z_gpu_write_dataset(hdf5, dataset, H5T_NATIVE_FLOAT, start, &array, 0, &transfer) < 0 || finish(transfer) < 0)
        return failed("write");
    double ratio = 4.0 * N * N * N / (double)H5Dget_storage_size(dataset);
    if (H5Pclose(plan) < 0 || H5Sclose(space) < 0 || H5Dclose(dataset) < 0 || H5Fclose(file) < 0)
        return 1;

    /* A part of the dataset, from (10, 20, 30) on: of each chunk only what lies in it is decoded. */
    enum { Z = 100, Y = 50, X = 70 };
    static float part[Z][Y][X];
    file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "v", H5P_DEFAULT);
    uint64_t from[3] = {10, 20, 30}, size[3] = {Z, Y, X};
    h5z_gpu_array to = {.data = part, .device = -1, .type = "<f4", .rank = 3, .shape = size};
    transfer = NULL;
    if (h5z_gpu_read_dataset(hdf5, dataset, H5T_NATIVE_FLOAT, from, &to, 0, 0, &transfer) < 0 || finish(transfer) < 0)
        return failed("read");
    double error = 0;
    for (int z = 0; z < Z; z++)
        for (int y = 0; y < Y; y++)
            for (int x = 0; x < X; x++)
                error = fmax(error, fabs((double)part[z][y][x] - v[((z + 10) * N + y + 20) * N + x + 30]));
    printf("%d chunks, largest error %.4f, %.1f times smaller on disk\n", (N / C) * (N / C) * (N / C), error, ratio);
    free(v);
    return H5Dclose(dataset) < 0 || H5Fclose(file) < 0;
}
