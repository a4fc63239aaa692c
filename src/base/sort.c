#include "base/sort.h"

#include <stdlib.h>

#define COMPARE(type, x, y)                                                                        \
    ((*(const type *)(x) > *(const type *)(y)) - (*(const type *)(x) < *(const type *)(y)))

static int compare_items(const void *a, const void *b, void *keys)
{
    int c = 0;
    for (const struct sort_key *k = keys; c == 0 && k->type != SORT_NONE; k++) {
        const void *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;
        c = k->type == SORT_U32   ? COMPARE(uint32_t, x, y)
            : k->type == SORT_U64 ? COMPARE(uint64_t, x, y)
                                  : COMPARE(double, x, y);
        c = k->descending ? -c : c;
    }
    return c;
}

void sort_items(void *items, size_t n, size_t item_bytes, const struct sort_key *keys)
{
    if (n > 1)
        qsort_r(items, n, item_bytes, compare_items, (void *)(uintptr_t)keys);
}
