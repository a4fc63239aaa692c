// Visits the recorded calls of all processes and threads in a trace, in stamp order.
#pragma once

#include "trace/event/event.h"
#include "trace/reader.h"

struct walk_call {
    const struct trace_process *process;
    uint32_t thread, tid;
    const struct event *event; // for a realloc, ptr is copied from its release half
};

struct walk_options {
    // Returns 0, or a negative errno, which ends the walk. `call` is borrowed.
    int (*call)(void *context, const struct walk_call *call);
    // Selects the processes to visit. NULL selects all.
    bool (*wants)(void *context, const struct trace_process *p);
    // For traces that are still being written. Called when all calls available so far have been
    // visited. Returns 0, or a negative errno. May be NULL.
    int (*pause)(void *context);
    // Called after the last call of a process. Returns 0, or a negative errno. May be NULL.
    int (*ended)(void *context, const struct trace_process *p);
    // Called for each memory sample, in trace order. Returns 0, or a negative errno. May be NULL.
    int (*sample)(void *context, const struct trace_sample *sample);
    // Also visit the release halves of reallocs. Between the two halves, the block is not live.
    bool halves;
    void *context;
};

// Creates a walk for callers that read the frames themselves, for example from a trace that is
// still being written. `r` and `options` are borrowed. Returns NULL when out of memory.
struct walk *walk_new(struct trace_reader *r, const struct walk_options *options);
void walk_free(struct walk *w);

// Adds an item returned by trace_next. Returns 0, or a negative errno without a message; the error
// may come from a callback.
int walk_feed(struct walk *w, const struct trace_item *item);

// Visits all calls fed so far. Call at the end of the trace, or after a pause longer than a batch.
int walk_settle(struct walk *w);

// Visits all calls in the trace. Memory use does not depend on the length of the trace. If the
// recording is truncated, *cut describes where; otherwise, the message in *cut is empty. Returns 0,
// or a negative errno. Sets *e, unless `call` returned the error.
int walk_run(struct trace_reader *r, const struct walk_options *options, struct err *cut,
             struct err *e);
