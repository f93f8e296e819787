/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The plugin as C sees it: the filter's record against HDF5's own header, then every function of h5z_gpu.h. */
#include "h5z_gpu.h"
#include <H5PLextern.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                         \
    do {                                                                                    \
        if (!(what)) {                                                                      \
            printf("line %d: %s: %s\n", __LINE__, #what, h5z_gpu_last_error());             \
            return 1;                                                                       \
        }                                                                                   \
    } while (0)

enum { N = 40 * 500, CHUNKS = 3 };

static int record(void) {
    const H5Z_class2_t *class = H5PLget_plugin_info();
    CHECK(H5PLget_plugin_type() == H5PL_TYPE_FILTER);
    CHECK(class->version == H5Z_CLASS_T_VERS && class->id == h5z_gpu_filter_id());
    CHECK(class->encoder_present == 1 && class->decoder_present == 1);
    CHECK(!strcmp(class->name, "h5z-gpu"));
    CHECK(class->can_apply && class->set_local && class->filter);
    /* Creating a group asks about no type at all. */
    CHECK(class->can_apply(-1, -1, -1) > 0 && class->set_local(-1, -1, -1) >= 0);
    return 0;
}

/* The filter called by a program that is no HDF5, as NCZarr does, but without words. */
static int bare_filter(const float *x) {
    const H5Z_class2_t *class = H5PLget_plugin_info();
    size_t size = N * sizeof *x;
    void *buf = malloc(size);
    CHECK(buf);
    memcpy(buf, x, size);
    size_t len = class->filter(0, 0, NULL, size, &size, &buf);
    CHECK(len > 0 && len <= N * sizeof *x + 64 && size >= len);
    unsigned *lossless = NULL;
    size_t back = class->filter(H5Z_FLAG_REVERSE, 0, lossless, len, &size, &buf);
    CHECK(back == N * sizeof *x && size >= back && !memcmp(buf, x, back));
    /* What is no frame is refused, and the buffer left alone. */
    void *before = buf;
    CHECK(class->filter(H5Z_FLAG_REVERSE, 0, NULL, back, &size, &buf) == 0 && buf == before && !memcmp(buf, x, back));
    CHECK(strstr(h5z_gpu_last_error(), "damaged"));
    /* A frame of another length than the words say: HDF5 would read past it. */
    uint32_t words[H5Z_GPU_WORDS_MAX], short_chunk[H5Z_GPU_WORDS_MAX];
    uint64_t dims[2] = {40, 500}, other[2] = {40, 501};
    int64_t n = h5z_gpu_stored_words(NULL, 0, "<f4", 2, dims, NULL, words);
    int64_t m = h5z_gpu_stored_words(NULL, 0, "<f4", 2, other, NULL, short_chunk);
    CHECK(n == 14 && m == 14);
    len = class->filter(0, (size_t)n, words, back, &size, &buf);
    CHECK(len > 0 && len < back);
    CHECK(class->filter(H5Z_FLAG_REVERSE, (size_t)m, short_chunk, len, &size, &buf) == 0);
    CHECK(strstr(h5z_gpu_last_error(), "80000") && strstr(h5z_gpu_last_error(), "80160"));
    CHECK(class->filter(H5Z_FLAG_REVERSE, (size_t)n, words, len, &size, &buf) == back && !memcmp(buf, x, back));
    /* A chunk that is not the one of its words: an optional filter leaves it to HDF5, with the buffer as it was. */
    before = buf;
    CHECK(class->filter(H5Z_FLAG_OPTIONAL, (size_t)m, short_chunk, back, &size, &buf) == 0);
    CHECK(buf == before && !memcmp(buf, x, back));
    /* A mandatory one keeps it, and gives it back with its own length in a buffer of the words' length; an optional one
       never wrote such a frame. */
    len = class->filter(0, (size_t)m, short_chunk, back, &size, &buf);
    CHECK(len > 0 && len <= back + 64);
    CHECK(class->filter(H5Z_FLAG_REVERSE | H5Z_FLAG_OPTIONAL, (size_t)m, short_chunk, len, &size, &buf) == 0);
    CHECK(strstr(h5z_gpu_last_error(), "80000") && strstr(h5z_gpu_last_error(), "80160"));
    CHECK(class->filter(H5Z_FLAG_REVERSE, (size_t)m, short_chunk, len, &size, &buf) == back && size >= 80160);
    CHECK(!memcmp(buf, x, back) && ((float *)buf)[N] == 0 && ((float *)buf)[N + 39] == 0);
    /* Damaged words are not used: the frame alone tells. */
    len = class->filter(0, (size_t)n, words, back, &size, &buf);
    short_chunk[11] ^= 1;
    CHECK(len > 0 && class->filter(H5Z_FLAG_REVERSE, (size_t)m, short_chunk, len, &size, &buf) == back);
    CHECK(!memcmp(buf, x, back));
    CHECK(class->filter(0, 0, NULL, 1, NULL, &buf) == 0 && class->filter(0, 0, NULL, 1, &size, NULL) == 0);
    free(buf);
    return 0;
}

static int words_and_text(void) {
    uint32_t words[H5Z_GPU_WORDS_MAX];
    char text[100];
    CHECK(h5z_gpu_words("11003", words) == 1 && words[0] == 11003);
    CHECK(h5z_gpu_words("mode=abs,bound=1e-3,codec=szx", words) == 1 && words[0] == 111003);
    CHECK(h5z_gpu_words("mode=abs,bound=0.12345", words) == 3 && words[0] == 1);
    CHECK(h5z_gpu_text(words, 3, text, sizeof text) == (int64_t)strlen(text));
    CHECK(!strcmp(text, "mode=abs,bound=1.2345e-1"));
    CHECK(h5z_gpu_text(words, 3, text, 5) == 24 && !strcmp(text, "mode"));
    CHECK(h5z_gpu_words("mode=lossless", words) == 0);
    char state[8192];
    const uint32_t packed = 12504;
    CHECK(h5z_gpu_tools(&packed, 1, state, sizeof state) == (int64_t)strlen(state) &&
          strstr(state, "UD=443,1,1,12504"));
    const uint32_t none = 0;
    CHECK(h5z_gpu_tools(&none, 1, state, sizeof state) == -1 && strlen(h5z_gpu_last_error()) > 10);
    CHECK(h5z_gpu_status(state, sizeof state) == (int64_t)strlen(state) && strstr(state, h5z_gpu_version()));
    CHECK(strstr(state, "\"gpu_not_used\":") && strstr(state, "H5Z_GPU_MIN_BYTES") && h5z_gpu_status(NULL, 0) > 100);
    CHECK(h5z_gpu_choices(state, sizeof state) == (int64_t)strlen(state) && strstr(state, "\"keyword\":\"absolute\""));
    /* The stored list says the whole request again, and its last word alone means lossless. */
    const uint32_t user[1] = {231002};
    const uint64_t dims[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    CHECK(h5z_gpu_stored_words(user, 1, "<f8", 9, dims, NULL, words) == H5Z_GPU_WORDS_MAX);
    CHECK(h5z_gpu_text(words, H5Z_GPU_WORDS_MAX, text, sizeof text) > 0);
    CHECK(!strcmp(text, "mode=pw_rel,bound=1e-2,codec=lorenzo"));
    CHECK(h5z_gpu_text(&words[H5Z_GPU_WORDS_MAX - 1], 1, text, sizeof text) > 0 && !strcmp(text, "mode=lossless"));
    const char *wrong[] = {"", "0", "1", "1e-3", "mode=abs", "mode=rel,bound=2", NULL};
    for (int i = 0; i < 7; i++) {
        CHECK(h5z_gpu_words(wrong[i], words) == -1);
        CHECK(strlen(h5z_gpu_last_error()) > 10);
    }
    return 0;
}

static int there_and_back(const float *x) {
    const uint32_t words[1] = {11003};
    const uint64_t dims[2] = {40, 500};
    const float fill = 1e20f;
    const size_t raw = N * sizeof(float), capacity = h5z_gpu_max_encoded(raw);
    unsigned char *frames[CHUNKS];
    float *back[CHUNKS];
    const void *in[CHUNKS];
    size_t sizes[CHUNKS], lens[CHUNKS];
    int64_t got[CHUNKS];
    int status[CHUNKS];
    for (int k = 0; k < CHUNKS; k++) {
        frames[k] = malloc(capacity);
        back[k] = malloc(raw);
        CHECK(frames[k] && back[k]);
        in[k] = x, sizes[k] = raw;
    }
    int64_t len = h5z_gpu_encode(words, 1, "<f4", 2, dims, &fill, x, raw, frames[0], capacity);
    CHECK(len > 0 && (size_t)len < raw / 2);
    CHECK(h5z_gpu_raw_len(frames[0], (size_t)len) == (int64_t)raw);
    CHECK(h5z_gpu_decode(frames[0], (size_t)len, back[0], raw) == (int64_t)raw);
    for (int i = 0; i < N; i++)
        CHECK(x[i] == fill ? back[0][i] == fill : fabs((double)x[i] - (double)back[0][i]) <= 1e-3);
    CHECK(h5z_gpu_encode(words, 1, "<f4", 2, dims, &fill, x, raw, frames[1], 100) == -1);
    CHECK(h5z_gpu_decode(frames[0], (size_t)len, back[1], raw - 1) == -1);
    CHECK(h5z_gpu_decode(frames[0], (size_t)len - 1, back[1], raw) == H5Z_GPU_DAMAGED);
    CHECK(h5z_gpu_encode(words, 1, "<f4", 2, dims, &fill, x, raw - 4, frames[1], capacity) == -1);
    CHECK(strstr(h5z_gpu_last_error(), "raw_len"));
    CHECK(h5z_gpu_encode(words, 1, "float", 2, dims, NULL, x, raw, frames[1], capacity) == -1);
    CHECK(h5z_gpu_encode(words, 1, NULL, 2, dims, NULL, x, raw, frames[1], capacity) == -1);
    CHECK(h5z_gpu_encode(NULL, 1, "<f4", 2, dims, NULL, x, raw, frames[1], capacity) == -1);

    CHECK(h5z_gpu_encode_batch(words, 1, "<f4", 2, dims, &fill, CHUNKS, in, raw, (void *const *)frames, capacity,
                               got) == CHUNKS);
    for (int k = 0; k < CHUNKS; k++) {
        CHECK(got[k] == len && !memcmp(frames[k], frames[0], (size_t)len));
        lens[k] = (size_t)len;
    }
    frames[1][len / 2] ^= 4;
    CHECK(h5z_gpu_decode_batch(CHUNKS, (const void *const *)frames, lens, (void *const *)back, sizes,
                               status) == CHUNKS - 1);
    CHECK(status[0] == 0 && status[1] == H5Z_GPU_DAMAGED && status[2] == 0 && !memcmp(back[0], back[2], raw));
    CHECK(strstr(h5z_gpu_last_error(), "damaged"));
    for (int k = 0; k < CHUNKS; k++)
        free(frames[k]), free(back[k]);
    return 0;
}

enum { THREADS = 6, TURNS = 40, CHILDREN = 20 };
static atomic_int wrong, running;
static const float *shared_x;

/* One chunk through the filter, both ways, with the words of its dataset. */
static int turn(const float *x) {
    const H5Z_class2_t *class = H5PLget_plugin_info();
    uint32_t words[H5Z_GPU_WORDS_MAX];
    const uint64_t dims[2] = {40, 500};
    const uint32_t user[1] = {11003};
    int64_t n = h5z_gpu_stored_words(user, 1, "<f4", 2, dims, NULL, words);
    size_t size = N * sizeof *x;
    void *buf = malloc(size);
    CHECK(n == 14 && buf);
    memcpy(buf, x, size);
    size_t len = class->filter(0, (size_t)n, words, size, &size, &buf);
    CHECK(len > 0 && class->filter(H5Z_FLAG_REVERSE, (size_t)n, words, len, &size, &buf) == N * sizeof *x);
    for (int i = 0; i < N; i++)
        CHECK(fabs((double)x[i] - (double)((float *)buf)[i]) <= 1e-3);
    free(buf);
    return 0;
}

static void *turns(void *none) {
    (void)none;
    for (int i = 0; i < TURNS || running; i++)
        wrong |= turn(shared_x);
    return NULL;
}

/* Several threads inside the filter at once, as HDF5 2.3 will call it, while the process forks: no child may wait for
   a thread that it has not. */
static int threads_and_forks(const float *x) {
    pthread_t threads[THREADS];
    shared_x = x, running = 1;
    alarm(300);
    for (int k = 0; k < THREADS; k++)
        CHECK(!pthread_create(&threads[k], NULL, turns, NULL));
    for (int k = 0; k < CHILDREN; k++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            alarm(60);
            _exit(turn(x));
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    running = 0;
    for (int k = 0; k < THREADS; k++)
        CHECK(!pthread_join(threads[k], NULL));
    CHECK(!wrong);
    return 0;
}

/* The chunks of an array with strides, and a part of them, from memory and from a file. The functions below share: */
enum { COUNT = 3 * 4 };
static uint64_t shape[2] = {40, 500}, chunk[2] = {16, 128}, offsets[2 * COUNT];
static int64_t origins[2 * COUNT], strides[2] = {-500 * 4, 4}, n;
static uint32_t words[H5Z_GPU_WORDS_MAX];
static float fill = 1e20f, *back;
static h5z_gpu_array from, to;
static h5z_gpu_work *work;
static void *copies[COUNT];
static size_t lens[COUNT];
static uint64_t at[COUNT], long_lens[COUNT], end = 100;
static int status[COUNT];
static FILE *file;

/* Keeps the frames of all chunks, in memory and in a file. */
static int encode_array(const float *x) {
    CHECK((back = malloc(N * sizeof *back)) && h5z_gpu_words("mode=abs,bound=1e-3,codec=lorenzo", words) == 1);
    for (int k = 0; k < COUNT; k++)
        for (int a = 0; a < 2; a++)
            origins[2 * k + a] = (int64_t)(offsets[2 * k + a] = a ? k % 4 * 128u : k / 4 * 16u);
    /* Read from its last row on. */
    from = (h5z_gpu_array){.data = (float *)x + 39 * 500, .device = -1, .type = "<f4", .rank = 2, .shape = shape,
                           .strides = strides};
    to = (h5z_gpu_array){.data = back, .device = -1, .type = "<f4", .rank = 2, .shape = shape};
    CHECK(h5z_gpu_encode_array(words, 1, &from, chunk, &fill, COUNT, origins, 2, &work) == COUNT);
    int k = 0;
    const void *const *frames;
    const size_t *some;
    while ((n = h5z_gpu_next(work, &frames, &some)) > 0)
        for (int64_t i = 0; i < n; i++, k++) {
            CHECK((copies[k] = malloc(some[i])));
            memcpy(copies[k], frames[i], lens[k] = some[i]);
        }
    CHECK(n == 0 && k == COUNT && h5z_gpu_next(work, &frames, &some) == 0);
    h5z_gpu_end(&work);
    file = tmpfile();
    CHECK(file);
    for (k = 0; k < COUNT; k++) {
        at[k] = end, end += long_lens[k] = lens[k];
        CHECK(!fseek(file, (long)at[k], SEEK_SET) && fwrite(copies[k], 1, lens[k], file) == lens[k]);
    }
    CHECK(!fflush(file));
    return 0;
}

/* All of them come back, and the range is that of the values. */
static int decode_array(const float *x) {
    for (int from_file = 0; from_file < 2; from_file++) {
        memset(back, 0, N * sizeof *back);
        n = from_file ? h5z_gpu_decode_file(fileno(file), COUNT, at, long_lens, &to, chunk, origins, 2, status)
                      : h5z_gpu_decode_memory(COUNT, (const void *const *)copies, lens, &to, chunk, origins, 2, status);
        CHECK(n == COUNT);
        for (int i = 0; i < N; i++) {
            float want = x[(39 - i / 500) * 500 + i % 500];
            CHECK(want == fill ? back[i] == fill : fabs((double)want - back[i]) <= 1e-3);
        }
    }
    double range[2];
    CHECK(h5z_gpu_range(&from, chunk, &fill, COUNT, origins, 2, range) == 1 && range[0] >= -10 && range[1] <= 10);
    CHECK(h5z_gpu_range(&from, chunk, NULL, COUNT, origins, 2, range) == 1 && range[1] == fill);
    return 0;
}

static int damaged_frames(void) {
    /* A damaged frame and a file that ends leave the others alone. */
    ((char *)copies[3])[lens[3] / 2] ^= 1;
    CHECK(h5z_gpu_decode_memory(COUNT, (const void *const *)copies, lens, &to, chunk, origins, 2, status) == COUNT - 1);
    CHECK(status[3] == H5Z_GPU_DAMAGED && status[4] == 0 && strstr(h5z_gpu_last_error(), "frame 3"));
    at[5] = end;
    CHECK(h5z_gpu_decode_file(fileno(file), COUNT, at, long_lens, &to, chunk, origins, 2, status) == COUNT - 1 &&
          status[5] == H5Z_GPU_DAMAGED);
    CHECK(h5z_gpu_decode_file(-1, COUNT, at, long_lens, &to, chunk, origins, 2, status) == 0);
    CHECK(status[5] == H5Z_GPU_FAILED && h5z_gpu_last_errno() == 0);
    /* A folder is no damaged file. What is told of is the first other failure, beside the damage by a place where no
       file ends. */
    at[2] = UINT64_MAX;
    int folder = open("/", O_RDONLY);
    CHECK(h5z_gpu_decode_file(folder, COUNT, at, long_lens, &to, chunk, origins, 2, status) == 0 && !close(folder));
    CHECK(status[0] == H5Z_GPU_IO && status[2] == H5Z_GPU_DAMAGED && status[COUNT - 1] == H5Z_GPU_IO);
    CHECK(h5z_gpu_last_errno() == EISDIR && strstr(h5z_gpu_last_error(), "frame 0"));
    at[2] = at[1] + lens[1];
    return 0;
}

static int frames_say(void) {
    /* What the frames say, from all their bytes and from the first ones. */
    h5z_gpu_frame said[COUNT];
    const uint64_t raw_len = sizeof(float) * chunk[0] * chunk[1];
    CHECK(h5z_gpu_frames(fileno(file), COUNT, at, long_lens, raw_len, 1, 2, said) == COUNT - 1);
    CHECK(said[5].status == H5Z_GPU_DAMAGED && said[5].raw_len == 0 && strstr(h5z_gpu_last_error(), "frame 5"));
    CHECK(said[4].status == 0 && said[4].version == 2 && said[4].codec == 2 && said[4].mode == 1 &&
          said[4].element == 4);
    CHECK(said[4].raw_len == raw_len && said[4].bound <= 1e-3 && said[4].bound > 0.99e-3);
    char byte = ((char *)copies[3])[lens[3] / 2]; /* changed above, and not in the file yet */
    CHECK(!fseek(file, (long)(at[3] + lens[3] / 2), SEEK_SET) && fwrite(&byte, 1, 1, file) == 1 && !fflush(file));
    CHECK(h5z_gpu_frames(fileno(file), COUNT, at, long_lens, raw_len, 1, 2, said) == COUNT - 2 &&
          said[3].status == H5Z_GPU_DAMAGED);
    CHECK(h5z_gpu_frames(fileno(file), COUNT, at, long_lens, raw_len, 0, 2, said) == COUNT - 1 && said[3].status == 0);
    CHECK(h5z_gpu_frames(fileno(file), COUNT, at, long_lens, raw_len + 4, 0, 2, said) == 0);
    fclose(file);
    return 0;
}

static int refused_arrays(const float *x) {
    /* What cannot be. */
    to.flags = H5Z_GPU_READ_ONLY;
    CHECK(h5z_gpu_decode_file(0, COUNT, at, long_lens, &to, chunk, origins, 2, status) < 0 &&
          strstr(h5z_gpu_last_error(), "read-only"));
    from.device = 0;
    CHECK(h5z_gpu_encode_array(words, 1, &from, chunk, &fill, COUNT, origins, 2, &work) < 0 &&
          strstr(h5z_gpu_last_error(), "device 0"));
    from.device = -1, from.type = "float";
    CHECK(h5z_gpu_encode_array(words, 1, &from, chunk, &fill, COUNT, origins, 2, &work) < 0 &&
          strstr(h5z_gpu_last_error(), "<f4"));
    from.type = "<f4", from.data = NULL;
    CHECK(h5z_gpu_encode_array(words, 1, &from, chunk, &fill, COUNT, origins, 2, &work) < 0 &&
          strstr(h5z_gpu_last_error(), "null"));
    CHECK(h5z_gpu_encode_array(words, 1, NULL, chunk, &fill, COUNT, origins, 2, &work) < 0);
    uint32_t list[H5Z_GPU_WORDS_MAX];
    uint64_t other[2] = {16, 64};
    n = h5z_gpu_stored_words(words, 1, "<f4", 2, other, NULL, list);
    from.data = (float *)x + 39 * 500;
    CHECK(n > 0 && h5z_gpu_encode_array(list, (size_t)n, &from, chunk, &fill, COUNT, origins, 2, &work) < 0);
    CHECK(strstr(h5z_gpu_last_error(), "another dataset"));
    return 0;
}

static int arrays(const float *x) {
    int failed = encode_array(x) || decode_array(x) || damaged_frames() || frames_say() ||
                 refused_arrays(x);
    for (int k = 0; k < COUNT; k++)
        free(copies[k]);
    free(back);
    return failed;
}

int main(void) {
    float *x = malloc(N * sizeof *x);
    if (!x)
        return 2;
    for (int i = 0; i < N; i++)
        x[i] = i % 777 ? 10 * sinf((float)i / 300) : 1e20f;
    if (record() || bare_filter(x) || words_and_text() || there_and_back(x) || arrays(x) || threads_and_forks(x))
        return 1;
    printf("%s all good\n", h5z_gpu_version());
    free(x);
    return 0;
}
