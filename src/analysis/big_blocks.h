// Measures which part of the large blocks of a program was used, from recorded residency.
#ifndef HEAPTAPE_ANALYSIS_BIG_BLOCKS_H
#define HEAPTAPE_ANALYSIS_BIG_BLOCKS_H

#include "analysis/site_uses.h"
#include "workload/samples.h"

// Op that allocated or resized a block of HT_BIG_BYTES or more.
struct big_block {
    uint64_t op, size; // op number in the thread; requested bytes
    uint32_t thread;
    uint32_t site; // 0: unknown
    bool zeroed;
};

// Ops of one process. All zero is empty.
struct big_blocks {
    struct big_block *items;
    size_t n, capacity;
    uint64_t *next; // op number of each thread's next op
    size_t n_threads, threads_capacity;
};

void big_blocks_release(struct big_blocks *b);

// Adds the next op of a thread; call for every op. Returns 0 or -ENOMEM.
int big_blocks_op(struct big_blocks *b, uint32_t thread, const struct workload_op *op);

struct big_blocks_use {
    uint64_t bytes;    // requested
    uint64_t measured; // in blocks with a valid measurement, by the rules of replay
    uint64_t unused;   // of `measured`, in whole unused pages
};

// Adds to *all, and the last two figures to the sites in `sites`. `known` must be sorted.
void big_blocks_measure(const struct big_blocks *b, const struct samples_residency *known,
                        struct big_blocks_use *all, struct site_uses *sites);

#endif
