#include "convert/pool.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void pool_shared_init(struct pool_shared *s)
{
    *s = (struct pool_shared){.last = &s->first};
}

void pool_shared_release(struct pool_shared *s)
{
    while (s->first) {
        struct pool_batch *next = s->first->next;
        free(s->first);
        s->first = next;
    }
}

void pool_release(struct pool *p)
{
    free(p->slots);
    *p = (struct pool){0};
}

// Radix sort in descending order; `spare` has room for `n` slots. Skips the high bytes that are 0
// in all slots.
static void sort_slots(uint32_t *slots, uint32_t *spare, size_t n)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= slots[i];
    for (unsigned shift = 0; shift < 32 && bits >> shift; shift += 8) {
        uint32_t at[256] = {0}, before = 0;
        for (size_t i = 0; i < n; i++)
            at[255 - (slots[i] >> shift & 255)]++;
        for (unsigned k = 0; k < 256; k++) {
            uint32_t here = at[k];
            at[k] = before;
            before += here;
        }
        for (size_t i = 0; i < n; i++)
            spare[at[255 - (slots[i] >> shift & 255)]++] = slots[i];
        memcpy(slots, spare, n * sizeof *slots);
    }
}

// Moves the `n` oldest slots to the shared pool, sorted so that the lowest slot number is on top.
// Successive allocations then get consecutive slots. Such slots compress well if the blocks are
// also freed in that order.
static int share_slots(struct pool *p, struct pool_shared *shared, size_t n, uint32_t thread,
                       uint64_t op)
{
    struct pool_batch *b = malloc(sizeof *b + n * sizeof *b->slots);
    uint32_t *spare = malloc(n * sizeof *spare);
    if (!b || !spare) {
        free(b);
        free(spare);
        return -ENOMEM;
    }
    b->next = NULL;
    b->thread = thread;
    b->op = op;
    b->n = n;
    memcpy(b->slots, p->slots, n * sizeof *b->slots);
    sort_slots(b->slots, spare, n);
    free(spare);
    memmove(p->slots, p->slots + n, (p->n - n) * sizeof *p->slots);
    p->n -= n;
    *shared->last = b;
    shared->last = &b->next;
    return 0;
}

int pool_make_room(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op)
{
    if (p->n < POOL_MAX_SLOTS)
        return HT_GROW(&p->slots, &p->capacity, p->n + 1);
    uint64_t shared_op = p->lower_op;
    p->lower_op = op;
    return share_slots(p, shared, p->n - POOL_KEPT_SLOTS, thread, shared_op);
}

int pool_hand_over(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op)
{
    int rc = p->n ? share_slots(p, shared, p->n, thread, op) : 0;
    pool_release(p);
    return rc;
}

int pool_adopt(struct pool *p, struct pool_shared *shared, uint32_t *thread, uint64_t *op)
{
    struct pool_batch *b = shared->first;
    if (!b)
        return 0;
    if (HT_GROW(&p->slots, &p->capacity, b->n) < 0)
        return -ENOMEM;
    memcpy(p->slots, b->slots, b->n * sizeof *p->slots);
    p->n = b->n;
    p->lower_op = *op;
    *thread = b->thread;
    *op = b->op;
    shared->first = b->next;
    if (!shared->first)
        shared->last = &shared->first;
    free(b);
    return 1;
}
