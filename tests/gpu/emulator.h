// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs the kernels, as they are, on a CPU: tests/gpu/kernels.rs compiles each of them behind this file with the host's
// C++ compiler, and the stand-in for the driver (fake_cuda.c) launches them.
//
// A CTA's threads are fibres: one runs up to a barrier, a shuffle or a vote, then the next, in the order that
// EMULATOR_ORDER names: `forward`, `backward` or `random`. So what a thread reads without the barrier that it needs is
// not yet there in one of these orders. One CTA runs after the other, in the backward order the last one first; in the
// random order several take turns. Shared memory holds nonsense when a CTA starts, another in each order. The program
// ends, and says which kernel and where, when threads do not all come to the same barrier, when an index is outside its
// array or an address not aligned, and when a launch takes minutes.
//
// What needs a GPU all the same: CTAs and warps that really run at the same time, and the order in which they see each
// other's writes; branches for an architecture (`__CUDA_ARCH__`), and what nvcc makes of the code; registers and speed.
#pragma once
#include <fenv.h>
#include <link.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __constant__ static const
// Nothing else is thread_local here, which makes shared memory one piece that `shared_memory` finds.
#define __shared__ static thread_local

struct int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

static struct { unsigned x; } threadIdx, blockIdx;

// --- fibres ----------------------------------------------------------------------------------------------------------

namespace emulator {

// Threads of the largest CTA and of a warp, bytes of a fibre's stack, seconds for a launch.
constexpr unsigned MOST = 1024, WARP = 32, STACK = 256 << 10, SECONDS = 300;

// Threads that meet: a CTA or a warp. What they bring is kept twice: a thread may come to the next meeting before
// others have looked at what it brought to this one.
struct Group {
    unsigned first, size, here, turn;
    const char* file;
    int line;
    uint64_t sum[2], values[2][WARP];
};

// A CTA: its threads, those of them that can go on, the last one first, and its shared memory while another CTA runs.
struct Cta {
    unsigned block, ended, made;
    bool running;
    std::vector<unsigned> ready;
    Group all, warps[MOST / WARP];
    jmp_buf fibres[MOST];
    std::vector<char> shared;
};

// In the random order: CTAs that take turns, more of those of one warp, as a look-back over more than a warp's lanes
// needs; and a turn's steps, 1, 2, 4, … less than two to this power.
constexpr unsigned RESIDENT = 4, RESIDENT_WARPS = 40, TURN_LOG2 = 13;
static Cta ctas[RESIDENT_WARPS];
static Cta* now = ctas;

// The launch.
static const char* kernel;
static void (*body)(const void* args);
static const void* arguments;
static unsigned threads, turn;
static jmp_buf launcher;

static char order() {
    static const char* const name = getenv("EMULATOR_ORDER");
    return name ? name[0] : 'f';
}

static unsigned random(unsigned below) {
    static uint32_t state;
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

[[noreturn]] static void fail(const char* what) {
    fprintf(stderr, "emulator: %s, CTA %u: %s\n", kernel, now->block, what);
    auto waiting = [](const Group& g) {
        if (g.here) fprintf(stderr, "  of threads %u to %u %u wait at %s:%d\n", g.first, g.first + g.size - 1, g.here,
                            g.file, g.line);
    };
    waiting(now->all);
    for (unsigned w = 0; w < threads / WARP; w++) waiting(now->warps[w]);
    fprintf(stderr, "  of %u threads %u have ended\n", threads, now->ended);
    abort();
}

static void wake(unsigned first, unsigned size) {
    for (unsigned i = 0; i < size; i++) now->ready.push_back(first + (order() == 'b' ? i : size - 1 - i));
}

// Leaves this fibre, for one that can go on or for the launcher.
[[noreturn]] static void leave() {
    auto& ready = now->ready;
    if (ready.empty() && now->ended < threads) fail("threads wait for others that do not come");
    if (ready.empty() || --turn == 0) _longjmp(launcher, 1);
    if (order() == 'r') std::swap(ready[random((unsigned)ready.size())], ready.back());
    threadIdx.x = ready.back();
    ready.pop_back();
    _longjmp(now->fibres[threadIdx.x], 1);
}

// Returns when the whole group is here.
static __attribute__((noinline)) void meet(Group& g, const char* file, int line) {
    if (g.here == 0) {
        g.file = file;
        g.line = line;
    } else if (g.line != line || strcmp(g.file, file) != 0) {
        fprintf(stderr, "emulator: thread %u comes to %s:%d\n", threadIdx.x, file, line);
        fail("threads wait at different places");
    }
    if (++g.here == g.size) {
        g.here = 0;
        g.turn ^= 1;
        g.sum[g.turn] = 0;
        wake(g.first, g.size);
    }
    if (_setjmp(now->fibres[threadIdx.x]) == 0) leave();
}

// One thread of a CTA, then of the next.
static void fibre() {
    const unsigned me = now->made;
    for (;;) {
        if (_setjmp(now->fibres[me]) == 0) leave();
        body(arguments);
        now->ended++;
    }
}

static void make_fibre() {
    ucontext_t fresh;
    getcontext(&fresh);
    fresh.uc_stack.ss_sp = malloc(STACK);
    fresh.uc_stack.ss_size = STACK;
    makecontext(&fresh, fibre, 0);
    if (_setjmp(launcher) == 0) setcontext(&fresh);
}

static __attribute__((noinline)) void run(unsigned turns) {
    turn = turns;
    blockIdx.x = now->block;
    if (_setjmp(launcher) == 0) leave();
    now->running = now->ended < threads;
}

// This thread's copy of the library's thread_local variables.
static std::pair<char*, size_t> shared_memory() {
    static thread_local volatile char one;
    one = 0;
    std::pair<char*, size_t> found;
    auto look = [](dl_phdr_info* library, size_t, void* found) {
        for (int i = 0; i < library->dlpi_phnum; i++) {
            char* at = (char*)library->dlpi_tls_data;
            const size_t size = library->dlpi_phdr[i].p_memsz;
            if (library->dlpi_phdr[i].p_type != PT_TLS || (char*)&one < at || (char*)&one >= at + size) continue;
            *(std::pair<char*, size_t>*)found = {at, size};
            return 1;
        }
        return 0;
    };
    if (!dl_iterate_phdr(look, &found)) fail("where shared memory is cannot be found");
    return found;
}

// Makes a CTA the present one; shared memory goes with it.
static void enter(Cta& cta, char* shared, size_t bytes) {
    if (&cta == now) return;
    if (now->running) now->shared.assign(shared, shared + bytes);
    now = &cta;
    if (now->running) memcpy(shared, now->shared.data(), bytes);
}

// Starts the present CTA as number `block`.
static void begin(unsigned block, unsigned size, char* shared, size_t bytes) {
    threads = now->ended = 0;
    for (; now->made < size; now->made++) make_fibre();
    threads = size;
    now->block = block;
    now->all = {0, size, 0, 0, "", 0, {}, {}};
    for (unsigned w = 0; w < size / WARP; w++) now->warps[w] = {WARP * w, WARP, 0, 0, "", 0, {}, {}};
    // Large numbers, small ones, or what the CTA before has left.
    if (order() != 'r') memset(shared, order() == 'b' ? 0x01 : 0xc3, bytes);
    wake(0, size);
}

static void launch(const char* name, void (*function)(const void*), unsigned size, unsigned blocks, const void* args) {
    static std::mutex one;
    std::lock_guard<std::mutex> guard(one);
    for (int s : {SIGALRM, SIGSEGV, SIGBUS}) {
        signal(s, [](int s) { fail(s == SIGALRM ? "the launch does not end" : "not its memory"); });
    }
    alarm(SECONDS);
    kernel = name, body = function, arguments = args;
    const auto [shared, bytes] = shared_memory();
    const unsigned resident = order() != 'r' ? 1 : size > WARP ? RESIDENT : RESIDENT_WARPS;
    for (unsigned begun = 0, running = 0; begun < blocks || running;) {
        Cta& cta = ctas[random(resident)];
        if (!cta.running && begun == blocks) continue;
        enter(cta, shared, bytes);
        if (!cta.running) {
            begin(order() == 'b' ? blocks - 1 - begun : begun, size, shared, bytes);
            begun++, running++;
        }
        run(resident > 1 ? 1u << random(TURN_LOG2) : ~0u);
        running -= !cta.running;
    }
    alarm(0);
}

// The first of a kernel's launch bounds.
constexpr unsigned bound(unsigned threads, unsigned = 0) { return threads; }

// As in fake_cuda.c.
struct Kernel {
    unsigned threads;
    void (*launch)(unsigned ctas, const void* args);
};

// Where a function is called, as its last parameters.
#define HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Meets the group with a value for the others and something for their sum; returns which half of both to look at.
static unsigned bring(Group& g, uint64_t value, uint64_t more, const char* file, int line) {
    const unsigned turn = g.turn;
    g.values[turn][threadIdx.x % WARP] = value;
    g.sum[turn] += more;
    meet(g, file, line);
    return turn;
}

static uint64_t total(uint64_t more, const char* file, int line) {
    return now->all.sum[bring(now->all, 0, more, file, line)];
}

static Group& warp(unsigned mask) {
    if (mask != ~0u) fail("a part of a warp meets");
    return now->warps[threadIdx.x / WARP];
}

template <class T>
static T from(unsigned mask, T x, unsigned lane, const char* file, int line) {
    static_assert(sizeof(T) <= 8, "a register or two");
    uint64_t word = 0;
    memcpy(&word, &x, sizeof x);
    Group& g = warp(mask);
    memcpy(&x, &g.values[bring(g, word, 0, file, line)][lane], sizeof x);
    return x;
}

template <class T, class F>
static T reduced(unsigned mask, T x, F f, const char* file, int line) {
    Group& g = warp(mask);
    const uint64_t* all = g.values[bring(g, (uint64_t)x, 0, file, line)];
    x = (T)all[0];
    for (unsigned k = 1; k < WARP; k++) x = f(x, (T)all[k]);
    return x;
}

}  // namespace emulator

// Tells of a kernel: bounds are those of its launch, in parentheses.
#define KERNEL(name, Args, bounds)                                                                                     \
    extern "C" const emulator::Kernel kernel_##name = {emulator::bound bounds, [](unsigned ctas, const void* args) {   \
        emulator::launch(#name, [](const void* a) { name(*(const Args*)a); }, emulator::bound bounds, ctas, args);     \
    }};

// --- what kernels call -----------------------------------------------------------------------------------------------

static inline void __syncthreads(HERE) { emulator::total(0, file, line); }
static inline int __syncthreads_count(int p, HERE) { return (int)emulator::total(p != 0, file, line); }
static inline int __syncthreads_or(int p, HERE) { return emulator::total(p != 0, file, line) != 0; }
static inline int __syncthreads_and(int p, HERE) { return emulator::total(p == 0, file, line) == 0; }
static inline void __syncwarp(unsigned mask = ~0u, HERE) { emulator::meet(emulator::warp(mask), file, line); }
static inline unsigned __ballot_sync(unsigned mask, int p, HERE) {
    emulator::Group& g = emulator::warp(mask);
    return (unsigned)g.sum[emulator::bring(g, 0, (uint64_t)(p != 0) << threadIdx.x % 32, file, line)];
}
static inline int __any_sync(unsigned mask, int p, HERE) { return __ballot_sync(mask, p, file, line) != 0; }
static inline int __all_sync(unsigned mask, int p, HERE) { return __ballot_sync(mask, p, file, line) == ~0u; }
template <class T>
static T __shfl_sync(unsigned mask, T x, int lane, HERE) {
    return emulator::from(mask, x, (unsigned)lane % 32, file, line);
}
template <class T>
static T __shfl_xor_sync(unsigned mask, T x, int bits, HERE) {
    return emulator::from(mask, x, (threadIdx.x ^ (unsigned)bits) % 32, file, line);
}
template <class T>
static T __shfl_up_sync(unsigned mask, T x, unsigned by, HERE) {
    const unsigned lane = threadIdx.x % 32;
    return emulator::from(mask, x, lane < by ? lane : lane - by, file, line);
}
template <class T>
static T __shfl_down_sync(unsigned mask, T x, unsigned by, HERE) {
    const unsigned lane = threadIdx.x % 32;
    return emulator::from(mask, x, lane + by < 32 ? lane + by : lane, file, line);
}
template <class T>
static T __reduce_add_sync(unsigned mask, T x, HERE) {
    return emulator::reduced(mask, x, [](T a, T b) { return a + b; }, file, line);
}
template <class T>
static T __reduce_min_sync(unsigned mask, T x, HERE) {
    return emulator::reduced(mask, x, [](T a, T b) { return a < b ? a : b; }, file, line);
}
template <class T>
static T __reduce_or_sync(unsigned mask, T x, HERE) {
    return emulator::reduced(mask, x, [](T a, T b) { return a | b; }, file, line);
}
static inline void __threadfence() {}

template <class T>
static T atomicAdd(T* at, std::common_type_t<T> x) { return std::exchange(*at, *at + x); }
template <class T>
static T atomicSub(T* at, std::common_type_t<T> x) { return std::exchange(*at, *at - x); }
template <class T>
static T atomicOr(T* at, std::common_type_t<T> x) { return std::exchange(*at, *at | x); }
template <class T>
static T atomicMax(T* at, std::common_type_t<T> x) { return std::exchange(*at, *at < x ? x : *at); }

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    const std::common_type_t<A, B> x = a, y = b;
    return y < x ? y : x;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    const std::common_type_t<A, B> x = a, y = b;
    return x < y ? y : x;
}

template <class T>
static T __ldcs(const T* at) { return *at; }
template <class T>
static void __stcs(T* at, T x) { *at = x; }

static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int k = 0; k < 32; k++) y |= (x >> k & 1) << (31 - k);
    return y;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    const uint64_t bytes = (uint64_t)b << 32 | a;
    unsigned y = 0;
    for (int k = 0; k < 4; k++) y |= (unsigned)(bytes >> 8 * (which >> 4 * k & 7) & 255) << 8 * k;
    return y;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)((((uint64_t)high << 32 | low) << by % 32) >> 32);
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
    const uint64_t both = (uint64_t)high << 32 | low;
    return by < 32 ? (unsigned)(both << by >> 32) : low;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int k = 0; k < 32; k += 8) c += (a >> k & 255) * (b >> k & 255);
    return c;
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) >> by % 32);
}

template <class To, class From>
static To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
static inline long long __double2ll_rn(double x) {
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (long long)nearbyint(x);
}
static inline int __double2loint(double x) { return (int)same_bits<uint64_t>(x); }
static inline double __hiloint2double(int high, int low) {
    return same_bits<double>((uint64_t)(unsigned)high << 32 | (unsigned)low);
}

// Of a number and a NaN the number, whatever the NaN: the C library's functions give a NaN back for one that signals.
template <class T>
static T lesser(T a, T b) { return a != a ? b : b != b ? a : b < a ? b : a; }
template <class T>
static T greater(T a, T b) { return a != a ? b : b != b ? a : a < b ? b : a; }
#define fminf(a, b) lesser<float>(a, b)
#define fmaxf(a, b) greater<float>(a, b)
#define fmin(a, b) lesser<double>(a, b)
#define fmax(a, b) greater<double>(a, b)

static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }
static inline float __double2float_rd(double x) {
    const float y = (float)x;
    return y > x ? nextafterf(y, -INFINITY) : y;
}
static inline double __dmul_rd(double a, double b) {
    volatile double x = a, y = b;
    fesetround(FE_DOWNWARD);
    volatile double product = x * y;
    fesetround(FE_TONEAREST);
    return product;
}
