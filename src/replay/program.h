// The recorded program's CPU time: malloc's share of it, and what it would be on another allocator.
#ifndef HEAPTAPE_REPLAY_PROGRAM_H
#define HEAPTAPE_REPLAY_PROGRAM_H

#include "replay/session.h"

struct program_time {
    const char *missing_reason; // why malloc's share cannot be said; NULL: it can
    // Known if missing_reason is NULL, in nanoseconds of CPU time. That of the program is without recording.
    double cpu_ns, recording_ns;
    // Of the calls: in replay on the recorded allocator, whose caches are warm, and as timed in the recorded program, without
    // all that reading the clock takes. NAN: not known. At least the greater of the two, calls_ns.
    double replayed_calls_ns, timed_calls_ns, calls_ns;
    double share;     // at least: calls_ns of cpu_ns
    double max_share; // at most: as timed, with all that reading the clock takes. NAN: not known
};

struct program_time program_time(const struct replay_session *s);

// CPU time of the first use of big blocks on that allocator: of the page faults that the program has then, outside of calls.
// NAN: not measured.
double program_use_ns(const struct replay_session *s, const struct replay_result *r);

// CPU time of the calls on that allocator: the replay's less that on the null allocator and program_use_ns. NAN: not measured.
double program_calls_ns(const struct replay_session *s, const struct replay_result *r);

// By how much more CPU time a process takes to load this allocator than the recorded one. NAN: the latter was not replayed.
double program_load_ns(const struct replay_session *s, const struct replay_result *r);

// The program's CPU time on this allocator divided by that on the first one, if only the load of the allocator, the calls and
// the first use of big blocks change, each as much as in replay. NAN: not known.
double program_ratio(const struct replay_session *s, const struct program_time *t,
                     const struct replay_result *r);

// Why that is not known; NULL: it is. Borrowed, of static duration.
const char *program_ratio_missing_reason(const struct replay_session *s,
                                         const struct program_time *t,
                                         const struct replay_result *r);

#endif
