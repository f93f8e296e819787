/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A plain C application of HDF5: writes a raw file into a filtered dataset, or a dataset into a raw file.
 *
 *     app write FILE DATASET f32|f64 DIMS CHUNK RAW o|m WORD...     o: optional, m: mandatory
 *     app read  FILE DATASET RAW
 *     app rewrite FILE DATASET RAW [load]     into a dataset that exists; load: H5Zfilter_avail first
 *
 * DIMS and CHUNK are written 5x33x47. It knows nothing of any filter but the number 443. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int extents(char *text, hsize_t *out)
{
    int n = 0;
    for (char *t = strtok(text, "x"); t; t = strtok(NULL, "x"))
        out[n++] = strtoull(t, NULL, 10);
    return n;
}

static void must(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "app: %s failed\n", what);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc > 8 && !strcmp(argv[1], "write")) {
        hsize_t dims[32], chunk[32];
        int rank = extents(argv[5], dims), same = extents(argv[6], chunk) == rank;
        hid_t type = strcmp(argv[4], "f32") ? H5T_IEEE_F64LE : H5T_IEEE_F32LE;
        size_t n = H5Tget_size(type);
        unsigned words[64], count = 0;
        for (int i = 9; i < argc; i++)
            words[count++] = strtoul(argv[i], NULL, 10);
        for (int i = 0; i < rank; i++)
            n *= dims[i];
        void *data = malloc(n);
        FILE *raw = fopen(argv[7], "rb");
        must(same && data && raw && fread(data, 1, n, raw) == n, "reading the raw file");
        FILE *there = fopen(argv[2], "rb");
        hid_t file = there ? H5Fopen(argv[2], H5F_ACC_RDWR, H5P_DEFAULT)
            : H5Fcreate(argv[2], H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
        hid_t plan = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, dims, NULL);
        must(file >= 0 && H5Pset_chunk(plan, rank, chunk) >= 0, "opening the file");
        must(H5Pset_filter(plan, 443, *argv[8] == 'm' ? H5Z_FLAG_MANDATORY : H5Z_FLAG_OPTIONAL, count, words) >= 0,
             "H5Pset_filter");
        hid_t set = H5Dcreate2(file, argv[3], type, space, H5P_DEFAULT, plan, H5P_DEFAULT);
        must(set >= 0, "H5Dcreate2");
        must(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "H5Dwrite");
        must(H5Dclose(set) >= 0 && H5Fclose(file) >= 0, "closing");
        return 0;
    }
    if (argc == 5 && !strcmp(argv[1], "read")) {
        hid_t file = H5Fopen(argv[2], H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t set = file >= 0 ? H5Dopen2(file, argv[3], H5P_DEFAULT) : -1;
        must(set >= 0, "opening the dataset");
        hid_t type = H5Tget_native_type(H5Dget_type(set), H5T_DIR_ASCEND);
        size_t n = H5Tget_size(type) * (size_t)H5Sget_simple_extent_npoints(H5Dget_space(set));
        void *data = malloc(n ? n : 1);
        must(data && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "H5Dread");
        FILE *raw = fopen(argv[4], "wb");
        must(raw && fwrite(data, 1, n, raw) == n && fclose(raw) == 0, "writing the raw file");
        return 0;
    }
    if (argc > 4 && !strcmp(argv[1], "rewrite")) {
        must(argc == 5 || H5Zfilter_avail(443) > 0, "H5Zfilter_avail");
        hid_t file = H5Fopen(argv[2], H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t set = file >= 0 ? H5Dopen2(file, argv[3], H5P_DEFAULT) : -1;
        must(set >= 0, "opening the dataset");
        hid_t type = H5Tget_native_type(H5Dget_type(set), H5T_DIR_ASCEND);
        size_t n = H5Tget_size(type) * (size_t)H5Sget_simple_extent_npoints(H5Dget_space(set));
        void *data = malloc(n);
        FILE *raw = fopen(argv[4], "rb");
        must(data && raw && fread(data, 1, n, raw) == n, "reading the raw file");
        must(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "H5Dwrite");
        must(H5Dclose(set) >= 0 && H5Fclose(file) >= 0, "closing");
        return 0;
    }
    fprintf(stderr, "app: see the head of app.c\n");
    return 2;
}
