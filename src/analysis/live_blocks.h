// Table of live blocks by slot, for passes over a workload's ops in a valid total order.
#pragma once

#include "base/buf.h"
#include "workload/format.h"

#include <stdlib.h>

_Static_assert(HT_ALLOCATORS <= 1 << 5, "live_blocks_entry.allocator");

struct live_blocks_entry {
    uint64_t size; // requested bytes
    // When the block was allocated, in units that the table's owner chooses.
    uint64_t event, stamp;
    uint32_t thread;
    uint32_t site : 24; // 0 if unknown
    bool is_live : 1;
    bool is_preexisting : 1;
    bool is_marked : 1; // for use by the table's owner
    uint32_t allocator : 5;
};

// A struct of zeros is an empty table.
struct live_blocks {
    struct live_blocks_entry *items;
    size_t n, capacity;
};

static inline void live_blocks_release(struct live_blocks *l)
{
    free(l->items);
    *l = (struct live_blocks){0};
}

// Returns the live block of the slot, or NULL.
static inline struct live_blocks_entry *live_blocks_find(const struct live_blocks *l, uint32_t slot)
{
    return slot < l->n && l->items[slot].is_live ? &l->items[slot] : NULL;
}

// Returns the entry of the slot, or NULL when out of memory. The entry need not hold a live block.
static inline struct live_blocks_entry *live_blocks_at(struct live_blocks *l, uint32_t slot)
{
    if (__builtin_expect(slot >= l->n, 0) &&
        HT_EXTEND(&l->items, &l->n, &l->capacity, slot + 1ull) < 0)
        return NULL;
    return &l->items[slot];
}

static inline void live_blocks_prefetch(const struct live_blocks *l, uint32_t slot)
{
    if (slot < l->n)
        __builtin_prefetch(&l->items[slot], 1);
}
