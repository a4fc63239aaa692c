#include "convert/table.h"

#include "base/pages.h"
#include "base/seed.h"

#include <errno.h>

enum {
    FIRST_BUCKETS = 128,
    // Up to here it duplicates and is kept half empty: all of it fits the L2 cache.
    SMALL_BUCKETS = 1 << 12,
    AHEAD = 64, // cells whose slots are on their way while the table grows
};

void table_release(struct table *t)
{
    pages_free(t->buckets, t->n_buckets * sizeof *t->buckets);
    *t = (struct table){0};
}

int table_grow(struct table *t, const struct table_block *slots)
{
    struct table old = *t;
    size_t n = !old.n_buckets                  ? FIRST_BUCKETS
               : old.n_buckets < SMALL_BUCKETS ? old.n_buckets * 2
                                               : old.n_buckets / 2 * 3;
    struct table_bucket *buckets = n > UINT32_MAX ? NULL : pages_new(n * sizeof *buckets);
    if (!buckets)
        return -ENOMEM;
    *t = (struct table){.buckets = buckets,
                        .n_buckets = n,
                        .limit = n <= SMALL_BUCKETS ? n * TABLE_CELLS / 2 : n * TABLE_CELLS / 5 * 4,
                        .seed = old.n_buckets ? old.seed : seed_random()};
    // Buckets keep their order, so that only the addresses, in the slots, are all over memory.
    for (size_t i = 0; i < old.n_buckets * TABLE_CELLS; i++) {
        if (i + AHEAD < old.n_buckets * TABLE_CELLS && slots)
            __builtin_prefetch(&slots[table_slot(&old, i + AHEAD)]);
        if (old.buckets[i / TABLE_CELLS].tags[i % TABLE_CELLS])
            table_put(t, slots[table_slot(&old, i)].address, table_slot(&old, i));
    }
    table_release(&old);
    return 0;
}
