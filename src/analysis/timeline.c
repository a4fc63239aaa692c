#include "analysis/timeline.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void timeline_counts_init(struct timeline_counts *c, uint64_t bytes, uint64_t blocks)
{
    *c = (struct timeline_counts){
        .min_bytes = bytes, .max_bytes = bytes, .min_blocks = blocks, .max_blocks = blocks};
}

void timeline_counts_add(struct timeline_counts *c, const struct timeline_counts *more)
{
    c->min_bytes = min(c->min_bytes, more->min_bytes);
    c->max_bytes = max(c->max_bytes, more->max_bytes);
    c->min_blocks = min(c->min_blocks, more->min_blocks);
    c->max_blocks = max(c->max_blocks, more->max_blocks);
    c->events += more->events;
    c->allocs += more->allocs;
    c->frees += more->frees;
    c->allocated_bytes += more->allocated_bytes;
    c->event_bytes += more->event_bytes;
    c->stamp_bytes += more->stamp_bytes;
}

// Merges two adjacent bins. Values at the end of a bin are copied from the later bin.
static void merge_bins(struct timeline_bin *to, const struct timeline_bin *a,
                       const struct timeline_bin *b)
{
    struct timeline_bin both = *b;
    timeline_counts_add(&both.counts, &a->counts);
    *to = both;
}

static void merge_all_bins(struct timeline *t)
{
    for (size_t i = 0; i + 1 < t->n; i += 2)
        merge_bins(&t->bins[i / 2], &t->bins[i], &t->bins[i + 1]);
    if (t->n % 2)
        merge_bins(&t->open, &t->bins[t->n - 1], &t->open);
    t->n /= 2;
    t->width_shift++;
}

int timeline_close(struct timeline *t)
{
    if (t->n == TIMELINE_BINS) {
        merge_all_bins(t);
        return 0;
    }
    if (HT_APPEND(&t->bins, &t->n, &t->capacity, t->open) < 0)
        return -ENOMEM;
    timeline_counts_init(&t->open.counts, t->open.end_bytes, t->open.end_blocks);
    return 0;
}

void timeline_reach(struct timeline *t, uint64_t at)
{
    while (at >> t->width_shift > TIMELINE_BINS)
        merge_all_bins(t);
}

void timeline_release(struct timeline *t)
{
    free(t->bins);
    *t = (struct timeline){0};
}
