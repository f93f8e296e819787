/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LD_PRELOAD: a call that reads or writes a file fails once. `fail_read(n, error)` names the n-th preadv from now on,
   by which the library reads, `fail_write(n, error)` the n-th pwrite, by which HDF5 writes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

static long reads, writes;
static int read_error, write_error;

void fail_read(long n, int error) { reads = n, read_error = error; }
void fail_write(long n, int error) { writes = n, write_error = error; }

static int fails(long *left, int error) {
    if (__atomic_sub_fetch(left, 1, __ATOMIC_SEQ_CST) != 0)
        return 0;
    errno = error;
    return 1;
}

#define CALL(name, what, type, left, error)                                                        \
    ssize_t name(int fd, type from, what count, off_t at) {                                        \
        static ssize_t (*real)(int, type, what, off_t);                                            \
        if (!real)                                                                                 \
            real = (ssize_t(*)(int, type, what, off_t))dlsym(RTLD_NEXT, #name);                    \
        return fails(&left, error) ? -1 : real(fd, from, count, at);                               \
    }
CALL(preadv, int, const struct iovec *, reads, read_error)
CALL(preadv64, int, const struct iovec *, reads, read_error)
CALL(pwrite, size_t, const void *, writes, write_error)
CALL(pwrite64, size_t, const void *, writes, write_error)
