#include "analysis/by_site.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void by_site_release(struct by_site *b)
{
    free(b->sites);
    free(b->slots);
    *b = (struct by_site){0};
}

// Before a site's live blocks change: what they were at the last peak is what they have been since then.
static void note_peak(const struct by_site *b, struct by_site_totals *t)
{
    if (t->seen_peak == b->peaks)
        return;
    t->peak_blocks = t->live_blocks;
    t->peak_bytes = t->live_bytes;
    t->peak = t->live;
    t->seen_peak = b->peaks;
}

static struct by_site_totals *site_at(struct by_site *b, uint32_t site)
{
    int rc = HT_EXTEND(&b->sites, &b->n_sites, &b->sites_capacity, (size_t)site + 1);
    return rc < 0 ? NULL : &b->sites[site];
}

static struct by_site_block *slot_at(struct by_site *b, uint32_t slot)
{
    int rc = HT_EXTEND(&b->slots, &b->n_slots, &b->slots_capacity, (size_t)slot + 1);
    return rc < 0 ? NULL : &b->slots[slot];
}

static void release_block(struct by_site *b, struct by_site_block *block)
{
    struct by_site_totals *t = &b->sites[block->site];
    if (!block->live)
        return;
    note_peak(b, t);
    t->live_blocks--;
    t->live_bytes -= block->bytes;
    if (b->sample_bytes)
        estimate_remove(&t->live, block->bytes, b->sample_bytes);
    b->live_bytes -= block->bytes;
    block->live = false;
}

static int add_block(struct by_site *b, struct by_site_block *block, const struct workload_op *op)
{
    bool before = op->kind == HT_PREEXISTING;
    uint32_t site = (uint32_t)(before ? op->value >> 8 : op->value);
    struct by_site_totals *t = site_at(b, site <= BY_SITE_MAX ? site : 0);
    if (!t)
        return -ENOMEM;
    note_peak(b, t);
    *block = (struct by_site_block){event_requested(op->kind, op->size, op->count), (uint32_t)(t - b->sites), true};
    t->calls += !before;
    t->bytes += before ? 0 : block->bytes;
    t->live_blocks++;
    t->live_bytes += block->bytes;
    if (b->sample_bytes) {
        estimate_add(&t->live, block->bytes, b->sample_bytes);
        if (!before)
            estimate_add(&t->allocated, block->bytes, b->sample_bytes);
    }
    b->live_bytes += block->bytes;
    if (b->live_bytes > b->peak_bytes) {
        b->peak_bytes = b->live_bytes;
        b->peaks++;
    }
    return 0;
}

int by_site_op(struct by_site *b, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    if (class > HT_CLASS_RESIZE || class == HT_CLASS_NONE || op->slot == WORKLOAD_NO_SLOT ||
        op->flags & WORKLOAD_FAILED)
        return 0;
    struct by_site_block *block = slot_at(b, op->slot);
    if (!block)
        return -ENOMEM;
    release_block(b, block); // of an ALLOC there is nothing in the slot, unless the workload is broken
    return class == HT_CLASS_FREE || op->flags & WORKLOAD_FREED ? 0 : add_block(b, block, op);
}

bool by_site_known(const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    if (class != HT_CLASS_ALLOC && class != HT_CLASS_RESIZE)
        return false;
    return op->kind == HT_PREEXISTING ? op->value >> 8 : op->value;
}

int by_site_begin(struct by_site *b, const struct usage *before)
{
    struct by_site_totals *none = site_at(b, 0);
    int rc = none ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < before->n_blocks; i++) {
        const struct usage_block *block = &before->blocks[i];
        struct workload_op op = {.kind = HT_PREEXISTING, .slot = (uint32_t)i, .size = block->size};
        if (block->alloc_event != USAGE_NOT_LIVE)
            rc = by_site_op(b, &op);
    }
    if (rc < 0 || before->peak.bytes <= b->peak_bytes)
        return rc;
    b->peak_bytes = none->peak_bytes = before->peak.bytes;
    none->peak_blocks = before->peak.blocks;
    none->seen_peak = ++b->peaks;
    return 0;
}

static uint64_t rounded(double v)
{
    return v < 0x1p63 ? (uint64_t)(v + 0.5) : UINT64_MAX;
}

static void set_estimates(struct by_site_totals *t)
{
    t->calls = rounded(t->allocated.blocks);
    t->bytes = rounded(t->allocated.bytes);
    t->peak_blocks = rounded(t->peak.blocks);
    t->peak_bytes = rounded(t->peak.bytes);
    t->live_blocks = rounded(t->live.blocks);
    t->live_bytes = rounded(t->live.bytes);
}

void by_site_finish(struct by_site *b)
{
    for (size_t i = 0; i < b->n_sites; i++) {
        note_peak(b, &b->sites[i]);
        if (b->sample_bytes && i > 0)
            set_estimates(&b->sites[i]);
    }
    if (b->sample_bytes && b->n_sites)
        b->sites[0] = (struct by_site_totals){0};
}
