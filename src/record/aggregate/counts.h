// Counts live blocks and allocations of a process, in total and by call site, from ops in a valid
// total order. Memory grows only with the number of live blocks and call sites.
#pragma once

#include "analysis/by_site.h"
#include "base/map.h"
#include "workload/summary.h"

// A live block uses 4 bytes, plus 4 bytes if all call sites are recorded. Large blocks, blocks of
// high-numbered threads and, with sampling, blocks with a call site use more.
struct aggregate_counts {
    struct summary_counter summary; // its only slot contains the block of the current op
    uint64_t n_slots;
    // Indexed by slot. A value is packed as in summary_counter.slots, or 0 if there is no block.
    uint32_t *blocks;
    size_t blocks_capacity;
    struct map unpacked;    // maps a slot number + 1 to the value of a block that cannot be packed
    struct by_site by_site; // per period; its slots are not used
    uint32_t *sites;        // call site by slot
    size_t n_sites, sites_capacity;
    struct map sampled; // maps a slot number + 1 to a call site
    uint64_t start_stamp;
    uint64_t levels[BY_SITE_BINS]; // live bytes of all sites, like by_site.levels
};

// `sample_bytes` is as in by_site. Each period lasts period_stamps; the first starts at
// start_stamp. Returns 0, or -ENOMEM. The caller must release *c in both cases.
int aggregate_counts_init(struct aggregate_counts *c, uint64_t sample_bytes, uint64_t start_stamp,
                          uint64_t period_stamps);
void aggregate_counts_release(struct aggregate_counts *c);

// Counts ops. Returns 0, or -ENOMEM.
int aggregate_counts_ops(struct aggregate_counts *c, const struct workload_thread_op *ops,
                         size_t n);

// Ends the periods before `stamp`. The stamps of later ops must not be lower. Returns 0, or
// -ENOMEM.
int aggregate_counts_reach(struct aggregate_counts *c, uint64_t stamp);
