#include "convert/table.h"

#include <errno.h>
#include <stdlib.h>

enum {
    FIRST_CAPACITY = 1024,
    // Below it the table is kept half empty: all of it fits the L2 cache, and probing is what costs time.
    SMALL_CAPACITY = 1 << 16,
};

void table_release(struct table *t)
{
    free(t->cells);
    *t = (struct table){0};
}

int table_grow(struct table *t)
{
    struct table old = *t;
    size_t capacity = !old.capacity                   ? FIRST_CAPACITY
                      : old.capacity < SMALL_CAPACITY ? old.capacity * 2
                                                      : old.capacity / 2 * 3;
    if (capacity > UINT32_MAX)
        return -ENOMEM;
    t->cells = calloc(capacity, sizeof *t->cells);
    if (!t->cells) {
        *t = old;
        return -ENOMEM;
    }
    t->capacity = capacity;
    t->limit = capacity <= SMALL_CAPACITY ? capacity / 2 : capacity / 10 * 7;
    for (size_t i = 0; i < old.capacity; i++) {
        if (!old.cells[i])
            continue;
        size_t k = table_home(t, (uint32_t)(old.cells[i] >> 32));
        while (t->cells[k])
            k = table_next(t, k);
        t->cells[k] = old.cells[i];
    }
    free(old.cells);
    return 0;
}
