// The fidelity of a replay: how close it is to the recorded program.
#ifndef HEAPTAPE_REPLAY_FIDELITY_H
#define HEAPTAPE_REPLAY_FIDELITY_H

#include "replay/session.h"

// Live bytes at the samples of the replay, compared with those after as many calls in the recorded order.
struct fidelity_live {
    uint64_t points, equal;
    uint64_t max_bytes; // largest difference
    double mean_bytes;
    // Of the peaks, which are counted more often: above 1 if threads ran ahead of those that free their blocks.
    double peak_ratio; // NAN: nothing was live
};

// The heap of the replay, which is RSS less what the allocator had at load, against the program's private memory, less what the program had beside its heap: what there
// was over live bytes at the first sample, and what it mapped itself, if that was recorded. What of its own mappings and
// stacks was used later counts as heap.
struct fidelity_memory {
    uint64_t samples; // compared; 0: there is nothing to compare with
    uint64_t baseline_bytes, mapped_bytes;
    double recorded_peak_bytes, replayed_peak_bytes;
    double mean_error; // sum of differences over sum of recorded bytes, at the samples
    double mean_bias;  // the same with signs: above 0 the replay has more
    // What was live at the first sample: how much of the private memory was heap then is a guess.
    uint64_t first_live_bytes;
    uint64_t
        overmapped; // samples with less private memory than the program's own mappings alone would have
};

// Shares, from 0 to 1, of time and of calls while two threads or more were between their first and their last op.
struct fidelity_overlap {
    double recorded_time, replayed_time, recorded_events, replayed_events;
};

struct fidelity_live fidelity_live(const struct plan *p, const struct replay_run *run);
struct fidelity_memory fidelity_memory(const struct plan *p, const struct replay_run *run);

// 0 or -ENOMEM.
int fidelity_overlap(const struct plan *p, const struct replay_run *run,
                     struct fidelity_overlap *o);

// Of the recorded memory, what the mean error and the peak's may be before results say that they are far off.
#define FIDELITY_FAR 0.1

// Memory is that of the run whose peak RSS is the median, the rest that of the run whose wall time is.
struct fidelity {
    const char *recorded_allocator; // the file; NULL: not known. Borrowed from the session
    bool same_allocator;            // the replay is on the recorded one
    struct fidelity_live live;
    struct fidelity_memory memory;
    const char *missing_reason; // why memory cannot be judged; NULL: it can
    bool peak_is_far,
        is_far; // memory can be judged, and its peak, or that or the mean error, is above FIDELITY_FAR
    bool has_overlap; // there are two threads or more
    struct fidelity_overlap overlap;
    double
        allocator_ns; // in the calls of the timed run, without the replay overhead; NAN: there was none
    double recorded_ns; // duration of the recording; NAN: not known
};
struct fidelity fidelity_of(const struct replay_session *s, const struct replay_result *r);

// Are these two the same allocator? By path, or else by file name and build ID.
bool fidelity_same_allocator(const char *recorded, const char *replayed);

#endif
