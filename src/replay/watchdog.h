// Detects a replay that makes no progress, and finds each thread's current op. Internal to run.c.
#pragma once

#include "replay/plan/streaming.h"
#include "replay/player/results.h"

#include <stdbool.h>

struct watchdog {
    const struct plan *plan;           // NULL for a probe, which has no plan
    const struct streaming *streaming; // NULL if the plan is not streamed
    const struct results *results;
    // Position of each thread, followed by the position of the main thread before and after the
    // threads run.
    const struct results_position *positions;
    uint64_t n_threads;
    uint64_t timeout_ns; // 0 if there is no limit
    uint64_t seen;       // hash of the positions
    uint64_t still_ns;   // time since the positions last changed
};

// Call before the player starts. Once the player runs, the allocator may overwrite the lengths in
// `r`.
void watchdog_init(struct watchdog *w, const struct plan *p, const struct streaming *streaming,
                   struct results *r, uint64_t timeout_ns);

// Returns the interval between calls of watchdog_is_stuck(), in nanoseconds.
uint64_t watchdog_interval_ns(const struct watchdog *w);

// Call after each interval. Returns true if no thread has made progress for timeout_ns. Threads
// that are sleeping until a call is due, or waiting for the decoder, do not count as stuck.
bool watchdog_is_stuck(struct watchdog *w);

// Finds a thread's current op. Thread n_threads is the main thread before and after the other
// threads run. Returns false if the thread has not started or has ended, or if the op cannot be
// read.
struct watchdog_op {
    unsigned op; // enum plan_op
    uint64_t size;
    uint64_t position; // like failed_position in struct results
};
bool watchdog_op_of(const struct watchdog *w, uint64_t thread, struct watchdog_op *op);
