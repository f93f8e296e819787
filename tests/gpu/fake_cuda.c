// SPDX-License-Identifier: MIT OR Apache-2.0
// A stand-in for libcuda.so.1, for tests of the host side on machines without a GPU.
//
// Device memory is host memory, streams run at once, contexts are numbers kept per thread. Kernels come from a folder
// of emulated ones (emulator.h); else a function that the test hands over stands for them, or nothing runs. What it can
// do that a driver cannot: fail at a chosen call, run out of memory at a chosen size, lack a symbol, count calls, and
// name what was done wrong (a copy outside an allocation, a call without the context, a call in a forked child).
//
//   FAKE_CUDA_KERNELS=folder               kernels/NAME.cu is NAME.so there
//   FAKE_CUDA_FAIL_AT=n FAKE_CUDA_CODE=c   the n-th call (from 1) returns c; with FAKE_CUDA_STICKY=1 every later call
//                                          that needs a context does as well
//   FAKE_CUDA_DEVICES=n                    devices (default 2)
//   FAKE_CUDA_MEMORY=bytes                 device memory (default 1 GiB)
//   FAKE_CUDA_CAPABILITY=n                 compute capability of every device, times ten (default 90, Hopper's)
//   FAKE_CUDA_DRIVER=n                     what CUDA the driver is for, times 1000 (default 13000)
//   -DWITHOUT_cuName                       (when compiling) leaves a function out: cuCtxSetCurrent, cuMemFreeHost,
//                                          cuEventRecord
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult;
// As in emulator.h.
typedef struct { unsigned threads; void (*launch)(unsigned ctas, const void *args); } Kernel;
typedef struct { char name[64]; const Kernel *emulated; } Function;
typedef void (*Runner)(const char *name, unsigned ctas, unsigned threads, void *args);

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, NOT_FOUND = 500 };
enum { MOST = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls, faults, broken;
static pid_t started;
static Runner runner;
static struct { char *at; size_t len; int device; } blocks[MOST];
static size_t used;
static long launches[16], early;
// A bit for each device whose context was taken.
static unsigned opened;
// Bytes copied to devices and from them; page-locked bytes now and at most.
static size_t moved[2], locked, most_locked;
static __thread uintptr_t current;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

// For tests: what happened so far.
long fake_cuda_calls(void) { return calls; }
long fake_cuda_faults(void) { return faults; }
uintptr_t fake_cuda_current(void) { return current; }
void fake_cuda_set_current(uintptr_t context) { current = context; }
void fake_cuda_runner(Runner f) { runner = f; }
long fake_cuda_launches(int device) { return launches[device & 15]; }
long fake_cuda_early(void) { return early; }
long fake_cuda_opened(void) { return (long)opened; }
size_t fake_cuda_used(void) { return used; }
size_t fake_cuda_moved(int from_device) { return moved[from_device != 0]; }
size_t fake_cuda_most_locked(void) { return most_locked; }

static void fault(const char *what, const char *why) {
    __atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST);
    fprintf(stderr, "fake driver: %s: %s\n", what, why);
}

// Counts the call; the result that it must return, if it must fail.
static CUresult call(const char *name, int needs_context) {
    long n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (started && started != getpid()) {
        fault(name, "called in a forked child");
        return NOT_INITIALIZED;
    }
    if (n == number("FAKE_CUDA_FAIL_AT", 0)) {
        broken = number("FAKE_CUDA_STICKY", 0);
        return (CUresult)number("FAKE_CUDA_CODE", 700);
    }
    if (broken && needs_context) return (CUresult)number("FAKE_CUDA_CODE", 700);
    if (needs_context && current < 1000) {
        fault(name, "no context of a device is current");
        return INVALID_CONTEXT;
    }
    return OK;
}
#define CALL(needs_context) do { CUresult r_ = call(__func__, needs_context); if (r_) return r_; } while (0)

static int inside(const char *at, size_t len) {
    for (int i = 0; i < MOST; i++) {
        if (blocks[i].at && at >= blocks[i].at && len <= blocks[i].len &&
            (size_t)(at - blocks[i].at) <= blocks[i].len - len) return 1;
    }
    return 0;
}

// The device that an address is on, or -1.
static int device_of(const char *at) {
    for (int i = 0; i < MOST; i++) {
        if (blocks[i].at && at >= blocks[i].at && at < blocks[i].at + blocks[i].len) return blocks[i].device;
    }
    return -1;
}

static char *take(size_t len, int device) {
    char *at = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && !at; i++) {
        if (!blocks[i].at && posix_memalign((void **)&at, 512, len) == 0) {
            memset(at, 0xa5, len);
            blocks[i].at = at;
            blocks[i].len = len;
            blocks[i].device = device;
        }
    }
    pthread_mutex_unlock(&lock);
    return at;
}

static CUresult give(char *at, size_t *from) {
    CUresult result = INVALID;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++) {
        if (at && blocks[i].at == at) {
            blocks[i].at = NULL;
            if (from) *from -= blocks[i].len;
            result = OK;
        }
    }
    pthread_mutex_unlock(&lock);
    if (result == OK) free(at);
    else fault("free", "not an allocation");
    return result;
}

// The kernel FILE_STEP of the library FILE.so.
static const Kernel *emulated(const char *folder, const char *name) {
    char text[4096];
    for (const char *end = strchr(name, '_'); end; end = strchr(end + 1, '_')) {
        snprintf(text, sizeof text, "%s/%.*s.so", folder, (int)(end - name), name);
        if (access(text, R_OK) != 0) continue;
        void *library = dlopen(text, RTLD_NOW);
        snprintf(text, sizeof text, "kernel_%s", name);
        const Kernel *kernel = library ? dlsym(library, text) : NULL;
        if (!kernel) fault(name, dlerror());
        return kernel;
    }
    fault(name, "of no file that is emulated");
    return NULL;
}

CUresult cuDriverGetVersion(int *version) { CALL(0); *version = (int)number("FAKE_CUDA_DRIVER", 13000); return OK; }
CUresult cuInit(unsigned flags) { CALL(0); started = getpid(); return flags ? INVALID : OK; }
CUresult cuDeviceGetCount(int *n) { CALL(0); *n = (int)number("FAKE_CUDA_DEVICES", 2); return *n ? OK : 100; }
CUresult cuDeviceGet(int *d, int ordinal) { CALL(0); *d = ordinal; return OK; }
CUresult cuDeviceGetName(char *name, int len, int d) { CALL(0); snprintf(name, (size_t)len, "Fake %d", d); return OK; }
// 75 and 76: the compute capability.
CUresult cuDeviceGetAttribute(int *value, int what, int d) {
    CALL(0);
    const int capability = (int)number("FAKE_CUDA_CAPABILITY", 90);
    if (d < 0 || (what != 75 && what != 76)) return INVALID;
    *value = what == 75 ? capability / 10 : capability % 10;
    return OK;
}
CUresult cuDevicePrimaryCtxRetain(uintptr_t *context, int d) {
    CALL(0);
    if (d < 0 || d >= number("FAKE_CUDA_DEVICES", 2)) return 101;
    *context = 1000 + (uintptr_t)d;
    opened |= 1u << (d & 31);
    return OK;
}
CUresult cuDevicePrimaryCtxRelease_v2(int d) { CALL(0); (void)d; return OK; }
CUresult cuCtxGetCurrent(uintptr_t *context) { CALL(0); *context = current; return OK; }
CUresult cuCtxGetDevice(int *d) { CALL(0); *d = (int)current - 1000; return *d < 0 ? INVALID_CONTEXT : OK; }
#ifndef WITHOUT_cuCtxSetCurrent
CUresult cuCtxSetCurrent(uintptr_t context) { CALL(0); current = context; return OK; }
#endif
// An ELF file for CUDA's machine, of this major version and no later minor one; or PTX. 209: no binary for this GPU.
CUresult cuModuleLoadData(void **module, const void *image) {
    CALL(1);
    const unsigned char *at = image;
    const int capability = (int)number("FAKE_CUDA_CAPABILITY", 90);
    if ((uintptr_t)image & 7) return INVALID;
    if (memcmp(at, "\x7f" "ELF", 4) == 0) {
        const int arch = at[8] >= 8 ? at[49] : at[48];
        if (at[18] != 190 || arch > capability || arch / 10 != capability / 10) {
            fault(__func__, "for another device");
            return 209;
        }
    } else if (!strstr(image, ".version ")) { fault(__func__, "neither machine code nor PTX"); return 200; }
    *module = (void *)image;
    return OK;
}
CUresult cuModuleGetFunction(void **f, void *module, const char *name) {
    CALL(1);
    Function *function = calloc(1, sizeof *function);
    if (!function || !module) return NOT_FOUND;
    snprintf(function->name, sizeof function->name, "%s", name);
    const char *folder = getenv("FAKE_CUDA_KERNELS");
    if (folder && !(function->emulated = emulated(folder, name))) return NOT_FOUND;
    *f = function;
    return OK;
}
CUresult cuFuncGetAttribute(int *value, int what, void *f) {
    CALL(1);
    if (!f) return INVALID;
    const Kernel *kernel = ((Function *)f)->emulated;
    if (what == 0) *value = kernel ? (int)kernel->threads : 256;
    else return INVALID;
    return OK;
}
typedef struct { unsigned id; char pad[4]; int value; char more[60]; } Attribute;
typedef struct {
    unsigned x, y, z, tx, ty, tz, shared;
    void *stream;
    const Attribute *attributes;
    unsigned count;
} Launch;
CUresult cuLaunchKernelEx(const Launch *l, void *f, void **params, void **extra) {
    CALL(1);
    const unsigned x = l->x, tx = l->tx;
    if (!l->stream || extra || l->shared || l->y * l->z * l->ty * l->tz != 1 || !x || !tx || tx > 1024) {
        fault(__func__, "odd shape");
        return INVALID;
    }
    // 6: programmatic stream serialization, of which devices before Hopper know nothing.
    for (unsigned k = 0; k < l->count; k++) {
        if (l->attributes[k].id != 6 || l->attributes[k].value != 1 || number("FAKE_CUDA_CAPABILITY", 90) < 90) {
            fault(__func__, "odd attribute");
            return INVALID;
        }
        early++;
    }
    const Function *function = f;
    if (function->emulated && function->emulated->threads != tx) {
        fault(function->name, "threads that are not its launch bound");
        return INVALID;
    }
    __atomic_add_fetch(&launches[(current - 1000) & 15], 1, __ATOMIC_SEQ_CST);
    if (function->emulated) function->emulated->launch(x, params[0]);
    else if (runner) runner(function->name, x, tx, params[0]);
    return OK;
}
CUresult cuStreamCreate(void **stream, unsigned flags) { CALL(1); *stream = malloc(1); (void)flags; return OK; }
CUresult cuStreamDestroy_v2(void *stream) { CALL(1); free(stream); return OK; }
CUresult cuStreamSynchronize(void *stream) { CALL(1); return stream ? OK : INVALID; }
CUresult cuEventCreate(void **event, unsigned flags) { CALL(1); *event = calloc(1, 8); (void)flags; return OK; }
#ifndef WITHOUT_cuEventRecord
CUresult cuEventRecord(void *event, void *stream) { CALL(1); *(long *)event = 1; return stream ? OK : INVALID; }
#endif
CUresult cuEventSynchronize(void *event) {
    CALL(1);
    if (!*(long *)event) fault("cuEventSynchronize", "never recorded");
    return OK;
}
CUresult cuEventQuery(void *event) { CALL(1); if (!*(long *)event) fault("cuEventQuery", "never recorded"); return OK; }
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    CALL(1);
    if (!*(long *)event) fault("cuStreamWaitEvent", "never recorded");
    return stream && !flags ? OK : INVALID;
}
// 9: the ordinal of the device that an address is on; the allocation was made in its context, and any may be current.
CUresult cuPointerGetAttribute(void *value, int what, uint64_t at) {
    CALL(0);
    int device = what == 9 ? device_of((const char *)(uintptr_t)at) : -1;
    if (device < 0) return INVALID;
    *(int *)value = device;
    return OK;
}
CUresult cuEventElapsedTime(float *ms, void *a, void *b) { CALL(1); *ms = 1; return a && b ? OK : INVALID; }
CUresult cuMemAlloc_v2(uint64_t *at, size_t len) {
    CALL(1);
    pthread_mutex_lock(&lock);
    int full = used + len > (size_t)number("FAKE_CUDA_MEMORY", 1 << 30);
    if (!full) used += len;
    pthread_mutex_unlock(&lock);
    if (full) return NO_MEMORY;
    *at = (uint64_t)(uintptr_t)take(len, (int)current - 1000);
    return *at ? OK : NO_MEMORY;
}
CUresult cuMemFree_v2(uint64_t at) { CALL(1); return give((char *)(uintptr_t)at, &used); }
CUresult cuMemHostAlloc(void **at, size_t len, unsigned flags) {
    CALL(1);
    if (flags || !(*at = take(len, -1))) return flags ? INVALID : NO_MEMORY;
    pthread_mutex_lock(&lock);
    locked += len;
    if (locked > most_locked) most_locked = locked;
    pthread_mutex_unlock(&lock);
    return OK;
}
#ifndef WITHOUT_cuMemFreeHost
CUresult cuMemFreeHost(void *at) { CALL(1); return give(at, &locked); }
#endif
// These take any memory of the host; the others below that which is page-locked alone.
CUresult cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len) {
    CALL(1);
    if (!inside((char *)(uintptr_t)to, len)) { fault("cuMemcpyHtoD", "outside"); return INVALID; }
    memcpy((char *)(uintptr_t)to, from, len);
    __atomic_add_fetch(&moved[0], len, __ATOMIC_SEQ_CST);
    return OK;
}
CUresult cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len) {
    CALL(1);
    if (!inside((char *)(uintptr_t)from, len)) { fault("cuMemcpyDtoH", "outside"); return INVALID; }
    memcpy(to, (char *)(uintptr_t)from, len);
    __atomic_add_fetch(&moved[1], len, __ATOMIC_SEQ_CST);
    return OK;
}
CUresult cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream) {
    CALL(1);
    if (!stream || !inside((char *)(uintptr_t)to, len) || !inside(from, len)) {
        fault("cuMemcpyHtoDAsync", "outside");
        return INVALID;
    }
    memcpy((char *)(uintptr_t)to, from, len);
    __atomic_add_fetch(&moved[0], len, __ATOMIC_SEQ_CST);
    return OK;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream) {
    CALL(1);
    if (!stream || !inside((char *)(uintptr_t)from, len) || !inside(to, len)) {
        fault("cuMemcpyDtoHAsync", "outside");
        return INVALID;
    }
    memcpy(to, (char *)(uintptr_t)from, len);
    __atomic_add_fetch(&moved[1], len, __ATOMIC_SEQ_CST);
    return OK;
}
// CUDA_MEMCPY3D: rows of `width` bytes, `height` of them `pitch` apart, `depth` planes of `rows` rows.
typedef struct {
    size_t x, y, z, lod;
    int kind;
    char *host;
    uint64_t device;
    void *array, *reserved;
    size_t pitch, rows;
} Side;
typedef struct { Side from, to; size_t width, height, depth; } Copy3D;
// The first byte of a side whose rows are all inside an allocation; NULL where one is not, or rows overlap.
static char *side(const Side *s, const Copy3D *c) {
    char *at = s->kind == 2 ? (char *)(uintptr_t)s->device : s->host;
    const size_t most = 0x7fffffff, last = ((c->depth - 1) * s->rows + c->height - 1) * s->pitch + c->width;
    const int on_device = s->kind == 2;
    if (s->x | s->y | s->z | s->lod || (s->kind != 1 && !on_device) || (device_of(at) >= 0) != on_device) return NULL;
    if (s->pitch > most || s->pitch < c->width || s->rows < c->height || (on_device && !inside(at, last))) return NULL;
    return at;
}
CUresult cuMemcpy3DAsync_v2(const Copy3D *c, void *stream) {
    CALL(1);
    char *from = side(&c->from, c), *to = side(&c->to, c);
    if (!stream || !from || !to || c->from.kind == c->to.kind || !c->width || !c->height || !c->depth) {
        fault(__func__, "outside, or odd");
        return INVALID;
    }
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++)
            memcpy(to + (z * c->to.rows + y) * c->to.pitch, from + (z * c->from.rows + y) * c->from.pitch, c->width);
    __atomic_add_fetch(&moved[c->from.kind == 2], c->width * c->height * c->depth, __ATOMIC_SEQ_CST);
    return OK;
}
CUresult cuMemsetD8Async(uint64_t at, unsigned char value, size_t len, void *stream) {
    CALL(1);
    if (!stream || !inside((char *)(uintptr_t)at, len)) { fault("cuMemsetD8Async", "outside"); return INVALID; }
    memset((char *)(uintptr_t)at, value, len);
    return OK;
}
CUresult cuGetErrorName(CUresult e, const char **text) { (void)e; *text = "FAKE"; return OK; }
CUresult cuGetErrorString(CUresult e, const char **text) {
    (void)e;
    *text = "a failure asked for by the test";
    return OK;
}
