// Large zeroed arrays in memory mapped from the kernel. The arrays grow without copying. To avoid
// TLB misses, they use huge pages if available.
#pragma once

#include <stddef.h>

// Maps `bytes` bytes of zeroed memory, aligned to at least a page. Returns NULL if out of memory.
void *pages_new(size_t bytes);
void pages_free(void *pages, size_t bytes);

// Resizes a mapping of pages_new from `had` to `want` bytes without copying; added bytes are zero.
// Returns NULL if out of memory.
void *pages_grow(void *pages, size_t had, size_t want);

// Like HT_GROW of base/buf.h, but for arrays of zeroed pages. Start with a NULL array and capacity
// 0. Free the array with pages_array_free. Returns 0 or -ENOMEM.
#define HT_PAGES_GROW(items, capacity, want)                                                       \
    pages_array_reserve((void **)(items), (capacity), (want), sizeof **(items))
int pages_array_reserve(void **items, size_t *capacity, size_t want, size_t item_bytes);
void pages_array_free(void *items, size_t capacity, size_t item_bytes);
