#include "replay/plan/slot_table.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void slot_table_init(struct slot_table *t)
{
    *t = (struct slot_table){
        .limit = SLOT_TABLE_LINE}; // entry 0 is NULL; the rest of its cache line stays unused
}

void slot_table_release(struct slot_table *t)
{
    for (size_t i = t->first; i < t->n; i++)
        free(t->shared[i]);
    free(t->shared);
    *t = (struct slot_table){0};
}

void slot_table_pool_release(struct slot_table_pool *p)
{
    free(p->free);
    *p = (struct slot_table_pool){0};
}

static int append_entries(struct slot_table_pool *p, const uint32_t *entries, size_t n)
{
    int rc = HT_GROW(&p->free, &p->capacity, p->n + n);
    if (rc < 0)
        return rc;
    memcpy(p->free + p->n, entries, n * sizeof *entries);
    p->n += n;
    return 0;
}

int slot_table_allocate_fresh(struct slot_table *t, struct slot_table_pool *p, uint32_t *entry)
{
    if (p->fresh == p->fresh_end) {
        if (t->limit > UINT32_MAX - SLOT_TABLE_LINE)
            return -ENOMEM;
        p->fresh = (uint32_t)t->limit;
        p->fresh_end = p->fresh + SLOT_TABLE_LINE;
        t->limit += SLOT_TABLE_LINE;
    }
    *entry = p->fresh++;
    return 0;
}

int slot_table_allocate(struct slot_table *t, struct slot_table_pool *p, uint32_t *entry,
                        struct slot_table_batch **batch)
{
    *batch = NULL;
    if (p->n == 0 && p->fresh == p->fresh_end && t->first < t->n) {
        struct slot_table_batch *b = t->shared[t->first];
        int rc = append_entries(p, b->entries, b->n);
        if (rc < 0)
            return rc;
        t->first++;
        *batch = b;
    }
    if (p->n) {
        *entry = p->free[--p->n];
        return 0;
    }
    return slot_table_allocate_fresh(t, p, entry);
}

int slot_table_free(struct slot_table_pool *p, uint32_t entry)
{
    int rc = append_entries(p, &entry, 1);
    return rc < 0 ? rc : p->n >= SLOT_TABLE_SURPLUS;
}

// If the empty part at the start of the queue is at least half of the queue, removes it.
static void compact_queue(struct slot_table *t)
{
    if (t->first < 64 || t->first < t->n / 2)
        return;
    memmove(t->shared, t->shared + t->first, (t->n - t->first) * sizeof *t->shared);
    t->n -= t->first;
    t->first = 0;
}

int slot_table_share(struct slot_table *t, struct slot_table_pool *p, uint32_t from_thread,
                     uint64_t position)
{
    size_t n = p->n < SLOT_TABLE_BATCH ? p->n : SLOT_TABLE_BATCH;
    if (n == 0)
        return 0;
    compact_queue(t);
    if (HT_GROW(&t->shared, &t->capacity, t->n + 1) < 0)
        return -ENOMEM;
    struct slot_table_batch *b = malloc(sizeof *b + n * sizeof *b->entries);
    if (!b)
        return -ENOMEM;
    b->from_thread = from_thread;
    b->position = position;
    b->n = n;
    memcpy(b->entries, p->free, n * sizeof *p->free);
    memmove(p->free, p->free + n, (p->n - n) * sizeof *p->free);
    p->n -= n;
    t->shared[t->n++] = b;
    return 0;
}
