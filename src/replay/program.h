// The recorded program's CPU time: malloc's share, and a prediction for other allocators.
#ifndef HEAPTAPE_REPLAY_PROGRAM_H
#define HEAPTAPE_REPLAY_PROGRAM_H

#include "replay/session.h"

struct program_time {
    const char *missing_reason; // why malloc's share is unknown; NULL: known
    // Valid if missing_reason is NULL. CPU time in nanoseconds; the program's without the
    // recording.
    double cpu_ns, recording_ns;
    // CPU time of the calls: in a replay on the recorded allocator, with warm caches; and as timed
    // in the program, without any cost of the clock. NAN: unknown. calls_ns is the larger one, a
    // lower bound.
    double replayed_calls_ns, timed_calls_ns, calls_ns;
    double share;     // lower bound: calls_ns / cpu_ns
    double max_share; // upper bound: as timed, with the cost of the clock. NAN: unknown
};

struct program_time program_time(const struct replay_session *s);

// CPU time of page faults at the first use of big blocks, outside of calls, on that allocator. NAN:
// not measured.
double program_use_ns(const struct replay_session *s, const struct replay_result *r);

// CPU time of the calls on that allocator, without the null allocator's and program_use_ns(). NAN:
// not measured.
double program_calls_ns(const struct replay_session *s, const struct replay_result *r);

// CPU time to load this allocator, less the recorded allocator's. NAN: the recorded allocator was
// not replayed.
double program_load_ns(const struct replay_session *s, const struct replay_result *r);

// Predicts the program's CPU time on this allocator, divided by the prediction for the first one.
// Assumes that only loading, calls and the first use of big blocks change, exactly like in the
// replays. NAN: unknown.
double program_ratio(const struct replay_session *s, const struct program_time *t,
                     const struct replay_result *r);

// Returns why the ratio is unknown, or NULL. The text is static.
const char *program_ratio_missing_reason(const struct replay_session *s,
                                         const struct program_time *t,
                                         const struct replay_result *r);

#endif
