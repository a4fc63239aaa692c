// When a flight recording is to be dumped: what is asked for, against what is seen of the processes.
#ifndef HEAPTAPE_FLIGHT_WATCH_H
#define HEAPTAPE_FLIGHT_WATCH_H

#include "record/processes/cgroup.h"
#include "trace/trace.h"

// All zero: at nothing but the end. Numbers that are 0 are not asked for.
struct flight_triggers {
    bool any;                // one was named: else a dump is written at the end
    uint64_t rss_bytes;      // a process has more resident memory than that
    uint64_t growth_percent; // its resident memory is so much higher …
    uint64_t growth_ns;      // … than it was this long before
    uint64_t cgroup_percent; // the processes' cgroup uses more than this share of its limit
    uint64_t
        pressure_percent; // tasks of it wait for memory during more than this share of the time
    bool exit,
        failure; // the recording ends; and the program was killed by a signal, or its exit status is not 0
    bool oom; // the kernel has killed a process of the cgroup for want of memory
};

// Parses a list of triggers, separated by commas, as the manual describes them. 0 or -EINVAL.
int flight_triggers_parse(const char *text, struct flight_triggers *t);

enum { WATCH_POINTS = 32, WATCH_REASON_BYTES = 200 };

struct watch_state {
    bool above; // rss_bytes of the triggers, since when it was reported
    // Of the last growth_ns: the memory at points in time.
    uint64_t stamps[WATCH_POINTS], points[WATCH_POINTS];
    unsigned n_points;
};

struct watch {
    const struct flight_triggers *triggers;
    const struct trace_session *session;
    struct watch_state *processes; // by number
    size_t n, capacity;
    uint64_t look_ns; // when the cgroup is looked at next: CLOCK_MONOTONIC
    struct watch_group {
        char lines[4096];   // /proc/PID/cgroup
        uint64_t oom_kills; // UINT64_MAX: not known yet
    } group, left;          // the first process's, and the one before it
    bool above_limit;       // as watch_state.above
    bool above_pressure;    // likewise
    bool ended, killed;     // the recording's own program: it has ended; by SIGKILL
    uint64_t exit_status;   // as wait(2)
};

void watch_init(struct watch *w, const struct flight_triggers *t, const struct trace_session *s);
void watch_release(struct watch *w);

// Each returns true when that is a reason for a dump, which is written to `reason` (of WATCH_REASON_BYTES).
bool watch_sample(struct watch *w, const struct trace_process *p, const struct trace_sample *s,
                  char *reason);
bool watch_cgroup(struct watch *w, const struct trace_process *p, uint64_t now_ns, char *reason);
bool watch_end(struct watch *w, char *reason);

// The part of watch_cgroup that follows the look.
bool watch_limits(struct watch *w, const struct proc_cgroup *c, char *reason);

// The end of a process.
void watch_process_end(struct watch *w, const struct trace_process *p);

#endif
