// Attributes the bytes in resident pages to blocks and arenas.
#include "analysis/memory/rss.h"
#include "analysis/memory/rss_heap.h"
#include "base/buf.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

// Memory of a live block. The header starts at own_from, the requested bytes start at `from`, and
// the rounding starts at live_end.
struct extent {
    uint64_t own_from, from, live_end, end;
};

struct finder {
    struct rss *to; // not modified by rss_find_blocks
    const struct rss_heap *heap;
    struct fragmentation_block *blocks; // sorted by address
    struct extent *extents;             // parallel to `blocks`
    size_t n, at;  // `at` is the index of the first block that does not end before the page
    size_t mapped; // index of the MAPPED arena plus 1
};

enum {
    // As in malloc/malloc.c on 64-bit systems. The size of a chunk is a multiple of 16 bytes and at
    // least 32 bytes, with 8 bytes before the block. A mapped chunk has 16 bytes before the block
    // and ends at a page boundary.
    CHUNK_ALIGN = 16,
    CHUNK_MIN = 32,
    CHUNK_HEAD = 8,
    MAPPED_HEAD = 16,
};

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static const struct trace_mapping *mapping_of(const struct trace_pages *p, uint64_t address)
{
    const struct trace_mapping *all = p->mappings;
    size_t i = HT_SEARCH(at, p->n_mappings, all[at].start + all[at].bytes > address);
    return i < p->n_mappings && all[i].start <= address ? &all[i] : NULL;
}

static bool is_resident(const struct trace_pages *p, const struct trace_mapping *m, uint64_t page)
{
    size_t end = m->first_run + m->n_runs, first = m->first_run,
           i = first +
               HT_SEARCH(at, m->n_runs, p->runs[first + at].first + p->runs[first + at].n > page);
    return i < end && p->runs[i].first <= page;
}

bool rss_is_resident(const void *context, uint64_t page)
{
    const struct trace_pages *p = context;
    const struct trace_mapping *m = mapping_of(p, page * p->page_bytes);
    return m && is_resident(p, m, page);
}

// Returns the memory of the block. The size of headers is known only for glibc.
static struct extent extent_of(const struct finder *f, const struct rss_block *b)
{
    uint64_t page = f->to->pages.page_bytes, head = 0, usable = b->size;
    const struct trace_mapping *m = mapping_of(&f->to->pages, b->address);
    bool heap = (m && m->kind == TRACE_MEMORY_HEAP) || rss_heap_is_glibc_heap(f->heap, b->address);
    if (f->to->is_glibc && !heap && b->address % page == MAPPED_HEAD &&
        (m || b->size >= RSS_GLIBC_MMAP_BYTES)) {
        head = MAPPED_HEAD;
        usable = round_up(b->size + MAPPED_HEAD, page) - MAPPED_HEAD;
    } else if (f->to->is_glibc) {
        uint64_t chunk = round_up(b->size + CHUNK_HEAD, CHUNK_ALIGN);
        head = CHUNK_HEAD;
        usable = (chunk < CHUNK_MIN ? CHUNK_MIN : chunk) - CHUNK_HEAD;
    }
    usable = b->usable_bytes > b->size ? b->usable_bytes : usable;
    usable = usable ? usable : 1;
    return (struct extent){b->address - head, b->address, b->address + b->size,
                           b->address + usable};
}

static int by_address(const void *a, const void *b)
{
    const struct rss_block *x = *(const struct rss_block *const *)a,
                           *y = *(const struct rss_block *const *)b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// Ends the extent where the next block begins, so that no byte belongs to two blocks.
static void clip_extent(struct extent *x, const struct extent *next)
{
    x->end = min(x->end, next->own_from > x->from ? next->own_from : next->from);
    x->live_end = min(x->live_end, x->end);
}

// Adds the blocks of at least `min_bytes` bytes, in address order.
static int add_blocks(struct finder *f, uint64_t min_bytes)
{
    const struct rss_heap *heap = f->heap;
    const struct rss_block **sorted = calloc(heap->n_blocks + 1, sizeof *sorted);
    for (size_t i = 0; sorted && i < heap->n_blocks; i++) {
        if (heap->blocks[i].address && heap->blocks[i].size >= min_bytes)
            sorted[f->n++] = &heap->blocks[i];
    }
    f->extents = calloc(f->n + 1, sizeof *f->extents);
    f->blocks = calloc(f->n + 1, sizeof *f->blocks);
    int rc = sorted && f->extents && f->blocks ? 0 : -ENOMEM;
    if (rc == 0 && f->n > 1)
        qsort(sorted, f->n, sizeof *sorted, by_address);
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        f->extents[i] = extent_of(f, sorted[i]);
        if (i && f->extents[i].own_from < f->extents[i - 1].from)
            f->extents[i].own_from = f->extents[i].from;
        if (i)
            clip_extent(&f->extents[i - 1], &f->extents[i]);
    }
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        const struct rss_block *b = sorted[i];
        const struct extent *x = &f->extents[i];
        f->blocks[i] = (struct fragmentation_block){
            x->own_from, x->end - x->own_from, b->size, b->allocated_at, b->site, b->thread};
    }
    free(sorted);
    return rc;
}

struct fragmentation_block *rss_find_blocks(const struct rss *r, const struct rss_heap *heap,
                                            size_t *n)
{
    struct finder f = {.to = (struct rss *)r, .heap = heap};
    int rc = add_blocks(&f, 0);
    free(f.extents);
    *n = f.n;
    if (rc == 0)
        return f.blocks;
    free(f.blocks);
    return NULL;
}

// Returns the counts of the arena that contains the address, or NULL when out of memory. New arenas
// must be added in address order.
static struct rss_counts *arena_of(struct finder *f, const struct trace_mapping *m,
                                   uint64_t address)
{
    struct rss *r = f->to;
    struct rss_arena a = {RSS_ARENA_MAPPING, m->start, m->bytes, {{0}}};
    if (m->kind == TRACE_MEMORY_HEAP) {
        a.kind = RSS_ARENA_MAIN;
    } else if (r->is_glibc && rss_heap_is_glibc_heap(f->heap, address)) {
        uint64_t from = address - address % RSS_GLIBC_HEAP_BYTES;
        a.kind = RSS_ARENA_HEAP;
        a.start = from > m->start ? from : m->start;
        a.bytes = min(from + RSS_GLIBC_HEAP_BYTES, m->start + m->bytes) - a.start;
    } else if (r->is_glibc) {
        a = (struct rss_arena){.kind = RSS_ARENA_MAPPED};
        if (f->mapped)
            return &r->arenas[f->mapped - 1].counts;
    }
    for (size_t i = r->n_arenas;
         i-- > 0 && (r->arenas[i].kind == RSS_ARENA_MAPPED || r->arenas[i].start >= a.start);) {
        if (r->arenas[i].start == a.start && r->arenas[i].kind == a.kind)
            return &r->arenas[i].counts;
    }
    if (HT_APPEND(&r->arenas, &r->n_arenas, &r->arenas_capacity, a) < 0)
        return NULL;
    f->mapped = a.kind == RSS_ARENA_MAPPED ? r->n_arenas : f->mapped;
    return &r->arenas[r->n_arenas - 1].counts;
}

static uint64_t overlap(uint64_t from, uint64_t to, uint64_t page_from, uint64_t page_to)
{
    from = from > page_from ? from : page_from;
    to = to < page_to ? to : page_to;
    return to > from ? to - from : 0;
}

// Adds and returns the bytes of live blocks in a page.
static uint64_t add_page_blocks(struct finder *f, uint64_t from, uint64_t to,
                                uint64_t bytes[RSS_PARTS])
{
    uint64_t used = 0;
    while (f->at < f->n && f->extents[f->at].end <= from)
        f->at++;
    for (size_t i = f->at; i < f->n && f->extents[i].own_from < to; i++) {
        const struct extent *x = &f->extents[i];
        bytes[RSS_OWN] += overlap(x->own_from, x->from, from, to);
        bytes[RSS_LIVE] += overlap(x->from, x->live_end, from, to);
        bytes[RSS_ROUNDING] += overlap(x->live_end, x->end, from, to);
        used += overlap(x->own_from, x->end, from, to);
    }
    return used;
}

static int count_page(struct finder *f, const struct trace_mapping *m, uint64_t page)
{
    uint64_t page_bytes = f->to->pages.page_bytes, from = page * page_bytes;
    struct rss_counts *c = arena_of(f, m, from);
    if (!c)
        return -ENOMEM;
    uint64_t used = add_page_blocks(f, from, from + page_bytes, c->bytes);
    bool in_arena =
        !f->to->is_glibc || m->kind == TRACE_MEMORY_HEAP || rss_heap_is_glibc_heap(f->heap, from);
    if (used) {
        c->bytes[RSS_PARTLY_FREE] += page_bytes - used;
        c->used_pages += used >= page_bytes / 2;
        c->sparse_pages += used < page_bytes / 2;
    } else if (!in_arena) { // glibc unmaps individually mapped blocks when they are freed
        f->to->not_heap[TRACE_MEMORY_ANONYMOUS] += page_bytes;
        f->to->all.bytes[RSS_NOT_HEAP] += page_bytes;
    } else if (rss_heap_has_held(f->heap, page)) {
        c->bytes[RSS_WHOLLY_FREE] += page_bytes;
        c->free_pages++;
    } else {
        c->bytes[RSS_OWN] += page_bytes;
        c->own_pages++;
    }
    return 0;
}

static bool has_blocks(const struct finder *f, const struct trace_mapping *m)
{
    const struct trace_pages *p = &f->to->pages;
    bool found = m->kind == TRACE_MEMORY_HEAP;
    for (size_t i = m->first_run; i < m->first_run + m->n_runs && !found; i++) {
        for (uint64_t page = p->runs[i].first; page < p->runs[i].first + p->runs[i].n && !found;
             page++)
            found = rss_heap_has_held(f->heap, page);
    }
    return found;
}

static int count_mapping(struct finder *f, const struct trace_mapping *m)
{
    const struct trace_pages *p = &f->to->pages;
    bool heap = has_blocks(f, m);
    int rc = 0;
    for (size_t i = m->first_run; i < m->first_run + m->n_runs; i++) {
        uint64_t end = p->runs[i].first + p->runs[i].n, bytes = p->runs[i].n * p->page_bytes;
        f->to->not_heap[m->after_file ? TRACE_MEMORY_FILE : m->kind] += heap ? 0 : bytes;
        f->to->all.bytes[RSS_NOT_HEAP] += heap ? 0 : bytes;
        for (uint64_t page = p->runs[i].first; heap && page < end && rc == 0; page++)
            rc = count_page(f, m, page);
    }
    return rc;
}

// Counts the live blocks, whether resident or not.
static int count_blocks(struct finder *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct trace_mapping *m = mapping_of(&f->to->pages, f->extents[i].from);
        struct rss_counts *c = m ? arena_of(f, m, f->extents[i].from) : NULL;
        if (m && !c)
            return -ENOMEM;
        if (c)
            c->blocks++, c->live_bytes += f->blocks[i].size;
        f->to->all.blocks++;
        f->to->all.live_bytes += f->blocks[i].size;
    }
    return 0;
}

static void add_counts(struct rss_counts *to, const struct rss_counts *c)
{
    for (unsigned i = 0; i < RSS_PARTS; i++)
        to->bytes[i] += c->bytes[i];
    to->used_pages += c->used_pages;
    to->sparse_pages += c->sparse_pages;
    to->free_pages += c->free_pages;
    to->own_pages += c->own_pages;
}

// Makes a map for a process without page maps. The map contains the pages of live blocks, as if
// these pages were resident.
static int make_map(struct finder *f)
{
    struct trace_pages *p = &f->to->pages;
    for (size_t i = 0; i < f->n; i++) {
        uint64_t first = f->extents[i].own_from / p->page_bytes,
                 last = (f->extents[i].end - 1) / p->page_bytes;
        const struct trace_page_run *run = p->n_runs ? &p->runs[p->n_runs - 1] : NULL;
        if (run && first < run->first + run->n)
            first = run->first + run->n;
        if (i == 0 &&
            trace_pages_add(p, &(struct trace_mapping){.start = first * p->page_bytes,
                                                       .kind = TRACE_MEMORY_ANONYMOUS}) < 0)
            return -ENOMEM;
        if (first <= last && trace_pages_add_run(p, first, last - first + 1) < 0)
            return -ENOMEM;
        p->mappings[0].bytes = (last + 1) * p->page_bytes - p->mappings[0].start;
    }
    return 0;
}

uint64_t rss_sum(const struct rss *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < RSS_PARTS; i++)
        sum += r->all.bytes[i];
    return sum;
}

static void add_rest(struct rss *r)
{
    uint64_t sum = rss_sum(r), rest = r->pages.rss_bytes > sum ? r->pages.rss_bytes - sum : 0;
    r->not_heap[TRACE_MEMORY_OTHER] = rest;
    r->all.bytes[RSS_NOT_HEAP] += rest;
}

static int count_mappings(struct finder *f)
{
    struct rss *r = f->to;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->pages.n_mappings; i++)
        rc = count_mapping(f, &r->pages.mappings[i]);
    for (unsigned kind = 0; kind < TRACE_MEMORY_KINDS; kind++) {
        r->not_heap[kind] += r->pages.rss_of[kind];
        r->all.bytes[RSS_NOT_HEAP] += r->pages.rss_of[kind];
    }
    return rc;
}

int rss_find_outside(struct rss *r, const struct rss_heap *heap)
{
    struct finder f = {.to = r, .heap = heap};
    // Individually mapped blocks are added so that their mappings count as heap.
    int rc = add_blocks(&f, RSS_GLIBC_MMAP_BYTES) ?: count_mappings(&f);
    free(f.extents);
    free(f.blocks);
    return rc;
}

int rss_find(struct rss *r, const struct rss_heap *heap)
{
    struct finder f = {.to = r, .heap = heap};
    int rc = add_blocks(&f, 0);
    if (rc == 0 && !r->maps)
        rc = make_map(&f);
    rc = rc ?: count_mappings(&f) ?: count_blocks(&f);
    for (size_t i = 0; i < r->n_arenas; i++)
        add_counts(&r->all, &r->arenas[i].counts);
    if (!r->maps)
        add_rest(r);
    const struct fragmentation_heap sparse = {heap->events, r->pages.page_bytes, f.blocks,
                                              f.n,          rss_is_resident,     &r->pages};
    if (rc == 0)
        rc = fragmentation_find(&r->pinned, &sparse);
    if (rc == 0)
        fragmentation_sort(&r->pinned);
    free(f.extents);
    free(f.blocks);
    return rc;
}
