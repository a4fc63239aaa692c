// Live blocks of a recorded process by address, and the pages that have ever held a block. Memory
// use depends on these, not on the length of the trace.
#ifndef HEAPTAPE_RSS_HEAP_H
#define HEAPTAPE_RSS_HEAP_H

#include "base/map.h"
#include "convert/order/order.h"

#include <stdbool.h>

// Block of a slot.
struct rss_block {
    uint64_t address, size;
    uint64_t usable_bytes; // 0: not recorded
    uint64_t allocated_at; // number of calls before; FRAGMENTATION_BEFORE_START: preexisting
    uint32_t thread, site;
};

enum { RSS_GRANULE_PAGES = 512 };

// Consecutive pages, one bit each.
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
    struct map by_page; // first page / RSS_GRANULE_PAGES → index in `granules` + 1
    struct map heaps;   // address / RSS_GLIBC_HEAP_BYTES + 1 of possible glibc heaps
    uint64_t last_heap; // key added to `heaps` last
};

// HEAP_MAX_SIZE of malloc/arena.c on 64 bits: the alignment of heaps outside the main arena.
#define RSS_GLIBC_HEAP_BYTES (64ull << 20)

// Blocks of this size and larger are mapped individually by glibc unless M_MMAP_THRESHOLD differs.
// The dynamic threshold only grows.
#define RSS_GLIBC_MMAP_BYTES (128u << 10)

// Initialize with zeros and page_bytes.
void rss_heap_release(struct rss_heap *heap);

// Applies an op. Returns 0 or -ENOMEM.
int rss_heap_op(struct rss_heap *heap, const struct workload_thread_op *op,
                const struct order_call *call);

// Returns true if the page with this number has ever held a part of a block.
bool rss_heap_has_held(const struct rss_heap *heap, uint64_t page);

// Returns true if the address is in a heap outside the main arena, assuming that the allocator is
// glibc.
bool rss_heap_is_glibc_heap(const struct rss_heap *heap, uint64_t address);

#endif
