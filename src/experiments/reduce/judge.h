// Says whether a workload shows what a reduction is to keep: by replays, or by a command.
#ifndef HEAPTAPE_REDUCE_JUDGE_H
#define HEAPTAPE_REDUCE_JUDGE_H

#include "experiments/reduce/condition.h"

struct judge {
    const char *player, *null_library; // paths of heaptape-replay and libheaptape-null.so; borrowed
    struct condition conditions[CONDITION_MAX]; // all have to hold
    size_t n_conditions;
    const char *
        command; // a shell command that has to exit with 0, with %f for the path of the workload; NULL: none
    uint64_t timeout_ns; // without progress; 0: never
};

// What was seen of a workload.
struct judge_report {
    bool holds;      // in each of `runs`
    unsigned shown;  // runs in which it held
    unsigned failed; // the condition that did not hold, n_conditions: the command
    struct condition_seen seen[CONDITION_MAX];
    char text[300]; // what was measured of the condition that did not hold, or of the last one
};

// Replays the workload at `path` up to `runs` times, and stops at the first one in which a condition does not hold. 0, or
// a negative errno with the text set if the workload cannot be replayed.
int judge_workload(const struct judge *j, const char *path, unsigned runs, struct judge_report *r,
                   struct err *e);

// What the input has shown has to stay: its kind of violation or death, of its quotients of bytes a dividend of
// `floor_bytes`, or of half of its own where that is less, and between both sides of a comparison a tenth for times and a
// hundredth for memory, or half of its own margin where that is less.
void judge_expect(struct judge *j, const struct judge_report *input, uint64_t floor_bytes);

#endif
