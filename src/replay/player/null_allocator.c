// libheaptape-null.so: an allocator that does nothing but return writable addresses. The time of a
// replay on this allocator is therefore the replay overhead. The addresses are in a shared mapping,
// which does not count as the allocator's memory. Each thread has a small region, which stays in
// the cache.
#include "replay/player/null_allocator.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXPORT        __attribute__((visibility("default")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)

enum {
    REGION_BYTES = 64 << 10, // bytes per thread
    REGIONS = 1024,          // additional threads share regions
};

// Size of the real memory, which libc needs for threads and which is never reused. If address space
// is limited, the size is REAL_BYTES_LIMITED.
#define REAL_BYTES         ((uint64_t)4 << 30)
#define REAL_BYTES_LIMITED ((uint64_t)64 << 20)

static char *real_memory;
static uint64_t real_bytes;
static char *regions; // large blocks extend beyond their region
static _Atomic uint64_t real_used;
static _Atomic uint32_t next_region;
static _Atomic bool started; // set by heaptape_null_real(false)

// NULL if the thread uses real memory or has no region yet.
static __thread char *region __attribute__((tls_model("initial-exec")));
static __thread bool wants_real __attribute__((tls_model("initial-exec")));

static char *map_shared(uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void map_memory(void)
{
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    real_bytes = is_limited ? REAL_BYTES_LIMITED : REAL_BYTES;
    real_memory = map_shared(real_bytes);
    if (real_memory)
        return;
    // heaptape shows the first line of the player's output.
    static const char reason[] = "the allocator that measures it cannot map its own memory "
                                 "(try a higher ulimit -v)\n";
    ssize_t ignored = write(STDERR_FILENO, reason, sizeof reason - 1);
    (void)ignored;
    _exit(127);
}

EXPORT int heaptape_null_init(uint64_t max_block_bytes)
{
    const uint64_t page = getauxval(AT_PAGESZ); // pvalloc rounds up to whole pages
    regions = map_shared((uint64_t)REGIONS * REGION_BYTES + max_block_bytes + page);
    return regions ? 0 : -errno;
}

// The loader may allocate before this function runs, but only with a single thread.
__attribute__((constructor)) static void init(void)
{
    if (!real_memory)
        map_memory();
}

static void *allocate_real(size_t align, size_t size)
{
    if (!real_memory)
        map_memory();
    uint64_t needed = size + align + 16;
    if (needed < size || needed > real_bytes)
        return NULL;
    uint64_t at = atomic_fetch_add(&real_used, (needed + 15) & ~(uint64_t)15);
    if (at + needed > real_bytes)
        return NULL;
    // realloc() needs the size.
    uintptr_t block = ((uintptr_t)real_memory + at + 16 + align - 1) & ~(uintptr_t)(align - 1);
    ((size_t *)block)[-1] = size;
    return (void *)block;
}

static __attribute__((noinline)) void *allocate_first(size_t align, size_t size)
{
    if (wants_real || !atomic_load_explicit(&started, memory_order_relaxed))
        return allocate_real(align < 16 ? 16 : align, size);
    uint32_t n = atomic_fetch_add_explicit(&next_region, 1, memory_order_relaxed);
    region = regions + (uint64_t)(n % REGIONS) * REGION_BYTES;
    return region;
}

ALWAYS_INLINE void *allocate(size_t size)
{
    char *block = region;
    return UNLIKELY(!block) ? allocate_first(16, size) : block;
}

ALWAYS_INLINE void *allocate_aligned(size_t align, size_t size)
{
    char *block = region;
    if (UNLIKELY(!block))
        return allocate_first(align, size);
    return align > REGION_BYTES ? regions : block;
}

EXPORT void heaptape_null_real(bool real)
{
    static __thread char *saved __attribute__((tls_model("initial-exec")));
    wants_real = real;
    if (real) {
        saved = region;
        region = NULL;
        return;
    }
    region = saved;
    atomic_store_explicit(&started, true, memory_order_relaxed);
}

EXPORT void *malloc(size_t size)
{
    return allocate(size);
}

EXPORT void free(void *block)
{
    (void)block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    return allocate(count * size);
}

EXPORT void *realloc(void *old, size_t size)
{
    char *block = region;
    if (block)
        return block;
    char *to = allocate_first(16, size);
    bool was_real = old && (uintptr_t)old - (uintptr_t)real_memory < real_bytes;
    size_t had = was_real && to ? ((size_t *)old)[-1] : 0;
    for (size_t i = 0; i < had && i < size; i++)
        to[i] = ((char *)old)[i];
    return to;
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
    return realloc(old, count * size);
}

EXPORT void *memalign(size_t align, size_t size)
{
    return allocate_aligned(align, size);
}

EXPORT void *aligned_alloc(size_t, size_t) __attribute__((alias("memalign")));

EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
    *block = allocate_aligned(align, size);
    return *block ? 0 : ENOMEM;
}

EXPORT void *valloc(size_t size)
{
    return allocate_aligned(getauxval(AT_PAGESZ), size);
}

EXPORT void *pvalloc(size_t) __attribute__((alias("valloc")));

EXPORT size_t malloc_usable_size(void *block)
{
    (void)block;
    return 0;
}

// Functions of C23 and C++. The functions that deallocate do nothing.
#define DEALLOCATE(symbol)                                                                         \
    EXPORT void symbol(void *block);                                                               \
    EXPORT void symbol(void *block)                                                                \
    {                                                                                              \
        (void)block;                                                                               \
    }
#define ALLOCATE(symbol)                                                                           \
    EXPORT void *symbol(size_t size);                                                              \
    EXPORT void *symbol(size_t size)                                                               \
    {                                                                                              \
        return allocate(size);                                                                     \
    }
#define ALLOCATE_ALIGNED(symbol)                                                                   \
    EXPORT void *symbol(size_t size, size_t align);                                                \
    EXPORT void *symbol(size_t size, size_t align)                                                 \
    {                                                                                              \
        return allocate_aligned(align, size);                                                      \
    }
DEALLOCATE(free_sized)
DEALLOCATE(free_aligned_sized)
DEALLOCATE(_ZdlPv)
DEALLOCATE(_ZdaPv)
DEALLOCATE(_ZdlPvm)
DEALLOCATE(_ZdaPvm)
DEALLOCATE(_ZdlPvRKSt9nothrow_t)
DEALLOCATE(_ZdaPvRKSt9nothrow_t)
DEALLOCATE(_ZdlPvSt11align_val_t)
DEALLOCATE(_ZdaPvSt11align_val_t)
DEALLOCATE(_ZdlPvmSt11align_val_t)
DEALLOCATE(_ZdaPvmSt11align_val_t)
DEALLOCATE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DEALLOCATE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
ALLOCATE(_Znwm)
ALLOCATE(_Znam)
ALLOCATE(_ZnwmRKSt9nothrow_t)
ALLOCATE(_ZnamRKSt9nothrow_t)
ALLOCATE_ALIGNED(_ZnwmSt11align_val_t)
ALLOCATE_ALIGNED(_ZnamSt11align_val_t)
ALLOCATE_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t)
ALLOCATE_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t)
