/* SPDX-License-Identifier: MIT OR Apache-2.0
   What HDF5 does by itself with calls that are more than a box of a dataset: each line must be the same under
   `h5z-gpu run`. Built by test_run.py: ways FILE. */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

enum { N = 400, M = 300, C = 100 };
static float a[N][M], b[N][M], big[2 * N][2 * M];

static void told(const char *what, int status, const void *values, size_t bytes) {
    unsigned long long sum = 14695981039346656037ull;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ ((const unsigned char *)values)[i]) * 1099511628211ull;
    printf("%s: %s %llx\n", what, status < 0 ? "failed" : "done", sum);
}

static hid_t box(hid_t space, hsize_t y, hsize_t x, hsize_t h, hsize_t w) {
    hsize_t start[2] = {y, x}, count[2] = {h, w};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    return space;
}

int main(int argc, char **argv) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            a[i][j] = (float)(i * 0.25 + (j * 7 % 31));
    const char *path = argv[argc - 1];
    hsize_t dims[2] = {N, M}, chunk[2] = {C, C};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), access = H5Pcreate(H5P_DATASET_ACCESS);
    unsigned words = 90000;
    H5Pset_chunk(list, 2, chunk);
    H5Pset_filter(list, 443, H5Z_FLAG_MANDATORY, 1, &words);
    H5Pset_chunk_cache(access, 0, 0, 0);
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t d = H5Dcreate2(file, "d", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, access);
    told("write", H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, a), "", 0);
    told("read", H5Dread(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, b), b, sizeof b);

    /* A selection with an offset, in the file and in memory. */
    hssize_t by[2] = {16, 8}, none[2] = {0, 0};
    hid_t there = box(H5Dget_space(d), 0, 0, 300, 200), here = box(H5Screate_simple(2, dims, NULL), 0, 0, 300, 200);
    memset(b, 0, sizeof b);
    H5Soffset_simple(there, by);
    told("offset in the file", H5Dread(d, H5T_NATIVE_FLOAT, here, there, H5P_DEFAULT, b), b, sizeof b);
    H5Soffset_simple(there, none);
    H5Soffset_simple(here, by);
    told("offset in memory", H5Dread(d, H5T_NATIVE_FLOAT, here, there, H5P_DEFAULT, b), b, sizeof b);

    /* Memory of other extents; the file's space for both. */
    hsize_t twice[2] = {2 * N, 2 * M}, line[1] = {300 * 200};
    hid_t wide = box(H5Screate_simple(2, twice, NULL), 10, 20, 300, 200);
    told("wide", H5Dread(d, H5T_NATIVE_FLOAT, wide, there, H5P_DEFAULT, big), big, sizeof big);
    hid_t flat = H5Screate_simple(1, line, NULL);
    told("flat", H5Dread(d, H5T_NATIVE_FLOAT, flat, there, H5P_DEFAULT, b), b, sizeof b);
    memset(b, 0, sizeof b);
    told("one space", H5Dread(d, H5T_NATIVE_FLOAT, H5S_ALL, there, H5P_DEFAULT, b), b, sizeof b);

    /* A transfer list that says something, another type, steps, two boxes. */
    hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_data_transform(transfer, "2*x+1");
    told("transform", H5Dread(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, transfer, b), b, sizeof b);
    told("type", H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, b), b, sizeof b);
    hsize_t start[2] = {1, 0}, stride[2] = {2, 1}, count[2] = {150, 200};
    H5Sselect_hyperslab(there, H5S_SELECT_SET, start, stride, count, NULL);
    told("steps", H5Dread(d, H5T_NATIVE_FLOAT, box(here, 0, 0, 150, 200), there, H5P_DEFAULT, b), b, sizeof b);
    box(there, 0, 0, 100, 200);
    start[0] = 250;
    count[0] = 50;
    H5Sselect_hyperslab(there, H5S_SELECT_OR, start, NULL, count, NULL);
    told("two boxes", H5Dread(d, H5T_NATIVE_FLOAT, box(here, 0, 0, 150, 200), there, H5P_DEFAULT, b), b, sizeof b);

    /* A space of other extents, and one beyond the dataset. */
    hsize_t less[2] = {N - 100, M}, more[2] = {N + 100, M};
    hid_t small = box(H5Screate_simple(2, less, NULL), 0, 0, 300, 200);
    told("smaller space", H5Dread(d, H5T_NATIVE_FLOAT, box(here, 0, 0, 300, 200), small, H5P_DEFAULT, b), b, sizeof b);
    hid_t large = box(H5Screate_simple(2, more, NULL), 150, 0, 300, 200);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    told("beyond", H5Dread(d, H5T_NATIVE_FLOAT, here, large, H5P_DEFAULT, b), "", 0);
    told("no dataset", H5Dread(file, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, b), "", 0);
    told("unlike numbers", H5Dread(d, H5T_NATIVE_FLOAT, box(here, 0, 0, 10, 200), box(there, 0, 0, 300, 200),
                                   H5P_DEFAULT, b), "", 0);
    H5Dclose(d);
    H5Fclose(file);

    /* A file that is open for reading only. */
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    d = H5Dopen2(file, "d", access);
    told("read only", H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, a), "", 0);
    told("closed", H5Dclose(d) < 0 || H5Fclose(file) < 0 ? -1 : 0, "", 0);

    /* Chunks at the edge without filters. */
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    hsize_t odd[2] = {N - 7, M - 7};
    d = H5Dcreate2(file, "e", H5T_NATIVE_FLOAT, H5Screate_simple(2, odd, NULL), H5P_DEFAULT, list, access);
    told("edges", H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, a), "", 0);
    told("edges", H5Dread(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, b), b, sizeof b);
    return H5Fclose(file) < 0;
}
