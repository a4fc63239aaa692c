// Big zeroed arrays straight from the kernel: they grow without copying, in huge pages where there are any, so that looking
// up something in the middle costs one miss and not several.
#ifndef HEAPTAPE_BASE_PAGES_H
#define HEAPTAPE_BASE_PAGES_H

#include <stddef.h>

// `bytes` zero bytes, aligned to a page at least. NULL when out of memory.
void *pages_new(size_t bytes);
void pages_free(void *pages, size_t bytes);

// As realloc: pages_new of `had` bytes become `want` bytes, of which those added are zero. Nothing is copied. NULL when out
// of memory.
void *pages_grow(void *pages, size_t had, size_t want);

// HT_GROW of base/buf.h for an array of zeroed pages: new items are zero. The array is NULL with a capacity of 0 at first,
// and pages_array_free frees it. 0 or -ENOMEM.
#define HT_PAGES_GROW(items, capacity, want)                                                       \
    pages_array_reserve((void **)(items), (capacity), (want), sizeof **(items))
int pages_array_reserve(void **items, size_t *capacity, size_t want, size_t item_bytes);
void pages_array_free(void *items, size_t capacity, size_t item_bytes);

#endif
