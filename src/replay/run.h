// Runs the player on a plan under an allocator and collects the results.
#pragma once

#include "replay/allocators.h"
#include "replay/figures.h"
#include "replay/plan/plan.h"
#include "replay/plan/streaming.h"
#include "replay/player/results.h"

enum { REPLAY_TIMEOUT_SECONDS = 60 };

struct replay_run_settings {
    const char *player;  // path to heaptape-replay
    uint64_t timeout_ns; // kill the player after this time without progress; 0 for no limit
    bool snapshots;      // copy the slot table at the SNAPSHOT op and at the end
    struct results_task task;
};

// Duration of calls of one kind in nanoseconds, including the cost of reading the clock.
struct replay_call {
    uint64_t count;
    double mean_ns; // excludes outliers
    double p50_ns, p99_ns, p999_ns, max_ns;
    uint64_t outliers;     // calls longer than both 10 µs and ten times the 99th percentile
    double undisturbed_ns; // mean of the lowest 99 %
};

// One run. Memory figures are private resident memory, minus the private resident memory before the
// first call.
struct replay_run {
    union figures figures;
    struct results_report report;
    struct results_sample *samples; // ordered by time
    size_t n_samples;
    struct results_stats *stats;
    size_t n_stats;
    struct results_span *spans; // indexed by thread of the plan
    uint64_t *snapshots;        // as returned by results_snapshots()
    size_t snapshot_entries;    // number of slot table entries
    // By kind and, from RESULTS_KINDS, by results_size_class(); NULL if not timed.
    struct replay_call *calls;
    uint32_t violation; // after -EILSEQ: enum results_violation
    int wait_status;    // after -ECHILD: status as from wait(2)
    char *library;      // file that provides malloc
};

// Plays the plan once. Returns 0, -ECHILD if the player died, -ETIMEDOUT if it made no progress,
// -ENOEXEC if another library provides malloc, -ENOMEM if the allocator was out of memory, -EILSEQ
// if the allocator violated the malloc contract (RESULTS_TOUCH_VERIFY), -EBADMSG if the player did
// not make exactly the calls in the plan, or another negative errno. The allocator's output goes to
// stderr. On failure, *run owns nothing.
int replay_run(const struct plan *p, const struct allocator *a, const struct replay_run_settings *s,
               struct replay_run *run, struct err *e);

// Returns the latencies of the calls of a kind, or of a size class with RESULTS_KINDS added, in the
// timed run, minus the replay overhead. The overhead is the mean of the lowest 99 % of the times in
// `null`, the timed run on the null allocator. The highest times are excluded, because a few
// interrupts would dominate the mean. `count` is 0 if there are no such calls.
struct replay_call replay_run_call(const struct replay_run *timed, const struct replay_run *null,
                                   unsigned kind);

// Returns the clock frequency, which the first call measures in 20 ms. Call before forking
// processes that replay.
uint64_t replay_run_ticks_per_second(void);

// Copies the memory figures of `memory` to `run`, and swaps the samples of both runs. Both runs
// must still be released.
void replay_run_move_memory(struct replay_run *run, struct replay_run *memory);
void replay_run_release(struct replay_run *run);

// Loads the allocator into the player without a replay. If the allocator provides malloc, sets
// `version` ("" if not reported) and *library, and returns 0. Otherwise returns a negative errno.
int replay_probe(const struct allocator *a, const struct replay_run_settings *s, char version[128],
                 char **library, struct err *e);
