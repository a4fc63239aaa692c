// Of how much memory in big blocks it is known how much the program used, and how much that is.
#ifndef HEAPTAPE_ANALYSIS_BIG_BLOCKS_H
#define HEAPTAPE_ANALYSIS_BIG_BLOCKS_H

#include "analysis/site_uses.h"
#include "workload/samples.h"

// An op that allocated or resized a block of HT_BIG_BYTES or more.
struct big_block {
    uint64_t op, size; // number in its thread; requested bytes
    uint32_t thread;
    uint32_t site; // 0: not known
    bool zeroed;
};

// Of the ops of one process. All zero is empty.
struct big_blocks {
    struct big_block *items;
    size_t n, capacity;
    uint64_t *next; // number of each thread's next op
    size_t n_threads, threads_capacity;
};

void big_blocks_release(struct big_blocks *b);

// All ops of a thread in their order. 0 or -ENOMEM.
int big_blocks_op(struct big_blocks *b, uint32_t thread, const struct workload_op *op);

struct big_blocks_use {
    uint64_t bytes;    // requested
    uint64_t measured; // of them, in blocks whose use was measured, as a replay counts them
    uint64_t unused;   // of these, in whole pages that were not used
};

// Adds to *all, and the last two to the sites that `sites` has. `known` is sorted.
void big_blocks_measure(const struct big_blocks *b, const struct samples_residency *known,
                        struct big_blocks_use *all, struct site_uses *sites);

#endif
