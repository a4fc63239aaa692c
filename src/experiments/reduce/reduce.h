// Finds a small part of a workload that still meets a condition.
//
// The current part is a complete workload. Candidates are parts of the current part, which are
// written and judged in parallel. Large cuts are tried first: spans of events, every other block,
// and the blocks of a thread, call site or size class. Shrinking runs of blocks follow (the
// complements of Zeller's delta debugging). The first candidate that meets the condition becomes
// the current part.
#pragma once

#include "base/progress.h"
#include "experiments/reduce/blocks.h"
#include "experiments/reduce/candidates.h"

#include <signal.h>

// Number of replays of the final part. The condition must hold in every replay.
enum { REDUCE_CONFIRMATIONS = 10 };

struct reduce_settings {
    unsigned runs;        // number of replays of each candidate; the condition must hold in all
    unsigned jobs;        // number of candidates judged in parallel, up to CANDIDATES_MAX
    uint64_t floor_bytes; // for judge_expect
    uint64_t end_ns;      // end of the budget on CLOCK_MONOTONIC, or 0 for no limit
    bool quiet;
    const volatile sig_atomic_t *interrupted; // a value other than 0 stops the search
};

struct reduce {
    struct reduce_settings settings;
    struct judge *judge; // borrowed
    struct candidates candidates;
    struct input part;           // the current part
    struct reduce_blocks blocks; // blocks of the current part
    // The last part that met the conditions in REDUCE_CONFIRMATIONS replays. Its fd is -1 if there
    // is no such part.
    struct input confirmed;
    bool is_confirmed;          // the current part is `confirmed`
    bool is_shown;              // `confirmed` is a part that was found, not the input
    struct reduce_blocks input; // block counts of the input; `items` is not set
    uint64_t judged;            // number of candidates
    bool *kept, *kept_threads;
    size_t kept_capacity, kept_threads_capacity;
    uint32_t *group_of;
    size_t group_of_capacity;
    struct progress progress;
    char status[128]; // text of the progress line
    bool stopped;     // the search was stopped by the end of the budget or `interrupted`
    bool is_confirming;
};

// Borrows the workload and the judge until reduce_release. The caller must release *r, even after
// an error.
void reduce_init(struct reduce *r, const struct reduce_settings *settings, struct judge *j);
void reduce_release(struct reduce *r);

// Judges the input. Returns 0 if the conditions hold. Returns -ENODATA, with the measured values in
// the message, if they do not hold, or another negative errno.
int reduce_begin(struct reduce *r, const struct workload_file *w, struct err *e);

// Reduces the current part until no smaller part is found or the search is stopped. Returns 0, or a
// negative errno with the message set. The current part is valid in both cases.
int reduce_search(struct reduce *r, struct err *e);

// Copies the current part to `out`.
int reduce_write(struct reduce *r, struct output *out, struct err *e);

// Replays the current part REDUCE_CONFIRMATIONS times. If the conditions do not hold in a replay,
// restores the last confirmed part and doubles the number of replays of each candidate. Returns 1
// if the current part was kept or the search was interrupted, 0 if the part was replaced, or a
// negative errno.
int reduce_confirm(struct reduce *r, struct err *e);

// One pass of reduce_search, in search.c. Returns 1 if it found a smaller part, else 0, or a
// negative errno.
int reduce_pass(struct reduce *r, struct err *e);

// A cut: selects the ops of the current part that a candidate keeps.
struct reduce_cut {
    uint64_t to; // the candidate ends before this event; UINT64_MAX if it contains all events
    // `others` keeps ops without a block. `thread_ops` keeps thread creation, start and exit.
    bool others, thread_ops;
    const bool *blocks; // one flag for each block of the current part
};

// Fills *c with cut number i. Returns false if the cut would remove nothing.
typedef bool reduce_make(void *context, size_t i, struct reduce_cut *c);

// Judges the cuts [range[0], range[1]), several at a time, until a cut meets the conditions and
// becomes the current part. Returns 1 with the number of this cut in *found. Returns 0 if no cut
// meets the conditions or the search is stopped, or a negative errno.
int reduce_try(struct reduce *r, reduce_make *make, void *context, const size_t range[2],
               size_t *found, struct err *e);
