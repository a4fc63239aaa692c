// Converts the processes of a trace while it is read. Memory use depends on live blocks and
// threads, not on the length of the trace.
#ifndef HEAPTAPE_CONVERT_CONVERT_H
#define HEAPTAPE_CONVERT_CONVERT_H

#include "convert/heap.h"
#include "convert/order/order.h"
#include "trace/forks.h"

// Callbacks that receive one process.
struct convert_sink {
    struct order_sink ops;
    // Samples of the process's memory. May be NULL.
    int (*samples)(void *context, const struct trace_sample *samples, size_t n);
    // Called after the last op, with the context of `ops`. The sites are borrowed. May be NULL.
    int (*done)(void *context, const struct order_counts *counts,
                const struct workload_sites *sites);
    // As `done`, but while the process is still being converted: called when
    // convert_options.advanced returns 1. Sites with a frame that has not been read yet have no
    // stack. May be NULL.
    int (*so_far)(void *context, const struct order_counts *counts,
                  const struct workload_sites *sites);
};

struct convert_options {
    // how long contradictory stamps wait for a resolving event; 0: CONVERT_WINDOW_NS
    uint64_t window_ns;
    // Called at the first frame of each process. Returns 1 to convert the process into *sink, 0 to
    // skip it, or a negative errno.
    int (*choose)(void *context, const struct trace_process *p, struct convert_sink *sink);
    // Forks of the chosen processes and of their ancestors, which are then ordered too. NULL: every
    // process begins with an empty heap. Borrowed.
    const struct trace_forks *forks;
    // Find forks while reading, instead of `forks`. If the parent's ops past the fork were already
    // emitted when the child appears, the child lacks the blocks that the parent has freed since.
    bool find_forks;
    // With find_forks: how far emitted ops stay behind the watermark, and how long an ended process
    // waits for children to appear.
    uint64_t lag_ns;
    // Called when all events up to `stamp` were emitted, except those that wait for other events.
    // Returns 1 to have so_far called, 0, or a negative errno, which ends the conversion. May be
    // NULL.
    int (*advanced)(void *context, uint64_t stamp);
    // Called after each frame with its offset, for progress. May be NULL.
    void (*progress)(void *context, uint64_t offset);
    void *context;
};

enum {
    CONVERT_WINDOW_NS = 1000000,
    // The widest reordering measured is 547 ticks of a 2.6 GHz counter, 210 ns
    // (docs/design/capture.md). On larger machines cache lines come from farther away.
    CONVERT_SKID_NS = 1000,
};

struct convert_result {
    bool cut_off;       // the recording is incomplete: only its beginning was converted
    struct err cut;     // if cut_off: where the trace ends
    uint64_t end_stamp; // of the recording, or the last watermark if it is cut off
};

// Converts the whole trace. A trace that is cut off is no error. Returns 0, or a negative errno
// with *e set, which may come from a sink.
int convert_run(struct trace_reader *r, const struct convert_options *options,
                struct convert_result *result, struct err *e);

// Converter for callers that read the frames themselves. `r` and `options` are borrowed. Returns
// NULL when out of memory.
struct converter *convert_new(struct trace_reader *r, const struct convert_options *options);
void convert_free(struct converter *c);

// Converts an item from trace_next. Frames that announce a process may be fed ahead of their
// position. Returns 0, or a negative errno without a text, which may come from a sink.
int convert_feed(struct converter *c, const struct trace_item *item);

// Watermark of the last complete batch.
uint64_t convert_watermark(const struct converter *c);

// A process that has begun and is not finished. All pointers are borrowed.
struct convert_unfinished {
    uint32_t number;
    const struct order *order;
    const struct heap_notes *notes; // with find_forks: its live blocks
    bool waits;                     // a fork that has not received the heap of its parent yet
};

// Visits the unfinished processes in the order of their numbers until `visit` returns a value other
// than 0, which is returned. Returns 0, or a negative errno.
int convert_visit(struct converter *c,
                  int (*visit)(void *context, const struct convert_unfinished *p), void *context);

#endif
