// Runs the real program on a session's allocators, for comparison with the replays.
#pragma once

#include "replay/session.h"

// Names of a figure in tables and in JSON, and the JSON name of its ratio.
struct replay_real_info {
    const char *label, *key, *ratio_key;
};
extern const struct replay_real_info replay_real_infos[REAL_FIGURES];

// Returns the recorded command line for replay_real_run(), in a single allocation that the caller
// must free. Returns NULL if the command line was not recorded, or when out of memory.
char **replay_real_recorded(const struct replay_session *s);

// Runs the program `runs` times for each of `n` results, in turn. Call after the session has run.
// Stores figures in each result's member `real`. Preloads the allocator with LD_PRELOAD, and sets
// the allocator's tunables. The program's input and output are /dev/null. Returns 0, -ENOMEM, a
// negative errno if the program could not be started, or -ECHILD if its exit status differs from
// the first run's exit status. With `keep_going`, sets the result's `failure` instead, and
// continues with the other results.
int replay_real_run(struct replay_result *const *results, size_t n, uint64_t runs,
                    char *const argv[], bool keep_going, struct err *e);

// Runs the program once more for each result, with the library libheaptape-times.so at the path
// `times` preloaded, and stores the times of its calls in the result's member `real_calls`. Of
// several processes, the process with the most calls is stored. A process that ends by _exit(2), a
// signal or exec reports no calls. Returns 0, or an error of replay_real_run().
int replay_real_time_calls(struct replay_result *const *results, size_t n, const char *times,
                           char *const argv[], struct err *e);

// Copies the figure of each run to `values`, and returns the number of runs.
size_t replay_real_values(const struct replay_result *r, enum replay_real_figure figure,
                          double values[MEASURE_MAX_RUNS]);

// These functions require at least one run on the allocator.
double replay_real_median(const struct replay_result *r, enum replay_real_figure figure);
struct measure_ratio replay_real_ratio(const struct replay_session *s,
                                       const struct replay_result *r,
                                       enum replay_real_figure figure);

// Returns 1 if the ratio of the program's CPU time lies in the predicted 95 % interval, or 0 if it
// does not. Returns -1 for the first allocator, and if there is no interval.
int replay_real_cpu_is_within(const struct replay_session *s, const struct replay_result *r);
