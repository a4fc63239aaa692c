// A session plans a workload, replays it on several allocators, and holds the results.
//
//   replay_session_init(&s, &settings);
//   replay_session_add(&s, "jemalloc", e);        once per allocator
//   replay_session_read(&s, &workload, e);        the caller owns the workload
//   replay_session_run(&s, e);
//   … s.results[i].figures …                      or replay_json
//   replay_session_release(&s);
#pragma once

#include "analysis/measure.h"
#include "analysis/memory/fragmentation.h"
#include "analysis/placement.h"
#include "analysis/symbols/symbols.h"
#include "base/progress.h"
#include "replay/cache.h"
#include "replay/machine.h"
#include "replay/plan/plan.h"
#include "replay/process_rss.h"
#include "replay/run.h"
#include "workload/file.h"

enum replay_threads {
    REPLAY_THREADS_AUTO,    // REAL for time and COUPLED for memory; with a pace, COUPLED for both
    REPLAY_THREADS_REAL,    // each thread runs as fast as the dependencies allow
    REPLAY_THREADS_COUPLED, // threads stay as close together as recorded, except in the timed run
    REPLAY_THREADS_ONE,     // a single thread makes all calls, in recorded order
};

struct replay_settings {
    const char *player, *null_library; // paths to heaptape-replay and libheaptape-null.so; borrowed
    unsigned runs; // number of measured runs on each allocator, up to MEASURE_MAX_RUNS
    enum results_touch touch;
    enum replay_threads threads;
    double speed;        // multiple of the recorded pace; 0 for full speed
    uint64_t timeout_ns; // a run fails after this time without progress; 0 for no limit
    // Measure memory again this long after everything has been freed; 0 to measure only once.
    uint64_t idle_ns;
    uint64_t memory_bytes;            // larger plans are streamed; 0 for plan_default_memory()
    uint64_t stats_every, trim_every; // intervals in calls; 0 for never
    bool verify;                      // check the allocator instead of measuring it
    // If the recorded allocator, without tunables and trims, is not among the allocators, replay it
    // as well for the predictions of the program.
    bool add_recorded;
    // Each of the next three members adds a run on each allocator.
    bool latency;                // in this run, each call is timed
    bool internal_fragmentation; // in this run, usable sizes are read
    bool fragmentation;          // in this run, block addresses are recorded
    // Search for the best placement if the workload has at most this number of events. 0 means
    // never.
    uint64_t placement_events;
    bool keep_going; // if an allocator fails, continue with the others
    bool no_cache;   // neither cache the plan nor use a cached plan
    bool quiet;      // do not show progress on stderr
};

// Figures of a run of the real program. REAL_PEAK_RSS is private resident memory of the process
// that was started, and REAL_PROCESS_RSS is all of its resident memory. CPU time includes the
// children that the process waited for.
enum replay_real_figure { REAL_WALL, REAL_CPU, REAL_PEAK_RSS, REAL_PROCESS_RSS, REAL_FIGURES };
struct replay_real {
    double values[REAL_FIGURES]; // in ns and bytes
};

struct replay_result {
    struct allocator allocator;
    char *failure;      // why the allocator's replay or the program failed, or NULL
    unsigned trim_step; // execute every n-th TRIM op, or none if 0; initially 1
    struct replay_run *runs;
    size_t n_runs, runs_capacity;
    struct replay_run latency; // the timed run; `calls` is NULL if there was no timed run
    struct replay_run usable;  // the run that reads usable sizes
    struct replay_run stats;   // the run that reads the allocator's statistics
    struct fragmentation fragmentation[PLAN_SNAPSHOTS];
    char build_id[MACHINE_BUILD_ID_BYTES]; // of the runs' library; "" before the first run
    union figures figures;                 // summary of the runs
    size_t typical;                        // index of the run with the median wall time
    size_t typical_memory;    // index of the run with the median peak RSS, whose timeline is shown
    struct replay_real *real; // set by replay_real_run()
    size_t n_real;
    // Calls of the real program by kind, with counts and quantiles only. NULL before
    // replay_real_time_calls(), or if the program reported no calls.
    struct replay_call *real_calls;
};

struct replay_session {
    struct replay_settings settings;
    const char *workload;        // name; borrowed
    struct workload_file *input; // borrowed
    // File and build ID of the recorded allocator; NULL or "" if unknown.
    char *recorded_allocator, *recorded_build_id;
    // pid of the parent from which the recorded process inherited blocks, or 0.
    uint32_t forked_from;
    char *recorded_argv; // each argument is terminated by NUL
    size_t recorded_argv_bytes;
    double ns_per_stamp; // 0 if there are no timestamps
    bool has_samples;    // there are samples of the recorded program's memory
    // Summary of the workload, or zero if it cannot be read. `recording_ns` is at most `cpu_ns`,
    // and `libraries` excludes the recorded allocator.
    struct workload_summary summary;
    struct process_rss_outside outside; // set after the runs
    // Bounds on the memory of the workload. If the bounds are known, placement_missing_reason is
    // NULL; otherwise it is a static string.
    struct placement_bounds placement;
    const char *placement_missing_reason;
    struct plan *plan;
    struct plan_settings plan_settings;
    struct cache cache;
    struct output plan_file;       // only for streamed plans
    struct workload_sites sites;   // only with settings.fragmentation
    struct symbols *symbols;       // only with settings.fragmentation
    struct replay_result *results; // in the order of the replay_session_add() calls
    size_t n_results, results_capacity;
    size_t n_failed; // number of failed results, which follow results[n_results - 1]
    // Runs on the recorded allocator; without runs if settings.add_recorded did not add it.
    struct replay_result added;
    struct replay_result null; // runs that measure the replay overhead
    struct machine machine;    // read at the start of replay_session_run()
    struct progress progress;
    uint64_t runs_done;
};

// The caller must release *s, even after a failure.
void replay_session_init(struct replay_session *s, const struct replay_settings *settings);
void replay_session_release(struct replay_session *s);

// Adds an allocator. See allocator_parse() for the syntax and the errors.
int replay_session_add(struct replay_session *s, const char *spec, struct err *e);

// Reads the workload into the plan. The file must be rewindable. If replay_session_needs_input()
// returns true, the file must stay open until the runs are done. Returns 0, -EINVAL if a speed is
// set but the workload has no timestamps, or a negative errno of the reader or the plan.
int replay_session_read(struct replay_session *s, const char *name, struct workload_file *w,
                        struct err *e);
bool replay_session_needs_input(const struct replay_session *s);

// Runs each allocator, including the null allocator, once per round. Then makes the additional
// runs. With settings.keep_going, moves failed results behind the others. Returns 0, or a negative
// errno of replay_run(), with settings.keep_going only if all allocators fail.
int replay_session_run(struct replay_session *s, struct err *e);

// Moves results with a `failure` behind the others, as replay_session_run() does. Call after the
// session has run.
void replay_session_drop_failed(struct replay_session *s);

// Adds one measured run on allocator number `i`. Use this function instead of replay_session_run()
// if the choice of each run depends on the previous runs. After a failure, other allocators can
// still run. Returns 0, or a negative errno of replay_run().
int replay_session_run_one(struct replay_session *s, size_t i, struct err *e);

// Returns how threads ran when memory was measured. Never returns REPLAY_THREADS_AUTO.
enum replay_threads replay_session_memory_threads(const struct replay_session *s);

// Returns true if memory is measured in separate runs. A paced replay measures memory in the same
// runs: its threads stay together anyway, and each run takes as long as the program did.
bool replay_session_memory_apart(const struct replay_session *s);

// The smallest amount of memory that is known to be sufficient for the blocks, and its source.
struct replay_best_placement {
    double bytes; // NAN if unknown
    // Result of the allocator that reached this memory, or NULL if the placement search found it.
    const struct replay_result *result;
};

// Returns the lower of two values: the memory that the best placement found needs, and the lowest
// peak RSS of any allocator.
struct replay_best_placement replay_session_best_placement(const struct replay_session *s);

// Returns the ratio of a figure to the same figure of the first allocator.
struct measure_ratio replay_session_ratio(const struct replay_session *s,
                                          const struct replay_result *r, size_t figure);

// session_fragmentation.c: the part of replay_session_run() that handles settings.fragmentation.
int replay_session_find_fragmentation(struct replay_session *s, struct err *e);
