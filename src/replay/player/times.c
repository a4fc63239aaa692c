// Preloaded into a real program before the allocator. Times each call of the allocator like a timed
// replay, and appends to the file $HEAPTAPE_TIMES at the exit of a process: a line "process PID",
// and for each kind of call a line with its name, the number of calls, and the p50, p99 and p99.9
// in ns, without the cost of reading the counter.
//
// Calls inside other calls are not timed: libstdc++'s operator new calls malloc.
#include "base/clock.h"
#include "replay/player/histogram.h"
#include "trace/event/event.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// clang-format off
// X(kind, type of the result, function, parameters, arguments, result before the next function is
// known). libstdc++'s other operators call these functions.
#define ALLOCATIONS(X)                                                                             \
    X(MALLOC, void *, malloc, (size_t bytes), (bytes), allocate_early(bytes))                      \
    X(CALLOC, void *, calloc, (size_t n, size_t bytes), (n, bytes), allocate_early(n * bytes))     \
    X(REALLOC, void *, realloc, (void *p, size_t bytes), (p, bytes), NULL)                         \
    X(REALLOCARRAY, void *, reallocarray, (void *p, size_t n, size_t bytes), (p, n, bytes), NULL)  \
    X(MEMALIGN, void *, memalign, (size_t align, size_t bytes), (align, bytes), NULL)              \
    X(ALIGNED_ALLOC, void *, aligned_alloc, (size_t align, size_t bytes), (align, bytes), NULL)    \
    X(POSIX_MEMALIGN, int, posix_memalign, (void **to, size_t align, size_t bytes),                \
      (to, align, bytes), ENOMEM)                                                                  \
    X(NEW, void *, _Znwm, (size_t bytes), (bytes), NULL)                                           \
    X(NEW_ARRAY, void *, _Znam, (size_t bytes), (bytes), NULL)                                     \
    X(NEW_NOTHROW, void *, _ZnwmRKSt9nothrow_t, (size_t bytes, void *tag), (bytes, tag), NULL)     \
    X(NEW_ARRAY_NOTHROW, void *, _ZnamRKSt9nothrow_t, (size_t bytes, void *tag), (bytes, tag), NULL)

#define FREES(X)                                                                                   \
    X(FREE, free, (void *p), (p))                                                                  \
    X(DELETE, _ZdlPv, (void *p), (p))                                                              \
    X(DELETE_ARRAY, _ZdaPv, (void *p), (p))                                                        \
    X(DELETE_SIZED, _ZdlPvm, (void *p, size_t bytes), (p, bytes))                                  \
    X(DELETE_ARRAY_SIZED, _ZdaPvm, (void *p, size_t bytes), (p, bytes))
// clang-format on

enum { KINDS = HT_NEW_ARRAY_NOTHROW + 1 };

struct times {
    struct times *next;
    bool inside;
    struct histogram calls[KINDS];
};

static void *next[KINDS];
static _Atomic(struct times *) all;
static __thread struct times *mine __attribute__((tls_model("initial-exec")));
static const char *path;
static _Alignas(16) char early[4096]; // memory for calls of dlsym
static size_t early_bytes;

static void find_next(void)
{
    static bool is_finding;
    if (is_finding)
        return;
    is_finding = true;
#define HT_X(kind, ...) next[HT_##kind] = dlsym(RTLD_NEXT, event_infos[HT_##kind].symbol);
    ALLOCATIONS(HT_X)
    FREES(HT_X)
#undef HT_X
    // If a program opens libstdc++ with dlopen, dlsym does not find its functions. They call malloc
    // and free.
    for (unsigned kind = HT_NEW; kind <= HT_NEW_ARRAY_NOTHROW; kind++) {
        if (!next[kind])
            next[kind] = next[event_infos[kind].class == HT_CLASS_FREE ? HT_FREE : HT_MALLOC];
    }
}

static void *allocate_early(size_t bytes)
{
    size_t at = early_bytes;
    early_bytes += (bytes + 15) & ~(size_t)15;
    return early_bytes <= sizeof early ? early + at : NULL;
}

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof early;
}

static struct times *add_thread(void)
{
    struct times *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED)
        return NULL;
    t->next = all;
    while (!__atomic_compare_exchange_n((struct times **)&all, &t->next, t, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
        ;
    return mine = t;
}

// Returns the thread's times, or NULL for a call that is not timed.
static inline struct times *begin(void)
{
    struct times *t = mine ? mine : path ? add_thread() : NULL;
    if (!t || t->inside)
        return NULL;
    t->inside = true;
    return t;
}

static inline void end(struct times *t, enum event_kind kind, uint64_t from, uint64_t to)
{
    histogram_add(&t->calls[kind], to > from ? to - from : 0);
    t->inside = false;
}

#define VISIBLE                      __attribute__((visibility("default")))
#define NEXT(kind, type, parameters) ((type(*) parameters)next[HT_##kind])

#define TIMED(kind, type, symbol, parameters, arguments, early_result)                             \
    VISIBLE type symbol parameters;                                                                \
    type symbol parameters                                                                         \
    {                                                                                              \
        if (!next[HT_##kind])                                                                      \
            find_next();                                                                           \
        if (!next[HT_##kind])                                                                      \
            return early_result;                                                                   \
        struct times *t = begin();                                                                 \
        if (!t)                                                                                    \
            return NEXT(kind, type, parameters) arguments;                                         \
        uint64_t from = clock_counter_ordered();                                                   \
        type result = NEXT(kind, type, parameters) arguments;                                      \
        end(t, HT_##kind, from, clock_counter_after());                                            \
        return result;                                                                             \
    }

#define TIMED_FREE(kind, symbol, parameters, arguments)                                            \
    VISIBLE void symbol parameters;                                                                \
    void symbol parameters                                                                         \
    {                                                                                              \
        if (!next[HT_##kind])                                                                      \
            find_next();                                                                           \
        if (!next[HT_##kind] || is_early(p))                                                       \
            return;                                                                                \
        struct times *t = begin();                                                                 \
        if (!t) {                                                                                  \
            NEXT(kind, void, parameters) arguments;                                                \
            return;                                                                                \
        }                                                                                          \
        uint64_t from = clock_counter_ordered();                                                   \
        NEXT(kind, void, parameters) arguments;                                                    \
        end(t, HT_##kind, from, clock_counter_after());                                            \
    }

ALLOCATIONS(TIMED)
FREES(TIMED_FREE)

static __attribute__((noinline)) void *do_nothing(size_t bytes)
{
    __asm__ volatile("" : "+r"(bytes)::"memory");
    return NULL;
}

// Returns the ticks that a timed call of a function without work takes, like the overhead of a
// replay.
static double overhead_ticks(void)
{
    static struct histogram h;
    void *(*volatile call)(size_t) = do_nothing;
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t from = clock_counter_ordered();
        call(i);
        histogram_add(&h, clock_counter_after() - from);
    }
    return histogram_trimmed_mean(&h, 0.99);
}

static double quantile_ns(const struct histogram *h, double share, double overhead, double hz)
{
    double ticks = (double)histogram_quantile(h, share) - overhead;
    return ticks > 0 ? ticks * 1e9 / hz : 0;
}

static __attribute__((constructor)) void start(void)
{
    find_next();
    path = getenv("HEAPTAPE_TIMES");
}

static __attribute__((destructor)) void stop(void)
{
    char text[100 * (KINDS + 1)];
    static struct histogram sum[KINDS];
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    path = NULL;
    double hz = (double)clock_hz(clock_best()), overhead = overhead_ticks();
    for (const struct times *t = all; t; t = t->next) {
        for (unsigned i = 0; i < KINDS; i++) {
            if (t->calls[i].count)
                histogram_merge(&sum[i], &t->calls[i]);
        }
    }
    int n = snprintf(text, sizeof text, "process %ld\n", (long)getpid());
    for (unsigned i = 0; i < KINDS; i++) {
        const struct histogram *h = &sum[i];
        if (h->count)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s %llu %.0f %.0f %.0f\n",
                          event_infos[i].name, (unsigned long long)h->count,
                          quantile_ns(h, 0.5, overhead, hz), quantile_ns(h, 0.99, overhead, hz),
                          quantile_ns(h, 0.999, overhead, hz));
    }
    // One write, because several processes append.
    ssize_t ignored = write(fd, text, (size_t)n);
    (void)ignored;
    close(fd);
}
