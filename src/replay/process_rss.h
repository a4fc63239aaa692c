// Predicts the resident memory of the whole process on each allocator. The prediction is the heap
// in the replay plus the memory outside the heap at the recorded samples. The memory outside the
// heap is the sampled RSS minus the heap of the recorded allocator, which must be replayed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay_result;
struct replay_run;
struct replay_session;

// Memory outside the heap at a recorded sample, excluding the pages of the allocator's libraries.
struct process_rss_point {
    uint64_t event; // number of calls before the sample
    double bytes;
};

struct process_rss_outside {
    struct process_rss_point *points; // ordered by event
    size_t n;
    // How many bytes the recorded process's peak is above the samples, or 0 if the peak is unknown.
    double hidden_bytes;
};

// Sets s->outside, and the figures process_peak_rss_bytes and outside_rss_bytes of all runs. If
// process_rss_missing_reason() returns a reason, the figures stay NAN. Requires `typical_memory` of
// all results. Returns 0 or -ENOMEM.
int process_rss_predict(struct replay_session *s);
void process_rss_release(struct process_rss_outside *o);

// Sets the figures process_peak_rss_bytes and outside_rss_bytes of a run. Computes them from the
// run's samples and the figures peak_rss_bytes, end_rss_bytes and library_bytes. The figures
// include o->hidden_bytes. o->n must not be 0.
void process_rss_predict_run(const struct process_rss_outside *o, struct replay_run *run);

// Returns the result on the recorded allocator with its default settings, which may be
// s->added, or NULL. The memory outside the heap is computed from this result.
const struct replay_result *process_rss_recorded(const struct replay_session *s);

// Returns the reason why the memory of the process is unknown, or NULL. The string is static.
const char *process_rss_missing_reason(const struct replay_session *s);

// Returns true if the predicted memory includes the memory that recording added to the process. The
// size of that memory is unknown without a map of pages.
bool process_rss_has_recording(const struct replay_session *s);

// Returns the memory outside the heap after `event` calls in a run, including the pages of the
// allocator's libraries. Returns NAN if unknown.
double process_rss_outside(const struct process_rss_outside *o, const struct replay_run *run,
                           uint64_t event);
