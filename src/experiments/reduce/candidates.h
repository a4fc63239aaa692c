// Candidates are parts of a workload that are written and judged in parallel, each in its own
// process.
#pragma once

#include "experiments/reduce/judge.h"
#include "workload/slice.h"

#include <sys/types.h>

enum { CANDIDATES_MAX = 64 }; // maximum number of candidates that run at the same time

// Result of a candidate, in memory shared with the candidate's process.
struct candidate_report {
    struct judge_report judged;
    int rc; // result of writing and judging: 0, or a negative errno with the message set
    struct err e;
};

struct candidate {
    pid_t pid;         // 0 if the entry is unused
    int ended;         // read end of a pipe that closes when the process has ended
    size_t tag;        // set by the caller
    uint64_t start_ns; // CLOCK_MONOTONIC
    struct output out; // the part
};

struct candidates {
    const struct judge *judge; // borrowed
    int source;                // descriptor of the workload from which parts are cut
    unsigned runs;
    int level;               // level of zstd
    uint64_t max_command_ns; // time limit of a command, which fails at the limit; 0 for no limit
    struct candidate items[CANDIDATES_MAX];
    struct candidate_report *reports; // array with one entry for each item
    size_t n;                         // maximum number of items that run at the same time
    size_t running;
};

// Call after setting `judge`, `source`, `runs`, `level` and `n`. Returns 0, -ENOMEM or another
// negative errno. The caller must release *c, even after an error.
int candidates_init(struct candidates *c, struct err *e);
void candidates_release(struct candidates *c);

// Starts to judge a part, or the source itself if `part` is NULL. Requires running < n. Data that
// `part` borrows must stay valid until the call returns. Returns 0, or a negative errno with the
// message set.
int candidates_start(struct candidates *c, const struct slice_options *part, size_t tag,
                     struct err *e);

// Waits up to `timeout_ms` until a candidate has been judged. Returns 1 if a candidate was judged,
// and moves its part to *out. Returns 0 after the timeout, -EINTR after a signal, or another
// negative errno. *report is valid until the next start.
int candidates_wait(struct candidates *c, int timeout_ms, const struct candidate_report **report,
                    size_t *tag, struct output *out);

// Ends all running candidates.
void candidates_cancel(struct candidates *c);
