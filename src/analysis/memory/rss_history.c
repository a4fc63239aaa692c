#include "analysis/memory/rss_history.h"

#include "analysis/memory/rss_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int begin_moments(void *context, const struct trace_pages *maps, size_t n)
{
    struct rss_history *h = context;
    (void)maps;
    h->expected = n;
    return 0;
}

static uint64_t never_held_bytes(const struct rss *r)
{
    uint64_t pages = 0;
    for (size_t i = 0; i < r->n_arenas; i++)
        pages += r->arenas[i].kind == RSS_ARENA_MAPPING ? r->arenas[i].counts.own_pages : 0;
    return pages * r->pages.page_bytes;
}

static void set_moment(struct rss_history_moment *m, const struct rss *r, uint64_t time_ns)
{
    *m = (struct rss_history_moment){.time_ns = time_ns,
                                     .rss_bytes = r->pages.rss_bytes,
                                     .never_held_bytes = never_held_bytes(r)};
    for (unsigned kind = 0; kind < TRACE_MEMORY_KINDS; kind++)
        m->not_heap[kind] = r->not_heap[kind];
}

static bool is_in(const struct trace_mapping *m, uint64_t address)
{
    return address >= m->start && address < m->start + m->bytes;
}

// Counts the resident pages of the brk area above its last block. If a forked process has grown its
// heap, its brk area consists of two mappings.
static uint64_t find_top(const struct rss *r, const struct rss_heap *heap)
{
    const struct trace_pages *p = &r->pages;
    uint64_t free_pages = 0, end_of_blocks = 0;
    for (size_t i = 0; i < p->n_mappings; i++) {
        for (size_t k = 0; p->mappings[i].kind == TRACE_MEMORY_HEAP && k < heap->n_blocks; k++) {
            const struct rss_block *b = &heap->blocks[k];
            if (is_in(&p->mappings[i], b->address) && b->address + b->size > end_of_blocks)
                end_of_blocks = b->address + b->size;
        }
    }
    uint64_t from = end_of_blocks / p->page_bytes + 1;
    for (size_t i = 0; end_of_blocks && i < p->n_mappings; i++) {
        const struct trace_mapping *m = &p->mappings[i];
        for (size_t k = m->first_run; m->kind == TRACE_MEMORY_HEAP && k < m->first_run + m->n_runs;
             k++) {
            uint64_t first = p->runs[k].first, end = first + p->runs[k].n;
            free_pages += end > from ? end - (first > from ? first : from) : 0;
        }
    }
    return free_pages * p->page_bytes;
}

static const uint64_t region_bytes[RSS_HISTORY_REGIONS] = {
#define HT_X(symbol, bytes) [RSS_HISTORY_##symbol] = bytes,
    RSS_HISTORY_REGIONS_TABLE(HT_X)
#undef HT_X
};

// Counts the free resident bytes in regions with live blocks. The blocks are sorted by address.
static uint64_t find_region_free(const struct rss *r, const struct fragmentation_block *blocks,
                                 size_t n, uint64_t bytes)
{
    uint64_t page = r->pages.page_bytes, per_region = bytes / page, free_bytes = 0;
    for (size_t i = 0; i < n;) {
        uint64_t region = blocks[i].address / bytes, used = 0, resident = 0;
        for (; i < n && blocks[i].address / bytes == region; i++)
            used += blocks[i].bytes;
        for (uint64_t k = 0; k < per_region; k++)
            resident += rss_is_resident(&r->pages, region * per_region + k) ? page : 0;
        free_bytes += resident > used ? resident - used : 0;
    }
    return free_bytes;
}

static uint64_t count_before(const struct rss_heap *heap)
{
    uint64_t n = 0;
    for (size_t i = 0; i < heap->n_blocks; i++)
        n += heap->blocks[i].address && heap->blocks[i].allocated_at == FRAGMENTATION_BEFORE_START;
    return n;
}

static int find_last(struct rss_history *h, const struct rss_heap *heap, uint64_t time_ns)
{
    size_t n;
    int rc = rss_find(&h->rss, heap);
    struct fragmentation_block *blocks = rc == 0 ? rss_find_blocks(&h->rss, heap, &n) : NULL;
    if (!blocks)
        return -ENOMEM;
    h->rss.time_ns = time_ns;
    h->lists_before = heap->known_before > 0;
    h->before_blocks = count_before(heap);
    h->top_free_bytes = find_top(&h->rss, heap);
    for (unsigned i = 0; i < RSS_HISTORY_REGIONS; i++)
        h->region_free_bytes[i] = find_region_free(&h->rss, blocks, n, region_bytes[i]);
    free(blocks);
    return 0;
}

static int add_moment(void *context, const struct rss *r, const struct rss_heap *heap,
                      uint64_t time_ns)
{
    struct rss_history *h = context;
    struct rss copy = *r, *at = h->n + 1 == h->expected ? &h->rss : &copy;
    int rc;
    if (!h->n) {
        memcpy(h->first_names, r->pages.names, sizeof h->first_names);
        h->n_first_names = r->pages.n_names;
    }
    rc = at == &h->rss ? find_last(h, heap, time_ns) : rss_find_outside(at, heap);
    if (rc == 0 && h->n < RSS_MOMENTS)
        set_moment(&h->moments[h->n++], at, time_ns);
    if (at == &copy)
        free(copy.arenas);
    return rc;
}

static struct rss_moments moments_for(struct rss_history *h, uint32_t process)
{
    return (struct rss_moments){.max = RSS_HISTORY_MOMENTS,
                                .process = process,
                                .context = h,
                                .begin = begin_moments,
                                .visit = add_moment};
}

int rss_history_read(struct rss_history *h, struct trace_file *t, uint32_t process,
                     const struct convert_watch *watch, struct err *e)
{
    *h = (struct rss_history){.n = 0};
    const struct rss_moments moments = moments_for(h, process + 1);
    return rss_read_moments(&h->rss, t, &moments, watch, e);
}

int rss_history_begin(struct rss_history *h, struct rss_reading **reading, struct trace_file *t,
                      struct err *e)
{
    *h = (struct rss_history){.n = 0};
    const struct rss_moments moments = moments_for(h, 0);
    return rss_reading_new(reading, &h->rss, t, &moments, e);
}

void rss_history_release(struct rss_history *h)
{
    rss_release(&h->rss);
}
