// Triggers of a flight dump, and the monitoring that fires them.
#ifndef HEAPTAPE_FLIGHT_WATCH_H
#define HEAPTAPE_FLIGHT_WATCH_H

#include "record/processes/cgroup.h"
#include "trace/trace.h"

// Triggers. All zero: dump only at the end. A number of 0 disables its trigger.
struct flight_triggers {
    bool any;                // a trigger was specified; otherwise a dump is written at the end
    uint64_t rss_bytes;      // RSS of a process exceeds this
    uint64_t growth_percent; // RSS of a process has grown by this percentage within growth_ns
    uint64_t growth_ns;
    uint64_t cgroup_percent; // the cgroup uses more than this share of its limit
    // Tasks of the cgroup wait for memory during more than this share of the time.
    uint64_t pressure_percent;
    // `exit`: the recording has ended. `failure`: a signal killed the program, or its exit status
    // is not 0.
    bool exit, failure;
    bool oom; // the OOM killer killed a process of the cgroup
};

// Parses a comma-separated list of triggers, see the manual. Returns 0, or -EINVAL.
int flight_triggers_parse(const char *text, struct flight_triggers *t);

enum { WATCH_POINTS = 32, WATCH_REASON_BYTES = 200 };

struct watch_state {
    bool above; // RSS has been reported as above rss_bytes
    // RSS during the last growth_ns.
    uint64_t stamps[WATCH_POINTS], points[WATCH_POINTS];
    unsigned n_points;
};

struct watch {
    const struct flight_triggers *triggers;
    const struct trace_session *session;
    struct watch_state *processes; // by process number
    size_t n, capacity;
    uint64_t look_ns; // next read of the cgroup, CLOCK_MONOTONIC
    struct watch_group {
        char lines[4096];   // contents of /proc/PID/cgroup
        uint64_t oom_kills; // UINT64_MAX: unknown
    } group, left;          // the first process's current and previous cgroup
    bool above_limit;       // like watch_state.above
    bool above_pressure;
    bool ended, killed;   // the recorded program has ended; SIGKILL killed it
    uint64_t exit_status; // as returned by wait(2)
};

void watch_init(struct watch *w, const struct flight_triggers *t, const struct trace_session *s);
void watch_release(struct watch *w);

// Check the triggers. Return true if one fires, and write its description to `reason`
// (WATCH_REASON_BYTES).
bool watch_sample(struct watch *w, const struct trace_process *p, const struct trace_sample *s,
                  char *reason);
bool watch_cgroup(struct watch *w, const struct trace_process *p, uint64_t now_ns, char *reason);
bool watch_end(struct watch *w, char *reason);

// Second half of watch_cgroup, after the cgroup was read.
bool watch_limits(struct watch *w, const struct proc_cgroup *c, char *reason);

// Handles the end of a process.
void watch_process_end(struct watch *w, const struct trace_process *p);

#endif
