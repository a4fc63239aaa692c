// Of how much memory in big blocks it is known how much the program used.
#ifndef HEAPTAPE_ANALYSIS_BIG_BLOCKS_H
#define HEAPTAPE_ANALYSIS_BIG_BLOCKS_H

#include "workload/samples.h"

// An op that allocated or resized a block of HT_BIG_BYTES or more.
struct big_block {
    uint64_t op, size; // number in its thread; requested bytes
    uint32_t thread;
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

// Adds the requested bytes to *bytes and those whose use was measured, as a replay counts them, to *measured. `known` is
// sorted.
void big_blocks_measure(const struct big_blocks *b, const struct samples_residency *known, uint64_t *bytes,
                        uint64_t *measured);

#endif
