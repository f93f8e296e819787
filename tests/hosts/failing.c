// SPDX-License-Identifier: MIT OR Apache-2.0
// LD_PRELOAD: counts the calls that change files below a folder, and lets one of them fail or end the process.
//
// `failing.py` arms it in a forked child, so that each call of a program's run is met once.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, FAIL_ONCE, FAIL_ON, SIGNAL, TORN };

static char below[4096];
static long at, *calls;  // calls: one for the process and those that it forks
static int action, number;

// From here on calls are counted, from 1. The k-th: FAIL_ONCE and FAIL_ON (this one and all later ones) fail with errno
// `how`; SIGNAL sends the process the signal `how` before the call; TORN writes half of the bytes before that.
void failing_arm(const char* folder, long k, int what, int how) {
    snprintf(below, sizeof below, "%s", folder);
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    at = k, action = what, number = how;
}

long failing_calls(void) { return __atomic_load_n(calls, __ATOMIC_SEQ_CST); }

static int path_counts(const char* path) {
    char full[8192], cwd[4096];
    if (!*below || !path) return 0;
    if (*path != '/') {
        if (!getcwd(cwd, sizeof cwd)) return 0;
        snprintf(full, sizeof full, "%s/%s", cwd, path);
        path = full;
    }
    size_t n = strlen(below);
    return strncmp(path, below, n) == 0 && (path[n] == '/' || !path[n]);
}

static int fd_counts(int fd) {
    char link[64], path[4096];
    if (!*below) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || *path != '/') return 0;  // a pipe, a socket
    path[n] = 0;
    return path_counts(path);
}

// True where the call is to fail; errno is set. `*torn` is set where half of it is to be done first, and then the end
// comes.
static int fails(int counts, int* torn) {
    *torn = 0;
    if (!counts) return 0;
    long k = __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
    if (!at || k < at || (k > at && action != FAIL_ON)) return 0;
    if (action == FAIL_ONCE || action == FAIL_ON) {
        errno = number;
        return 1;
    }
    if (action == SIGNAL) kill(getpid(), number);
    *torn = action == TORN;
    return 0;
}

#define REAL(result, name, ...)         \
    static result (*real)(__VA_ARGS__); \
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, #name);

#define BUFFER(name, names, ...)                                       \
    ssize_t name(int fd, const void* buf, size_t len, ##__VA_ARGS__) { \
        REAL(ssize_t, name, int, const void*, size_t, ##__VA_ARGS__)   \
        int torn;                                                      \
        if (fails(fd_counts(fd), &torn)) return -1;                    \
        if (torn) real names(len / 2), kill(getpid(), number);         \
        return real names(len);                                        \
    }
#define WRITE(n) (fd, buf, n)
#define PWRITE(n) (fd, buf, n, offset)
BUFFER(write, WRITE)
BUFFER(pwrite, PWRITE, off_t offset)
BUFFER(pwrite64, PWRITE, off_t offset)

#define CALL(result, name, counts, names, ...) \
    result name(__VA_ARGS__) {                 \
        REAL(result, name, __VA_ARGS__)        \
        int torn;                              \
        if (fails(counts, &torn)) return -1;   \
        if (torn) kill(getpid(), number);      \
        return real names;                     \
    }
CALL(ssize_t, writev, fd_counts(fd), (fd, v, n), int fd, const struct iovec* v, int n)
CALL(ssize_t, pwritev, fd_counts(fd), (fd, v, n, o), int fd, const struct iovec* v, int n, off_t o)
CALL(ssize_t, pwritev64, fd_counts(fd), (fd, v, n, o), int fd, const struct iovec* v, int n, off_t o)
CALL(ssize_t, copy_file_range, fd_counts(out), (in, a, out, b, n, f), int in, off_t* a, int out, off_t* b, size_t n,
     unsigned f)
CALL(ssize_t, sendfile, fd_counts(out), (out, in, a, n), int out, int in, off_t* a, size_t n)
CALL(ssize_t, sendfile64, fd_counts(out), (out, in, a, n), int out, int in, off_t* a, size_t n)
CALL(int, ftruncate, fd_counts(fd), (fd, n), int fd, off_t n)
CALL(int, ftruncate64, fd_counts(fd), (fd, n), int fd, off_t n)
CALL(int, truncate, path_counts(p), (p, n), const char* p, off_t n)
CALL(int, truncate64, path_counts(p), (p, n), const char* p, off_t n)
CALL(int, fsync, fd_counts(fd), (fd), int fd)
CALL(int, fdatasync, fd_counts(fd), (fd), int fd)
CALL(int, rename, path_counts(b), (a, b), const char* a, const char* b)
CALL(int, link, path_counts(b), (a, b), const char* a, const char* b)
CALL(int, chmod, path_counts(p), (p, m), const char* p, mode_t m)

#define OPEN(name)                                          \
    int name(const char* path, int flags, ...) {            \
        REAL(int, name, const char*, int, ...)              \
        mode_t mode = 0;                                    \
        int torn;                                           \
        if (flags & (O_CREAT | O_TRUNC)) {                  \
            va_list more;                                   \
            va_start(more, flags);                          \
            mode = va_arg(more, mode_t);                    \
            va_end(more);                                   \
            if (fails(path_counts(path), &torn)) return -1; \
            if (torn) kill(getpid(), number);               \
        }                                                   \
        return real(path, flags, mode);                     \
    }
OPEN(open)
OPEN(open64)
