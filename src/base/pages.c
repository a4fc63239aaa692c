#include "base/pages.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
    HUGE_BYTES = 2 << 20, // size of a huge page on x86-64 and usually on aarch64
    FIRST_BYTES = 64 << 10,
};

static size_t whole_pages(size_t bytes)
{
    const size_t unit = 4096;
    return (bytes + unit - 1) / unit * unit;
}

// Reserves inaccessible address space that starts at a huge page boundary.
static void *aligned_space(size_t bytes)
{
    uint8_t *at = mmap(NULL, bytes + HUGE_BYTES, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)at % HUGE_BYTES);
    if (before)
        munmap(at, before);
    munmap(at + before + bytes, HUGE_BYTES - before);
    return at + before;
}

void *pages_new(size_t bytes)
{
    size_t n = whole_pages(bytes);
    if (n < bytes || n > SIZE_MAX / 2)
        return NULL;
    void *space = n < HUGE_BYTES ? NULL : aligned_space(n);
    void *at = mmap(space, n, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | (space ? MAP_FIXED : 0), -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (n >= HUGE_BYTES)
        madvise(at, n, MADV_HUGEPAGE);
    return at;
}

void pages_free(void *pages, size_t bytes)
{
    if (pages)
        munmap(pages, whole_pages(bytes));
}

// Both addresses are aligned to huge pages, so mremap does not split any huge pages.
void *pages_grow(void *pages, size_t had, size_t want)
{
    size_t from = whole_pages(had), to = whole_pages(want);
    if (to < want || to > SIZE_MAX / 2)
        return NULL;
    void *space = to < HUGE_BYTES ? NULL : aligned_space(to);
    void *at = space ? mremap(pages, from, to, MREMAP_MAYMOVE | MREMAP_FIXED, space)
                     : mremap(pages, from, to, MREMAP_MAYMOVE);
    if (at == MAP_FAILED) {
        if (space)
            munmap(space, to);
        return NULL;
    }
    if (to >= HUGE_BYTES)
        madvise(at, to, MADV_HUGEPAGE);
    return at;
}

int pages_array_reserve(void **items, size_t *capacity, size_t want, size_t item_bytes)
{
    if (want <= *capacity)
        return 0;
    size_t n = *capacity ? *capacity : FIRST_BYTES / item_bytes;
    while (n < want)
        n = n > SIZE_MAX / 2 ? want : n * 2;
    if (n > SIZE_MAX / 2 / item_bytes)
        return -ENOMEM;
    void *at = *capacity ? pages_grow(*items, *capacity * item_bytes, n * item_bytes)
                         : pages_new(n * item_bytes);
    if (!at)
        return -ENOMEM;
    *items = at;
    *capacity = n;
    return 0;
}

void pages_array_free(void *items, size_t capacity, size_t item_bytes)
{
    pages_free(items, capacity * item_bytes);
}
