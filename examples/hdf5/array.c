/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An application in C that writes a whole array into a dataset, many chunks at a time, and reads a part of it back.
 *
 * HDF5 makes the file and the dataset, as in dataset.c, with HDF5_PLUGIN_PATH set. Then h5z_gpu.h encodes on all cores
 * while H5Dwrite_chunk writes; the file is the one that H5Dwrite would have made. With the root of the project in H5Z:
 *
 *     cc -o array array.c -I$H5Z/plugin/include $H5Z/target/plugin/libh5zgpu.so -Wl,-rpath,$H5Z/target/plugin \
 *         $(pkg-config --cflags --libs hdf5) -lm && ./array OUT.h5 */
#include <fcntl.h>
#include <h5z_gpu.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 256, C = 64, PER_AXIS = N / C, CHUNKS = PER_AXIS * PER_AXIS * PER_AXIS };

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, h5z_gpu_last_error());
    return 1;
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

    /* The words as they stand in the file describe the chunks. */
    hid_t stored = H5Dget_create_plist(dataset);
    unsigned words[H5Z_GPU_WORDS_MAX], flags, config;
    size_t count = H5Z_GPU_WORDS_MAX;
    if (H5Pget_filter_by_id2(stored, 443, &flags, &count, words, 0, NULL, &config) < 0)
        return 1;
    static int64_t origins[3 * CHUNKS];
    static uint64_t offsets[3 * CHUNKS];
    for (int k = 0; k < CHUNKS; k++) {
        int at[3] = {k / PER_AXIS / PER_AXIS, k / PER_AXIS % PER_AXIS, k % PER_AXIS};
        for (int a = 0; a < 3; a++)
            origins[3 * k + a] = (int64_t)(offsets[3 * k + a] = (uint64_t)(C * at[a]));
    }
    uint64_t extents[3] = {N, N, N}, box[3] = {C, C, C};
    h5z_gpu_array array = {.data = v, .device = -1, .type = "<f4", .rank = 3, .shape = extents};
    h5z_gpu_work *work = NULL;
    if (h5z_gpu_encode_array(words, count, &array, box, NULL, CHUNKS, origins, 0, &work) < 0)
        return failed("encode");
    int64_t written;
    while ((written = h5z_gpu_write_chunks(work, (h5z_gpu_write_chunk)H5Dwrite_chunk, dataset, 3, CHUNKS, offsets)) > 0)
        ;
    h5z_gpu_end(&work);
    if (written < 0)
        return failed("write");
    double ratio = 4.0 * N * N * N / (double)H5Dget_storage_size(dataset);
    if (H5Pclose(stored) < 0 || H5Pclose(plan) < 0 || H5Sclose(space) < 0 || H5Dclose(dataset) < 0 ||
        H5Fclose(file) < 0)
        return 1;

    /* A part of the dataset, from (10, 20, 30) on: of each chunk only what lies in it is decoded. */
    enum { Z = 100, Y = 50, X = 70 };
    static float part[Z][Y][X];
    file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "v", H5P_DEFAULT);
    static uint64_t at[CHUNKS], lens[CHUNKS];
    space = H5Dget_space(dataset);
    /* HDF5 has H5Dchunk_iter since 1.12.3 and 1.10.10, better for thousands of chunks */
    for (hsize_t k = 0; k < CHUNKS; k++) {
        hsize_t offset[3], length;
        haddr_t address;
        unsigned mask;
        if (H5Dget_chunk_info(dataset, space, k, offset, &mask, &address, &length) < 0 || mask)
            return 1;
        at[k] = address, lens[k] = length;
        for (int a = 0; a < 3; a++)
            origins[3 * k + (hsize_t)a] = (int64_t)offset[a] - 10 * (a + 1);
    }
    uint64_t size[3] = {Z, Y, X};
    h5z_gpu_array to = {.data = part, .device = -1, .type = "<f4", .rank = 3, .shape = size};
    int fd = open(argv[1], O_RDONLY), status[CHUNKS];
    if (h5z_gpu_decode_file(fd, CHUNKS, at, lens, &to, box, origins, 0, status) != CHUNKS)
        return failed("read");
    double error = 0;
    for (int z = 0; z < Z; z++)
        for (int y = 0; y < Y; y++)
            for (int x = 0; x < X; x++)
                error = fmax(error, fabs((double)part[z][y][x] - v[((z + 10) * N + y + 20) * N + x + 30]));
    printf("%d chunks, largest error %.4f, %.1f times smaller on disk\n", CHUNKS, error, ratio);
    free(v);
    return close(fd) < 0 || H5Sclose(space) < 0 || H5Dclose(dataset) < 0 || H5Fclose(file) < 0;
}
