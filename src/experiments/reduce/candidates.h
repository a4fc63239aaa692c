// Candidates: parts of a workload that are made and judged beside each other, each in a process of its own.
#ifndef HEAPTAPE_REDUCE_CANDIDATES_H
#define HEAPTAPE_REDUCE_CANDIDATES_H

#include "experiments/reduce/judge.h"
#include "workload/slice.h"

#include <sys/types.h>

enum { CANDIDATES_MAX = 64 }; // at the same time

// Shared with the process that judges it.
struct candidate_report {
    struct judge_report judged;
    int rc; // of making and judging it: 0 or a negative errno, with the text set
    struct err e;
};

struct candidate {
    pid_t pid;         // 0: none
    int ended;         // end of a pipe that is closed when the process has ended
    size_t tag;        // the caller's
    uint64_t start_ns; // of CLOCK_MONOTONIC
    struct output out; // the part
};

struct candidates {
    const struct judge *judge; // borrowed, as is
    int source;                // a descriptor of the workload that parts are made of
    unsigned runs;
    int level;               // zstd's
    uint64_t max_command_ns; // after which a command does not hold; 0: it may last
    struct candidate items[CANDIDATES_MAX];
    struct candidate_report *reports; // of each
    size_t n;                         // how many may be judged at the same time
    size_t running;
};

// *c has `judge`, `source`, `runs`, `level` and `n`. To be released after 0, -ENOMEM or another negative errno.
int candidates_init(struct candidates *c, struct err *e);
void candidates_release(struct candidates *c);

// Starts to judge the part that `part` describes, or the source itself if it is NULL. A candidate must be free: running <
// n. What `part` borrows has to stay until the call returns. 0 or a negative errno with the text set.
int candidates_start(struct candidates *c, const struct slice_options *part, size_t tag,
                     struct err *e);

// Waits up to `timeout_ms` for one to be judged: it is no longer running, and *out, its part, is the caller's. 1; 0 when
// none was judged; -EINTR after a signal, or another negative errno. The report is good until the next start.
int candidates_wait(struct candidates *c, int timeout_ms, const struct candidate_report **report,
                    size_t *tag, struct output *out);

// Ends those that run.
void candidates_cancel(struct candidates *c);

#endif
