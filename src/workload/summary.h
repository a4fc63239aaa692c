// Workload statistics, computed in one pass over the ops in total order.
#pragma once

#include "workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SUMMARY_SIZE_BITS = 40,
    SUMMARY_THREAD_BITS = 23,
};

// Each slot takes 8 bytes. The low SUMMARY_SIZE_BITS bits contain the block's size, and the bits
// above them the allocating thread. The highest bit is set if the slot holds a block. When live
// bytes are summed, a block of 1 TiB or more counts as 1 TiB less one byte.
struct summary_counter {
    // Members updated for each op. summary_result computes the other members.
    struct workload_summary summary;
    uint64_t first_stamp;
    uint64_t *slots;
    size_t n_slots, capacity;
    unsigned two_words; // if 1, a word for the caller's use follows each slot; it is initially 0
    uint64_t live_bytes, live_blocks, preexisting_bytes;
    bool contradicted; // an op allocated in an occupied slot, or used a free slot
};

static const uint64_t SUMMARY_SIZE_MASK = (1ull << SUMMARY_SIZE_BITS) - 1,
                      SUMMARY_HOLDS = 1ull << 63;

static inline uint64_t *summary_slot(const struct summary_counter *s, uint32_t slot)
{
    return &s->slots[(size_t)slot << s->two_words];
}

static inline bool summary_known(const struct summary_counter *s, uint32_t slot)
{
    return (size_t)slot << s->two_words < s->capacity;
}

// Prefetches the slot for summary_op.
static inline __attribute__((always_inline)) void summary_prefetch(const struct summary_counter *s,
                                                                   uint32_t slot)
{
    if (summary_known(s, slot))
        __builtin_prefetch(summary_slot(s, slot), 1);
}

void summary_init(struct summary_counter *s);
void summary_release(struct summary_counter *s);

// Returns the summary with all members except order_*, dependencies_needed, lost_records and
// usable_*.
struct workload_summary summary_result(const struct summary_counter *s);

// Counts an op. Returns 0 or -ENOMEM.
int summary_op(struct summary_counter *s, uint32_t thread, const struct workload_op *op);

// Like summary_op, but for ops of one thread that do not contradict earlier ops and whose stamps do
// not decrease.
int summary_simple(struct summary_counter *s, uint32_t thread, const struct workload_simple *ops,
                   size_t n);

// Like summary_op, but for several ops, with prefetching.
int summary_ops(struct summary_counter *s, const struct workload_thread_op *ops, size_t n);

// Counts up to `n` ops of a thread. Stops after an op that contradicts earlier ops, and includes
// this op in the count. Returns the number of ops counted, or -ENOMEM. The first `readable` ops may
// be prefetched.
int summary_run(struct summary_counter *s, uint32_t thread, const struct workload_op *ops, size_t n,
                size_t readable);

// Adds the summary of another process to *to. The sum of the peaks is an upper bound, because the
// processes may reach their peaks at different times.
void summary_add(struct workload_summary *to, const struct workload_summary *more);

// Adds early_events to *to, and raises early_max_ns and early_usual_ns to the values of `more`.
void summary_add_early(struct workload_summary *to, const struct workload_summary *more);
