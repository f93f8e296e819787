/* SPDX-License-Identifier: MIT OR Apache-2.0
   Calls for several datasets at once, and calls that need not wait, which HDF5 has from 1.14 on: each line must be the
   same under `h5z-gpu run`. Built by test_run.py with the headers of HDF5 1.10, and linked with newer libraries.
   Usage: several FILE */
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What HDF5 1.14 added. */
#define H5S_BLOCK 1
#define H5S_PLIST 2
#define WHERE __FILE__, __func__, __LINE__
int H5Dwrite_multi(size_t, hid_t[], hid_t[], hid_t[], hid_t[], hid_t, const void *[]);
int H5Dread_multi(size_t, hid_t[], hid_t[], hid_t[], hid_t[], hid_t, void *[]);
int H5Dwrite_async(const char *, const char *, unsigned, hid_t, hid_t, hid_t, hid_t, hid_t, const void *, hid_t);
int H5Dread_async(const char *, const char *, unsigned, hid_t, hid_t, hid_t, hid_t, hid_t, void *, hid_t);
int H5Dwrite_multi_async(const char *, const char *, unsigned, size_t, hid_t[], hid_t[], hid_t[], hid_t[], hid_t,
                         const void *[], hid_t);
int H5Dread_multi_async(const char *, const char *, unsigned, size_t, hid_t[], hid_t[], hid_t[], hid_t[], hid_t,
                        void *[], hid_t);
int H5Pset_dataset_io_hyperslab_selection(hid_t, unsigned, H5S_seloper_t, const hsize_t[], const hsize_t[],
                                          const hsize_t[], const hsize_t[]);
hid_t H5EScreate(void);
int H5ESwait(hid_t, uint64_t, size_t *, _Bool *);

enum { N = 400, M = 300, C = 100, SETS = 3 };
static float a[SETS][N][M], b[SETS][N][M];

static void told(const char *what, int status) {
    const char *values = memcmp(a, b, sizeof a) ? "other values" : "as written";
    printf("%s: %s, %s\n", what, status < 0 ? "failed" : "done", values);
    memset(b, 0, sizeof b);
}

static hid_t made(hid_t file, const char *name, int in_chunks) {
    hsize_t dims[2] = {N, M}, chunk[2] = {C, C};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), access = H5Pcreate(H5P_DATASET_ACCESS);
    unsigned words = 90000;
    if (in_chunks) {
        H5Pset_chunk(list, 2, chunk);
        H5Pset_filter(list, 443, H5Z_FLAG_MANDATORY, 1, &words);
    }
    H5Pset_chunk_cache(access, 0, 0, 0);
    return H5Dcreate2(file, name, H5T_NATIVE_FLOAT, H5Screate_simple(2, dims, NULL), H5P_DEFAULT, list, access);
}

/* Spaces that are none: a block of memory, and a selection in the transfer list. */
static void without_spaces(hid_t set) {
    hsize_t start[2] = {50, 30}, step[2] = {1, 1}, count[2] = {300, 200};
    hid_t there = H5Dget_space(set), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Sselect_hyperslab(there, H5S_SELECT_SET, start, NULL, count, NULL);
    H5Pset_dataset_io_hyperslab_selection(transfer, 2, H5S_SELECT_SET, start, step, count, step);
    for (int k = 0; k < 2; k++) {
        float *block = &b[0][0][0];
        hid_t list = k ? transfer : H5P_DEFAULT;
        int wrong = H5Dread(set, H5T_NATIVE_FLOAT, H5S_BLOCK, k ? H5S_PLIST : there, list, block);
        for (int i = 0; i < 300; i++)
            wrong |= memcmp(block + 200 * i, &a[0][50 + i][30], 200 * sizeof(float));
        printf("block: %s\n", wrong ? "wrong" : "right");
        memset(b, 0, sizeof b);
    }
}

int main(int argc, char **argv) {
    for (int k = 0; k < SETS; k++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < M; j++)
                a[k][i][j] = (float)(i * 0.25 + (j * 7 % 31) + 1000 * k);
    hid_t file = H5Fcreate(argv[argc - 1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t sets[SETS] = {made(file, "first", 1), made(file, "plain", 0), made(file, "last", 1)};
    hid_t types[SETS], all[SETS];
    const void *from[SETS];
    void *to[SETS];
    for (int k = 0; k < SETS; k++) {
        types[k] = H5T_NATIVE_FLOAT;
        all[k] = H5S_ALL;
        from[k] = a[k];
        to[k] = b[k];
    }
    int wrote = H5Dwrite_multi(SETS, sets, types, all, all, H5P_DEFAULT, from);
    int read = H5Dread_multi(SETS, sets, types, all, all, H5P_DEFAULT, to);
    told("several", wrote < 0 ? wrote : read);

    /* All of them by many chunks at a time, and none. */
    hid_t plain = sets[1], one = H5T_NATIVE_FLOAT, whole = H5S_ALL;
    sets[1] = sets[2], to[1] = to[2], from[1] = from[2];
    wrote = H5Dwrite_multi(2, sets, types, all, all, H5P_DEFAULT, from);
    read = H5Dread_multi(2, sets, types, all, all, H5P_DEFAULT, to);
    void *rest = b[1];
    if (H5Dread_multi(1, &plain, &one, &whole, &whole, H5P_DEFAULT, &rest) < 0)
        return 1;
    told("both", wrote < 0 ? wrote : read);

    /* Not waited for. */
    hid_t set = H5EScreate();
    size_t left = 1;
    _Bool failed = 1;
    wrote = H5Dwrite_async(WHERE, sets[0], H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, a[0], set);
    for (int k = 0; k < 2; k++)
        read = H5Dread_async(WHERE, sets[k], H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, k ? b[2] : b[0], set);
    read |= H5Dwrite_multi_async(WHERE, 2, sets, types, all, all, H5P_DEFAULT, from, set);
    read |= H5Dread_multi_async(WHERE, 2, sets, types, all, all, H5P_DEFAULT, to, set);
    read |= H5Dread(plain, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, b[1]);
    H5ESwait(set, UINT64_MAX, &left, &failed);
    told("not waited for", wrote < 0 ? wrote : read);
    printf("left: %d, failed: %d\n", (int)left, (int)failed);

    without_spaces(sets[0]);

    /* Open objects are counted as ever, and a dataset that is closed is closed. */
    printf("open: %d\n", (int)H5Fget_obj_count(file, H5F_OBJ_ALL));
    for (int k = 0; k < 2; k++)
        H5Dclose(sets[k]);
    H5Dclose(plain);
    printf("open: %d, references: %d\n", (int)H5Fget_obj_count(file, H5F_OBJ_ALL), H5Iget_ref(file));
    if (H5Fclose(file) < 0)
        return 1;

    /* The library ends, and begins again. */
    H5close();
    file = H5Fopen(argv[argc - 1], H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(access, 0, 0, 0);
    for (int k = 0; k < SETS; k++) {
        hid_t d = H5Dopen2(file, k == 0 ? "first" : k == 1 ? "plain" : "last", access);
        read = H5Dread(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, b[k]);
        if (H5Dclose(d) < 0)
            return 1;
    }
    told("begun again", read);
    return H5Fclose(file) < 0 || H5close() < 0;
}
