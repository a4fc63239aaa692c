// The live blocks of a recorded process at their addresses, and the pages that have ever held one. Memory depends on these,
// not on the length of the trace.
#ifndef HEAPTAPE_RSS_HEAP_H
#define HEAPTAPE_RSS_HEAP_H

#include "base/map.h"
#include "convert/order/order.h"

#include <stdbool.h>

// Of a slot; address 0: not live.
struct rss_block {
    uint64_t address, size;
    uint64_t usable_bytes; // 0: not recorded
    uint64_t allocated_at; // calls before; FRAGMENTATION_BEFORE_START: it existed at the start
    uint32_t thread, site;
};

enum { RSS_GRANULE_PAGES = 512 };

// Pages in a row, a bit each.
struct rss_granule {
    uint64_t first_page, held[RSS_GRANULE_PAGES / 64];
};

struct rss_heap {
    uint64_t page_bytes;
    uint64_t events;
    struct rss_block *blocks;
    size_t n_blocks, blocks_capacity;
    struct rss_granule *granules;
    size_t n_granules, granules_capacity, last_granule;
    struct map by_page; // of their first pages / RSS_GRANULE_PAGES: granule + 1
    struct map
        heaps; // addresses / RSS_GLIBC_HEAP_BYTES + 1 where glibc has a heap of an arena, if it is glibc
    uint64_t last_heap; // looked up last, + 1
};

// HEAP_MAX_SIZE of malloc/arena.c on 64 bits: heaps of arenas other than the main one begin at multiples of it.
#define RSS_GLIBC_HEAP_BYTES (64ull << 20)

// glibc maps blocks from this size on one by one, unless told otherwise (M_MMAP_THRESHOLD, which only grows by itself).
#define RSS_GLIBC_MMAP_BYTES (128u << 10)

// `heap` is all zero but for page_bytes.
void rss_heap_release(struct rss_heap *heap);

// Counts an op. 0 or -ENOMEM.
int rss_heap_op(struct rss_heap *heap, const struct workload_thread_op *op,
                const struct order_call *call);

// Has the page with this number ever held a part of a block?
bool rss_heap_has_held(const struct rss_heap *heap, uint64_t page);

// Does the address lie in a heap of an arena of glibc other than the main one, if the allocator is glibc?
bool rss_heap_is_glibc_heap(const struct rss_heap *heap, uint64_t address);

#endif
