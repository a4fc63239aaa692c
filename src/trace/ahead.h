// Reads a trace in a separate thread, some frames ahead of the caller.
#pragma once

#include "trace/reader.h"

struct trace_ahead; // opaque

// Starts the thread. `r` is borrowed until trace_ahead_stop. Until then, the session is the only
// member of `r` that the caller may read. While the current item is neither TRACE_EVENTS nor
// TRACE_SAMPLES, the thread is paused, and the caller may also read the processes of `r`. Returns
// NULL if out of memory, if no thread can be started, or if a thread would not help: on a single
// CPU, or with a pipe, whose writer is the bottleneck. In these cases, use trace_next instead.
struct trace_ahead *trace_ahead_start(struct trace_reader *r);

// Like trace_next. The item is valid until the next call.
int trace_ahead_next(struct trace_ahead *a, struct trace_item *item, struct err *e);

// Stops the thread and frees `a`, which may be NULL. The caller may use the reader again.
void trace_ahead_stop(struct trace_ahead *a);
