// libheaptape-null.so: an allocator that does nothing but hand out addresses that may be written to. What a replay on it
// takes is the player's own cost. The addresses lie in a shared mapping, so that they do not count as an allocator's
// memory, and in a window of each thread's own, which stays in its cache.
#include "player/null_allocator.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT        __attribute__((visibility("default")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)

enum {
    WINDOW_BYTES = 64 << 10, // distance of the threads' addresses
    WINDOWS = 1024,          // more threads share them
};

// Real memory comes from the first part and is never given back; windows lie in the second, and large blocks reach from
// their window as far as they need.
#define REAL_BYTES  ((uint64_t)4 << 30)
#define BLOCK_BYTES ((uint64_t)1 << 40)

static char *real_memory, *windows;
static _Atomic uint64_t real_used;
static _Atomic uint32_t next_window;
static _Atomic bool started; // heaptape_null_real(false) was called

static __thread char *window __attribute__((tls_model("initial-exec"))); // NULL: real memory, or not chosen yet
static __thread bool wants_real __attribute__((tls_model("initial-exec")));

static void map_memory(void)
{
    char *at =
        mmap(NULL, REAL_BYTES + BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        _exit(127);
    real_memory = at;
    windows = at + REAL_BYTES;
}

// The loader may allocate before it comes to this; then there is one thread alone.
__attribute__((constructor)) static void init(void)
{
    if (!real_memory)
        map_memory();
}

static void *take_real(size_t align, size_t size)
{
    if (!real_memory)
        map_memory();
    uint64_t room = size + align + 16;
    if (room < size || room > REAL_BYTES)
        return NULL;
    uint64_t at = atomic_fetch_add(&real_used, (room + 15) & ~(uint64_t)15);
    if (at + room > REAL_BYTES)
        return NULL;
    // The size stands before the block, for realloc.
    uintptr_t block = ((uintptr_t)real_memory + at + 16 + align - 1) & ~(uintptr_t)(align - 1);
    ((size_t *)block)[-1] = size;
    return (void *)block;
}

static __attribute__((noinline)) void *take_first(size_t align, size_t size)
{
    if (wants_real || !atomic_load_explicit(&started, memory_order_relaxed))
        return take_real(align < 16 ? 16 : align, size);
    uint32_t n = atomic_fetch_add_explicit(&next_window, 1, memory_order_relaxed);
    window = windows + (uint64_t)(n % WINDOWS) * WINDOW_BYTES;
    return window;
}

ALWAYS_INLINE void *take(size_t size)
{
    char *block = window;
    return UNLIKELY(!block) ? take_first(16, size) : block;
}

ALWAYS_INLINE void *take_aligned(size_t align, size_t size)
{
    char *block = window;
    if (UNLIKELY(!block))
        return take_first(align, size);
    return align > WINDOW_BYTES ? windows : block;
}

EXPORT void heaptape_null_real(bool real)
{
    static __thread char *aside __attribute__((tls_model("initial-exec")));
    wants_real = real;
    if (real) {
        aside = window;
        window = NULL;
        return;
    }
    window = aside;
    atomic_store_explicit(&started, true, memory_order_relaxed);
}

EXPORT void *malloc(size_t size)
{
    return take(size);
}

EXPORT void free(void *block)
{
    (void)block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    return take(count * size);
}

EXPORT void *realloc(void *old, size_t size)
{
    char *block = window;
    if (block)
        return block;
    char *to = take_first(16, size);
    bool was_real = old && (uintptr_t)old - (uintptr_t)real_memory < REAL_BYTES;
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
    return take_aligned(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    return take_aligned(align, size);
}

EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
    *block = take_aligned(align, size);
    return *block ? 0 : ENOMEM;
}

EXPORT void *valloc(size_t size)
{
    return take_aligned(4096, size);
}

EXPORT void *pvalloc(size_t size)
{
    return take_aligned(4096, size);
}

EXPORT size_t malloc_usable_size(void *block)
{
    (void)block;
    return 0;
}

// C23 and C++ functions, by the names that the linker knows. All that gives back is nothing.
#define GIVE(symbol)                                                                                                   \
    EXPORT void symbol(void *block);                                                                                   \
    EXPORT void symbol(void *block)                                                                                    \
    {                                                                                                                  \
        (void)block;                                                                                                   \
    }
#define TAKE(symbol)                                                                                                   \
    EXPORT void *symbol(size_t size);                                                                                  \
    EXPORT void *symbol(size_t size)                                                                                   \
    {                                                                                                                  \
        return take(size);                                                                                             \
    }
#define TAKE_ALIGNED(symbol)                                                                                           \
    EXPORT void *symbol(size_t size, size_t align);                                                                    \
    EXPORT void *symbol(size_t size, size_t align)                                                                     \
    {                                                                                                                  \
        return take_aligned(align, size);                                                                              \
    }
GIVE(free_sized)
GIVE(free_aligned_sized)
GIVE(_ZdlPv)
GIVE(_ZdaPv)
GIVE(_ZdlPvm)
GIVE(_ZdaPvm)
GIVE(_ZdlPvRKSt9nothrow_t)
GIVE(_ZdaPvRKSt9nothrow_t)
GIVE(_ZdlPvSt11align_val_t)
GIVE(_ZdaPvSt11align_val_t)
GIVE(_ZdlPvmSt11align_val_t)
GIVE(_ZdaPvmSt11align_val_t)
GIVE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
GIVE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
TAKE(_Znwm)
TAKE(_Znam)
TAKE(_ZnwmRKSt9nothrow_t)
TAKE(_ZnamRKSt9nothrow_t)
TAKE_ALIGNED(_ZnwmSt11align_val_t)
TAKE_ALIGNED(_ZnamSt11align_val_t)
TAKE_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t)
TAKE_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t)
