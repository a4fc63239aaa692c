// Checks, by replays or by a command, whether a workload still meets the conditions of a reduction.
#pragma once

#include "experiments/reduce/condition.h"

struct judge {
    const char *player, *null_library; // paths of heaptape-replay and libheaptape-null.so; borrowed
    struct condition conditions[CONDITION_MAX]; // all conditions must hold
    size_t n_conditions;
    // Shell command that must exit with 0, or NULL. %f is the path of the workload.
    const char *command;
    uint64_t timeout_ns; // limit of a replay without progress; 0 for no limit
};

// Observed values of a workload.
struct judge_report {
    bool holds;      // all conditions held in all `runs` replays
    unsigned shown;  // number of replays that met all conditions
    unsigned failed; // index of the condition that did not hold, or n_conditions for the command
    struct condition_seen seen[CONDITION_MAX];
    char text[300]; // measured values of the condition that did not hold, or of the last condition
};

// Replays the workload at `path` up to `runs` times. Stops at the first replay that violates a
// condition. Returns 0, or a negative errno with the message set if the workload cannot be
// replayed.
int judge_workload(const struct judge *j, const char *path, unsigned runs, struct judge_report *r,
                   struct err *e);

// Sets the requirements on later candidates, from the report on the input. A candidate must show
// the same violation or wait status as the input. The dividend of a quotient of bytes must be at
// least `floor_bytes`, or half the input's dividend if that is less. The sides of a comparison must
// differ by at least 10 % for times and 1 % for memory, or by half the input's difference if that
// is less.
void judge_expect(struct judge *j, const struct judge_report *input, uint64_t floor_bytes);
