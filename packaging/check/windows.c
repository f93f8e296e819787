/* SPDX-License-Identifier: MIT OR Apache-2.0
   Datasets written and read by the HDF5 of h5py's wheel for Windows, through the plugin that HDF5 itself finds. Built
   by test_windows.py.

       windows.exe HDF5.DLL dump FILE OUT DATASET...      all values, as they are in memory, one behind the other
       windows.exe HDF5.DLL make FILE RAW TYPE DIMS CHUNK WORDS...    a dataset for each list of words, of RAW's values,
                                                          named by its number; lists have commas
*/
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

typedef int64_t hid_t;
typedef unsigned long long hsize_t;
static HMODULE hdf5;

static void *named(const char *name) {
    void *found = (void *)GetProcAddress(hdf5, name);
    if (!found) {
        printf("no %s\n", name);
        exit(1);
    }
    return found;
}
#define CALL(result, name, ...) ((result(*)(__VA_ARGS__))named(#name))
static hid_t variable(const char *name) { return *(hid_t *)named(name); }

static void need(int fine, const char *what) {
    if (fine)
        return;
    printf("%s failed\n", what);
    exit(1);
}

static int numbers(const char *text, hsize_t *out) {
    int n = 0;
    for (char *end; *text && n < 32; text = *end ? end + 1 : end)
        out[n++] = strtoull(text, &end, 10);
    return n;
}

static void dump(hid_t file, const char *name, FILE *out) {
    hid_t set = CALL(hid_t, H5Dopen2, hid_t, const char *, hid_t)(file, name, 0);
    need(set >= 0, name);
    hid_t type = CALL(hid_t, H5Dget_type, hid_t)(set), space = CALL(hid_t, H5Dget_space, hid_t)(set);
    size_t bytes = CALL(size_t, H5Tget_size, hid_t)(type);
    bytes *= (size_t)CALL(int64_t, H5Sget_simple_extent_npoints, hid_t)(space);
    void *values = calloc(bytes + 1, 1);
    need(CALL(int, H5Dread, hid_t, hid_t, hid_t, hid_t, hid_t, void *)(set, type, 0, 0, 0, values) >= 0, name);
    need(fwrite(values, 1, bytes, out) == bytes, "writing");
    free(values);
    CALL(int, H5Dclose, hid_t)(set);
}

static void make(hid_t file, const char *name, const char *words, hid_t type, hid_t space, hid_t list, void *values) {
    hsize_t each[32];
    unsigned given[32];
    int n = numbers(words, each);
    for (int i = 0; i < n; i++)
        given[i] = (unsigned)each[i];
    list = CALL(hid_t, H5Pcopy, hid_t)(list);
    need(CALL(int, H5Pset_filter, hid_t, int, unsigned, size_t, const unsigned *)(list, 443, 0, n, given) >= 0, words);
    hid_t set = CALL(hid_t, H5Dcreate2, hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t)(file, name, type,
                                                                                               space, 0, list, 0);
    need(set >= 0, "H5Dcreate2");
    need(CALL(int, H5Dwrite, hid_t, hid_t, hid_t, hid_t, hid_t, const void *)(set, type, 0, 0, 0, values) >= 0, words);
    need(CALL(int, H5Dclose, hid_t)(set) >= 0, "H5Dclose");
}

static void make_all(int count, char **argument) {
    hsize_t dims[32], chunk[32];
    int rank = numbers(argument[3], dims);
    need(numbers(argument[4], chunk) == rank, "ranks");
    char name[64];
    snprintf(name, sizeof name, "H5T_%s_g", argument[2]);
    hid_t type = variable(name), list = CALL(hid_t, H5Pcreate, hid_t)(variable("H5P_CLS_DATASET_CREATE_ID_g"));
    size_t bytes = CALL(size_t, H5Tget_size, hid_t)(type);
    for (int i = 0; i < rank; i++)
        bytes *= dims[i];
    need(CALL(int, H5Pset_chunk, hid_t, int, const hsize_t *)(list, rank, chunk) >= 0, "H5Pset_chunk");
    void *values = malloc(bytes + 1);
    FILE *in = fopen(argument[1], "rb");
    need(in && fread(values, 1, bytes, in) == bytes, "reading");
    hid_t file = CALL(hid_t, H5Fcreate, const char *, unsigned, hid_t, hid_t)(argument[0], 2, 0, 0);
    hid_t space = CALL(hid_t, H5Screate_simple, int, const hsize_t *, const hsize_t *)(rank, dims, NULL);
    for (int k = 5; k < count; k++) {
        snprintf(name, sizeof name, "%d", k - 5);
        make(file, name, argument[k], type, space, list, values);
    }
    need(CALL(int, H5Fclose, hid_t)(file) >= 0, "H5Fclose");
}

int main(int count, char **argument) {
    hdf5 = count > 2 ? LoadLibraryExA(argument[1], NULL, LOAD_WITH_ALTERED_SEARCH_PATH) : NULL;
    need(hdf5 != NULL, "LoadLibrary");
    need(CALL(int, H5open, void)() >= 0, "H5open");
    if (count > 5 && !strcmp(argument[2], "dump")) {
        hid_t file = CALL(hid_t, H5Fopen, const char *, unsigned, hid_t)(argument[3], 0, 0);
        FILE *out = fopen(argument[4], "wb");
        need(file >= 0 && out, argument[3]);
        for (int k = 5; k < count; k++)
            dump(file, argument[k], out);
        need(!fclose(out), "fclose");
    } else if (count > 8 && !strcmp(argument[2], "make"))
        make_all(count - 3, argument + 3);
    else
        need(0, "usage");
    printf("done\n");
    return 0;
}
