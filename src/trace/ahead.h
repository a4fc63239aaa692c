// Reads a trace in a thread of its own, some frames ahead of their use.
#ifndef HEAPTAPE_TRACE_AHEAD_H
#define HEAPTAPE_TRACE_AHEAD_H

#include "trace/reader.h"

struct trace_ahead; // opaque

// `r` is borrowed: until trace_ahead_stop nobody else may use it, but for its session, and its processes while an item is
// at hand that is neither TRACE_EVENTS nor TRACE_SAMPLES: then the thread stands still. NULL when no thread could be
// made, when it would not pay (one processor, or a pipe, whose writer sets the pace), or when out of memory: trace_next
// does as well.
struct trace_ahead *trace_ahead_start(struct trace_reader *r);

// As trace_next: the item is valid until the next call.
int trace_ahead_next(struct trace_ahead *a, struct trace_item *item, struct err *e);

// Ends the thread, wherever it stands, and frees `a`, which may be NULL. The reader is the caller's again.
void trace_ahead_stop(struct trace_ahead *a);

#endif
