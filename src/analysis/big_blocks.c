#include "analysis/big_blocks.h"

#include "analysis/by_site.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void big_blocks_release(struct big_blocks *b)
{
    free(b->items);
    free(b->next);
    *b = (struct big_blocks){0};
}

static bool holds_block(const struct workload_op *op)
{
    enum format_slot_use use = format_block_use(op);
    return (use == FORMAT_SLOT_ALLOCATED || use == FORMAT_SLOT_KEEP) &&
           !(op->flags & WORKLOAD_SIZE_UNKNOWN);
}

int big_blocks_op(struct big_blocks *b, uint32_t thread, const struct workload_op *op)
{
    if (thread >= b->n_threads &&
        HT_EXTEND(&b->next, &b->n_threads, &b->threads_capacity, thread + 1ull) < 0)
        return -ENOMEM;
    uint64_t number = b->next[thread]++, size = event_requested(op->kind, op->size, op->count);
    if (size < HT_BIG_BYTES || !holds_block(op))
        return 0;
    uint8_t kind = op->kind == HT_PREEXISTING ? (uint8_t)op->value : op->kind;
    return HT_APPEND(&b->items, &b->n, &b->capacity,
                     (struct big_block){number, size, thread, by_site_of(op), kind == HT_CALLOC});
}

// Returns the unused bytes of a block. Counts only whole pages, because adjacent blocks may have
// used part of the first and the last page.
static uint64_t unused_bytes(uint64_t size, const struct workload_residency *r)
{
    uint64_t used = (uint64_t)(r->used / WORKLOAD_PAGE_KIB + 2) * WORKLOAD_PAGE_BYTES;
    return size > used ? size - used : 0;
}

void big_blocks_measure(const struct big_blocks *b, const struct samples_residency *known,
                        struct big_blocks_use *all, struct site_uses *sites)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct big_block *at = &b->items[i];
        const struct workload_residency *r = samples_residency_find(known, at->thread, at->op);
        all->bytes += at->size;
        if (!r || r->used > at->size >> 10 || !(at->zeroed || r->used == r->resident))
            continue;
        uint64_t unused = unused_bytes(at->size, r);
        all->measured += at->size;
        all->unused += unused;
        if (at->site < sites->n_sites) {
            sites->sites[at->site].big_measured += at->size;
            sites->sites[at->site].big_unused += unused;
        }
    }
}
