// Statistics of a workload in one pass over its ops in a valid total order.
#ifndef HEAPTAPE_WORKLOAD_SUMMARY_H
#define HEAPTAPE_WORKLOAD_SUMMARY_H

#include "workload/workload.h"

enum {
    SUMMARY_SIZE_BITS = 40,
    SUMMARY_THREAD_BITS = 23,
};

// A slot: size of its block in the low SUMMARY_SIZE_BITS bits, above them the thread that allocated it, and in the
// uppermost bit whether it holds one. Sizes of 1 TiB and more count
// as 1 TiB less a byte in what is live (8 bytes a slot, not 16).
struct summary_counter {
    struct workload_summary summary; // as far as it grows op by op; summary_result frees the whole
    uint64_t first_stamp;
    uint64_t *slots;
    size_t n_slots, capacity;
    unsigned two_words; // 1: each slot is followed by a word of the caller's, at first 0
    uint64_t live_bytes, live_blocks, preexisting_bytes;
    bool contradicted; // an op allocated into a slot that held a block, or used one that held none
};

void summary_init(struct summary_counter *s);
void summary_release(struct summary_counter *s);

// What was counted: all but order_*, dependencies_needed, lost_records and usable_*.
struct workload_summary summary_result(const struct summary_counter *s);

// Counts an op. 0 or -ENOMEM.
int summary_op(struct summary_counter *s, uint32_t thread, const struct workload_op *op);

// The same for several, which saves waiting for memory.
int summary_ops(struct summary_counter *s, const struct workload_thread_op *ops, size_t n);

// Counts the next `n` ops of a thread, up to one that contradicts those before: how many, that one included, or -ENOMEM.
// `readable` of them are there to be read.
int summary_run(struct summary_counter *s, uint32_t thread, const struct workload_op *ops, size_t n, size_t readable);

// Adds up summaries of several processes. Peaks add up too, although they may have been at different times: the sum is
// an upper bound.
void summary_add(struct workload_summary *to, const struct workload_summary *more);

#endif
