// A workload that a command writes op by op, with the summary that comes of its ops.
#ifndef HEAPTAPE_COMMANDS_WORKLOAD_OUTPUT_H
#define HEAPTAPE_COMMANDS_WORKLOAD_OUTPUT_H

#include "base/fio.h"
#include "workload/summary.h"
#include "workload/writer.h"

struct workload_output {
    struct output *out; // borrowed
    struct workload_writer *writer;
    struct stats stats;
};

// Begins the workload on `out`, which stays the caller's to close. `level` is zstd's. 0 or negative errno with the text
// set. *w can be released in either case.
int workload_output_begin(struct workload_output *w, struct output *out, int level, const struct workload_header *h,
                          struct err *e);
void workload_output_release(struct workload_output *w);

// The next op of the total order. What it points to is borrowed until the call returns.
int workload_output_op(struct workload_output *w, uint32_t thread, const struct workload_op *op, struct err *e);

// The same for several, which saves waiting for memory.
int workload_output_ops(struct workload_output *w, const struct workload_thread_op *ops, size_t n, struct err *e);

// Borrowed until the end.
void workload_output_sites(struct workload_output *w, const struct workload_sites *s);

int workload_output_samples(struct workload_output *w, const struct workload_sample *s, size_t n, struct err *e);

// What was counted so far, but for what the order of events took.
struct workload_summary workload_output_summary(const struct workload_output *w);

int workload_output_end(struct workload_output *w, const struct workload_summary *s, struct err *e);

#endif
