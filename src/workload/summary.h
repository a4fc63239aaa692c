// Statistics of a workload in one pass over its ops in a valid total order.
#ifndef HEAPTAPE_WORKLOAD_SUMMARY_H
#define HEAPTAPE_WORKLOAD_SUMMARY_H

#include "workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

// Fetches what summary_op will need of the slot.
static inline __attribute__((always_inline)) void summary_prefetch(const struct summary_counter *s,
                                                                   uint32_t slot)
{
    if (summary_known(s, slot))
        __builtin_prefetch(summary_slot(s, slot), 1);
}

// The parts of summary_op. The slot is known.
static inline void summary_see(struct summary_counter *s, const struct workload_op *op)
{
    if (__builtin_expect(op->stamp < s->first_stamp, 0))
        s->first_stamp = op->stamp;
    if (op->stamp > s->summary.last_stamp)
        s->summary.last_stamp = op->stamp;
    s->summary.by_kind[op->kind]++;
}

// Adds what was requested; the sum stays at its maximum.
static inline void summary_request(uint64_t *sum, uint64_t size)
{
    *sum = *sum > UINT64_MAX - size ? UINT64_MAX : *sum + size;
}

static inline void summary_allocate(struct summary_counter *s, uint32_t thread, uint32_t slot,
                                    uint64_t size)
{
    uint64_t live = size < SUMMARY_SIZE_MASK ? size : SUMMARY_SIZE_MASK,
             *at = summary_slot(s, slot);
    s->contradicted |= *at >> 63;
    *at = ((uint64_t)thread << SUMMARY_SIZE_BITS | live) | SUMMARY_HOLDS;
    s->live_blocks++;
    s->live_bytes += live;
    if (s->live_bytes > s->summary.peak_live_bytes)
        s->summary.peak_live_bytes = s->live_bytes;
}

static inline void summary_free(struct summary_counter *s, uint32_t thread, uint32_t slot)
{
    uint64_t *at = summary_slot(s, slot), block = *at;
    if (__builtin_expect(!(block & SUMMARY_HOLDS), 0)) {
        s->contradicted = true;
        return;
    }
    *at = 0;
    s->live_blocks--;
    s->live_bytes -= block & SUMMARY_SIZE_MASK;
    s->summary.remote_frees += (block & ~SUMMARY_HOLDS) >> SUMMARY_SIZE_BITS !=
                               (thread & ((1u << SUMMARY_THREAD_BITS) - 1));
}

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
int summary_run(struct summary_counter *s, uint32_t thread, const struct workload_op *ops, size_t n,
                size_t readable);

// Adds up summaries of several processes. Peaks add up too, although they may have been at different times: the sum is
// an upper bound.
void summary_add(struct workload_summary *to, const struct workload_summary *more);

#endif
