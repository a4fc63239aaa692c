// A recorded process's live blocks by address, and the pages that have ever held a block. Memory
// use depends on the number of these blocks and pages, not on the length of the trace.
#pragma once

#include "base/map.h"
#include "convert/order/order.h"

#include <stdbool.h>

// The block of a slot.
struct rss_block {
    uint64_t address, size;
    uint64_t usable_bytes; // 0 if not recorded
    // Number of preceding calls, or FRAGMENTATION_BEFORE_START if preexisting.
    uint64_t allocated_at;
    uint32_t thread, site;
};

enum { RSS_GRANULE_PAGES = 512 };

// Consecutive pages. A bit of `held` is set if the page has ever held part of a block.
struct rss_granule {
    uint64_t first_page, held[RSS_GRANULE_PAGES / 64];
};

struct rss_heap {
    uint64_t page_bytes;
    uint64_t events;
    // Number of preexisting blocks that the trace lists.
    uint64_t known_before;
    struct rss_block *blocks;
    size_t n_blocks, blocks_capacity;
    struct rss_granule *granules;
    size_t n_granules, granules_capacity, last_granule;
    struct map by_page; // maps first_page / RSS_GRANULE_PAGES to the index in `granules` plus 1
    // Set of possible glibc heaps; the key is the address / RSS_GLIBC_HEAP_BYTES, plus 1.
    struct map heaps;
    uint64_t last_heap; // the key most recently added to `heaps`
};

// HEAP_MAX_SIZE in malloc/arena.c on 64-bit systems. Heaps outside the main arena are aligned to
// this size.
#define RSS_GLIBC_HEAP_BYTES (64ull << 20)

// glibc maps blocks of at least this size individually unless M_MMAP_THRESHOLD is changed. The
// dynamic threshold never falls below this size.
#define RSS_GLIBC_MMAP_BYTES (128u << 10)

// Initialize by setting page_bytes in a zeroed struct.
void rss_heap_release(struct rss_heap *heap);

// Applies an op. Returns 0 or -ENOMEM.
int rss_heap_op(struct rss_heap *heap, const struct workload_thread_op *op,
                const struct order_call *call);

// Returns true if the page with this number has ever held part of a block.
bool rss_heap_has_held(const struct rss_heap *heap, uint64_t page);

// Returns true if the address is in a heap outside the main arena. Valid only if the allocator is
// glibc.
bool rss_heap_is_glibc_heap(const struct rss_heap *heap, uint64_t address);
