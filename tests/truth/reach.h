// Which op of a workload happens before which, by the threads' own order and the waits: for tests, with vector clocks.
#ifndef HEAPTAPE_TESTS_REACH_H
#define HEAPTAPE_TESTS_REACH_H

#include "workload/workload.h"

// What a thread had seen of the others after one of its ops.
struct reach_view {
    uint64_t op;
    uint64_t *below; // by thread: its ops with lower numbers happen before; n_below of them
    uint32_t n_below;
};

struct reach_thread {
    uint64_t next_op, last_stamp;
    struct reach_view *views; // one for each op that had waits
    size_t n_views, capacity;
};

struct reach {
    struct reach_thread *threads;
    size_t n_threads, capacity;
};

// Takes in the next op of the total order. False when one of its waits names an op that has not come.
bool reach_add(struct reach *r, uint32_t thread, const struct workload_op *op);

// Does op `op` of thread `first` happen before what the other thread has done last?
bool reach_before(const struct reach *r, uint32_t first, uint64_t op, uint32_t thread);

void reach_release(struct reach *r);

#endif
