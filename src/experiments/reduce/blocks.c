#include "experiments/reduce/blocks.h"

#include "analysis/usage.h"
#include "base/buf.h"
#include "base/map.h"
#include "workload/format.h"

#include <errno.h>
#include <stdlib.h>

// Maps slots to blocks while the workload is read.
struct slots {
    uint32_t *blocks;
    size_t n, capacity;
};

static int add_op(struct reduce_blocks *b, struct slots *slots, uint32_t thread,
                  const struct workload_op *op)
{
    b->ops++;
    b->events += op->kind != HT_PREEXISTING;
    b->threads = thread >= b->threads ? thread + 1ull : b->threads;
    if (op->slot == WORKLOAD_NO_SLOT) {
        bool of_thread = event_infos[op->kind].class == HT_CLASS_THREAD;
        b->others += !of_thread;
        b->thread_ops += of_thread;
        return 0;
    }
    if (format_slot_use(op->kind, op->flags) == FORMAT_SLOT_ALLOCATED) {
        if (HT_GROW(&b->items, &b->capacity, b->n + 1) < 0 ||
            HT_EXTEND(&slots->blocks, &slots->n, &slots->capacity, (size_t)op->slot + 1) < 0)
            return -ENOMEM;
        slots->blocks[op->slot] = (uint32_t)b->n;
        b->items[b->n++] = (struct reduce_block){
            .thread = thread,
            .site = (uint32_t)format_op_site(op),
            .class = (uint8_t)usage_size_class(event_requested(op->kind, op->size, op->count)),
        };
    }
    struct reduce_block *block = &b->items[slots->blocks[op->slot]];
    block->last_thread = thread;
    block->last_event = b->events;
    block->ops++;
    return 0;
}

int reduce_blocks_read(struct reduce_blocks *b, struct workload_reader *r, struct err *e)
{
    struct slots slots = {0};
    const struct workload_op *op;
    uint32_t thread;
    int rc;
    while ((rc = workload_next_op(r, &thread, &op, e)) > 0) {
        rc = b->n < UINT32_MAX ? add_op(b, &slots, thread, op) : -E2BIG;
        if (rc < 0) {
            rc = rc == -ENOMEM ? err_no_memory(e, NULL)
                               : err_set(e, rc, "the workload has more than 4,294,967,294 blocks");
            break;
        }
    }
    free(slots.blocks);
    return rc;
}

void reduce_blocks_release(struct reduce_blocks *b)
{
    free(b->items);
    *b = (struct reduce_blocks){0};
}

static uint64_t key_of(const struct reduce_block *b, enum reduce_dimension d)
{
    switch (d) {
    case REDUCE_BY_THREAD:
        return b->thread;
    case REDUCE_BY_SITE:
        return b->site;
    case REDUCE_BY_CLASS:
        return b->class;
    case REDUCE_ALONE:
    case REDUCE_DIMENSIONS:
        break;
    }
    return 0;
}

struct group {
    uint64_t ops;
    uint32_t number; // in the order of appearance
};

static int by_ops(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->ops != y->ops)
        return x->ops > y->ops ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

size_t reduce_blocks_group(const struct reduce_blocks *b, enum reduce_dimension d,
                           uint32_t *group_of)
{
    struct map numbers = {0}; // maps the key of a group to its number + 1
    struct group *groups = NULL, *g;
    size_t n = 0, capacity = 0, numbered = 0;
    if (d == REDUCE_ALONE) {
        for (size_t i = 0; i < b->n; i++)
            group_of[i] = (uint32_t)i;
        return b->n;
    }
    for (; numbered < b->n; numbered++) {
        const struct reduce_block *block = &b->items[numbered];
        g = MAP_ITEM(&numbers, key_of(block, d), &groups, &n, &capacity);
        if (!g)
            break;
        g->number = group_of[numbered] = (uint32_t)(g - groups);
        g->ops += block->ops;
    }
    uint32_t *ranks = numbered == b->n ? calloc(n + 1, sizeof *ranks) : NULL;
    if (ranks && n)
        qsort(groups, n, sizeof *groups, by_ops);
    for (size_t i = 0; ranks && i < n; i++)
        ranks[groups[i].number] = (uint32_t)i;
    for (size_t i = 0; ranks && i < b->n; i++)
        group_of[i] = ranks[group_of[i]];
    n = ranks ? n : 0;
    map_release(&numbers);
    free(groups);
    free(ranks);
    return n;
}
