// Converts the processes of a trace, as it is read: memory depends on live blocks and threads, not on its length.
#ifndef HEAPTAPE_CONVERT_CONVERT_H
#define HEAPTAPE_CONVERT_CONVERT_H

#include "convert/heap.h"
#include "convert/order/order.h"
#include "trace/forks.h"

// What is done with the ops of one process.
struct convert_sink {
    struct order_sink ops;
    // The process's memory, sampled while it ran; NULL: not wanted.
    int (*samples)(void *context, const struct trace_sample *samples, size_t n);
    // All ops have been handed on. `context` is that of ops; the sites are borrowed. NULL: not wanted.
    int (*done)(void *context, const struct order_counts *counts,
                const struct workload_sites *sites);
    // The same while the process goes on, when convert_options.advanced asks for it: what has come so far. The stack of a
    // site of which not every frame has come is not there yet. NULL: not wanted.
    int (*so_far)(void *context, const struct order_counts *counts,
                  const struct workload_sites *sites);
};

struct convert_options {
    uint64_t window_ns; // how long contradicting stamps are waited for; 0: CONVERT_WINDOW_NS
    // At the first frame of each process: 1 to convert it into *sink, 0 to leave it out, negative errno.
    int (*choose)(void *context, const struct trace_process *p, struct convert_sink *sink);
    // Of the processes that are chosen, their parents and so on, which are then read, too. NULL: every process begins with an
    // empty heap. Borrowed.
    const struct trace_forks *forks;
    // Instead: forks are found as the processes come. A child that comes when its parent has been put out beyond the fork gets
    // those blocks of that time which the parent has not freed since.
    bool find_forks;
    // With find_forks: what is put out stays so far behind what is fed, and so long do processes that have ended wait for
    // their children.
    uint64_t lag_ns;
    // All events up to the stamp have been handed on, except those that wait for others: 1 to have so_far called, 0, or a
    // negative errno, which ends all. NULL: not wanted.
    int (*advanced)(void *context, uint64_t stamp);
    // After each frame, which begins at `offset`, for a progress line; NULL: not wanted.
    void (*progress)(void *context, uint64_t offset);
    void *context;
};

enum {
    CONVERT_WINDOW_NS = 1000000,
    // No out-of-order window seen was over 547 ticks of a 2.6 GHz counter, 210 ns (docs/design/capture.md); on bigger
    // machines a cache line comes from farther away.
    CONVERT_SKID_NS = 1000,
};

struct convert_result {
    bool cut_off;       // the recording did not end as it should: what there was is converted, and
    struct err cut;     // message: where it ends
    uint64_t end_stamp; // of the recording, or of the last watermark
};

// Reads all of the trace. 0 or a negative errno with the text set; errors of sinks are passed on. A trace that is cut off
// is no error.
int convert_run(struct trace_reader *r, const struct convert_options *options,
                struct convert_result *result, struct err *e);

// The same in pieces, for a caller that reads the frames itself and goes on for as long as they come. Reader and options are
// borrowed. NULL when out of memory.
struct converter *convert_new(struct trace_reader *r, const struct convert_options *options);
void convert_free(struct converter *c);

// Takes what trace_next gave. 0 or a negative errno without a text; errors of sinks are passed on. A frame that announces a
// process may be handed on before its turn.
int convert_feed(struct converter *c, const struct trace_item *item);

// That of the last batch that was fed as a whole.
uint64_t convert_watermark(const struct converter *c);

// A process that has begun and of which not all has been handed on. Borrowed.
struct convert_unfinished {
    uint32_t number;
    const struct order *order;
    const struct heap_notes *notes; // of its blocks, with find_forks
    bool waits;                     // it is a fork that has not got its parent's heap yet
};

// Visits all of these by their numbers. 0, a negative errno, or what is not 0 of what `visit` returned, which ends it.
int convert_visit(struct converter *c,
                  int (*visit)(void *context, const struct convert_unfinished *p), void *context);

#endif
