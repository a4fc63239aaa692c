// Finds out that a replay no longer makes progress, and what each of its threads is at. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_WATCHDOG_H
#define HEAPTAPE_REPLAY_WATCHDOG_H

#include "replay/plan/streaming.h"
#include "replay/player/results.h"

#include <stdbool.h>

struct watchdog {
    const struct plan *plan;           // NULL: the allocator is only probed
    const struct streaming *streaming; // NULL: the plan is not streamed
    const struct results *results;
    const struct results_position
        *positions; // of the threads, and of the main thread before and after them
    uint64_t n_threads;
    uint64_t timeout_ns; // 0: wait forever
    uint64_t seen;       // of the positions
    uint64_t still_ns;   // so long without a change
};

// Before the player starts: what it writes later is not believed.
void watchdog_init(struct watchdog *w, const struct plan *p, const struct streaming *streaming,
                   struct results *r, uint64_t timeout_ns);

// Nanoseconds to wait between two calls of watchdog_is_stuck.
uint64_t watchdog_interval_ns(const struct watchdog *w);

// After another interval: has no thread made progress for the timeout? Threads that sleep until their next call is due,
// and those that wait for the decoder, are not stuck.
bool watchdog_is_stuck(struct watchdog *w);

// The op that a thread is at. False when it has not started, has ended, or is not known. Number n_threads: the main
// thread before and after the threads.
struct watchdog_op {
    unsigned op; // enum plan_op
    uint64_t size;
    uint64_t position; // as in struct results, failed_position
};
bool watchdog_op_of(const struct watchdog *w, uint64_t thread, struct watchdog_op *op);

#endif
