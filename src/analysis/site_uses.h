// What call sites do with their blocks that could be done with less: free them at once, in another thread, replace them by
// larger ones, request sizes just above a size class. One pass over the ops of a workload in a valid total order.
#ifndef HEAPTAPE_ANALYSIS_SITE_USES_H
#define HEAPTAPE_ANALYSIS_SITE_USES_H

#include "analysis/usage.h"

enum { SITE_USES_SHORT_EVENTS = 8 }; // a block that lives no longer is short-lived

struct site_use {
    uint64_t freed, short_lived,
        remote; // blocks: freed; of them, short-lived; freed by another thread
    // Blocks that their thread freed right after it had allocated a larger one, up to four times as large, at the same
    // site: what std::vector and std::string do when they grow. Bytes are those of the smaller ones.
    struct usage_count regrown;
    struct usage_count
        above; // requests up to 16 bytes above a size class of size_classes_four, and what that adds to them
    uint64_t big_measured, big_unused; // bytes, by big_blocks_measure
};

struct site_uses_thread {
    uint32_t slot; // of its last allocation
    bool is_last;  // which was its last op
};

// All zero is empty.
struct site_uses {
    struct site_use *sites; // by number; 0 is for calls whose site is not known
    size_t n_sites, sites_capacity;
    struct site_uses_thread *threads;
    size_t n_threads, threads_capacity;
};

void site_uses_release(struct site_uses *u);

// Counts an op of a thread for which format_block_use is not FORMAT_SLOT_NONE, before `live` changes. The op has the number
// `event`. Returns 0 or -ENOMEM.
int site_uses_op(struct site_uses *u, const struct live_blocks *live, uint64_t event,
                 uint32_t thread, const struct workload_op *op);

#endif
