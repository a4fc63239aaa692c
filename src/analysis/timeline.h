// Timeline of a run, with a limited number of bins of equal width. When all bins are in use,
// adjacent bins are merged.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    TIMELINE_BINS = 512,
    TIMELINE_GROUPS = 8, // groups of block sizes
};

// Counts since a certain point of the run.
struct timeline_counts {
    // Minimum and maximum of live bytes, initially and after each event.
    uint64_t min_bytes, max_bytes;
    // Minimum and maximum of live blocks, initially and after each event.
    uint64_t min_blocks, max_blocks;
    uint64_t events, allocs, frees, allocated_bytes;
    double event_bytes, stamp_bytes; // live bytes, summed over events and over stamps, respectively
};

struct timeline_bin {
    struct timeline_counts counts;
    uint64_t end_bytes, end_blocks;
    uint64_t end_event, end_stamp;    // position at the end of the bin, in events and in stamps
    uint64_t groups[TIMELINE_GROUPS]; // live bytes at the end
};

// The axis counts either events or stamps since the start. A struct of zeros is an empty timeline
// whose bins have a width of 1.
struct timeline {
    struct timeline_bin *bins;
    size_t n, capacity;       // closed bins; at most TIMELINE_BINS
    unsigned width_shift;     // the bin width is 2^width_shift
    struct timeline_bin open; // the current bin
};

// Returns the end of the open bin.
static inline uint64_t timeline_end(const struct timeline *t)
{
    return (uint64_t)(t->n + 1) << t->width_shift;
}

void timeline_counts_init(struct timeline_counts *c, uint64_t bytes, uint64_t blocks);
void timeline_counts_add(struct timeline_counts *c, const struct timeline_counts *more);

// Closes the open bin, whose contents must be final. If the array is full, merges bins instead and
// keeps the bin open. Returns 0 or -ENOMEM.
int timeline_close(struct timeline *t);

// Merges bins until `at` fits in the timeline.
void timeline_reach(struct timeline *t, uint64_t at);

void timeline_release(struct timeline *t);
