// Fragmentation: the live blocks that pin sparse pages.
#ifndef HEAPTAPE_REPLAY_FRAGMENTATION_H
#define HEAPTAPE_REPLAY_FRAGMENTATION_H

#include "plan/plan.h"

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

#define FRAGMENTATION_UNKNOWN UINT64_MAX // the thread of a preexisting block

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

// Finds the fragmentation among the blocks of `h`; addresses[i] is that of entry i < n of the slot table, 0: NULL. A block
// of 0 bytes takes one of its page. *out is to be released in any case. 0 or -ENOMEM.
int fragmentation_find(struct fragmentation *out, const struct plan_snapshot *h, const uint64_t *addresses, size_t n,
                       uint64_t page_bytes);
void fragmentation_release(struct fragmentation *h);

// Sorts the groups: those of sizes and ages by key, the others by stranded bytes, most first.
void fragmentation_sort(struct fragmentation *h);

// Without call sites all blocks are of site 0.
bool fragmentation_has_sites(const struct fragmentation_groups *g);

// The first and the last size or age of a group of that key.
void fragmentation_size_range(uint64_t key, uint64_t range[2]);
void fragmentation_age_range(uint64_t key, uint64_t range[2]);

#endif
