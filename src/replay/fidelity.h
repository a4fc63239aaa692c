// The fidelity of a replay: how close it is to the recorded program.
#ifndef HEAPTAPE_REPLAY_FIDELITY_H
#define HEAPTAPE_REPLAY_FIDELITY_H

#include "replay/session.h"

// Live bytes at the samples of the replay, compared with live bytes after the same number of calls
// in the recorded order.
struct fidelity_live {
    uint64_t points, equal;
    uint64_t max_bytes; // largest difference
    double mean_bytes;
    // Ratio of the peaks: above 1 if threads ran ahead of threads that free their blocks. NAN:
    // nothing was live.
    double peak_ratio;
};

// The heap of the replay (RSS above the RSS at load) compared with the heap of the program: private
// memory without the memory beside the heap. The latter is the private memory above live bytes at
// the first sample, and the program's own mappings if they were recorded. Other mappings and stacks
// that are used later count as heap.
struct fidelity_memory {
    uint64_t samples; // samples compared; 0: none
    uint64_t baseline_bytes, mapped_bytes;
    double recorded_peak_bytes, replayed_peak_bytes;
    double mean_error; // sum of differences divided by the sum of recorded bytes, at the samples
    double mean_bias;  // the same with signs: above 0, the replay has more
    // Live bytes at the first sample. The more there are, the less certain is the memory beside the
    // heap.
    uint64_t first_live_bytes;
    uint64_t overmapped; // samples with less private memory than the program's own mappings
};

// Share (0 to 1) of time and of calls with at least two threads between their first and last ops.
struct fidelity_overlap {
    double recorded_time, replayed_time, recorded_events, replayed_events;
};

struct fidelity_live fidelity_live(const struct plan *p, const struct replay_run *run);
struct fidelity_memory fidelity_memory(const struct plan *p, const struct replay_run *run);

// Returns 0, or -ENOMEM.
int fidelity_overlap(const struct plan *p, const struct replay_run *run,
                     struct fidelity_overlap *o);

// Results report a mean error or a difference of peaks above this share of recorded memory as far
// off.
#define FIDELITY_FAR 0.1

// `memory` and `live` are from the run of median peak RSS, the rest from the run of median wall
// time.
struct fidelity {
    const char *recorded_allocator; // file; NULL: unknown. Borrowed from the session
    bool same_allocator;            // the replay uses the recorded allocator
    struct fidelity_live live;
    struct fidelity_memory memory;
    const char *missing_reason; // why memory cannot be compared; NULL: it can
    bool peak_is_far,
        is_far;       // the peak or the mean error exceeds FIDELITY_FAR
    bool has_overlap; // the replay has at least two threads
    struct fidelity_overlap overlap;
    double
        // time in calls in the timed run, without the replay overhead; NAN: no timed run
        allocator_ns;
    double recorded_ns; // duration of the recording; NAN: unknown
};
struct fidelity fidelity_of(const struct replay_session *s, const struct replay_result *r);

// Returns true for the same path, or for the same file name and build ID.
bool fidelity_same_allocator(const char *recorded, const char *replayed);

#endif
