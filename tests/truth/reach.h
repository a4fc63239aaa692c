// Order of the ops of a workload by program order and dependencies, computed with vector clocks.
// For tests.
#pragma once

#include "workload/workload.h"

// Ops of the other threads that happen before an op of this thread.
struct reach_view {
    uint64_t op;
    uint64_t *below; // For each of n_below threads: the op of this view happens after all ops with
                     // lower numbers.
    uint32_t n_below;
};

struct reach_thread {
    uint64_t next_op, last_stamp;
    struct reach_view *views; // a view for each op with dependencies
    size_t n_views, capacity;
};

struct reach {
    struct reach_thread *threads;
    size_t n_threads, capacity;
};

// Adds the next op of the total order. Returns false if one of its dependencies names a later op.
bool reach_add(struct reach *r, uint32_t thread, const struct workload_op *op);

// Returns true if op `op` of thread `first` happens before the last op of `thread`.
bool reach_before(const struct reach *r, uint32_t first, uint64_t op, uint32_t thread);

void reach_release(struct reach *r);
