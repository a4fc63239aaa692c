// Fidelity: how closely a replay matches the recorded program.
#pragma once

#include "replay/session.h"

// Compares the live bytes at the replay's samples with the live bytes after the same number of
// calls in recorded order.
struct fidelity_live {
    uint64_t points, equal;
    uint64_t max_bytes; // largest difference
    double mean_bytes;
    // Peak of the replay divided by the peak in recorded order. The ratio is above 1 if threads ran
    // ahead of the threads that free their blocks. NAN if no block was live.
    double peak_ratio;
};

// Compares the replay's heap with the program's heap. The replay's heap is the replay's RSS minus
// its RSS at load. The program's heap is its private memory minus its memory outside the heap. The
// memory outside the heap is private memory minus live bytes at the first sample, plus the
// program's own mappings if they were recorded. Other mappings and stacks count as heap if they are
// first used after that sample.
struct fidelity_memory {
    uint64_t samples; // number of samples compared, possibly 0
    uint64_t baseline_bytes, mapped_bytes;
    double recorded_peak_bytes, replayed_peak_bytes;
    double mean_error; // sum of all differences, divided by the sum of all recorded bytes
    double mean_bias;  // like mean_error, but signed: above 0 if the replay uses more memory
    // Live bytes at the first sample. The larger this value is, the less certain the estimate of
    // the memory outside the heap is.
    uint64_t first_live_bytes;
    // Number of samples with less private memory than the program's own mappings.
    uint64_t overmapped;
};

// The share of the time, and the share of the calls, during which at least two threads are between
// their first and last ops. Both are between 0 and 1.
struct fidelity_overlap {
    double recorded_time, replayed_time, recorded_events, replayed_events;
};

struct fidelity_live fidelity_live(const struct plan *p, const struct replay_run *run);
struct fidelity_memory fidelity_memory(const struct plan *p, const struct replay_run *run);

// Returns 0, or -ENOMEM.
int fidelity_overlap(const struct plan *p, const struct replay_run *run,
                     struct fidelity_overlap *o);

// If the mean error or the difference between the peaks exceeds this share of recorded memory, the
// replay is reported as far off.
#define FIDELITY_FAR 0.1

// `memory` and `live` are from the run with the median peak RSS, everything else from the run with
// the median wall time.
struct fidelity {
    const char *recorded_allocator; // file, or NULL if unknown; borrowed from the session
    bool same_allocator;            // the replay uses the recorded allocator
    struct fidelity_live live;
    struct fidelity_memory memory;
    const char *missing_reason; // why memory cannot be compared, or NULL if it can be
    // is_far: the peak or the mean error is off by more than FIDELITY_FAR
    bool peak_is_far, is_far;
    bool has_overlap; // the replay has at least two threads
    struct fidelity_overlap overlap;
    // Time spent in calls in the timed run, minus the replay overhead. NAN if there is no timed
    // run.
    double allocator_ns;
    double recorded_ns; // duration of the recording, or NAN if unknown
};
struct fidelity fidelity_of(const struct replay_session *s, const struct replay_result *r);

// Returns the RSS of the replay, including the baseline, at a recorded sample. The sample is number
// `place` of the `places` samples that were taken after the same call. If the replay also has
// samples after that call, uses the replay's sample in the same relative position. Otherwise
// interpolates.
double fidelity_replayed_rss(const struct replay_run *run, uint64_t event, size_t place,
                             size_t places);

// Returns true if the library is the recorded allocator, that is, if the build IDs are equal. If
// the workload has no build ID, returns true if the paths are equal, or if the file names and the
// build IDs of the two files are equal. An anonymized workload has the build ID, but no path.
bool fidelity_is_recorded(const struct replay_session *s, const char *library);

// Returns true if the result is of the recorded allocator. Reads no file if the workload has the
// build ID.
bool fidelity_has_recorded(const struct replay_session *s, const struct replay_result *r);
