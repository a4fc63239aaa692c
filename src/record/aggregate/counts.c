#include "record/aggregate/counts.h"

#include "base/buf.h"
#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>

int aggregate_counts_init(struct aggregate_counts *c, uint64_t sample_bytes, uint64_t start_stamp,
                          uint64_t period_stamps)
{
    *c = (struct aggregate_counts){.start_stamp = start_stamp};
    c->by_site = (struct by_site){
        .sample_bytes = sample_bytes, .bin_events = period_stamps, .by_time = true};
    summary_init(&c->summary);
    return HT_PAGES_GROW(&c->summary.slots, &c->summary.capacity, 1);
}

void aggregate_counts_release(struct aggregate_counts *c)
{
    summary_release(&c->summary);
    by_site_release(&c->by_site);
    map_release(&c->sampled);
    map_release(&c->unpacked);
    pages_array_free(c->blocks, c->blocks_capacity, sizeof *c->blocks);
    free(c->sites);
    *c = (struct aggregate_counts){0};
}

// A block packed into 4 bytes: its size, its allocating thread, and a bit that is set if the slot
// holds a block.
enum { PACKED_SIZE_BITS = 16, PACKED_THREAD_BITS = 15 };
// Marks a slot whose value is in the map. A packed block never has this value.
static const uint32_t UNPACKED = 1u << PACKED_SIZE_BITS;

static uint64_t block_of(const struct aggregate_counts *c, uint32_t slot)
{
    uint32_t packed = slot < c->n_slots ? c->blocks[slot] : 0;
    uint64_t thread = packed << 1 >> 1 >> PACKED_SIZE_BITS, size = packed & (UNPACKED - 1);
    if (packed == UNPACKED)
        return map_get(&c->unpacked, slot + 1ull);
    return packed ? thread << SUMMARY_SIZE_BITS | size | SUMMARY_HOLDS : 0;
}

static int set_block(struct aggregate_counts *c, uint32_t slot, uint64_t block)
{
    uint64_t size = block & SUMMARY_SIZE_MASK,
             thread = (block & ~SUMMARY_HOLDS) >> SUMMARY_SIZE_BITS;
    if (slot >= c->n_slots) {
        if (HT_PAGES_GROW(&c->blocks, &c->blocks_capacity, slot + 1ull) < 0)
            return -ENOMEM;
        c->n_slots = slot + 1ull;
    }
    uint32_t *at = &c->blocks[slot];
    if (*at == UNPACKED)
        map_remove(&c->unpacked, slot + 1ull);
    if (!block)
        *at = 0;
    else if (size >> PACKED_SIZE_BITS || thread >> PACKED_THREAD_BITS)
        *at = UNPACKED;
    else
        *at = 1u << 31 | (uint32_t)thread << PACKED_SIZE_BITS | (uint32_t)size;
    return *at == UNPACKED ? map_put(&c->unpacked, slot + 1ull, block) : 0;
}

static int set_site(struct aggregate_counts *c, uint32_t slot, uint32_t site)
{
    if (c->by_site.sample_bytes)
        return site ? map_put(&c->sampled, slot + 1ull, site) : 0;
    if (HT_EXTEND(&c->sites, &c->n_sites, &c->sites_capacity, slot + 1ull) < 0)
        return -ENOMEM;
    c->sites[slot] = site;
    return 0;
}

static uint32_t remove_site(struct aggregate_counts *c, uint32_t slot)
{
    if (!c->by_site.sample_bytes)
        return slot < c->n_sites ? c->sites[slot] : 0;
    uint32_t site = c->sampled.n ? (uint32_t)map_get(&c->sampled, slot + 1ull) : 0;
    if (site)
        map_remove(&c->sampled, slot + 1ull);
    return site;
}

static void remove_block(struct aggregate_counts *c, const struct workload_op *op, uint64_t block,
                         bool freed)
{
    if (!(block & SUMMARY_HOLDS))
        return;
    uint32_t site = remove_site(c, op->slot);
    c->by_site.sites[site].freed_blocks += freed;
    by_site_remove(&c->by_site, site, block & SUMMARY_SIZE_MASK);
}

static int add_block(struct aggregate_counts *c, const struct workload_op *op, uint64_t block)
{
    uint32_t site = by_site_of(op);
    bool existed = op->kind == HT_PREEXISTING;
    return set_site(c, op->slot, site)
               ?: by_site_add(&c->by_site, site, block & SUMMARY_SIZE_MASK, existed);
}

// Counts an op on a slot. The summary has only slot 0, so the slot's block is copied to slot 0 and
// back.
static int count_block(struct aggregate_counts *c, uint32_t thread, const struct workload_op *op)
{
    struct workload_op first = *op;
    bool frees = format_block_use(op) == FORMAT_SLOT_FREED;
    uint64_t block = block_of(c, op->slot);
    first.slot = 0;
    *summary_slot(&c->summary, 0) = block;
    int rc = summary_op(&c->summary, thread, &first);
    if (op->flags & WORKLOAD_FAILED)
        return rc;
    remove_block(c, op, block, frees);
    block = *summary_slot(&c->summary, 0);
    rc = rc ?: set_block(c, op->slot, block);
    return rc == 0 && !frees ? add_block(c, op, block) : rc;
}

static int count_op(struct aggregate_counts *c, uint32_t thread, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    bool is_block =
        class != HT_CLASS_NONE && class <= HT_CLASS_RESIZE && op->slot != WORKLOAD_NO_SLOT;
    return is_block ? count_block(c, thread, op) : summary_op(&c->summary, thread, op);
}

static int end_period(struct aggregate_counts *c)
{
    size_t n = c->by_site.n_bins;
    c->levels[n] = c->summary.live_bytes;
    int rc = by_site_cut(&c->by_site);
    for (size_t i = 0; c->by_site.n_bins <= n && i < c->by_site.n_bins; i++)
        c->levels[i] = c->levels[2 * i];
    return rc;
}

int aggregate_counts_reach(struct aggregate_counts *c, uint64_t stamp)
{
    struct by_site *b = &c->by_site;
    uint64_t since = stamp > c->start_stamp ? stamp - c->start_stamp : 0;
    int rc = 0;
    b->events = since > b->events ? since : b->events;
    while (rc == 0 && b->events >= b->next_cut)
        rc = end_period(c);
    return rc;
}

int aggregate_counts_ops(struct aggregate_counts *c, const struct workload_thread_op *ops, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(ops[i].op.slot < c->n_slots ? &c->blocks[ops[i].op.slot] : NULL, 1);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        // If the stamp is before the start, the difference wraps around to a large number, which is
        // harmless.
        if (__builtin_expect(ops[i].op.stamp - c->start_stamp >= c->by_site.next_cut, 0))
            rc = aggregate_counts_reach(c, ops[i].op.stamp);
        rc = rc ?: count_op(c, ops[i].thread, &ops[i].op);
    }
    return rc;
}
