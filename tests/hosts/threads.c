/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls the filter from eight threads while the main thread holds the HDF5 library's lock and waits for them, as HDF5
   2.3 may.

   The library is the program itself, so that the filter's caller and the library are one object as they are in libhdf5:
   linked with a thread-safe libhdf5.a of today, whose lock is held in a callback of H5Literate, or, with -DLATER, with
   a stand-in for HDF5 2.3, all of whose functions wait for the lock. There a damaged chunk comes too: older versions
   put its sentence on their error stack, which takes the lock, and have no such threads. A call that waits hangs:
   SIGALRM ends the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 20, N = 64 * 1024, SIZE = 4 * N };

static H5Z_func_t filter;
static unsigned words[20];
static size_t count;
static int done[THREADS];
static float values[N];

#ifdef LATER
static pthread_mutex_t lock;

/* Every function of the library begins so. */
static void enter(void) { pthread_mutex_lock(&lock), pthread_mutex_unlock(&lock); }
#define ENTERED(type, name, arguments, answer)                         \
    __attribute__((used, visibility("default"))) type name arguments { \
        enter();                                                       \
        return answer;                                                 \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
ENTERED(herr_t, H5get_libversion, (unsigned *a, unsigned *b, unsigned *c), (*a = 2, *b = 3, *c = 0, 0))
ENTERED(void *, H5allocate_memory, (size_t size, hbool_t clear), clear ? calloc(1, size) : malloc(size))
ENTERED(herr_t, H5free_memory, (void *at), (free(at), 0))
ENTERED(herr_t, H5Eauto_is_v2, (hid_t stack, unsigned *is), (*is = 1, 0))
ENTERED(herr_t, H5Eget_auto2, (hid_t stack, H5E_auto2_t *print, void **data), (*print = NULL, 0))
ENTERED(herr_t, H5Epush2,
        (hid_t stack, const char *file, const char *func, unsigned line, hid_t cls, hid_t maj, hid_t min,
         const char *text, ...), 0)
ENTERED(herr_t, H5Ewalk2, (hid_t stack, H5E_direction_t direction, H5E_walk2_t each, void *data), 0)
ENTERED(herr_t, H5Eis_paused, (hid_t stack, hbool_t *paused), (*paused = 0, 0))
ENTERED(int, H5Pget_chunk, (hid_t list, int rank, hsize_t *dims), -1)
ENTERED(H5Z_filter_t, H5Pget_filter2,
        (hid_t list, unsigned n, unsigned *flags, size_t *some, unsigned *given, size_t len, char *name,
         unsigned *config), -1)
ENTERED(herr_t, H5Pget_filter_by_id2,
        (hid_t list, H5Z_filter_t id, unsigned *flags, size_t *some, unsigned *given, size_t len, char *name,
         unsigned *config), -1)
ENTERED(herr_t, H5Pmodify_filter, (hid_t list, H5Z_filter_t id, unsigned flags, size_t some, const unsigned *values),
        -1)
ENTERED(herr_t, H5Pfill_value_defined, (hid_t list, H5D_fill_value_t *status), -1)
ENTERED(herr_t, H5Pget_fill_value, (hid_t list, hid_t type, void *value), -1)
ENTERED(H5T_class_t, H5Tget_class, (hid_t type), H5T_NO_CLASS)
ENTERED(size_t, H5Tget_size, (hid_t type), 0)
ENTERED(H5T_order_t, H5Tget_order, (hid_t type), H5T_ORDER_ERROR)
ENTERED(H5T_sign_t, H5Tget_sign, (hid_t type), H5T_SGN_ERROR)
__attribute__((used)) hid_t H5E_ERR_CLS_g = 1, H5E_PLINE_g = 2, H5E_CANTFILTER_g = 3;
__attribute__((used)) char H5_lib_vers_info_g[] = "HDF5 library version: 2.3.0";

static int holding(int (*work)(void)) {
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    pthread_mutex_lock(&lock);
    return work();
}
#else
static herr_t inside(hid_t group, const char *name, const H5L_info_t *info, void *work) {
    (void)group, (void)name, (void)info;
    return (*(int (**)(void))work)() ? -1 : 0;
}

static int holding(int (*work)(void)) {
    hbool_t safe = 0;
    if (H5is_library_threadsafe(&safe) < 0 || !safe)
        return puts("this HDF5 is not built for threads"), 1;
    hid_t in_memory = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(in_memory, 4096, 0);
    hid_t file = H5Fcreate("threads.h5", H5F_ACC_TRUNC, H5P_DEFAULT, in_memory);
    H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hsize_t at = 0;
    return H5Literate(file, H5_INDEX_NAME, H5_ITER_NATIVE, &at, inside, &work) < 0;
}
#endif

/* Through the filter, as the library's pipeline calls it: the block may be replaced, and is free's. */
static size_t through(unsigned flags, void **block, size_t *size, size_t used) {
    return filter(flags, count, words, used, size, block);
}

static void *chunks(void *number) {
    int k = *(int *)number;
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = SIZE;
        void *block = malloc(size);
        memcpy(block, values, SIZE);
        size_t len = through(0, &block, &size, SIZE);
        if (len == 0 || len > size)
            return NULL;
#ifdef LATER
        ((char *)block)[len / 2] ^= 1;
        void *was = block;
        if (through(H5Z_FLAG_REVERSE, &block, &size, len) != 0 || block != was)
            return NULL;
        ((char *)block)[len / 2] ^= 1;
#endif
        if (through(H5Z_FLAG_REVERSE, &block, &size, len) != SIZE || size != SIZE || memcmp(block, values, SIZE))
            return NULL;
        free(block);
    }
    done[k] = 1;
    return NULL;
}

static int all(void) {
    pthread_t threads[THREADS];
    static int numbers[THREADS];
    for (int k = 0; k < THREADS; k++) {
        numbers[k] = k;
        if (pthread_create(&threads[k], NULL, chunks, &numbers[k]))
            return 1;
    }
    int right = 0;
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
        right += done[k];
    }
    printf("%d threads\n", right);
    return right != THREADS;
}

int main(int argc, char **argv) {
    alarm(60);
    void *plugin = dlopen(argv[argc - 1], RTLD_NOW);
    if (!plugin)
        return puts(dlerror()), 1;
    const H5Z_class2_t *(*info)(void) = (const H5Z_class2_t *(*)(void))dlsym(plugin, "H5PLget_plugin_info");
    typedef int64_t Stored(const uint32_t *, size_t, const char *, size_t, const uint64_t *, const void *, uint32_t *);
    Stored *stored = (Stored *)dlsym(plugin, "h5z_gpu_stored_words");
    filter = info()->filter;
    uint32_t lossless = 90000;
    uint64_t dims = N;
    count = (size_t)stored(&lossless, 1, "<f4", 1, &dims, NULL, words);
    for (int i = 0; i < N; i++)
        values[i] = (float)(i % 1000) * 0.25f;
    return holding(all);
}
