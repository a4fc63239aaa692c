// Finds a small part of a workload that still shows what was seen of the whole.
//
// The part under work is a workload of its own. Candidates are parts of it, made and judged beside each other, large cuts
// first: spans of events, every other block, the blocks of a thread, call site or size class, and runs of blocks that
// become shorter (the complements of Zeller's delta debugging). The first candidate that still shows it is the next part.
#ifndef HEAPTAPE_REDUCE_REDUCE_H
#define HEAPTAPE_REDUCE_REDUCE_H

#include "base/progress.h"
#include "experiments/reduce/blocks.h"
#include "experiments/reduce/candidates.h"

#include <signal.h>

enum { REDUCE_CONFIRMATIONS = 10 }; // replays that have to show it in the end

struct reduce_settings {
    unsigned runs;        // replays that have to show it, of each candidate
    unsigned jobs;        // candidates at the same time, up to CANDIDATES_MAX
    uint64_t floor_bytes; // judge_expect
    uint64_t end_ns; // of CLOCK_MONOTONIC, when it is to stop; 0: when nothing smaller is found
    bool quiet;
    const volatile sig_atomic_t *interrupted; // not 0: it is to stop
};

struct reduce {
    struct reduce_settings settings;
    struct judge *judge; // borrowed
    struct candidates candidates;
    struct input part;           // under work
    struct reduce_blocks blocks; // of it
    struct input confirmed; // the last part that was shown REDUCE_CONFIRMATIONS times; fd -1: none
    bool is_confirmed;      // the part under work is that one
    bool
        is_shown; // `confirmed` is not the workload that it began with, of which fewer replays were made
    struct reduce_blocks input; // counts of the workload that it began with; without items
    uint64_t judged;            // candidates
    bool *kept, *kept_threads;
    size_t kept_capacity, kept_threads_capacity;
    uint32_t *group_of;
    size_t group_of_capacity;
    struct progress progress;
    char status[128]; // what progress shows
    bool stopped;     // by the budget, or interrupted
    bool is_confirming;
};

// The workload is borrowed until reduce_release, the judge too. *r is to be released in any case.
void reduce_init(struct reduce *r, const struct reduce_settings *settings, struct judge *j);
void reduce_release(struct reduce *r);

// Does the workload show it? 0; -ENODATA with what was measured in the text of the error, or another negative errno.
int reduce_begin(struct reduce *r, const struct workload_file *w, struct err *e);

// Makes the part smaller until nothing smaller is found, or it is stopped. 0 or a negative errno with the text set; the
// part is good in either case.
int reduce_search(struct reduce *r, struct err *e);

// Copies the part to `out`.
int reduce_write(struct reduce *r, struct output *out, struct err *e);

// Replays the part under work so often that noise is excluded. If one replay does not show it, the last part that was
// confirmed comes back, and candidates are judged by more replays. 1 when the part stays, also when it is interrupted; 0;
// or a negative errno.
int reduce_confirm(struct reduce *r, struct err *e);

// search.c: what reduce_search does until nothing smaller is found. 0, 1 when something was, a negative errno.
int reduce_pass(struct reduce *r, struct err *e);

// A part of the part under work, as reduce_pass describes it to reduce_try.
struct reduce_cut {
    uint64_t to; // the event that it ends before; UINT64_MAX: at the end
    bool others,
        thread_ops;     // with ops that have no block; with the creation, start and exit of threads
    const bool *blocks; // of the part under work
};

// Makes cut number `i` in *c: false if there is nothing to gain by it.
typedef bool reduce_make(void *context, size_t i, struct reduce_cut *c);

// Judges the cuts from number `from` to before `to`, in that order and some at the same time, until one shows it, which
// becomes the part under work. 1 with its number in *found; 0 when none does, or it is stopped; a negative errno.
int reduce_try(struct reduce *r, reduce_make *make, void *context, const size_t range[2],
               size_t *found, struct err *e);

#endif
