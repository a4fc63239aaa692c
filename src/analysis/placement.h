// Bounds on the memory that a workload needs if blocks are never moved. The lower bound is the peak
// of live bytes. The upper bound is the memory of the best placement found; a better one may exist.
// Sizes are rounded up to PLACEMENT_GRANULE; blocks have no headers. Free pages are not counted, as
// if they were returned to the kernel at once.
//
//   placement_init(&p, NULL);
//   placement_put(&p, slot, bytes, e);            in the order of the workload
//   placement_free(&p, slot, e);
//   placement_find(&p, &bounds, e);
//   placement_release(&p);
#pragma once

#include "base/err.h"
#include "base/fio.h"
#include "workload/reader.h"

#include <stdbool.h>

enum { PLACEMENT_GRANULE = 16 };

struct placement_bounds {
    uint64_t lower_bytes, found_bytes;
    uint64_t blocks; // number of allocations, including resizes
};

struct placement_settings {
    // Count the address range from the lowest to the highest block, instead of the pages in use.
    // Set only by tests.
    bool range_only;
    // Number of events held in memory before they are written to a file; 0 means 1 M.
    size_t buffer_events;
};

// A change of a slot's block. 0 granules mean that the block is freed.
struct placement_event {
    uint32_t slot, granules;
};

// Events in a buffer, which is written to a temporary file whenever it is full.
struct placement_events {
    struct placement_event *items;
    size_t n, capacity, limit;
    uint64_t in_file; // number of events in the file
    struct output file;
};

struct placement_search {
    struct placement_settings settings;
    struct placement_events preexisting, events;
    uint32_t *live; // indexed by slot: number of granules
    size_t n_slots, slots_capacity;
    // Granules of live blocks that are not preexisting, minus granules of preexisting blocks that
    // were freed.
    int64_t now, peak;
    uint64_t peak_after; // number of events after which the peak is reached for the first time
    uint64_t preexisting_granules, allocations;
};

// Initializes *p. `settings` may be NULL.
void placement_init(struct placement_search *p, const struct placement_settings *settings);
void placement_release(struct placement_search *p);

// Allocates or resizes the slot's block. Returns 0, -EFBIG for a block of 64 GiB or more, or
// another negative errno.
int placement_put(struct placement_search *p, uint32_t slot, uint64_t bytes, struct err *e);

// Allocates a block that is live from the start, even if the call follows other events.
int placement_put_preexisting(struct placement_search *p, uint32_t slot, uint64_t bytes,
                              struct err *e);

// Frees the slot's block, if any.
int placement_free(struct placement_search *p, uint32_t slot, struct err *e);

int placement_find(struct placement_search *p, struct placement_bounds *b, struct err *e);

// Reads all ops of a workload and finds the bounds. If the use of a block of HT_BIG_BYTES or more
// was measured, only the part that the program used counts. Returns 0, or a negative errno.
int placement_read(struct workload_reader *r, struct placement_bounds *b, struct err *e);
