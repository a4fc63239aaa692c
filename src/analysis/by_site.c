#include "analysis/by_site.h"

#include "analysis/measure.h"
#include "base/buf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void by_site_release(struct by_site *b)
{
    free(b->sites);
    live_blocks_release(&b->live);
    free(b->parts_of);
    free(b->span.threads);
    free(b->levels);
    site_uses_release(&b->uses);
    free(b->flows);
    free(b->parts);
    map_release(&b->part_of);
    map_release(&b->pools.part_of);
    map_release(&b->pools.first_of);
    free(b->pools.parts);
    *b = (struct by_site){0};
}

const uint64_t by_site_lives_ns[] = {10000, 1000000, 100000000, 10000000000};
const uint64_t by_site_lives_events[] = {16, 1 << 10, 1 << 16, 1 << 22};

// Call before the site's live blocks change. If live bytes have reached a new peak since the site's
// last change, saves the site's live blocks, which are still the same as at the peak.
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

static void count_span(struct by_site *b, const struct live_blocks_entry *block, int by)
{
    struct by_site_totals *t = &b->sites[block->site];
    struct usage_count *counts[] = {&b->span.all, &b->span.sizes[usage_size_class(block->size)],
                                    &b->span.threads[block->thread]};
    uint64_t bytes = by < 0 ? -block->size : block->size;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        counts[i]->blocks += (uint64_t)by;
        counts[i]->bytes += bytes;
    }
    t->span_blocks += (uint64_t)by;
    t->span_bytes += bytes;
}

// If the op reaches `from`, starts the span. If the op reaches `to`, ends the span. Call before
// counting the op.
static void follow_span(struct by_site_span *s, const struct workload_op *op, uint64_t events)
{
    bool begins =
        !s->begun && (s->from.at == SLICE_AT_EDGE || slice_point_reached(&s->from, op, events));
    s->begun |= begins;
    s->over |= s->begun && slice_point_ends(&s->to, op, events, begins);
}

static struct by_site_part *part_of(struct by_site *b, uint32_t site, uint32_t thread,
                                    unsigned class)
{
    uint64_t key = ((uint64_t)site << 24 | (thread & 0xffffff)) << 6 | (class + 1);
    struct by_site_part *p = MAP_ITEM(&b->part_of, key, &b->parts, &b->n_parts, &b->parts_capacity);
    if (!p)
        return NULL;
    p->site = site;
    p->thread = thread;
    p->size_class = class;
    return p;
}

static void note_part_peak(const struct by_site *b, struct by_site_part *p)
{
    if (p->seen_peak == b->peaks)
        return;
    p->peak = p->live;
    p->seen_peak = b->peaks;
}

static bool has_parts(const struct by_site *b)
{
    return b->detailed && !b->sample_bytes;
}

static void release_part(struct by_site *b, const struct live_blocks_entry *block, uint32_t part,
                         uint64_t stamp)
{
    struct by_site_part *p = &b->parts[part - 1];
    bool timed = b->ns_per_stamp > 0;
    uint64_t from = timed ? block->stamp : block->event, to = timed ? stamp : b->events;
    double lived = (double)(to > from ? to - from : 0) * (timed ? b->ns_per_stamp : 1);
    const uint64_t *limits = timed ? by_site_lives_ns : by_site_lives_events;
    unsigned life = 0;
    while (life < BY_SITE_LIVES - 1 && lived > (double)limits[life])
        life++;
    note_part_peak(b, p);
    p->live.blocks--;
    p->live.bytes -= block->size;
    usage_count_block(&p->freed[life], block->size);
}

static int add_part(struct by_site *b, uint32_t slot, const struct live_blocks_entry *block,
                    bool before)
{
    if (HT_EXTEND(&b->parts_of, &b->n_parts_of, &b->parts_of_capacity, slot + 1ull) < 0)
        return -ENOMEM;
    struct by_site_part *p = part_of(b, block->site, block->thread, usage_size_class(block->size));
    if (!p)
        return -ENOMEM;
    b->parts_of[slot] = (uint32_t)(p - b->parts) + 1;
    note_part_peak(b, p);
    usage_count_block(&p->live, block->size);
    if (!before)
        usage_count_block(&p->all, block->size);
    return 0;
}

static uint64_t rounded(double v)
{
    return v < 0x1p63 ? (uint64_t)(v + 0.5) : UINT64_MAX;
}

static uint64_t level_of(const struct by_site *b, const struct by_site_totals *t)
{
    return b->sample_bytes ? (uint64_t)t->live.bytes : t->live_bytes;
}

static void merge_bins(struct by_site *b)
{
    for (size_t i = 0; i < b->n_levels; i++) {
        for (size_t k = 0; k < BY_SITE_BINS / 2; k++)
            b->levels[i][k] = b->levels[i][2 * k];
        for (size_t k = 0; b->detailed && k < BY_SITE_BINS / 2; k++) {
            b->flows[i].calls[k] = b->flows[i].calls[2 * k];
            b->flows[i].bytes[k] = b->flows[i].bytes[2 * k];
        }
    }
    b->n_bins = BY_SITE_BINS / 2;
    b->bin_events *= 2;
}

// Ends a bin. Bin i holds the levels after i * bin_events events.
int by_site_cut(struct by_site *b)
{
    b->bin_events += !b->bin_events;
    size_t n_flows = b->n_levels;
    if (HT_EXTEND(&b->levels, &b->n_levels, &b->levels_capacity, b->n_sites) < 0 ||
        (b->detailed && HT_EXTEND(&b->flows, &n_flows, &b->flows_capacity, b->n_sites) < 0))
        return -ENOMEM;
    for (size_t i = 0; i < b->n_sites; i++) {
        const struct by_site_totals *t = &b->sites[i];
        b->levels[i][b->n_bins] = level_of(b, t);
        if (b->detailed) {
            b->flows[i].calls[b->n_bins] =
                b->sample_bytes ? rounded(t->allocated.blocks) : t->calls;
            b->flows[i].bytes[b->n_bins] = b->sample_bytes ? rounded(t->allocated.bytes) : t->bytes;
        }
    }
    if (++b->n_bins == BY_SITE_BINS)
        merge_bins(b);
    b->next_cut = b->n_bins * b->bin_events;
    return 0;
}

// Returns true if the site's figures are estimates. Site 0 has no estimates, because it counts the
// calls that were not sampled.
static bool is_estimated(const struct by_site *b, uint32_t site)
{
    return b->sample_bytes && site;
}

void by_site_remove(struct by_site *b, uint32_t site, uint64_t bytes)
{
    struct by_site_totals *t = &b->sites[site];
    note_peak(b, t);
    t->live_blocks--;
    t->live_bytes -= bytes;
    if (is_estimated(b, site))
        estimate_remove(&t->live, bytes, b->sample_bytes);
    b->live_bytes -= bytes;
}

int by_site_add(struct by_site *b, uint32_t site, uint64_t bytes, bool before)
{
    struct by_site_totals *t = site_at(b, site);
    if (!t)
        return -ENOMEM;
    note_peak(b, t);
    t->calls += !before;
    t->bytes += before ? 0 : bytes;
    t->live_blocks++;
    t->live_bytes += bytes;
    if (is_estimated(b, site)) {
        estimate_add(&t->live, bytes, b->sample_bytes);
        if (!before)
            estimate_add(&t->allocated, bytes, b->sample_bytes);
    }
    b->live_bytes += bytes;
    if (b->live_bytes > b->peak_bytes) {
        b->peak_bytes = b->live_bytes;
        b->peaks++;
    }
    return 0;
}

static void release_block(struct by_site *b, struct live_blocks_entry *block,
                          const struct workload_op *op)
{
    if (block->is_marked && !b->span.over)
        count_span(b, block, -1);
    if (has_parts(b))
        release_part(b, block, b->parts_of[op->slot], op->stamp);
    by_site_remove(b, block->site, block->size);
    block->is_live = false;
}

static int add_block(struct by_site *b, uint32_t thread, const struct workload_op *op)
{
    bool before = op->kind == HT_PREEXISTING;
    uint32_t site = by_site_of(op);
    struct live_blocks_entry *block = live_blocks_at(&b->live, op->slot);
    if (!block || !site_at(b, site))
        return -ENOMEM;
    *block = (struct live_blocks_entry){
        .size = event_requested(op->kind, op->size, op->count),
        .event = b->events,
        .stamp = op->stamp,
        .site = site,
        .thread = thread,
        .is_live = true,
        .is_preexisting = before,
        .is_marked = b->span.begun && !b->span.over && !before,
    };
    if (block->is_marked) {
        if (HT_EXTEND(&b->span.threads, &b->span.n_threads, &b->span.threads_capacity,
                      (size_t)thread + 1) < 0)
            return -ENOMEM;
        count_span(b, block, 1);
    }
    if (has_parts(b) && add_part(b, op->slot, block, before) < 0)
        return -ENOMEM;
    return by_site_add(b, site, block->size, before);
}

static uint64_t pool_key(uint32_t pool, uint32_t site)
{
    return (uint64_t)pool << 32 | site;
}

// Appends an empty part for a pool and a site. Returns NULL when out of memory.
static struct by_site_pool_part *add_pool_part(struct by_site_pools *p, uint32_t pool,
                                               uint32_t site)
{
    if (HT_GROW(&p->parts, &p->parts_capacity, p->n_parts + 1) < 0)
        return NULL;
    struct by_site_pool_part *part = &p->parts[p->n_parts];
    *part = (struct by_site_pool_part){.site = site, .next = map_get(&p->first_of, pool)};
    size_t place = p->n_parts + 1;
    if (map_put(&p->part_of, pool_key(pool, site), place) < 0 ||
        map_put(&p->first_of, pool, place) < 0)
        return NULL;
    p->n_parts++;
    return part;
}

// Returns the site's live blocks in the pool, or NULL if the site never allocated in the pool.
static struct by_site_pool_part *pool_part(const struct by_site_pools *p, uint32_t pool,
                                           uint32_t site)
{
    size_t place = map_get(&p->part_of, pool_key(pool, site));
    return place ? &p->parts[place - 1] : NULL;
}

static int pool_alloc(struct by_site *b, uint32_t pool, uint32_t site, uint64_t bytes)
{
    struct by_site_pool_part *part = pool_part(&b->pools, pool, site);
    if (!part)
        part = add_pool_part(&b->pools, pool, site);
    if (!part)
        return -ENOMEM;
    part->blocks++;
    part->bytes += bytes;
    if (is_estimated(b, site))
        estimate_add(&part->live, bytes, b->sample_bytes);
    return by_site_add(b, site, bytes, false);
}

// Removes a block from a pool. Ignores unknown blocks.
static void pool_free(struct by_site *b, uint32_t pool, uint32_t site, uint64_t bytes)
{
    struct by_site_pool_part *part = pool_part(&b->pools, pool, site);
    if (!part || !part->blocks || part->bytes < bytes)
        return;
    part->blocks--;
    part->bytes -= bytes;
    if (is_estimated(b, site))
        estimate_remove(&part->live, bytes, b->sample_bytes);
    b->sites[site].freed_blocks++;
    by_site_remove(b, site, bytes);
}

static void pool_reset(struct by_site *b, uint32_t pool)
{
    for (size_t place = map_get(&b->pools.first_of, pool); place;) {
        struct by_site_pool_part *part = &b->pools.parts[place - 1];
        struct by_site_totals *t = &b->sites[part->site];
        note_peak(b, t);
        t->live_blocks -= part->blocks;
        t->live_bytes -= part->bytes;
        t->freed_blocks += part->blocks;
        b->live_bytes -= part->bytes;
        estimate_subtract(&t->live, &part->live);
        place = part->next;
        *part = (struct by_site_pool_part){.site = part->site, .next = place};
    }
}

static int pool_op(struct by_site *b, const struct workload_op *op)
{
    uint32_t site = by_site_of(op),
             pool = (uint32_t)op->align; // pool numbers fit in 32 bits
    if (op->kind == HT_POOL_ALLOC && !(op->flags & WORKLOAD_FAILED))
        return pool_alloc(b, pool, site, op->size);
    if (op->kind == HT_POOL_FREE)
        pool_free(b, pool, site, op->size);
    if (op->kind == HT_POOL_RESET)
        pool_reset(b, pool);
    return 0;
}

int by_site_op(struct by_site *b, uint32_t thread, const struct workload_op *op)
{
    if (b->span.wanted && !b->span.over)
        follow_span(&b->span, op, b->events);
    if (op->kind != HT_PREEXISTING && b->events++ == b->next_cut && by_site_cut(b) < 0)
        return -ENOMEM;
    if (b->of_pools)
        return pool_op(b, op);
    enum format_slot_use use = format_block_use(op);
    if (use == FORMAT_SLOT_NONE)
        return 0;
    if (b->count_uses && site_uses_op(&b->uses, &b->live, b->events, thread, op) < 0)
        return -ENOMEM;
    struct live_blocks_entry *block = live_blocks_find(&b->live, op->slot);
    if (block) {
        b->sites[block->site].freed_blocks += use == FORMAT_SLOT_FREED;
        release_block(b, block, op);
    }
    return use == FORMAT_SLOT_FREED ? 0 : add_block(b, thread, op);
}

bool by_site_known(const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    return (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE) && by_site_of(op);
}

int by_site_begin(struct by_site *b, const struct usage *before)
{
    struct by_site_totals *none = site_at(b, 0);
    b->first_event = before->events;
    int rc = none ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < before->live_blocks.n; i++) {
        const struct live_blocks_entry *block = &before->live_blocks.items[i];
        struct workload_op op = {.kind = HT_PREEXISTING,
                                 .slot = (uint32_t)i,
                                 .size = block->size,
                                 .stamp = before->start_stamp + block->stamp};
        if (block->is_live)
            rc = by_site_op(b, block->thread, &op);
    }
    if (rc < 0 || before->peak.bytes <= b->peak_bytes)
        return rc;
    b->peak_bytes = none->peak_bytes = before->peak.bytes;
    none->peak_blocks = before->peak.blocks;
    none->seen_peak = ++b->peaks;
    return 0;
}

static void set_estimates(struct by_site_totals *t)
{
    t->calls = rounded(t->allocated.blocks);
    t->bytes = rounded(t->allocated.bytes);
    t->peak_blocks = rounded(t->peak.blocks);
    t->peak_bytes = rounded(t->peak.bytes);
    t->live_blocks = rounded(t->live.blocks);
    t->live_bytes = rounded(t->live.bytes);
    if (t->freed_blocks)
        t->freed_blocks = t->calls > t->live_blocks ? t->calls - t->live_blocks : 1;
}

// Returns the site's level after so many events, or the current level if `event` is the last event
// or in the last, unfinished bin.
static double level_after(const struct by_site *b, size_t site, double event)
{
    size_t bin = (size_t)(event / (double)b->bin_events);
    if (event >= (double)b->events || bin >= b->n_bins)
        return (double)level_of(b, &b->sites[site]);
    return site < b->n_levels ? (double)b->levels[site][bin] : 0;
}

double by_site_growth(const struct by_site *b, size_t site, uint64_t from, uint64_t to)
{
    double parts[BY_SITE_PARTS];
    if (!b->n_bins || to <= from)
        return 0;
    double width = (double)(to - from) / BY_SITE_PARTS, first = level_after(b, site, (double)from),
           last = first;
    for (unsigned i = 0; i < BY_SITE_PARTS; i++) {
        double level = level_after(
            b, site, i == BY_SITE_PARTS - 1 ? (double)to : (double)from + (i + 1) * width);
        parts[i] = level - last;
        last = level;
    }
    double growth = BY_SITE_PARTS * measure_median(parts, BY_SITE_PARTS), change = last - first;
    return growth > 0 ? fmax(0, fmin(growth, change)) : fmin(0, fmax(growth, change));
}

void by_site_finish(struct by_site *b)
{
    for (size_t i = 0; i < b->n_parts; i++)
        note_part_peak(b, &b->parts[i]);
    for (size_t i = 0; i < b->n_sites; i++) {
        b->sites[i].growth_bytes = (uint64_t)fmax(0, by_site_growth(b, i, 0, b->events));
        note_peak(b, &b->sites[i]);
        if (b->sample_bytes && i > 0)
            set_estimates(&b->sites[i]);
    }
    if (b->sample_bytes && b->n_sites)
        b->sites[0] = (struct by_site_totals){0};
}
