#include "analysis/size_classes.h"

#include <stdlib.h>

enum { TCACHE_MAX = 1032 };

// Returns the largest size in a class of USAGE_LARGE, or UINT64_MAX for the last class.
static uint64_t large_max(unsigned i)
{
    unsigned doubling = 13 + i / 4;
    uint64_t quarters = 4 + i % 4 + 1;
    return quarters > UINT64_MAX >> (doubling - 2) ? UINT64_MAX : quarters << (doubling - 2);
}

static uint64_t power_above(uint64_t size)
{
    return size <= 1           ? 1
           : size > 1ull << 63 ? UINT64_MAX
                               : 1ull << (64 - __builtin_clzll(size - 1));
}

static uint64_t glibc_usable(uint64_t size)
{
    return size <= 24 ? 24 : ((size + 8 + 15) & ~15ull) - 8;
}

uint64_t size_classes_four_max(uint64_t size)
{
    if (size <= 8)
        return 8;
    if (size <= 128)
        return (size + 15) & ~15ull;
    unsigned doubling = 63 - (unsigned)__builtin_clzll(size - 1);
    uint64_t step = 1ull << (doubling - 2);
    return size <= UINT64_MAX - step ? (size + step - 1) & ~(step - 1) : size;
}

uint64_t size_classes_above(uint64_t size)
{
    enum { ABOVE_BYTES = 16, LEAST = 129 };
    if (size < LEAST || size > 1ull << 62)
        return 0;
    uint64_t step = 1ull << (63 - (unsigned)__builtin_clzll(size - 1) - 2),
             above = (size - 1) % step + 1;
    return above <= ABOVE_BYTES && above <= step / 8 ? step - above : 0;
}

// Adds the counts to the class that ends at `max`. If the last class ends elsewhere, first appends
// a new class. Call with ascending sizes.
static void add_class(struct size_classes *c, uint64_t max, struct usage_count count,
                      uint64_t added)
{
    if (!count.blocks)
        return;
    if (!c->n || c->classes[c->n - 1].max_bytes != max) {
        if (c->n == SIZE_CLASSES_MAX)
            return;
        c->classes[c->n++] = (struct size_class){.max_bytes = max};
    }
    struct size_class *last = &c->classes[c->n - 1];
    last->count.blocks += count.blocks;
    last->count.bytes += count.bytes;
    last->internal_fragmentation_bytes += added;
    c->internal_fragmentation_bytes += added;
}

static struct usage_count exact_count(const struct usage_sums *s, uint64_t size)
{
    return (struct usage_count){s->exact[size], s->exact[size] * size};
}

void size_classes_glibc(const struct usage_sums *s, struct size_classes *c)
{
    *c = (struct size_classes){0};
    for (uint64_t size = 0; size <= USAGE_EXACT; size++) {
        uint64_t usable = glibc_usable(size);
        add_class(c, size <= TCACHE_MAX ? usable : power_above(size), exact_count(s, size),
                  s->exact[size] * (usable - size));
    }
    for (unsigned i = 0; i < USAGE_LARGE; i++)
        add_class(c, power_above(large_max(i)), s->large[i], 0);
    // The classes do not account for the rounding of large sizes.
    c->internal_fragmentation_bytes += s->large_rounding_bytes;
}

void size_classes_four(const struct usage_sums *s, struct size_classes *c)
{
    *c = (struct size_classes){0};
    for (uint64_t size = 0; size <= USAGE_EXACT; size++)
        add_class(c, size_classes_four_max(size), exact_count(s, size),
                  s->exact[size] * (size_classes_four_max(size) - size));
    for (unsigned i = 0; i < USAGE_LARGE; i++)
        add_class(c, large_max(i), s->large[i],
                  s->large[i].blocks * large_max(i) - s->large[i].bytes);
}

static void add_count(struct usage_count *to, struct usage_count more)
{
    to->blocks += more.blocks;
    to->bytes += more.bytes;
}

void size_classes_two(const struct usage_sums *s, struct usage_count counts[USAGE_CLASSES])
{
    for (unsigned i = 0; i < USAGE_CLASSES; i++)
        counts[i] = (struct usage_count){0};
    for (uint64_t size = 0; size <= USAGE_EXACT; size++)
        add_count(&counts[usage_size_class(size)], exact_count(s, size));
    for (unsigned i = 0; i < USAGE_LARGE; i++)
        add_count(&counts[usage_size_class(large_max(i))], s->large[i]);
}

static int by_count(const void *a, const void *b)
{
    const struct size_classes_top_size *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

static int by_weight(const void *a, const void *b)
{
    const struct size_classes_top_size *x = a, *y = b;
    unsigned __int128 p = (unsigned __int128)x->count * x->size,
                      q = (unsigned __int128)y->count * y->size;
    return p != q ? (p > q ? -1 : 1) : by_count(a, b);
}

size_t size_classes_top(const struct usage_sums *s, bool by_bytes, struct size_classes_top_size *to,
                        size_t max)
{
    struct size_classes_top_size *all = malloc((USAGE_EXACT + 1 + FREQUENT_MAX) * sizeof *all);
    struct frequent_entry large[FREQUENT_MAX];
    size_t n = 0, n_large = frequent_entries(&s->frequent, large);
    if (!all)
        return 0;
    for (uint64_t size = 0; size <= USAGE_EXACT; size++) {
        if (s->exact[size])
            all[n++] = (struct size_classes_top_size){size, s->exact[size]};
    }
    for (size_t i = 0; i < n_large; i++)
        all[n++] = (struct size_classes_top_size){large[i].value, large[i].count};
    qsort(all, n, sizeof *all, by_bytes ? by_weight : by_count);
    max = n < max ? n : max;
    for (size_t i = 0; i < max; i++)
        to[i] = all[i];
    free(all);
    return max;
}
