// Finds inefficient use of blocks by call sites: blocks that are freed immediately, freed by
// another thread, replaced by larger blocks, or just above a size class. The figures are computed
// in one pass over a workload's ops in a valid total order.
#pragma once

#include "analysis/usage.h"

enum { SITE_USES_SHORT_EVENTS = 8 }; // maximum lifetime of a short-lived block

struct site_use {
    uint64_t freed, short_lived; // numbers of freed blocks and of short-lived blocks
    uint64_t remote;             // number of blocks freed by another thread
    // Number of blocks that a thread freed right after it allocated again at the same site.
    uint64_t replaced;
    // Replaced blocks whose replacement is larger, but at most four times as large, as when
    // std::vector and std::string grow. Counts the bytes of the smaller blocks.
    struct usage_count regrown;
    // Requests just above a size class (size_classes_above), and the bytes that these requests
    // waste.
    struct usage_count above;
    uint64_t big_measured, big_unused; // bytes from big_blocks_measure
};

struct site_uses_thread {
    uint32_t slot; // slot of the last allocation
    bool is_last;  // the allocation was the last op of the thread
};

// A struct of zeros is an empty table.
struct site_uses {
    struct site_use *sites; // indexed by site number; site 0 means unknown
    size_t n_sites, sites_capacity;
    struct site_uses_thread *threads;
    size_t n_threads, threads_capacity;
};

void site_uses_release(struct site_uses *u);

// Counts a thread's op. Call before applying the op to `live`. format_block_use of the op must not
// be FORMAT_SLOT_NONE. `event` is the number of the op. Returns 0 or -ENOMEM.
int site_uses_op(struct site_uses *u, const struct live_blocks *live, uint64_t event,
                 uint32_t thread, const struct workload_op *op);
