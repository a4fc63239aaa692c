#include "analysis/memory/rss_heap.h"

#include "analysis/memory/fragmentation.h"
#include "base/buf.h"
#include "workload/format.h"

#include <errno.h>
#include <stdlib.h>

// Offset of a block in its first page, if glibc maps the block individually.
enum { GLIBC_MAPPED_AT = 16 };

void rss_heap_release(struct rss_heap *heap)
{
    free(heap->blocks);
    free(heap->granules);
    map_release(&heap->by_page);
    map_release(&heap->heaps);
    *heap = (struct rss_heap){0};
}

static struct rss_granule *granule_of(const struct rss_heap *heap, uint64_t page)
{
    uint64_t number = map_get(&heap->by_page, page / RSS_GRANULE_PAGES);
    return number ? &heap->granules[number - 1] : NULL;
}

static struct rss_granule *make_granule(struct rss_heap *heap, uint64_t page)
{
    uint64_t first = page - page % RSS_GRANULE_PAGES;
    if (heap->n_granules && heap->granules[heap->last_granule].first_page == first)
        return &heap->granules[heap->last_granule];
    struct rss_granule *g = MAP_ITEM(&heap->by_page, page / RSS_GRANULE_PAGES, &heap->granules,
                                     &heap->n_granules, &heap->granules_capacity);
    if (!g)
        return NULL;
    g->first_page = first;
    heap->last_granule = (size_t)(g - heap->granules);
    return g;
}

static int hold_pages(struct rss_heap *heap, uint64_t page, uint64_t last)
{
    while (page <= last) {
        struct rss_granule *g = make_granule(heap, page);
        if (!g)
            return -ENOMEM;
        unsigned bit = page % 64, most = 64 - bit;
        uint64_t n = last - page + 1 < most ? last - page + 1 : most;
        g->held[page % RSS_GRANULE_PAGES / 64] |= (n == 64 ? UINT64_MAX : (1ull << n) - 1) << bit;
        page += n;
    }
    return 0;
}

bool rss_heap_has_held(const struct rss_heap *heap, uint64_t page)
{
    const struct rss_granule *g = granule_of(heap, page);
    return g && g->held[page % RSS_GRANULE_PAGES / 64] >> page % 64 & 1;
}

bool rss_heap_is_glibc_heap(const struct rss_heap *heap, uint64_t address)
{
    return map_get(&heap->heaps, address / RSS_GLIBC_HEAP_BYTES + 1) != 0;
}

// Records the glibc heap that contains the block. Every block lies in a heap unless it was mapped
// individually.
static int note_heap(struct rss_heap *heap, const struct rss_block *b)
{
    uint64_t number = b->address / RSS_GLIBC_HEAP_BYTES + 1;
    if (number == heap->last_heap || b->size >= RSS_GLIBC_MMAP_BYTES ||
        b->address % heap->page_bytes == GLIBC_MAPPED_AT)
        return 0;
    heap->last_heap = number;
    return map_put(&heap->heaps, number, 1);
}

static int put_block(struct rss_heap *heap, struct rss_block *b,
                     const struct workload_thread_op *of, const struct order_call *call)
{
    const struct workload_op *op = &of->op;
    bool before = op->kind == HT_PREEXISTING;
    uint64_t site = format_op_site(op);
    // op->value is 0 if only the free of the block was recorded.
    heap->known_before += before && (uint8_t)op->value;
    *b = (struct rss_block){
        .address = before && call->added ? call->ptr : call->result,
        .size = event_requested(op->kind, op->size, op->count),
        .usable_bytes = call->notes[HT_NOTE_USABLE],
        .allocated_at = before ? FRAGMENTATION_BEFORE_START : heap->events,
        .thread = of->thread,
        .site = site <= UINT32_MAX ? (uint32_t)site : 0,
    };
    uint64_t bytes = b->size ? b->size : 1, end = b->address + bytes - 1;
    if (!b->address || end < b->address) {
        b->address = 0; // the address is not valid
        return 0;
    }
    int rc = note_heap(heap, b);
    return rc < 0 ? rc : hold_pages(heap, b->address / heap->page_bytes, end / heap->page_bytes);
}

int rss_heap_op(struct rss_heap *heap, const struct workload_thread_op *of,
                const struct order_call *call)
{
    const struct workload_op *op = &of->op;
    enum format_slot_use use = format_block_use(op);
    int rc = 0;
    if (use != FORMAT_SLOT_NONE) {
        if (HT_EXTEND(&heap->blocks, &heap->n_blocks, &heap->blocks_capacity, op->slot + 1ull) < 0)
            return -ENOMEM;
        struct rss_block *b = &heap->blocks[op->slot];
        b->address = 0;
        if (use != FORMAT_SLOT_FREED)
            rc = put_block(heap, b, of, call);
    }
    heap->events += op->kind != HT_PREEXISTING;
    return rc;
}
