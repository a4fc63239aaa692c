#include "analysis/frequent.h"

#include "base/sort.h"

#include <string.h>

// Returns the entry of the value. If the value has no entry, returns the empty entry where the
// value belongs.
static struct frequent_entry *find_entry(struct frequent *f, uint64_t value)
{
    // Fibonacci hashing (Knuth): the top bits of the product depend on all bits of the value.
    size_t i = (size_t)(value * 0x9e3779b97f4a7c15u >> 52) & (FREQUENT_SLOTS - 1);
    while (f->slots[i].count && f->slots[i].value != value)
        i = (i + 1) & (FREQUENT_SLOTS - 1);
    return &f->slots[i];
}

// Subtracts the median from all counts, and drops the values whose count reaches 0. These are at
// least half of all values.
static void shrink_counts(struct frequent *f)
{
    struct frequent_entry kept[FREQUENT_MAX];
    size_t n = frequent_entries(f, kept);
    HT_SORT(kept, n, SORT_UP(struct frequent_entry, count));
    uint64_t median = kept[n / 2].count;
    memset(f->slots, 0, sizeof f->slots);
    f->n = 0;
    f->missed += median;
    for (size_t i = n / 2; i < n; i++) {
        if (kept[i].count == median)
            continue;
        *find_entry(f, kept[i].value) =
            (struct frequent_entry){kept[i].value, kept[i].count - median};
        f->n++;
    }
}

void frequent_add(struct frequent *f, uint64_t value)
{
    struct frequent_entry *at = find_entry(f, value);
    if (at->count) {
        at->count++;
        return;
    }
    if (f->n == FREQUENT_MAX) {
        shrink_counts(f);
        at = find_entry(f, value);
    }
    *at = (struct frequent_entry){value, 1};
    f->n++;
}

size_t frequent_entries(const struct frequent *f, struct frequent_entry *to)
{
    size_t n = 0;
    for (size_t i = 0; i < FREQUENT_SLOTS; i++) {
        if (f->slots[i].count)
            to[n++] = f->slots[i];
    }
    return n;
}
