// Triggers for flight dumps, and the code that monitors them.
#pragma once

#include "record/processes/cgroup.h"
#include "trace/trace.h"

// Triggers. A number of 0 disables its trigger. If all members are zero, a dump is written only at
// the end.
struct flight_triggers {
    bool any;                // a trigger was specified; otherwise a dump is written at the end
    uint64_t rss_bytes;      // RSS of a process exceeds this
    uint64_t growth_percent; // RSS of a process has grown by this percentage within growth_ns
    uint64_t growth_ns;
    uint64_t cgroup_percent; // the cgroup uses more than this share of its limit
    // Tasks of the cgroup wait for memory during more than this share of the time.
    uint64_t pressure_percent;
    // `exit` fires when the recording has ended. `failure` fires if a signal killed the program, or
    // its exit status is not 0.
    bool exit, failure;
    bool oom; // the OOM killer killed a process of the cgroup
};

// Parses a comma-separated list of triggers (see the manual page). Returns 0, or -EINVAL.
int flight_triggers_parse(const char *text, struct flight_triggers *t);

enum { WATCH_POINTS = 32, WATCH_REASON_BYTES = 200 };

struct watch_state {
    bool above; // RSS has been reported as above rss_bytes
    // RSS values during the last growth_ns.
    uint64_t stamps[WATCH_POINTS], points[WATCH_POINTS];
    unsigned n_points;
};

struct watch {
    const struct flight_triggers *triggers;
    const struct trace_session *session;
    struct watch_state *processes; // by process number
    size_t n, capacity;
    uint64_t look_ns; // time of the next read of the cgroup, CLOCK_MONOTONIC
    struct watch_group {
        char lines[4096];   // contents of /proc/PID/cgroup
        uint64_t oom_kills; // UINT64_MAX if unknown
    } group, left;          // current and previous cgroup of the first process
    bool above_limit;       // like watch_state.above
    bool above_pressure;
    bool ended, killed;   // `ended`: the recorded program has ended; `killed`: SIGKILL killed it
    uint64_t exit_status; // as returned by wait(2)
};

void watch_init(struct watch *w, const struct flight_triggers *t, const struct trace_session *s);
void watch_release(struct watch *w);

// Check the triggers. Return true if a trigger fires, and write its description to `reason`
// (WATCH_REASON_BYTES).
bool watch_sample(struct watch *w, const struct trace_process *p, const struct trace_sample *s,
                  char *reason);
bool watch_cgroup(struct watch *w, const struct trace_process *p, uint64_t now_ns, char *reason);
bool watch_end(struct watch *w, char *reason);

// Checks the limits of the cgroup. watch_cgroup calls this after it has read the cgroup.
bool watch_limits(struct watch *w, const struct proc_cgroup *c, char *reason);

// Handles the end of a process.
void watch_process_end(struct watch *w, const struct trace_process *p);
