// Converts the processes of a trace while reading it. Memory use depends on the number of live
// blocks and threads, not on the length of the trace.
#pragma once

#include "convert/heap.h"
#include "convert/order/order.h"
#include "trace/forks.h"

// Callbacks that receive one process.
struct convert_sink {
    struct order_sink ops;
    // Receives samples of the process's memory. May be NULL.
    int (*samples)(void *context, const struct trace_sample *samples, size_t n);
    // Called after the last op with the context of `ops`. The sites are borrowed. May be NULL.
    int (*done)(void *context, const struct order_counts *counts,
                const struct workload_sites *sites);
    // Like `done`, but called while the process is still being converted, whenever
    // convert_options.advanced returns 1. A site has no stack if one of its frames has not been
    // read yet. May be NULL.
    int (*so_far)(void *context, const struct order_counts *counts,
                  const struct workload_sites *sites);
};

struct convert_options {
    // How long to wait for an event that resolves contradictory stamps, in ns of recorded time. 0
    // means CONVERT_WINDOW_NS.
    uint64_t window_ns;
    bool no_early_frees; // see order_options
    // Called at the first frame of each process. Returns 1 to convert the process into *sink, 0 to
    // skip it, or a negative errno.
    int (*choose)(void *context, const struct trace_process *p, struct convert_sink *sink);
    // Forks of the chosen processes and of their ancestors; the ancestors are then ordered as well.
    // If NULL, every process starts with an empty heap. Borrowed.
    const struct trace_forks *forks;
    // Find forks while reading, instead of using `forks`. A child may then appear after its parent
    // has emitted ops that follow the fork.
    bool find_forks;
    // With find_forks, the time after a fork during which the child may appear. If the child
    // appears later, it lacks the blocks that its parent has freed since the fork. If the parent
    // has ended by then, the child lacks all inherited blocks.
    uint64_t fork_ns;
    bool keep_words;         // keep the words of emitted events (see merge_stream.kept)
    unsigned only_allocator; // see struct merge
    // If not NULL, the conversion advances in steps whenever a batch is complete, and calls `limit`
    // before each step. Returns the stamp at which the step ends, which must be above the previous
    // result and at most `until`. The step that ends at `until` is the last.
    uint64_t (*limit)(void *context, uint64_t until);
    // With find_forks: called when a process has ended and all of its events have been emitted.
    // Returns 0, or a negative errno. May be NULL.
    int (*ended)(void *context, uint32_t process);
    // Called when all events up to `stamp` have been emitted, except events that wait for other
    // events. Returns 1 to call `so_far`, 0 to continue without that call, or a negative errno,
    // which ends the conversion. May be NULL.
    int (*advanced)(void *context, uint64_t stamp);
    // Called after each frame with the frame's offset. May be NULL.
    void (*progress)(void *context, uint64_t offset);
    void *context;
};

enum {
    CONVERT_WINDOW_NS = 1000000,
    // The largest reordering measured is 547 ticks of a 2.6 GHz counter, or 210 ns
    // (docs/design/capture.md). The limit is higher to allow for larger machines, where cache lines
    // travel farther.
    CONVERT_SKID_NS = 1000,
};

struct convert_result {
    bool cut_off;       // the recording is truncated; only its beginning was converted
    struct err cut;     // offset where the trace ends, if cut_off is set
    uint64_t end_stamp; // end of the recording or, if the trace is truncated, the last watermark
};

// Converts the whole trace. A truncated trace is not an error. Returns 0, or a negative errno with
// *e set; the error may come from a sink.
int convert_run(struct trace_reader *r, const struct convert_options *options,
                struct convert_result *result, struct err *e);

// Converter for callers that read the frames themselves. `r` and `options` are borrowed. Returns
// NULL when out of memory.
struct converter *convert_new(struct trace_reader *r, const struct convert_options *options);
void convert_free(struct converter *c);

// Converts an item returned by trace_next. The caller may pass a TRACE_PROCESS item before items
// that precede it in the trace. Returns 0, or a negative errno without a message; the error may
// come from a sink.
int convert_feed(struct converter *c, const struct trace_item *item);

// Advances to the watermark of the last complete batch. Call at the end of the trace.
int convert_advance_to_end(struct converter *c);

// Returns the watermark of the last complete batch.
uint64_t convert_watermark(const struct converter *c);

// Returns the stamp that the conversion has reached. All events up to this stamp have been emitted,
// except events that wait for other events.
uint64_t convert_passed(const struct converter *c);

// A process that has started and is not finished. All pointers are borrowed.
struct convert_unfinished {
    uint32_t number;
    const struct order *order;
    const struct heap_notes *notes; // the live blocks of the process; only with find_forks
    bool waits;                     // the process waits for the heap of its parent
};

// Visits the unfinished processes in numeric order, except processes that have ended and only wait
// for children. If `visit` returns nonzero, stops and returns that value. Otherwise returns 0, or a
// negative errno.
int convert_visit(struct converter *c,
                  int (*visit)(void *context, const struct convert_unfinished *p), void *context);

// Visits one process. Does nothing if the process is finished.
int convert_visit_one(struct converter *c, uint32_t process,
                      int (*visit)(void *context, const struct convert_unfinished *p),
                      void *context);
