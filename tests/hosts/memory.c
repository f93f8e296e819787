/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An HDF5 program in which memory runs out inside the filter, at every place where it asks for some.
 *
 *     memory fail WORD f4|f8|s DIMS own|host STEP     each STEP-th request of the filter fails: it alone, then all
 *                                                     from it on
 *     memory space WORD f4|f8|s DIMS STEP             less address space each time, in steps of STEP KiB
 *
 * One chunk of DIMS (ZxYxX) is written and read in a child process for each case; h5py and others cannot be told to
 * lack memory that exactly. "own" are the requests that libh5zgpu.so makes itself, for threads too and for the buffers
 * that it hands to HDF5; "host" are also those that HDF5 makes around it. Prints one line for writing and one for
 * reading.
 *
 * A write must succeed, coded or stored, or say that there is no memory; so must a read. What was written must come
 * back. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <dlfcn.h>
#include <hdf5.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- requests for memory ------------------------------------------------------------------------------------------ */

struct range { uintptr_t from, to; };
static struct range plugin, hdf5;
static atomic_long requests, first_failing;
static int all_from_there, hosts_too, armed;

static int in(struct range r, void *p) { return (uintptr_t)p - r.from < r.to - r.from; }

static int note(struct dl_phdr_info *info, size_t size, void *none)
{
    (void)size, (void)none;
    struct range *r =
        strstr(info->dlpi_name, "libh5zgpu") ? &plugin : strstr(info->dlpi_name, "libhdf5") ? &hdf5 : NULL;
    for (int k = 0; r && k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        uintptr_t from = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
            *r = (struct range){from, from + p->p_memsz};
    }
    return 0;
}

/* Whether the request for `n` bytes that returns to `caller` is one of those, and has to fail. */
static int fails(void *caller, size_t n)
{
    if (!armed)
        return 0;
    int counts = in(plugin, caller);
    /* HDF5 itself does not survive all failures of its small ones. */
    if (!counts && hosts_too && n >= 4096 && in(hdf5, caller)) {
        void *frames[20];
        int depth = backtrace(frames, 20);
        for (int k = 0; k < depth && !counts; k++)
            counts = in(plugin, frames[k]);
    }
    if (!counts)
        return 0;
    long k = ++requests;
    return all_from_there ? k >= first_failing : k == first_failing;
}

#define FAIL_OR(n, what)                               \
    if (fails(__builtin_return_address(0), n)) {      \
        errno = ENOMEM;                               \
        return NULL;                                  \
    }                                                 \
    return what

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { FAIL_OR(n, __libc_malloc(n)); }
void *calloc(size_t n, size_t each) { FAIL_OR(n * each, __libc_calloc(n, each)); }
void *realloc(void *p, size_t n) { FAIL_OR(n, __libc_realloc(p, n)); }
void *aligned_alloc(size_t to, size_t n) { FAIL_OR(n, __libc_memalign(to, n)); }
int posix_memalign(void **p, size_t to, size_t n)
{
    void *made = fails(__builtin_return_address(0), n) ? NULL : __libc_memalign(to, n);
    return made ? (*p = made, 0) : ENOMEM;
}
int pthread_create(pthread_t *t, const pthread_attr_t *how, void *(*run)(void *), void *with)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                        void *))dlsym(RTLD_NEXT, "pthread_create");
    return fails(__builtin_return_address(0), 0) ? EAGAIN : real(t, how, run, with);
}

/* --- one chunk, written and read ---------------------------------------------------------------------------------- */

enum { CODED, STORED, NO_MEMORY, HOSTS_OWN, WRONG, OUTCOMES };
static const char *const OUTCOME[] = {"coded", "stored", "no memory, said so", "HDF5's own failure", "WRONG"};

static unsigned word;
static hid_t type;
static size_t size, bytes;
static hsize_t dims[3];
static char *data, *back;
static const char *good = "good.h5";

static void die(const char *what)
{
    printf("memory: %s\n", what);
    fflush(stdout);
    _exit(WRONG);
}

static herr_t look(unsigned n, const H5E_error2_t *e, void *found)
{
    (void)n;
    if (e->desc && strstr(e->desc, "h5z-gpu: no memory for "))
        *(int *)found |= 1;
    if (e->desc && strstr(e->desc, "h5z-gpu"))
        *(int *)found |= 2;
    return 0;
}

/* What HDF5's error stack says of a failure. */
static int failure(void)
{
    int found = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, look, &found);
    return found & 1 ? NO_MEMORY : found & 2 ? WRONG : HOSTS_OWN;
}

static int same(void)
{
    if (size == 16 || word == 390000)
        return !memcmp(data, back, bytes);
    for (size_t i = 0; i < bytes / size; i++) {
        double x = size == 4 ? ((float *)data)[i] : ((double *)data)[i];
        double y = size == 4 ? ((float *)back)[i] : ((double *)back)[i];
        if (!(fabs(x - y) <= 1e-3))
            return 0;
    }
    return 1;
}

static hid_t parts(hid_t *plan)
{
    *plan = H5Pcreate(H5P_DATASET_CREATE);
    unsigned count = size == 16 ? 0 : 1;
    if (H5Pset_chunk(*plan, 3, dims) < 0 || H5Pset_filter(*plan, 443, H5Z_FLAG_MANDATORY, count, &word) < 0)
        die("H5Pset_filter");
    return H5Screate_simple(3, dims, NULL);
}

static int write_it(const char *file, void (*arm)(void))
{
    hid_t plan, space = parts(&plan), f = H5Fcreate(file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (arm)
        arm();
    hid_t set = H5Dcreate2(f, "v", type, space, H5P_DEFAULT, plan, H5P_DEFAULT);
    int outcome = CODED;
    if (set < 0)
        outcome = failure();
    else if (H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0 || H5Dflush(set) < 0)
        outcome = failure();
    armed = 0;
    struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &none);
    if (outcome != CODED) {
        return outcome;
    }
    hsize_t at[3] = {0, 0, 0}, len = 0;
    if (H5Dget_chunk_storage_size(set, at, &len) < 0 || len > bytes + 64)
        return WRONG;
    H5Dclose(set);
    if (H5Fclose(f) < 0)
        return WRONG;
    memset(back, 0, bytes);
    f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(f, "v", H5P_DEFAULT);
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) < 0 || !same())
        return WRONG;
    return len > bytes ? STORED : CODED;
}

static int read_it(const char *file, void (*arm)(void))
{
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(f, "v", H5P_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    memset(back, 0, bytes);
    arm();
    int read = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0, outcome = read ? CODED : failure();
    armed = 0;
    return outcome == CODED && !same() ? WRONG : outcome;
}

static int write_one(void (*arm)(void))
{
    char name[40];
    snprintf(name, sizeof name, "one.%d.h5", (int)getpid());
    int outcome = write_it(name, arm);
    unlink(name);
    return outcome;
}

static int read_one(void (*arm)(void)) { return read_it(good, arm); }

/* --- the series --------------------------------------------------------------------------------------------------- */

static void arm_requests(void)
{
    atomic_store(&requests, 0);
    armed = 1;
}

static long spare;
static void arm_space(void)
{
    char line[200];
    long now = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || !fgets(line, sizeof line, f) || sscanf(line, "%ld", &now) != 1)
        die("/proc/self/statm");
    fclose(f);
    rlim_t limit = (rlim_t)(now * sysconf(_SC_PAGESIZE) + spare * 1024);
    if (setrlimit(RLIMIT_AS, &(struct rlimit){limit, RLIM_INFINITY}))
        die("setrlimit");
}

/* Runs one case in a child: its outcome, or OUTCOMES where a signal ended it; `made` takes its requests. */
static int child(int (*work)(void (*)(void)), void (*arm)(void), long *made)
{
    int pipes[2], status;
    long count = 0;
    if (pipe(pipes))
        die("pipe");
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        alarm(120);
        int outcome = work(arm);
        count = requests;
        if (write(pipes[1], &count, sizeof count) != sizeof count)
            outcome = WRONG;
        _exit(outcome);
    }
    close(pipes[1]);
    if (pid < 0 || read(pipes[0], &count, sizeof count) < 0 || waitpid(pid, &status, 0) != pid)
        die("fork");
    close(pipes[0]);
    if (made)
        *made = count;
    return WIFEXITED(status) && WEXITSTATUS(status) < OUTCOMES ? WEXITSTATUS(status) : OUTCOMES;
}

static int report(const char *what, long all, const long *seen, const char *first_bad)
{
    long cases = 0;
    for (int k = 0; k <= OUTCOMES; k++)
        cases += seen[k];
    printf("%s %ld cases of %ld:", what, cases, all);
    for (int k = 0; k < OUTCOMES; k++)
        if (seen[k])
            printf(" %ld %s,", seen[k], OUTCOME[k]);
    printf(" %ld ended%s\n", seen[OUTCOMES], first_bad);
    return seen[OUTCOMES] + seen[WRONG] > 0;
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    word = (unsigned)strtoul(argv[2], NULL, 10);
    size = !strcmp(argv[3], "f4") ? 4 : !strcmp(argv[3], "f8") ? 8 : 16;
    if (sscanf(argv[4], "%llux%llux%llu", (unsigned long long *)&dims[0], (unsigned long long *)&dims[1],
               (unsigned long long *)&dims[2]) != 3)
        return 2;
    size_t n = dims[0] * dims[1] * dims[2];
    bytes = n * size;
    type = size == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
    if (size == 16) {
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, 16);
    }
    data = malloc(bytes), back = malloc(bytes);
    if (!data || !back)
        die("malloc");
    for (size_t i = 0; i < n; i++) {
        double x = 10 * sin((double)i / 300) + cos((double)(i / dims[2]) / 9) + 1e-2 * sin((double)i * 77)
            + (i % 5000 == 0 ? 1e30 : 0);
        if (size == 16)
            snprintf(data + 16 * i, 16, "name %zu", i * i % 999);
        else if (size == 8)
            ((double *)data)[i] = x;
        else
            ((float *)data)[i] = (float)x;
    }
    void *frames[2];
    backtrace(frames, 2); /* loads what it needs */
    /* Loads the plugin and calls nothing of it: each child is its first user. */
    if (H5Zfilter_avail(443) <= 0)
        die("no filter 443");
    dl_iterate_phdr(note, NULL);
    if (!plugin.to || !hdf5.to)
        die("a library was not found");

    int bad = 0, space = !strcmp(argv[1], "space");
    hosts_too = !space && !strcmp(argv[5], "host");
    long step = atol(argv[space ? 5 : 6]);
    for (int reading = 0; reading < 2; reading++) {
        int (*work)(void (*)(void)) = reading ? read_one : write_one;
        if (reading) {
            pid_t pid = fork();
            if (!pid)
                _exit(write_it(good, NULL));
            int status;
            if (waitpid(pid, &status, 0) != pid || status)
                die("writing the file to read");
        }
        long seen[OUTCOMES + 1] = {0}, all = 0;
        char first_bad[100] = "";
        if (space) {
            for (all = 12 * (long)(bytes >> 10) + 16384, spare = all; spare >= 0; spare -= step) {
                int outcome = child(work, arm_space, NULL);
                if (outcome >= WRONG && !*first_bad)
                    snprintf(first_bad, sizeof first_bad, ", first with %ld KiB", spare);
                seen[outcome]++;
            }
        } else {
            first_failing = INT32_MAX;
            if (child(work, arm_requests, &all) != CODED || !all)
                die("nothing failed, but it is not coded");
            for (all_from_there = 0; all_from_there < 2; all_from_there++)
                for (first_failing = 1; first_failing <= all; first_failing += step) {
                    int outcome = child(work, arm_requests, NULL);
                    /* After one request that failed there is memory again: a write cannot fail. */
                    int must = !reading && !hosts_too && !all_from_there && outcome == NO_MEMORY;
                    if ((outcome >= WRONG || must) && !*first_bad)
                        snprintf(first_bad, sizeof first_bad, ", first %s %ld", all_from_there ? "all from" : "only",
                                 (long)first_failing);
                    seen[must ? WRONG : outcome]++;
                }
        }
        bad |= report(reading ? "reading" : "writing", all, seen, first_bad);
    }
    return bad;
}
