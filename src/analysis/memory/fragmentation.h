// Fragmentation: live blocks that keep sparse pages in memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct symbols;

// The property that a group's blocks share. For SIZE, the group with key n holds blocks of 2^(n-1)
// to 2^n - 1 bytes, and key 0 holds blocks of 0 bytes. For AGE, the group with key n holds blocks
// that were allocated 10^n to 10^(n+1) - 1 calls ago, and key 0 holds blocks that were allocated
// fewer than 10 calls ago. For THREAD, the key is the number of the allocating thread. For SITE,
// the key is the number of the call site.
enum fragmentation_by {
    FRAGMENTATION_BY_SIZE,
    FRAGMENTATION_BY_AGE,
    FRAGMENTATION_BY_THREAD,
    FRAGMENTATION_BY_SITE,
    FRAGMENTATION_GROUPINGS
};

#define FRAGMENTATION_UNKNOWN      UINT64_MAX // thread of a preexisting block

#define FRAGMENTATION_BEFORE_START UINT64_MAX

struct fragmentation_block {
    uint64_t address, bytes; // occupied memory; 0 bytes count as 1
    uint64_t size;           // requested bytes
    // Number of preceding calls, or FRAGMENTATION_BEFORE_START if preexisting.
    uint64_t allocated_at;
    uint64_t site; // number of the call site, or 0 if unknown
    uint32_t thread;
};

// Live blocks at one point in time. fragmentation_find sorts the blocks.
struct fragmentation_heap {
    uint64_t event; // number of preceding calls
    uint64_t page_bytes;
    struct fragmentation_block *blocks;
    size_t n;
    // Returns true if the page with this number (address / page_bytes) should be counted. Called
    // only for sparse pages. If NULL, all pages are counted.
    bool (*counts)(const void *context, uint64_t page);
    const void *context;
};

struct fragmentation_group {
    uint64_t key;
    uint64_t blocks, live_bytes;
    uint64_t sparse_pages;   // pages that hold a block of the group
    uint64_t stranded_bytes; // the group's share of the free bytes in these pages
    uint64_t latest_page;    // the page that was counted last
};

struct fragmentation_groups {
    struct fragmentation_group *groups;
    size_t n, capacity;
};

struct fragmentation {
    uint64_t event; // number of preceding calls
    uint64_t page_bytes;
    uint64_t blocks, live_bytes; // `live_bytes` are requested bytes
    uint64_t pages;              // number of pages that hold part of a live block
    uint64_t sparse_pages;       // number of pages that are less than half live
    uint64_t stranded_bytes;     // number of free bytes in sparse pages
    struct fragmentation_groups by[FRAGMENTATION_GROUPINGS];
};

// Computes the fragmentation of a heap. Returns 0 or -ENOMEM. In either case, the caller must
// release *out.
int fragmentation_find(struct fragmentation *out, const struct fragmentation_heap *h);
void fragmentation_release(struct fragmentation *h);

// Sorts size and age groups by key, and other groups by stranded bytes, largest first.
void fragmentation_sort(struct fragmentation *h);

// Returns false if all blocks have site 0, which means that no call sites were recorded.
bool fragmentation_has_sites(const struct fragmentation_groups *g);

// Store the lowest and the highest size or age in the group with this key.
void fragmentation_size_range(uint64_t key, uint64_t range[2]);
void fragmentation_age_range(uint64_t key, uint64_t range[2]);

// Writes the fragmentation as defined by fragmentation_at in replay.schema.json. `symbols` is NULL
// if no names are available.
void fragmentation_json(struct json *j, const struct fragmentation *h, struct symbols *symbols);
