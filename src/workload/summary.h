// Statistics of a workload in one pass over its ops in a valid total order.
#ifndef HEAPTAPE_WORKLOAD_SUMMARY_H
#define HEAPTAPE_WORKLOAD_SUMMARY_H

#include "workload/workload.h"

enum {
    STATS_SIZE_BITS = 40,
    STATS_THREAD_BITS = 24,
};

// A live block: size in the low STATS_SIZE_BITS bits, thread that took it above. Sizes of 1 TiB and more count as 1 TiB
// less a byte in what is live (8 bytes a slot, not 16).
struct stats {
    struct workload_summary summary; // as far as it grows op by op; stats_summary gives the whole
    uint64_t first_stamp;
    uint64_t *slots;
    size_t n_slots, capacity;
    uint64_t live_bytes, live_blocks;
};

void stats_init(struct stats *s);
void stats_release(struct stats *s);

// What was counted: all but order_*, edges_needed, lost_records and usable_*.
struct workload_summary stats_summary(const struct stats *s);

// Counts an op. 0 or -ENOMEM.
int stats_op(struct stats *s, uint32_t thread, const struct workload_op *op);

// The same for several, which saves waiting for memory.
int stats_ops(struct stats *s, const struct workload_thread_op *ops, size_t n);

// Adds up summaries of several processes. Peaks add up too, although they may have been at different times: the sum is
// an upper bound.
void stats_add(struct workload_summary *to, const struct workload_summary *more);

#endif
