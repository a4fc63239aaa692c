// What of a process is live and what it allocated, in all and by call site, from its ops in a valid total order: memory for
// live blocks and call sites alone, however long the process runs.
#ifndef HEAPTAPE_AGGREGATE_COUNTS_H
#define HEAPTAPE_AGGREGATE_COUNTS_H

#include "analysis/by_site.h"
#include "base/map.h"
#include "workload/summary.h"

// A live block takes 4 bytes and, where all call sites are recorded, 4 for its site. Where they are sampled, only a block that
// has one takes more; and so does a large block, and one of a thread with a high number.
struct aggregate_counts {
    struct summary_counter summary; // its only slot is that of the op under work
    uint64_t n_slots;
    uint32_t *blocks; // of slots: what summary_counter.slots holds of them, packed; 0: no block
    size_t blocks_capacity;
    struct map unpacked;    // slot + 1 → the same of a block that cannot be packed
    struct by_site by_site; // by time; its slots are not used
    uint32_t *sites;        // of slots
    size_t n_sites, sites_capacity;
    struct map sampled; // slot + 1 → its site
    uint64_t start_stamp;
    uint64_t levels[BY_SITE_BINS]; // live bytes of all sites, as by_site.levels
};

// `sample_bytes` as by_site.sample_bytes. Periods of so many stamps begin at start_stamp. 0 or -ENOMEM; *c is to be released in
// either case.
int aggregate_counts_init(struct aggregate_counts *c, uint64_t sample_bytes, uint64_t start_stamp,
                          uint64_t period_stamps);
void aggregate_counts_release(struct aggregate_counts *c);

// Counts ops. 0 or -ENOMEM.
int aggregate_counts_ops(struct aggregate_counts *c, const struct workload_thread_op *ops,
                         size_t n);

// No op before this stamp comes any more: ends the periods up to it. 0 or -ENOMEM.
int aggregate_counts_reach(struct aggregate_counts *c, uint64_t stamp);

#endif
