// Fragmentation: the live blocks that pin sparse pages.
#ifndef HEAPTAPE_FRAGMENTATION_FRAGMENTATION_H
#define HEAPTAPE_FRAGMENTATION_FRAGMENTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Groupings of blocks. A group's key: of SIZE 0 for no bytes, and n for 2^(n-1) to 2^n - 1; of AGE n for
// 10^n to 10^(n+1) - 1 calls made since its allocation, but 0 from none on; of THREAD the number of the thread that allocated
// it; of SITE the number of the call site.
enum fragmentation_by {
    FRAGMENTATION_BY_SIZE,
    FRAGMENTATION_BY_AGE,
    FRAGMENTATION_BY_THREAD,
    FRAGMENTATION_BY_SITE,
    FRAGMENTATION_GROUPINGS
};

#define FRAGMENTATION_UNKNOWN      UINT64_MAX // the thread of a preexisting block

#define FRAGMENTATION_BEFORE_START UINT64_MAX

struct fragmentation_block {
    uint64_t address, bytes; // what it takes of its pages; of 0 bytes it takes one
    uint64_t size;           // requested
    uint64_t
        allocated_at; // calls before it was allocated or last resized; FRAGMENTATION_BEFORE_START: it existed at the start
    uint64_t site;    // number of the call site of that call, 0: not known
    uint32_t thread;
};

// The live blocks at one moment. Sorted by fragmentation_find.
struct fragmentation_heap {
    uint64_t event; // calls made before
    uint64_t page_bytes;
    struct fragmentation_block *blocks;
    size_t n;
    // Does the page with this number, address / page_bytes, count? Called for sparse pages only. NULL: all do.
    bool (*counts)(const void *context, uint64_t page);
    const void *context;
};

struct fragmentation_group {
    uint64_t key;
    uint64_t blocks, live_bytes;
    uint64_t sparse_pages;   // that a block of the group lies in
    uint64_t stranded_bytes; // its share of what is free in these
    uint64_t latest_page;    // counted
};

struct fragmentation_groups {
    struct fragmentation_group *groups;
    size_t n, capacity;
};

struct fragmentation {
    uint64_t event; // calls made before
    uint64_t page_bytes;
    uint64_t blocks, live_bytes; // requested
    uint64_t pages;              // that a live block lies in, or a part of one
    uint64_t sparse_pages;       // of these, less than half of which is live
    uint64_t stranded_bytes;     // free in those
    struct fragmentation_groups by[FRAGMENTATION_GROUPINGS];
};

// *out is to be released in any case. 0 or -ENOMEM.
int fragmentation_find(struct fragmentation *out, const struct fragmentation_heap *h);
void fragmentation_release(struct fragmentation *h);

// Sorts the groups: those of sizes and ages by key, the others by stranded bytes, most first.
void fragmentation_sort(struct fragmentation *h);

// Without call sites all blocks are of site 0.
bool fragmentation_has_sites(const struct fragmentation_groups *g);

// The first and the last size or age of a group of that key.
void fragmentation_size_range(uint64_t key, uint64_t range[2]);
void fragmentation_age_range(uint64_t key, uint64_t range[2]);

#endif
