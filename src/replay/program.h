// CPU time of the recorded program: malloc's share, and predictions for other allocators.
#ifndef HEAPTAPE_REPLAY_PROGRAM_H
#define HEAPTAPE_REPLAY_PROGRAM_H

#include "replay/session.h"

struct program_time {
    const char *missing_reason; // why malloc's share is unknown; NULL: known
    // Valid if missing_reason is NULL. CPU time in nanoseconds; the program's time excludes the
    // cost of recording.
    double cpu_ns, recording_ns;
    // CPU time of the calls: in a replay on the recorded allocator, with warm caches; and as timed
    // in the program, excluding the cost of reading the clock. NAN: unknown. calls_ns is the larger
    // of the two, which is a lower bound.
    double replayed_calls_ns, timed_calls_ns, calls_ns;
    double share; // lower bound: calls_ns / cpu_ns
    // Upper bound: as timed, including the cost of reading the clock. NAN: unknown.
    double max_share;
};

struct program_time program_time(const struct replay_session *s);

// CPU time of page faults on the first use of big blocks, outside calls, with this allocator. NAN:
// not measured.
double program_use_ns(const struct replay_session *s, const struct replay_result *r);

// CPU time of the calls on this allocator, minus the null allocator's and program_use_ns(). NAN:
// not measured.
double program_calls_ns(const struct replay_session *s, const struct replay_result *r);

// CPU time for loading this allocator, minus the recorded allocator's. NAN: the recorded allocator
// was not replayed.
double program_load_ns(const struct replay_session *s, const struct replay_result *r);

// Predicts the program's CPU time on this allocator, divided by the prediction for the first
// allocator. Assumes that only loading, calls and the first use of big blocks change, and exactly
// as they do in the replays. NAN: unknown.
double program_ratio(const struct replay_session *s, const struct program_time *t,
                     const struct replay_result *r);

// Returns the ratio with a 95 % interval, which also includes the unknown cost of a call in the
// program and the effect of the placement of blocks on the code outside the calls. With fewer than
// MEASURE_MIN_RUNS runs, there is no interval.
struct measure_ratio program_interval(const struct replay_session *s, const struct program_time *t,
                                      const struct replay_result *r);

// Returns the share of the CPU time outside the calls. Its change is not predicted. Requires a known
// share of the calls.
double program_rest_share(const struct program_time *t);

// Returns the reason why the ratio is unknown, or NULL. The string is static.
const char *program_ratio_missing_reason(const struct replay_session *s,
                                         const struct program_time *t,
                                         const struct replay_result *r);

#endif
