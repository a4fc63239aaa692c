#include "convert/table.h"

#include "base/buf.h"
#include "base/pages.h"
#include "base/seed.h"

#include <errno.h>
#include <stdlib.h>

enum {
    FIRST_BUCKETS = 128,
    // Up to this size, a growing table doubles and stays at most half full. A table of this size
    // fits in the L2 cache.
    SMALL_BUCKETS = 1 << 12,
    AHEAD = 8, // prefetch distance while growing, in buckets
};

void table_release(struct table *t)
{
    pages_free(t->buckets, t->n_buckets * sizeof *t->buckets);
    *t = (struct table){0};
}

// Inserts the slot's address into the buckets from `first` on, which have already been rebuilt. If
// the home bucket is before `first`, or all buckets from the home bucket on are full, returns false
// and changes nothing.
static bool put_from(struct table *t, const struct table_block *slots, uint32_t slot, size_t first)
{
    uint64_t hash = table_hash(t, slots[slot].address);
    size_t home = table_home(t, hash), at = home;
    while (at < t->n_buckets && !table_match(&t->buckets[at], 0))
        at++;
    if (home < first || at == t->n_buckets)
        return false;
    for (size_t i = home; i < at; i++)
        t->buckets[i].passed++;
    unsigned k = (unsigned)__builtin_ctz(table_match(&t->buckets[at], 0));
    t->buckets[at].tags[k] = table_tag(hash);
    t->buckets[at].slots[k] = slot;
    t->n++;
    return true;
}

// Redistributes the cells of the first `n` buckets over all buckets, from last to first. Growth
// preserves the order of the buckets and moves cells only to later buckets. Most cells therefore
// fit, and all memory accesses except those to the addresses are sequential. Cells that wrapped
// around, and cells that do not fit in any bucket up to the last, are inserted at the end.
static int spread_cells(struct table *t, const struct table_block *slots, size_t n)
{
    uint32_t *left = NULL;
    size_t n_left = 0, capacity = 0;
    int rc = 0;
    t->n = 0;
    for (size_t i = n; rc == 0 && i-- > 0;) {
        struct table_bucket from = t->buckets[i];
        t->buckets[i] = (struct table_bucket){0};
        for (unsigned k = 0; i >= AHEAD && k < TABLE_CELLS; k++)
            __builtin_prefetch(&slots[t->buckets[i - AHEAD].slots[k]]);
        for (unsigned k = 0; rc == 0 && k < TABLE_CELLS; k++) {
            if (!from.tags[k] || put_from(t, slots, from.slots[k], i))
                continue;
            rc = HT_APPEND(&left, &n_left, &capacity, from.slots[k]);
        }
    }
    for (size_t i = 0; rc == 0 && i < n_left; i++)
        table_put(t, slots[left[i]].address, left[i]);
    free(left);
    return rc;
}

int table_grow(struct table *t, const struct table_block *slots)
{
    size_t had = t->n_buckets, n = !had                  ? FIRST_BUCKETS
                                   : had < SMALL_BUCKETS ? had * 2
                                                         : had / 3 * 4;
    if (n > UINT32_MAX)
        return -ENOMEM;
    struct table_bucket *buckets =
        had ? pages_grow(t->buckets, had * sizeof *buckets, n * sizeof *buckets)
            : pages_new(n * sizeof *buckets);
    if (!buckets)
        return -ENOMEM;
    t->buckets = buckets;
    t->n_buckets = n;
    t->limit = n <= SMALL_BUCKETS ? n * TABLE_CELLS / 2 : n * TABLE_CELLS / 10 * 7;
    t->seed = had ? t->seed : seed_random();
    return spread_cells(t, slots, had);
}
