// CPU time of the recorded program: malloc's share, and predictions for other allocators.
#pragma once

#include "replay/session.h"

struct program_time {
    const char *missing_reason; // why malloc's share is unknown; NULL if it is known
    // CPU time in nanoseconds. cpu_ns is the program's time and excludes the cost of recording.
    // Valid if missing_reason is NULL.
    double cpu_ns, recording_ns;
    // CPU time of the calls. replayed_calls_ns is from a replay on the recorded allocator, with
    // warm caches. timed_calls_ns was timed in the program and excludes the cost of reading the
    // clock. Each is NAN if unknown. calls_ns is the larger of the two, which is a lower bound.
    double replayed_calls_ns, timed_calls_ns, calls_ns;
    double share; // lower bound: calls_ns / cpu_ns
    // Share of the CPU time that is spent outside the calls. Changes in this time are not
    // predicted. NAN if `share` is unknown.
    double rest_share;
    // Upper bound on `share`, which includes the cost of reading the clock. NAN if unknown.
    double max_share;
};

struct program_time program_time(const struct replay_session *s);

// Returns the result of the recorded allocator, if possible without tunables, or NULL if the
// recorded allocator was not replayed. The result may be s->added.
const struct replay_result *program_recorded(const struct replay_session *s);

// The following functions return a figure of one run or, with PROGRAM_ALL_RUNS, the median of all
// runs on an allocator.
#define PROGRAM_ALL_RUNS SIZE_MAX

// Returns the CPU time of page faults that occur, outside calls, when big blocks are first used
// with this allocator. Returns NAN if not measured.
double program_use_ns(const struct replay_session *s, const struct replay_result *r, size_t run);

// Returns the CPU time of the calls on this allocator, minus the calls' time on the null allocator
// and program_use_ns(). Returns NAN if not measured.
double program_calls_ns(const struct replay_session *s, const struct replay_result *r, size_t run);

// Returns the CPU time for loading this allocator, minus the time for loading the recorded
// allocator. Returns NAN if the recorded allocator was not replayed.
double program_load_ns(const struct replay_session *s, const struct replay_result *r, size_t run);

// Predicts the program's CPU time on this allocator, and divides it by the prediction for the first
// allocator. Assumes that only the times of loading, calls and the first use of big blocks change,
// and that they change exactly as in the replays. Returns NAN if unknown.
double program_ratio(const struct replay_session *s, const struct program_time *t,
                     const struct replay_result *r);

// Returns the ratio with a 95 % interval. The interval also allows for two unknowns: the cost of a
// call in the program, and the effect of block placement on the code outside the calls. With fewer
// than MEASURE_MIN_RUNS runs, there is no interval.
struct measure_ratio program_interval(const struct replay_session *s, const struct program_time *t,
                                      const struct replay_result *r);

// Returns the reason why the ratio is unknown, or NULL. The string is static.
const char *program_ratio_missing_reason(const struct replay_session *s,
                                         const struct program_time *t,
                                         const struct replay_result *r);
