/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every entry of the plugin, called by a program that has set another floating-point state: the same bytes and values
 * as in the default state, the bound held, and the program's state as it was, flags included.
 *
 * States are the four rounding modes, with and without flushing of results and of operands to zero, with and without
 * signals for every exception. Nothing here computes with floats while such a state is set. */
#include "h5z_gpu.h"
#include <H5PLextern.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                   \
    do {                                                                                              \
        if (!(what)) {                                                                                \
            leave();                                                                                  \
            printf("line %d, state %#x, %s: %s: %s\n", __LINE__, state, what_now, #what, h5z_gpu_last_error()); \
            return 1;                                                                                 \
        }                                                                                             \
    } while (0)

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { DEFAULT = 0x1f80, MASKS = 0x1f80, ROUNDING = 13, FLUSH = 0x8000, ZEROS = 0x40, INEXACT = 0x20 };
static void set(unsigned word) { _mm_setcsr(word); }
static unsigned get(void) { return _mm_getcsr(); }
#elif defined(__aarch64__)
/* FPCR's bits; traps are left alone, few processors have them. */
enum { DEFAULT = 0, MASKS = 0, ROUNDING = 22, FLUSH = 1 << 24, ZEROS = 1, INEXACT = 0 };
static void set(unsigned word) { __asm__ volatile("msr fpcr, %0" ::"r"((unsigned long)word)); }
static unsigned get(void)
{
    unsigned long word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return (unsigned)word;
}
#endif

static unsigned state = DEFAULT;
static const char *what_now = "";

static void enter(void) { set(state); }

/* Whether the state is still the one that was set; afterwards it is the default. */
static int leave(void)
{
    int same = get() == state;
    set(DEFAULT);
    return same;
}

/* One call in the state; its answer must be as wanted, and the state the same afterwards. */
#define CALL(wanted, call)             \
    do {                               \
        enter();                       \
        int64_t got_ = (int64_t)(call); \
        CHECK(leave());                \
        CHECK(got_ == (int64_t)(wanted)); \
    } while (0)

enum { ROWS = 60, N = ROWS * 500, MANY = 14 * N, ROOM = MANY * 8 + 64 };

struct request {
    const char *text;
    /* The promise, over both: abs(x - y) <= top / below * (1, range, abs(x)). */
    double top, below;
    int mode;
};

static const struct request REQUESTS[] = {
    {"211003", 1, 1000, 1},      {"111003", 1, 1000, 1},       {"11003", 1, 1000, 1},
    {"21003", 1, 1000, 2},       {"221004", 1, 10000, 2},      {"121004", 1, 10000, 2},
    {"231003", 1, 1000, 3},      {"131003", 1, 1000, 3},       {"31002", 1, 100, 3},
    {"240600", 1, 1000, 2},      {"140600", 1, 1000, 2},       {"390000", 0, 1, 1},
    {"mode=lossless", 0, 1, 1},
    {"mode=abs,bound=3.3e-39,codec=lorenzo", 33, 0, 4}, {"mode=abs,bound=3.3e-39,codec=szx", 33, 0, 4},
    {"mode=pw_rel,bound=0.001234567", 1234567, 1e9, 3},
};

/* Waves around one, around the smallest normal number and far below it, half of all numbers denormal. */
static void fill(double *wave, int n, int rows)
{
    for (int i = 0; i < n; i++) {
        int row = i / (n / rows);
        double level = row % 3 == 0 ? 1 : row % 3 == 1 ? 0x1p-126 : 0x1p-140;
        wave[i] = level * (2.1 + sin(i / 70.0) + 0.01 * cos(i * 1.7)) * (i % 1000 < 500 ? 1 : -1);
    }
}

static int holds(const struct request *r, const double *x, const double *y, int n)
{
    __float128 least = x[0], most = x[0], limit = r->mode == 4 ? (__float128)3.3e-39 : (__float128)r->top / r->below;
    for (int i = 1; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    for (int i = 0; i < n; i++) {
        __float128 off = (__float128)x[i] - y[i], scale = 1;
        if (r->mode == 2)
            scale = most - least;
        if (r->mode == 3)
            scale = x[i] < 0 ? -(__float128)x[i] : x[i];
        /* 128 bits hold the sides to 2^-100 of themselves. */
        if ((off < 0 ? -off : off) > limit * scale * (1 + 0x1p-100))
            return 0;
    }
    return 1;
}

static int run(const struct request *r, const char *type, int n, int first_state, int step)
{
    static unsigned char frame[ROOM], again[ROOM], raw[ROOM], back[ROOM], twice[ROOM];
    static double x[MANY], y[MANY];
    const H5Z_class2_t *class = H5PLget_plugin_info();
    int size = type[2] - '0';
    uint64_t dims[2] = {(uint64_t)ROWS, (uint64_t)(n / ROWS)};
    size_t raw_len = (size_t)n * (size_t)size;
    uint32_t words[H5Z_GPU_WORDS_MAX], stored[H5Z_GPU_WORDS_MAX], other[H5Z_GPU_WORDS_MAX];
    char text[100], said[100];
    state = DEFAULT, what_now = r->text;
    fill(x, n, ROWS);
    for (int i = 0; i < n; i++) {
        if (size == 8) {
            memcpy(raw + 8 * i, &x[i], 8);
        } else {
            float f = (float)x[i];
            memcpy(raw + 4 * i, &f, 4);
            x[i] = f;
        }
    }
    int64_t count = h5z_gpu_words(r->text, words);
    CHECK(count >= 0);
    int64_t all = h5z_gpu_stored_words(words, (size_t)count, type, 2, dims, NULL, stored);
    int64_t long_text = h5z_gpu_text(words, (size_t)count, text, sizeof text);
    int64_t len = h5z_gpu_encode(words, (size_t)count, type, 2, dims, NULL, raw, raw_len, frame, ROOM);
    CHECK(all >= 12 && long_text > 0 && len > 0 && (size_t)len <= raw_len + 64);
    CHECK(h5z_gpu_decode(frame, (size_t)len, back, raw_len) == (int64_t)raw_len);
    for (int i = 0; i < n; i++) {
        float f;
        memcpy(&f, back + size * i, 4);
        y[i] = f;
        if (size == 8)
            memcpy(&y[i], back + 8 * i, 8);
    }
    CHECK(holds(r, x, y, n));

    for (int k = first_state; k < 32; k += step) {
        state = DEFAULT | (unsigned)(k & 3) << ROUNDING | (k & 4 ? FLUSH : 0) | (k & 8 ? ZEROS : 0);
        state = k & 16 ? state & ~(unsigned)MASKS : state | INEXACT; /* a flag of the program's own */
        CALL(count, h5z_gpu_words(r->text, other));
        CHECK(!memcmp(other, words, 4 * (size_t)count));
        CALL(all, h5z_gpu_stored_words(words, (size_t)count, type, 2, dims, NULL, other));
        CHECK(!memcmp(other, stored, 4 * (size_t)all));
        CALL(long_text, h5z_gpu_text(words, (size_t)count, said, sizeof said));
        CHECK(!strcmp(said, text));
        CALL(len, h5z_gpu_encode(words, (size_t)count, type, 2, dims, NULL, raw, raw_len, again, ROOM));
        CHECK(!memcmp(again, frame, (size_t)len));
        CALL(raw_len, h5z_gpu_raw_len(frame, (size_t)len));
        CALL(raw_len, h5z_gpu_decode(frame, (size_t)len, twice, raw_len));
        CHECK(!memcmp(twice, back, raw_len));
        memset(again, 0, (size_t)len), memset(twice, 0, raw_len);
        const void *in[1] = {raw}, *frames[1] = {frame};
        void *out[1] = {again}, *raws[1] = {twice};
        int64_t lens[1];
        const size_t flens[1] = {(size_t)len}, sizes[1] = {raw_len};
        int status[1];
        CALL(1, h5z_gpu_encode_batch(words, (size_t)count, type, 2, dims, NULL, 1, in, raw_len, out, ROOM, lens));
        CHECK(lens[0] == len && !memcmp(again, frame, (size_t)len));
        CALL(1, h5z_gpu_decode_batch(1, frames, flens, raws, sizes, status));
        CHECK(!memcmp(twice, back, raw_len));
        size_t room = raw_len;
        void *buf = malloc(raw_len);
        CHECK(buf);
        memcpy(buf, raw, raw_len);
        CALL(len, class->filter(0, (size_t)all, stored, raw_len, &room, &buf));
        CHECK(!memcmp(buf, frame, (size_t)len));
        CALL(raw_len, class->filter(H5Z_FLAG_REVERSE, (size_t)all, stored, (size_t)len, &room, &buf));
        CHECK(!memcmp(buf, back, raw_len));
        free(buf);
    }
    return 0;
}

/* A dataset in memory, written and read through HDF5 in the state: set_local and filter. */
static int through_hdf5(void)
{
    static float x[N], y[N];
    static double wave[N];
    static unsigned char frame[ROOM], in_file[ROOM];
    const hsize_t dims[2] = {ROWS, N / ROWS};
    const uint64_t extents[2] = {ROWS, N / ROWS};
    fill(wave, N, ROWS);
    for (int i = 0; i < N; i++)
        x[i] = (float)wave[i];
    const unsigned asked[] = {211003, 231003, 11003, 240600};
    for (int a = 0; a < 4; a++) {
        what_now = "through HDF5";
        int64_t len = h5z_gpu_encode(&asked[a], 1, "<f4", 2, extents, NULL, x, sizeof x, frame, ROOM);
        CHECK(len > 0);
        for (int k = 0; k < 32; k++) {
            state = DEFAULT;
            hid_t access = H5Pcreate(H5P_FILE_ACCESS), plan = H5Pcreate(H5P_DATASET_CREATE),
                space = H5Screate_simple(2, dims, NULL);
            CHECK(H5Pset_fapl_core(access, 1 << 20, 0) >= 0 && H5Pset_chunk(plan, 2, dims) >= 0);
            hid_t file = H5Fcreate("state.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
            CHECK(H5Pset_filter(plan, 443, H5Z_FLAG_MANDATORY, 1, &asked[a]) >= 0);
            state = DEFAULT | (unsigned)(k & 3) << ROUNDING | (k & 4 ? FLUSH : 0) | (k & 8 ? ZEROS : 0) | INEXACT;
            state = k & 16 ? state & ~(unsigned)(MASKS | INEXACT) : state;
            enter();
            hid_t set = H5Dcreate2(file, "v", H5T_IEEE_F32LE, space, H5P_DEFAULT, plan, H5P_DEFAULT);
            herr_t written = H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
            herr_t flushed = H5Dflush(set);
            CHECK(leave());
            CHECK(set >= 0 && written >= 0 && flushed >= 0);
            hsize_t stored = 0, origin[2] = {0, 0};
            uint32_t mask;
            CHECK(H5Dget_chunk_storage_size(set, origin, &stored) >= 0 && stored == (hsize_t)len);
            CHECK(H5Dread_chunk(set, H5P_DEFAULT, origin, &mask, in_file) >= 0 && !memcmp(in_file, frame, (size_t)len));
            H5Dclose(set);
            enter();
            set = H5Dopen2(file, "v", H5P_DEFAULT);
            herr_t read = H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
            CHECK(leave());
            CHECK(read >= 0);
            static float want[N];
            CHECK(h5z_gpu_decode(frame, (size_t)len, want, sizeof want) == sizeof want && !memcmp(want, y, sizeof y));
            CHECK(H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
            H5Pclose(access), H5Pclose(plan), H5Sclose(space);
        }
    }
    return 0;
}

/* The head of netCDF's NCZ_codec_t, and the two of its functions that need no file. */
struct codec {
    int version, sort;
    const char *name;
    unsigned id;
    void (*initialize)(void), (*finalize)(void);
    int (*to_words)(const char *, size_t *, unsigned **);
    int (*to_text)(size_t, const unsigned *, char **);
};
const struct codec *NCZ_get_codec_info(void);

static int nczarr(void)
{
    const struct codec *codec = NCZ_get_codec_info();
    const char *asked = "{\"id\": \"h5z-gpu\", \"mode\": \"abs\", \"bound\": 0.0123456789, \"codec\": \"szx\"}";
    size_t count, counted;
    unsigned *words, *again;
    char *text, *said;
    state = DEFAULT, what_now = "NCZarr";
    CHECK(!codec->to_words(asked, &count, &words) && count == 3);
    CHECK(!codec->to_text(count, words, &text) && strstr(text, "0.0123456789"));
    for (int k = 0; k < 32; k++) {
        state = DEFAULT | (unsigned)(k & 3) << ROUNDING | (k & 4 ? FLUSH : 0) | (k & 8 ? ZEROS : 0);
        state = k & 16 ? state & ~(unsigned)MASKS : state | INEXACT;
        CALL(0, codec->to_words(asked, &counted, &again));
        CHECK(counted == count && !memcmp(words, again, 4 * count));
        CALL(0, codec->to_text(count, words, &said));
        CHECK(!strcmp(said, text));
        free(again), free(said);
    }
    free(words), free(text);
    return 0;
}

int main(void)
{
    for (unsigned r = 0; r < sizeof REQUESTS / sizeof *REQUESTS; r++)
        if (run(&REQUESTS[r], "<f4", N, 0, 1) || run(&REQUESTS[r], "<f8", N, 0, 1))
            return 1;
    /* Long enough for several threads, which inherit the state of the one that starts them. */
    for (int r = 0; r < 9; r += 3)
        if (run(&REQUESTS[r], "<f4", MANY, 1, 6) || run(&REQUESTS[r + 1], "<f8", MANY, 1, 6))
            return 1;
    if (through_hdf5() || nczarr())
        return 1;
    printf("all good\n");
    return 0;
}
