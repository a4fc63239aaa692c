// What happened over a run, in a bounded number of bins of equal width: when they are full, each two become one.
#ifndef HEAPTAPE_ANALYSIS_TIMELINE_H
#define HEAPTAPE_ANALYSIS_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

enum {
    TIMELINE_BINS = 512,
    TIMELINE_GROUPS = 8, // of block sizes
};

// What is counted from one moment on.
struct timeline_counts {
    uint64_t min_bytes, max_bytes;   // live, at the beginning and after each event
    uint64_t min_blocks, max_blocks; // the same
    uint64_t events, allocs, frees, allocated_bytes;
    double event_bytes, stamp_bytes; // sums over events, and over stamps, of the bytes live
};

struct timeline_bin {
    struct timeline_counts counts;
    uint64_t end_bytes, end_blocks;
    uint64_t end_event, end_stamp;    // how far the other axis was
    uint64_t groups[TIMELINE_GROUPS]; // live bytes at the end of it
};

// The axis is in events, or in stamps since the start. All zero is an empty timeline with bins of width 1.
struct timeline {
    struct timeline_bin *bins;
    size_t n, capacity;       // whole bins, at most TIMELINE_BINS
    unsigned width_shift;     // a bin is 2^this wide
    struct timeline_bin open; // the one that grows
};

// Where the open bin ends.
static inline uint64_t timeline_end(const struct timeline *t)
{
    return (uint64_t)(t->n + 1) << t->width_shift;
}

void timeline_counts_init(struct timeline_counts *c, uint64_t bytes, uint64_t blocks);
void timeline_counts_add(struct timeline_counts *c, const struct timeline_counts *more);

// The open bin, filled in, is at its end: the next one begins. When the array is full, bins
// are joined instead and it stays open. 0 or -ENOMEM.
int timeline_close(struct timeline *t);

// Joins bins until the one at `at` is at most the last.
void timeline_reach(struct timeline *t, uint64_t at);

void timeline_release(struct timeline *t);

#endif
