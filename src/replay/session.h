// A session: a workload that is planned once, replays of it on several allocators, and their results.
//
//     replay_session_init(&s, &settings);
//     replay_session_add(&s, "jemalloc", e);          once for each allocator
//     replay_session_read(&s, &workload, e);          the workload stays the caller's
//     replay_session_run(&s, e);
//     … s.results[i].figures …                         or replay_json
//     replay_session_release(&s);
#ifndef HEAPTAPE_REPLAY_SESSION_H
#define HEAPTAPE_REPLAY_SESSION_H

#include "analysis/measure.h"
#include "analysis/memory/fragmentation.h"
#include "analysis/symbols/symbols.h"
#include "base/progress.h"
#include "replay/cache.h"
#include "replay/machine.h"
#include "replay/plan/plan.h"
#include "replay/run.h"
#include "workload/file.h"

// How the recorded threads are replayed.
enum replay_threads {
    REPLAY_THREADS_AUTO, // time is measured with REAL, memory with COUPLED; at a pace, both with COUPLED
    REPLAY_THREADS_REAL, // each as fast as the dependencies allow
    REPLAY_THREADS_COUPLED, // as close to each other as they were recorded, except where calls are timed
    REPLAY_THREADS_ONE, // all calls in one thread, in recorded order
};

struct replay_settings {
    const char *player, *null_library; // paths of heaptape-replay and libheaptape-null.so; borrowed
    unsigned runs;                     // measured ones on each allocator, up to MEASURE_MAX_RUNS
    enum results_touch touch;
    enum replay_threads threads;
    double speed;          // times the recorded pace; 0: full speed
    uint64_t timeout_ns;   // without progress, after which a run fails; 0: never
    uint64_t idle_ns;      // measure memory again so long after everything was freed; 0: do not
    uint64_t memory_bytes; // a plan that is bigger is streamed; 0: plan_default_memory
    uint64_t stats_every, trim_every; // calls; 0: never
    bool verify; // check the allocator and measure nothing; most of the others are ignored then
    // One more run on each allocator, that
    bool latency;                // times each call
    bool internal_fragmentation; // asks for usable sizes
    bool fragmentation;          // notes where blocks are
    bool no_cache;               // do not keep the plan, nor use one that was kept
    bool quiet;                  // no progress on stderr
};

// What is measured of a run of the real program: memory is that of the process that was started, resident and not shared;
// CPU time is its own and that of the children it waited for.
enum replay_real_figure { REAL_WALL, REAL_CPU, REAL_PEAK_RSS, REAL_FIGURES };
struct replay_real {
    double values[REAL_FIGURES]; // ns, ns, bytes
};

// All runs on one allocator.
struct replay_result {
    struct allocator allocator;
    unsigned trim_step; // trim at every so many-th of the plan's TRIM ops, at first 1; 0: never
    struct replay_run *runs;
    size_t n_runs, runs_capacity;
    struct replay_run latency; // a run with timed calls; calls is NULL if there was none
    struct replay_run usable;  // a run that asked for the blocks' usable sizes
    struct replay_run stats;   // a run that read the allocator's statistics, if that was asked for
    struct fragmentation fragmentation[PLAN_SNAPSHOTS];
    union figures figures;    // summary of the runs
    size_t typical;           // the run whose wall time is the median …
    size_t typical_memory;    // … and that whose peak RSS is: its timeline is shown and judged
    struct replay_real *real; // of replay_real_run
    size_t n_real;
};

struct replay_session {
    struct replay_settings settings;
    const char *workload;        // its name; borrowed
    struct workload_file *input; // borrowed
    char *recorded_allocator;    // the allocator's file; NULL or "": not known
    uint32_t
        forked_from; // pid of the process whose blocks the recorded one began with; 0: there is none
    char *recorded_argv; // each argument ended by NUL
    size_t recorded_argv_bytes;
    double ns_per_stamp;      // of the recording; 0: it has no times
    bool has_samples;         // of the recorded program's memory
    uint64_t recorded_cpu_ns; // CPU time of the recorded process, 0: not known …
    uint64_t recording_ns;    // … and how much of it recording took, an estimate
    uint64_t calls_min_ns,
        calls_max_ns; // … and the allocator's functions, as timed; max 0: not known
    struct plan *plan;
    struct plan_settings plan_settings;
    struct cache cache;
    struct output plan_file;       // of a streamed plan
    struct workload_sites sites;   // with settings.fragmentation
    struct symbols *symbols;       // of these
    struct replay_result *results; // in the order of replay_session_add
    size_t n_results, results_capacity;
    struct replay_result null; // the replay overhead; no runs with settings.verify
    struct machine machine;    // when replay_session_run began
    struct progress progress;
    uint64_t runs_done;
};

// *s is to be released in any case.
void replay_session_init(struct replay_session *s, const struct replay_settings *settings);
void replay_session_release(struct replay_session *s);

// Adds an allocator: allocator_parse has the syntax and the errors.
int replay_session_add(struct replay_session *s, const char *spec, struct err *e);

// Reads the workload into the plan. The file must be one that can be rewound. It can be closed afterwards unless
// replay_session_needs_input, which holds until the runs are done. 0, a negative errno of the reader's or the plan's, or
// -EINVAL if there is a speed but the workload has no times.
int replay_session_read(struct replay_session *s, const char *name, struct workload_file *w,
                        struct err *e);
bool replay_session_needs_input(const struct replay_session *s);

// Runs everything: round after round each allocator once, then the runs for more than figures; the null allocator
// likewise. 0, or a negative errno of replay_run.
int replay_session_run(struct replay_session *s, struct err *e);

// Instead of that, for callers that decide after each run what to run next: one measured run on allocator number `i`, which
// is added to its runs. 0, or a negative errno of replay_run, after which the other allocators can go on.
int replay_session_run_one(struct replay_session *s, size_t i, struct err *e);

// Latencies of the calls of a kind, or of those whose size is of a class (results_size_class), without the replay
// overhead: the mean of the lowest 99 % of the null allocator's times, as few that an interrupt hit would dominate the
// mean of all. count is 0 if there were none.
struct replay_call replay_session_call(const struct replay_session *s,
                                       const struct replay_result *r, unsigned kind);
struct replay_call replay_session_size(const struct replay_session *s,
                                       const struct replay_result *r, unsigned class);

// How the threads were replayed whose memory was measured: never REPLAY_THREADS_AUTO.
enum replay_threads replay_session_memory_threads(const struct replay_session *s);

// Is memory measured in runs of its own? Not at a pace, where threads stay together in any case and a run takes as long
// as the program did.
bool replay_session_memory_apart(const struct replay_session *s);

// The ratio of a figure to that of the first allocator.
struct measure_ratio replay_session_ratio(const struct replay_session *s,
                                          const struct replay_result *r, size_t figure);

// session_fragmentation.c: the part of replay_session_run for settings.fragmentation.
int replay_session_find_fragmentation(struct replay_session *s, struct err *e);

#endif
