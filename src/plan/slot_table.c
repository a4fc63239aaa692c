#include "plan/slot_table.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void places_init(struct places *p)
{
    *p = (struct places){.limit = PLACES_LINE}; // entry 0 is NULL; the rest of its line stays unused
}

void places_release(struct places *p)
{
    for (size_t i = p->first; i < p->n; i++)
        free(p->shared[i]);
    free(p->shared);
    *p = (struct places){0};
}

void place_owner_release(struct place_owner *o)
{
    free(o->free);
    *o = (struct place_owner){0};
}

static int own(struct place_owner *o, const uint32_t *entries, size_t n)
{
    int rc = HT_GROW(&o->free, &o->capacity, o->n + n);
    if (rc < 0)
        return rc;
    memcpy(o->free + o->n, entries, n * sizeof *entries);
    o->n += n;
    return 0;
}

int places_take_fresh(struct places *p, struct place_owner *o, uint32_t *entry)
{
    if (o->fresh == o->fresh_end) {
        if (p->limit > UINT32_MAX - PLACES_LINE)
            return -ENOMEM;
        o->fresh = (uint32_t)p->limit;
        o->fresh_end = o->fresh + PLACES_LINE;
        p->limit += PLACES_LINE;
    }
    *entry = o->fresh++;
    return 0;
}

int places_take(struct places *p, struct place_owner *o, uint32_t *entry, struct place_batch **batch)
{
    *batch = NULL;
    if (o->n == 0 && o->fresh == o->fresh_end && p->first < p->n) {
        struct place_batch *b = p->shared[p->first];
        int rc = own(o, b->entries, b->n);
        if (rc < 0)
            return rc;
        p->first++;
        *batch = b;
    }
    if (o->n) {
        *entry = o->free[--o->n];
        return 0;
    }
    return places_take_fresh(p, o, entry);
}

int places_give(struct place_owner *o, uint32_t entry)
{
    int rc = own(o, &entry, 1);
    return rc < 0 ? rc : o->n >= 4 * PLACES_BATCH;
}

// The queue's room is used again once its first half is empty.
static void compact(struct places *p)
{
    if (p->first < 64 || p->first < p->n / 2)
        return;
    memmove(p->shared, p->shared + p->first, (p->n - p->first) * sizeof *p->shared);
    p->n -= p->first;
    p->first = 0;
}

int places_share(struct places *p, struct place_owner *o, uint32_t giver, uint64_t position)
{
    size_t n = o->n < PLACES_BATCH ? o->n : PLACES_BATCH;
    if (n == 0)
        return 0;
    compact(p);
    if (HT_GROW(&p->shared, &p->capacity, p->n + 1) < 0)
        return -ENOMEM;
    struct place_batch *b = malloc(sizeof *b + n * sizeof *b->entries);
    if (!b)
        return -ENOMEM;
    b->giver = giver;
    b->position = position;
    b->n = n;
    memcpy(b->entries, o->free, n * sizeof *o->free);
    memmove(o->free, o->free + n, (o->n - n) * sizeof *o->free);
    o->n -= n;
    p->shared[p->n++] = b;
    return 0;
}
