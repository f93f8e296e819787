/* SPDX-License-Identifier: MIT OR Apache-2.0
   Eight threads of one program read four datasets at a time, and one of them writes the same values again: of a library
   that threads may share. Built by test_run.py: shared FILE. Says how many reads gave other values. */
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANES = 64, ROWS = 512, WIDTH = 64, SETS = 4, THREADS = 8, TIMES = 20 };
static float values[PLANES][ROWS][WIDTH];
static hid_t sets[SETS];

static void *work(void *number) {
    long k = (long)number, wrong = 0;
    float *read = malloc(sizeof values);
    for (int i = 0; i < TIMES; i++) {
        memset(read, 0, sizeof values);
        wrong += H5Dread(sets[k % SETS], H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) < 0 ||
                 memcmp(values, read, sizeof values) != 0;
        if (k == 3 && i % 5 == 0)
            wrong += H5Dwrite(sets[k % SETS], H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0;
    }
    free(read);
    return (void *)wrong;
}

int main(int argc, char **argv) {
    hbool_t is_shared = 0;
    H5is_library_threadsafe(&is_shared);
    for (int i = 0; i < PLANES * ROWS * WIDTH; i++)
        ((float *)values)[i] = (float)(i % 977) * 0.5f;
    hsize_t extents[3] = {PLANES, ROWS, WIDTH}, chunk[3] = {4, 256, WIDTH};
    hid_t file = H5Fcreate(argv[argc - 1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, extents, NULL);
    unsigned words = 90000;
    H5Pset_chunk(list, 3, chunk);
    H5Pset_filter(list, 443, H5Z_FLAG_MANDATORY, 1, &words);
    for (int k = 0; k < SETS; k++) {
        char name[2] = {(char)('a' + k), 0};
        sets[k] = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT);
        H5Dwrite(sets[k], H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    }
    long wrong = 0;
    if (is_shared) {
        pthread_t threads[THREADS];
        for (long k = 0; k < THREADS; k++)
            pthread_create(&threads[k], NULL, work, (void *)k);
        for (int k = 0; k < THREADS; k++) {
            void *of;
            pthread_join(threads[k], &of);
            wrong += (long)of;
        }
    }
    printf("shared: %d, wrong: %ld\n", is_shared, wrong);
    return H5Fclose(file) < 0;
}
