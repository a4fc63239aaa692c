// A preload library that counts calls of the malloc functions independently of heaptape. In the
// directory $ATTACH_COUNT, each entry of PID.calls holds the time-stamp counter before a call and
// the called function. tests/bench/attach compares the entries with a recording.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <x86intrin.h>

enum { ENTRIES = 1 << 25, KIND_BITS = 2, EARLY_BYTES = 1 << 16 };
enum kind { ALLOC, REALLOC, FREE };

struct log {
    _Atomic uint64_t n;
    uint64_t entries[ENTRIES];
};

static struct log *calls;
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static void *(*real_memalign)(size_t, size_t);
static _Alignas(16) char early[EARLY_BYTES];
static size_t early_used;

static void start(void)
{
    const char *dir = getenv("ATTACH_COUNT");
    char path[4096];
    calls = NULL;
    if (!dir)
        return;
    snprintf(path, sizeof path, "%s/%ld.calls", dir, (long)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    // EPERM: the file exists and belongs to another user, because the process has changed its user.
    if (fd < 0 || (fchmod(fd, 0666) < 0 && errno != EPERM) || ftruncate(fd, sizeof *calls) < 0)
        return;
    void *at = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    calls = at == MAP_FAILED ? NULL : at;
}

static void in_child(void)
{
    if (calls)
        munmap(calls, sizeof *calls);
    start();
}

// Returns at once if called again: another library's constructor may run first, and dlsym
// allocates.
static void __attribute__((constructor)) load(void)
{
    static int loading;
    if (loading++)
        return;
    real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    real_posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    real_aligned_alloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
    real_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
    real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    start();
    pthread_atfork(NULL, NULL, in_child);
}

static void count(enum kind kind)
{
    load();
    if (!calls)
        return;
    uint64_t now = __rdtsc(), i = atomic_fetch_add_explicit(&calls->n, 1, memory_order_relaxed);
    if (i < ENTRIES)
        calls->entries[i] = now << KIND_BITS | kind;
}

static void *allocate_early(size_t bytes)
{
    size_t at = early_used;
    early_used += (bytes + 15) & ~(size_t)15;
    return early_used <= sizeof early ? early + at : NULL;
}

static int is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof early;
}

void *malloc(size_t bytes)
{
    count(ALLOC);
    return real_malloc ? real_malloc(bytes) : allocate_early(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    count(ALLOC);
    return real_calloc ? real_calloc(n, bytes) : allocate_early(n * bytes);
}

void *realloc(void *old, size_t bytes)
{
    count(REALLOC);
    if (!is_early(old))
        return real_realloc(old, bytes);
    void *p = malloc(bytes);
    if (p)
        memcpy(p, old,
               early + sizeof early - (char *)old < (ptrdiff_t)bytes
                   ? (size_t)(early + sizeof early - (char *)old)
                   : bytes);
    return p;
}

void free(void *p)
{
    if (!p || is_early(p))
        return;
    count(FREE);
    real_free(p);
}

int posix_memalign(void **to, size_t align, size_t bytes)
{
    count(ALLOC);
    return real_posix_memalign(to, align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    count(ALLOC);
    return real_aligned_alloc(align, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    count(ALLOC);
    return real_memalign(align, bytes);
}
