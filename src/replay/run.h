// Runs the player on a plan under an allocator, and collects the results.
#ifndef HEAPTAPE_REPLAY_RUN_H
#define HEAPTAPE_REPLAY_RUN_H

#include "replay/allocators.h"
#include "replay/figures.h"
#include "replay/plan/plan.h"
#include "replay/plan/streaming.h"
#include "replay/player/results.h"

enum { REPLAY_TIMEOUT_SECONDS = 60 }; // as a default

struct replay_run_settings {
    const char *player; // path of heaptape-replay
    enum results_touch touch;
    bool timed;     // time each call; the whole is slower for it
    bool stats;     // read the allocator's own statistics at STATS ops
    bool snapshots; // copy the slot table at the SNAPSHOT op and at the end
    bool paced;     // keep the pace that the plan was made for
    bool coupled;   // keep the threads as close as they were recorded
    unsigned
        trim_step; // ask the allocator to trim at every so many-th of the plan's TRIM ops; 0: never
    uint64_t timeout_ns;   // without progress, after which the player is killed; 0: never
    uint64_t idle_wait_ns; // measure memory again so long after everything was freed; 0: do not
};

// Time of the calls of one kind, in nanoseconds, stamps included.
struct replay_call {
    uint64_t count;
    double mean_ns; // without the outliers
    double p50_ns, p99_ns, p999_ns, max_ns;
    uint64_t outliers; // that took over 10 µs, and over ten times what 99 % of the calls stay below
    double undisturbed_ns; // mean of the lowest 99 %
};

// A call that the allocator refused because of its arguments.
struct replay_refused {
    unsigned kind;
    uint64_t bytes, alignment;
};

// One run. Memory is the allocator's own: private resident memory over what there was before the first call.
struct replay_run {
    union figures figures;
    struct replay_refused refused;  // the first of figures.refused_calls
    int counters_errno;             // why some of the CPU's counters are not known
    bool counters_with_kernel;      // they include the work of the kernel
    uint64_t checked_blocks;        // with RESULTS_TOUCH_VERIFY
    struct results_sample *samples; // by time
    size_t n_samples;
    struct results_stats *stats;
    size_t n_stats;
    struct results_span *spans; // of the plan's threads
    uint64_t *snapshots;        // addresses, as results_snapshots has them; NULL when not asked for
    size_t snapshot_entries;    // of a slot table
    uint64_t requested_bytes, usable_bytes; // of all blocks, with RESULTS_TOUCH_USABLE
    char trim_function[RESULTS_NAME_BYTES]; // called by TRIM ops, "": none
    struct replay_call *calls;              // HT_KIND_LIMIT, NULL when not timed
    struct replay_call
        *sizes;         // of calls that ask for a size, by results_size_class; NULL when not timed
    uint32_t violation; // after -EILSEQ: enum results_violation
    int wait_status;    // after -ECHILD: how the player ended, as of wait(2)
    char *library;      // path of the file that provides malloc
    char version[RESULTS_VERSION_BYTES]; // as the allocator reports it, "": unknown
};

// Plays once. -ECHILD when the player died, -ETIMEDOUT when it made no progress, -ENOEXEC when malloc is another library's than the one asked for, -ENOMEM
// when the allocator had no memory, -EILSEQ when it violated the malloc contract (RESULTS_TOUCH_VERIFY); other negative
// errno. The output of the allocator goes to stderr. After a failure
// *run holds nothing to release.
int replay_run(const struct plan *p, const struct allocator *a, const struct replay_run_settings *s,
               struct replay_run *run, struct err *e);

// Measures the frequency of the clock, once in a process: before processes are forked that replay.
void replay_run_calibrate(void);

// Replaces what `run` says about memory by what `memory` says, which gets the rest and is to be released as before.
void replay_run_take_memory(struct replay_run *run, struct replay_run *memory);
void replay_run_release(struct replay_run *run);

// Loads the allocator into the player without a replay: 0 if it provides malloc then. `version` is the one that it
// reports, "" if it reports none.
int replay_probe(const struct allocator *a, const struct replay_run_settings *s, char version[128],
                 char **library, struct err *e);

#endif
