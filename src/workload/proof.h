// Checks the ops of a workload in their total order, across frames: slots are allocated only while
// free and used only while allocated, and the summary is correct. Optionally proves that each use
// of a slot comes after its previous use by thread order and dependencies, so that no replay can
// race for the slot.
#ifndef HEAPTAPE_WORKLOAD_PROOF_H
#define HEAPTAPE_WORKLOAD_PROOF_H

#include "base/err.h"
#include "base/map.h"
#include "workload/summary.h"

#include <stddef.h>

struct proof_thread;

// Initialized by proof_init. Memory is proportional to slots and threads; with `order`, a limited
// number of dependencies is stored as well.
struct proof {
    struct summary_counter counter;
    // Bounds of the peak in the summary. The order of ops with equal stamps is open, but frames are
    // consecutive.
    uint64_t peak_from, peak_to;
    uint64_t frame_live, frame_allocated;
    // requested and still being proved; stops if the proof would take quadratic time
    bool order;
    struct proof_thread *threads;
    size_t n_threads, threads_capacity;
    struct proof_range *ranges; // used by the proof of the order
    size_t n_ranges, ranges_capacity;
    size_t remembered, known; // total number of dependencies, and of pairs of threads
    uint64_t ops, steps;
    struct err why;
};

void proof_init(struct proof *p);

// Also proves the order. Call before the first op.
void proof_want_order(struct proof *p);

void proof_release(struct proof *p);

// Starts the ops of a frame.
void proof_frame(struct proof *p);

// Checks the next ops of a thread; `readable` ops follow in memory. Returns 0, -ENOMEM, or -EBADMSG
// with the fault, without the place, in `why`.
int proof_run(struct proof *p, const struct workload_run *run, size_t readable);

// Compares the summary after the last op. Returns as proof_run does.
int proof_summary(struct proof *p, bool has_stamps, const struct workload_summary *s);

// Checks before the last op that the summary is possible. Returns as proof_run does.
int proof_part(struct proof *p, bool has_stamps, const struct workload_summary *s);

#endif
