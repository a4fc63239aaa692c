// What replay and compare have in common: a workload planned once, runs of it on allocators, and their figures.
#ifndef HEAPTAPE_COMMANDS_REPLAY_SESSION_H
#define HEAPTAPE_COMMANDS_REPLAY_SESSION_H

#include "analysis/measure.h"
#include "analysis/symbols.h"
#include "base/progress.h"
#include "convert/open.h"
#include "plan/plan.h"
#include "replay/fragmentation.h"
#include "replay/machine.h"
#include "replay/run.h"

#include <limits.h>

// All runs of one allocator.
struct replay_figures {
    struct allocator allocator;
    struct replay_run *runs;
    size_t n_runs;
    struct replay_run latency; // a run with timed calls; calls is NULL when there was none
    struct replay_run usable;  // a run that asked for the blocks' usable sizes
    struct replay_run stats;   // a run that looked at the allocator's statistics
    struct fragmentation fragmentation[PLAN_SNAPSHOTS];
    union figures figures; // summary of the runs, filled in by session_run
    size_t typical;        // the run whose wall time is the median
};

struct replay_session {
    const char *workload;       // path; borrowed
    struct workload_file input; // kept open for a plan that is fed
    struct streaming_source source;
    char *recorded_allocator; // the allocator's file; NULL or "": not known
    double ns_a_stamp;        // when it was recorded; 0: has no times
    bool has_samples;         // of the recorded program's memory
    struct plan *plan;
    struct plan_settings how_to_plan; // memory_bytes 0: the default
    double speed;                     // times the recorded pace; 0: as fast as it goes
    struct replay_settings settings;
    bool latency;                // one more run for each allocator, with timed calls
    bool internal_fragmentation; // one more, for usable sizes
    bool fragmentation;          // one more, to see where blocks are
    struct workload_sites sites; // for that
    struct symbols *symbols;     // of these
    bool verify;                 // runs check and are not measured: no null allocator
    uint64_t n_runs;
    struct replay_figures *figures; // in the order asked for
    size_t n_figures;
    struct replay_figures null; // the player's own cost
    struct machine machine;     // when session_run began
    struct progress progress;
    uint64_t runs_done;
    char player[PATH_MAX], null_library[PATH_MAX];
};

// Prepares the player. 0 or negative errno.
int session_init(struct replay_session *s, struct err *e);
void session_release(struct replay_session *s);

// Asks for an allocator.
int session_add_allocator(struct replay_session *s, const char *spec, struct err *e);

// Reads the workload at `path` into the plan, as the session's how_to_plan and speed say.
int session_read(struct replay_session *s, const char *path, struct err *e);

// Runs everything: round by round each allocator once, then the timed runs; the null allocator the same way.
int session_run(struct replay_session *s, struct err *e);

// replay_fragmentation.c: the part of session_run that finds out who holds the memory.
int session_find_fragmentation(struct replay_session *s, struct err *e);

// The figures of the calls of one kind without what the player adds to each (the mean of the lowest 99 % of the
// null allocator's times for it: a few that an interrupt hit would spoil the mean of all). count
// is 0 when there were none.
struct replay_call session_call(const struct replay_session *s, const struct replay_figures *f, unsigned kind);

// The same of the calls that ask for a size of the class (results_size_class).
struct replay_call session_size(const struct replay_session *s, const struct replay_figures *f, unsigned class);

// The ratio of a figure to that of the first allocator.
struct measure_ratio session_ratio(const struct replay_session *s, const struct replay_figures *f, size_t figure);

#endif
