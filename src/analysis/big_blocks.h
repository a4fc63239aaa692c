// Measures, from the recorded residency, how much of a program's large blocks was used.
#pragma once

#include "analysis/site_uses.h"
#include "workload/samples.h"

// An op that allocated or resized a block of HT_BIG_BYTES or more.
struct big_block {
    uint64_t op, size; // number of the op in its thread, and requested bytes of the block
    uint32_t thread;
    uint32_t site; // 0 if unknown
    bool zeroed;
};

// All ops of one process that allocated or resized large blocks. A zeroed struct is empty.
struct big_blocks {
    struct big_block *items;
    size_t n, capacity;
    uint64_t *next; // indexed by thread: number of the thread's next op
    size_t n_threads, threads_capacity;
};

void big_blocks_release(struct big_blocks *b);

// Adds a thread's next op. Must be called for every op. Returns 0 or -ENOMEM.
int big_blocks_op(struct big_blocks *b, uint32_t thread, const struct workload_op *op);

struct big_blocks_use {
    uint64_t bytes; // requested bytes of all large blocks
    // Requested bytes of the large blocks whose use was measured, excluding measurements that a
    // replay ignores.
    uint64_t measured;
    uint64_t unused; // bytes of these blocks that are in whole unused pages
};

// Adds the figures to *all. Also adds `measured` and `unused` to the sites in `sites`. `known` must
// be sorted.
void big_blocks_measure(const struct big_blocks *b, const struct samples_residency *known,
                        struct big_blocks_use *all, struct site_uses *sites);
