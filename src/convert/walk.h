// The calls of a trace as they were recorded, all processes and threads in the order of their stamps.
#ifndef HEAPTAPE_CONVERT_WALK_H
#define HEAPTAPE_CONVERT_WALK_H

#include "trace/event/event.h"
#include "trace/reader.h"

struct walk_call {
    const struct trace_process *process;
    uint32_t thread, tid;
    const struct event
        *event; // of a realloc, `ptr` is that of its release half, which is no call of its own
};

struct walk_options {
    // 0, or a negative errno, which ends the walk; borrowed until it returns.
    int (*call)(void *context, const struct walk_call *call);
    // Is the process wanted? NULL: all are.
    bool (*wants)(void *context, const struct trace_process *p);
    // All that can be handed on so far has been: for readers of a trace that is still written. 0 or a negative
    // errno. NULL: not wanted.
    int (*pause)(void *context);
    // All calls of the process have been handed on. 0 or a negative errno. NULL: not wanted.
    int (*ended)(void *context, const struct trace_process *p);
    // A sample of a process's memory, where it stands in the trace. 0 or a negative errno. NULL: not wanted.
    int (*sample)(void *context, const struct trace_sample *sample);
    // Hand on the release halves of reallocs too, when they come: until its second half the block is neither here nor there.
    bool halves;
    void *context;
};

// A walk whose caller reads the frames: of a trace that is still written. Reader and options are borrowed. NULL when out of
// memory.
struct walk *walk_new(struct trace_reader *r, const struct walk_options *options);
void walk_free(struct walk *w);

// Takes what trace_next gave. 0 or a negative errno, which may be the callbacks'; without a text.
int walk_feed(struct walk *w, const struct trace_item *item);

// Hands on all that has been fed: at the end, and where nothing has come for longer than a batch takes.
int walk_settle(struct walk *w);

// Reads all of the trace, in memory that does not depend on its length. 0 or a negative errno with the text set, unless
// `call` returned it. When the recording was cut off, `*cut` holds the message; its text is empty else.
int walk_run(struct trace_reader *r, const struct walk_options *options, struct err *cut,
             struct err *e);

#endif
