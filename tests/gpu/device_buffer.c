/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A filter that is handed chunks in a device's memory, and a stand-in for the HDF5 that hands them over: what
 * docs/device-buffer.md proposes, in the smallest form that can be timed. device_buffer.py does that.
 *
 * The filter's side uses h5z_gpu.h alone. The host's side has the chunks in the device's memory, calls the filter from
 * one thread or several, and writes each frame by H5Dwrite_chunk, one at a time, as HDF5 does behind its lock. */
#include <h5z_gpu.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_AXES = 8 };

/* --- What the class of a filter would declare ----------------------------------------------------------------- */

/* What filter and set_local know of a dataset today. */
typedef struct {
    const uint32_t *words; /* cd_values */
    size_t count;
    const char *type;
    size_t rank;
    const uint64_t *dims; /* of a chunk */
} dataset_info;

/* Chunks of one dataset in a device's memory, dense, one behind the other. */
typedef struct {
    const char *at;
    size_t chunks; /* 1 where the host has one at a time */
    int device;
    void *stream; /* they are ready when what it was given so far is done */
} device_chunks;

/* Takes the frame of a chunk, which is in host memory of the filter's until this returns. Less than 0: stop. */
typedef int (*take_frame)(void *host, size_t chunk, const void *frame, size_t len);

/* 0, or less on failure: then the host copies the chunks to its memory and calls today's callback. */
typedef int (*encode_on_device)(const dataset_info *of, const device_chunks *chunks, take_frame take, void *host);

/* --- The filter ------------------------------------------------------------------------------------------------- */

static int encode(const dataset_info *of, const device_chunks *chunks, take_frame take, void *host) {
    uint64_t shape[MOST_AXES];
    if (of->rank > MOST_AXES)
        return H5Z_GPU_OTHER_WAY;
    int64_t *origins = calloc(chunks->chunks * of->rank, sizeof *origins);
    if (!origins)
        return H5Z_GPU_NO_MEMORY;
    for (size_t k = 0; k < chunks->chunks; k++)
        origins[k * of->rank] = (int64_t)(k * of->dims[0]);
    for (size_t axis = 0; axis < of->rank; axis++)
        shape[axis] = of->dims[axis] * (axis ? 1 : chunks->chunks);
    h5z_gpu_array from = {.data = (void *)(uintptr_t)chunks->at, .device = chunks->device, .flags = H5Z_GPU_READ_ONLY,
                          .type = of->type, .rank = of->rank, .shape = shape, .stream = chunks->stream};
    h5z_gpu_work *work = NULL;
    const void *const *frames;
    const size_t *lens;
    size_t taken = 0;
    const char *why = NULL;
    int64_t n = h5z_gpu_encode_array(of->words, of->count, &from, of->dims, NULL, chunks->chunks, origins, 0, &work);
    while (n > 0 && (n = h5z_gpu_next(work, &frames, &lens)) > 0)
        for (int64_t k = 0; k < n; k++)
            if (take(host, taken++, frames[k], lens[k]) < 0) {
                n = H5Z_GPU_IO;
                why = "was not taken";
            }
    if (n < 0)
        fprintf(stderr, "frame %zu of %zu %s\n", taken, chunks->chunks, why ? why : h5z_gpu_last_error());
    h5z_gpu_end(&work);
    free(origins);
    return n < 0 ? (int)n : 0;
}

/* --- The host --------------------------------------------------------------------------------------------------- */

typedef int (*write_chunk)(int64_t dataset, int64_t plist, uint32_t filters, const uint64_t *offset, size_t len,
                           const void *frame);

typedef struct {
    dataset_info of;
    device_chunks all;
    size_t len, batch, next; /* bytes of a chunk; chunks of a call; the first chunk that no caller has */
    int64_t dataset;
    write_chunk write;
    int failed;
    pthread_mutex_t lock;
} job;

/* What a caller is at. */
typedef struct {
    job *of;
    size_t first;
} call;

/* Chunks follow one another along the slowest axis. */
static int take(void *host, size_t chunk, const void *frame, size_t len) {
    const call *now = host;
    job *work = now->of;
    uint64_t offset[MOST_AXES] = {(now->first + chunk) * work->of.dims[0]};
    pthread_mutex_lock(&work->lock);
    int written = work->write(work->dataset, 0, 0, offset, len, frame);
    pthread_mutex_unlock(&work->lock);
    return written;
}

static void *caller(void *of) {
    job *work = of;
    const encode_on_device filter = encode;
    for (;;) {
        pthread_mutex_lock(&work->lock);
        call now = {work, work->next};
        device_chunks some = work->all;
        size_t left = work->failed ? 0 : some.chunks - now.first;
        some.chunks = left < work->batch ? left : work->batch;
        work->next += some.chunks;
        pthread_mutex_unlock(&work->lock);
        if (!some.chunks)
            return NULL;
        some.at += now.first * work->len;
        int failed = filter(&work->of, &some, take, &now);
        if (failed) {
            pthread_mutex_lock(&work->lock);
            work->failed = failed;
            pthread_mutex_unlock(&work->lock);
        }
    }
}

/* Writes all chunks of an array, `batch` of them a call, from as many threads as there are callers. 0, or less. */
int device_buffer_write(const uint32_t *words, size_t count, const char *type, size_t rank, const uint64_t *dims,
                        const void *at, int device, void *stream, size_t len, size_t chunks, size_t batch, int callers,
                        write_chunk write, int64_t dataset) {
    job work = {.of = {words, count, type, rank, dims}, .all = {at, chunks, device, stream}, .len = len,
                .batch = batch, .dataset = dataset, .write = write, .lock = PTHREAD_MUTEX_INITIALIZER};
    enum { MOST_CALLERS = 64 };
    pthread_t threads[MOST_CALLERS];
    int started = 0;
    if (callers > MOST_CALLERS)
        return H5Z_GPU_FAILED;
    while (started < callers && !pthread_create(&threads[started], NULL, caller, &work))
        started++;
    for (int k = 0; k < started; k++)
        pthread_join(threads[k], NULL);
    return started < callers ? H5Z_GPU_FAILED : work.failed;
}
