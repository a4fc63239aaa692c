// Checks a workload's ops in total order, across frames. Each op must allocate a free slot or use
// an allocated slot, and the summary must be correct. Optionally proves that thread order and
// dependencies put each use of a slot after its previous use, so that no replay can race for the
// slot.
#pragma once

#include "base/err.h"
#include "base/map.h"
#include "workload/summary.h"

#include <stddef.h>

struct proof_thread;

// Initialize with proof_init. Memory use is proportional to the number of slots and threads. With
// `order`, dependencies up to a limit are stored as well.
struct proof {
    struct summary_counter counter;
    // Bounds on the peak in the summary. The exact peak is unknown, because the order of ops with
    // equal stamps within a frame is undefined.
    uint64_t peak_from, peak_to;
    uint64_t frame_live, frame_allocated;
    // True if the order proof was requested and has not been abandoned. A proof is abandoned if it
    // would take quadratic time.
    bool order;
    struct proof_thread *threads;
    size_t n_threads, threads_capacity;
    struct proof_range *ranges; // for the order proof
    size_t n_ranges, ranges_capacity;
    // Number of dependencies stored for all threads, and number of pairs of threads whose order is
    // known.
    size_t remembered, known;
    uint64_t ops, steps;
    struct err why;
};

void proof_init(struct proof *p);

// Makes *p also prove the order of each slot's uses. Call before the first op.
void proof_want_order(struct proof *p);

void proof_release(struct proof *p);

// Starts a frame. Call before the first op of each frame.
void proof_frame(struct proof *p);

// Checks the next ops of a thread. The first `readable` ops at run->ops may be prefetched. Returns
// 0, -ENOMEM, or -EBADMSG. With -EBADMSG, `why` describes the fault, but not its location.
int proof_run(struct proof *p, const struct workload_run *run, size_t readable);

// Checks the summary after the last op. If `all` is false, more ops follow, and the check rejects
// only numbers that the remaining ops cannot produce. Returns the same values as proof_run.
int proof_summary(struct proof *p, bool has_stamps, const struct workload_summary *s, bool all);
