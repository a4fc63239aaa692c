// Proves of the ops of a workload, in their total order, what no single frame shows: that a slot is allocated while it is
// free and used while it is allocated, and that the summary agrees. On request also that each use of a slot comes after
// the use before by the order within threads and by dependencies, so that no replay can race for it.
#ifndef HEAPTAPE_WORKLOAD_PROOF_H
#define HEAPTAPE_WORKLOAD_PROOF_H

#include "base/err.h"
#include "base/map.h"
#include "workload/summary.h"

#include <stddef.h>

struct proof_thread;

// All zero but for what proof_init sets. Memory is proportional to slots and threads; with `order` a bounded number of
// dependencies is remembered beside.
struct proof {
    struct summary_counter counter;
    // What the summary's peak must lie between, whatever the order among equal stamps: frames follow one another.
    uint64_t peak_from, peak_to;
    uint64_t frame_live, frame_allocated;
    bool order; // wanted, and not given up: that would take the square of the file's length
    struct proof_thread *threads;
    size_t n_threads, threads_capacity;
    struct proof_range *ranges; // of proof_learn
    size_t n_ranges, ranges_capacity;
    size_t remembered, known; // dependencies, and pairs of threads, of all threads
    uint64_t ops, steps;
    struct err why;
};

void proof_init(struct proof *p);

// Before the first op: the order is wanted, too.
void proof_want_order(struct proof *p);

void proof_release(struct proof *p);

// The ops of a frame begin.
void proof_frame(struct proof *p);

// The next ops, all of one thread; `readable` stand there. 0, -ENOMEM, or -EBADMSG with `why` saying what is wrong,
// without the place.
int proof_run(struct proof *p, const struct workload_run *run, size_t readable);

// At the end of the ops: do they make this summary? The same.
int proof_summary(struct proof *p, bool has_stamps, const struct workload_summary *s);

// Before the end of the ops: can it be that of the whole? The same.
int proof_part(struct proof *p, bool has_stamps, const struct workload_summary *s);

#endif
