#include "formats/heap_profile.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/progress.h"

#include <stdlib.h>

int heap_profile_open(struct heap_profile *p, struct export *x, struct workload_reader *r)
{
    *p = (struct heap_profile){.x = x, .reader = r, .header = workload_reader_header(r)};
    p->counts.sample_bytes = p->header->stack_sample_bytes;
    p->counts.next_cut = UINT64_MAX; // do not count bins, because growth is not used
    int rc = workload_read_summary(r, &p->summary, x->e);
    rc = rc < 0 ? rc : workload_read_sites(r, &p->sites, x->e);
    if (rc < 0)
        return rc;
    if (!p->sites.n_sites && x->note)
        x->note("the recording has no call stacks: all blocks have one row (record with --stacks)");
    p->symbols = symbols_new(&p->sites, p->header->exe);
    return p->symbols ? 0 : export_no_memory(x);
}

void heap_profile_release(struct heap_profile *p)
{
    symbols_free(p->symbols);
    workload_sites_release(&p->sites);
    by_site_release(&p->counts);
    free(p->more);
}

uint64_t heap_profile_ns(const struct heap_profile *p, uint64_t stamp)
{
    const struct workload_header *h = p->header;
    return stamp > h->start_stamp
               ? clock_to_ns((stamp - h->start_stamp) << h->stamp_shift, h->clock_hz)
               : 0;
}

// Returns how many blocks this block represents. The result is 1 unless call sites are sampled and
// the block has a call site.
static double block_weight(const struct heap_profile *p, const struct live_blocks_entry *block)
{
    struct estimate one = {0};
    if (!p->counts.sample_bytes || !block->site)
        return 1;
    estimate_add(&one, block->size, p->counts.sample_bytes);
    return one.blocks;
}

// Adds the time since the block was allocated. Skips preexisting blocks, whose allocation time is
// unknown.
static void add_lifetime(struct heap_profile *p, const struct live_blocks_entry *block)
{
    uint64_t from = p->x->facts.has_stamps ? heap_profile_ns(p, block->stamp) : block->event;
    if (!block->is_preexisting && p->now > from)
        p->more[block->site].lifetimes += (double)(p->now - from) * block_weight(p, block);
}

struct heap_profile_level heap_profile_level(const struct heap_profile *p, uint32_t site)
{
    const struct by_site_totals *t = &p->counts.sites[site];
    const struct heap_profile_site *more = &p->more[site];
    bool estimated = p->counts.sample_bytes && site;
    double blocks = estimated ? t->allocated.blocks : (double)t->calls,
           bytes = estimated ? t->allocated.bytes : (double)t->bytes;
    return (struct heap_profile_level){
        .allocated_blocks = (uint64_t)(blocks + more->earlier_blocks + 0.5),
        .allocated_bytes = (uint64_t)(bytes + more->earlier_bytes + 0.5),
        .live_blocks = estimated ? (uint64_t)(t->live.blocks + 0.5) : t->live_blocks,
        .live_bytes = estimated ? (uint64_t)(t->live.bytes + 0.5) : t->live_bytes,
    };
}

static void add_block(struct heap_profile *p, const struct live_blocks_entry *block)
{
    struct heap_profile_site *more = &p->more[block->site];
    double weight = block_weight(p, block);
    if (block->is_preexisting) {
        more->earlier_blocks += weight;
        more->earlier_bytes += weight * (double)block->size;
    }
    struct heap_profile_level level = heap_profile_level(p, block->site);
    if (level.live_bytes > more->max_bytes) {
        more->max_bytes = level.live_bytes;
        more->max_blocks = level.live_blocks;
    }
}

static int count_op(struct heap_profile *p, uint32_t thread, const struct workload_op *op)
{
    enum format_slot_use use = format_block_use(op);
    uint64_t peaks = p->counts.peaks;
    const struct live_blocks_entry *block =
        use == FORMAT_SLOT_NONE ? NULL : live_blocks_find(&p->counts.live, op->slot);
    p->now = p->x->facts.has_stamps ? heap_profile_ns(p, op->stamp) : p->counts.events;
    if (block)
        add_lifetime(p, block);
    if (by_site_op(&p->counts, thread, op) < 0 ||
        HT_EXTEND(&p->more, &p->n_more, &p->more_capacity, p->counts.n_sites) < 0)
        return export_no_memory(p->x);
    if (use != FORMAT_SLOT_NONE && use != FORMAT_SLOT_FREED)
        add_block(p, live_blocks_find(&p->counts.live, op->slot));
    if (p->counts.peaks != peaks)
        p->peak_at = p->now;
    return 1;
}

int heap_profile_next(struct heap_profile *p)
{
    enum { OPS_PER_UPDATE = 4096 };
    uint32_t thread;
    const struct workload_op *op;
    if (p->x->progress && ++p->ops % OPS_PER_UPDATE == 0)
        progress_update(p->x->progress, p->x->in->offset);
    int rc = workload_next_op(p->reader, &thread, &op, p->x->e);
    return rc > 0 ? count_op(p, thread, op) : rc;
}

void heap_profile_finish(struct heap_profile *p)
{
    for (size_t i = 0; i < p->counts.live.n; i++) {
        if (p->counts.live.items[i].is_live)
            add_lifetime(p, &p->counts.live.items[i]);
    }
    by_site_finish(&p->counts);
}

const struct workload_frame *heap_profile_frames(const struct heap_profile *p, uint32_t site,
                                                 uint32_t *n)
{
    bool known = site && site <= p->sites.n_sites;
    const struct workload_site *s = known ? &p->sites.sites[site - 1] : NULL;
    *n = known ? s->n : 0;
    return known ? &p->sites.frames[s->first] : NULL;
}
