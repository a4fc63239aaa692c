// libheaptape-guard.so: an allocator that maps each big block separately and unmaps it when the
// block is freed. An access outside a block's lifetime or beyond its end kills the process with
// SIGSEGV. Addresses are never reused. Smaller blocks are allocated by libc, because a mapping for
// each would take too long.
//
//   a block:  header page | pages with the block at the end | inaccessible page
#include "trace/event/event.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT     __attribute__((visibility("default")))

#define PAGE_BYTES getauxval(AT_PAGESZ)

enum { LEAST_ALIGN = 16 };

// Address space for all blocks of a run. The size is halved until the reservation succeeds.
#define MAX_REGION_BYTES ((uint64_t)32 << 40)
#define MIN_REGION_BYTES ((uint64_t)1 << 20)

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

// Stored at the start of the page before the block's first page.
struct header {
    char *block, *mapping;
    size_t size, mapped; // size of the block; size of header and pages
};

static char *region;
static uint64_t region_bytes;
static _Atomic uint64_t region_used;
static _Atomic bool exhausted;
static size_t (*libc_usable_size)(void *);

__attribute__((constructor)) static void reserve_region(void)
{
    libc_usable_size = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    for (uint64_t bytes = MAX_REGION_BYTES; bytes >= MIN_REGION_BYTES; bytes /= 2) {
        void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            continue;
        region_bytes = bytes;
        region = at;
        return;
    }
}

static void write_line(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

static bool is_guarded(const void *block)
{
    return region && (uintptr_t)block - (uintptr_t)region < region_bytes;
}

static struct header *header_of(const void *block)
{
    return (struct header *)((uintptr_t)block / PAGE_BYTES * PAGE_BYTES - PAGE_BYTES);
}

// Returns the block, or NULL if address space or mappings (vm.max_map_count) are exhausted.
static void *map_block(size_t align, size_t size)
{
    uint64_t slack = align > PAGE_BYTES ? align : 0,
             pages = (size + slack + PAGE_BYTES - 1) / PAGE_BYTES,
             mapped = (pages + 1) * PAGE_BYTES, at = atomic_load(&region_used);
    do {
        if (!region || mapped + PAGE_BYTES > region_bytes - at)
            return NULL;
    } while (!atomic_compare_exchange_weak(&region_used, &at, at + mapped + PAGE_BYTES));
    char *mapping = region + at;
    if (mprotect(mapping, mapped, PROT_READ | PROT_WRITE) < 0)
        return NULL;
    char *block = (char *)(((uintptr_t)mapping + mapped - size) & ~(uintptr_t)(align - 1));
    *header_of(block) =
        (struct header){.block = block, .mapping = mapping, .size = size, .mapped = mapped};
    return block;
}

static void *allocate(size_t align, size_t size)
{
    if (align < LEAST_ALIGN)
        align = LEAST_ALIGN;
    if (align & (align - 1)) // like libc's memalign, round up to a power of two
        align = (size_t)1 << (64 - __builtin_clzl(align));
    if (size > PTRDIFF_MAX - align)
        return NULL;
    void *block = size < HT_BIG_BYTES ? NULL : map_block(align, size);
    if (!block && size >= HT_BIG_BYTES && !atomic_exchange(&exhausted, true))
        write_line("libheaptape-guard.so: no more mappings: further big blocks come from libc and "
                   "are not checked\n");
    return block ? block : __libc_memalign(align, size);
}

static struct header *checked_header(void *block)
{
    struct header *h = header_of(block);
    if (h->block != block) {
        write_line("libheaptape-guard.so: a freed address is not the start of a block\n");
        abort();
    }
    return h;
}

EXPORT void free(void *block)
{
    if (!is_guarded(block)) {
        __libc_free(block);
        return;
    }
    int saved = errno;
    struct header *h = checked_header(block);
    // Replacing the pages with an inaccessible mapping frees them. The kernel merges the mapping
    // with adjacent mappings.
    mmap(h->mapping, h->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    errno = saved;
}

EXPORT void *malloc(size_t size)
{
    return size < HT_BIG_BYTES ? __libc_malloc(size) : allocate(LEAST_ALIGN, size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (bytes < HT_BIG_BYTES)
        return __libc_calloc(count, size);
    void *block = allocate(LEAST_ALIGN, bytes);
    return block && !is_guarded(block) ? memset(block, 0, bytes) : block;
}

EXPORT size_t malloc_usable_size(void *block)
{
    if (is_guarded(block))
        return checked_header(block)->size;
    return block && libc_usable_size ? libc_usable_size(block) : 0;
}

EXPORT void *realloc(void *old, size_t size)
{
    bool is_small = !is_guarded(old) && size < HT_BIG_BYTES;
    if (is_small || (old && !size)) {
        if (is_small)
            return __libc_realloc(old, size);
        free(old);
        return NULL;
    }
    void *block = malloc(size);
    size_t had = old ? malloc_usable_size(old) : 0;
    if (!block)
        return NULL;
    if (old)
        memcpy(block, old, had < size ? had : size);
    free(old);
    return block;
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

EXPORT void *memalign(size_t align, size_t size)
{
    return allocate(align, size);
}

EXPORT void *aligned_alloc(size_t, size_t) __attribute__((alias("memalign")));

EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
    void *allocated = allocate(align, size);
    if (!allocated)
        return ENOMEM;
    *block = allocated;
    return 0;
}

EXPORT void *valloc(size_t size)
{
    return allocate(PAGE_BYTES, size);
}

EXPORT void *pvalloc(size_t size)
{
    return allocate(PAGE_BYTES, (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}
