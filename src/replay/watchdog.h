// Detects a replay without progress, and finds the current op of each thread. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_WATCHDOG_H
#define HEAPTAPE_REPLAY_WATCHDOG_H

#include "replay/plan/streaming.h"
#include "replay/player/results.h"

#include <stdbool.h>

struct watchdog {
    const struct plan *plan;           // NULL: a probe without a plan
    const struct streaming *streaming; // NULL: the plan is not streamed
    const struct results *results;
    const struct results_position
        *positions; // one per thread, and one for the main thread before and after they run
    uint64_t n_threads;
    uint64_t timeout_ns; // 0: no limit
    uint64_t seen;       // hash of the positions
    uint64_t still_ns;   // time without a change
};

// Call before the player starts: the lengths in `r` are not trusted afterwards.
void watchdog_init(struct watchdog *w, const struct plan *p, const struct streaming *streaming,
                   struct results *r, uint64_t timeout_ns);

// Nanoseconds between two calls of watchdog_is_stuck().
uint64_t watchdog_interval_ns(const struct watchdog *w);

// Call after each interval. Returns true if no thread made progress for the timeout. Threads that
// sleep until a call is due or wait for the decoder do not count as stuck.
bool watchdog_is_stuck(struct watchdog *w);

// Finds the current op of a thread. Thread n_threads: the main thread before and after the others.
// Returns false if the thread has not started or has ended, or the op cannot be read.
struct watchdog_op {
    unsigned op; // enum plan_op
    uint64_t size;
    uint64_t position; // like failed_position in struct results
};
bool watchdog_op_of(const struct watchdog *w, uint64_t thread, struct watchdog_op *op);

#endif
