// A workload that is written op by op, with the summary that its ops make. Samples, call sites and the end are written to
// `writer` directly.
#ifndef HEAPTAPE_WORKLOAD_OUTPUT_H
#define HEAPTAPE_WORKLOAD_OUTPUT_H

#include "base/fio.h"
#include "workload/summary.h"
#include "workload/writer.h"

struct workload_output {
    struct output *out; // borrowed
    struct workload_writer *writer;
    struct summary_counter counter;
};

// Begins the workload on `out`, which stays the caller's to close. `level` is zstd's. 0 or negative errno with the text
// set. *w can be released in either case.
int workload_output_begin(struct workload_output *w, struct output *out, int level, const struct workload_header *h,
                          struct err *e);
void workload_output_release(struct workload_output *w);

// The next op of the total order, or several, which saves waiting for memory. What they point to is borrowed until the
// call returns.
int workload_output_op(struct workload_output *w, uint32_t thread, const struct workload_op *op, struct err *e);
int workload_output_ops(struct workload_output *w, const struct workload_thread_op *ops, size_t n, struct err *e);

// The counts so far, without those of the conversion (summary_result).
struct workload_summary workload_output_summary(const struct workload_output *w);

#endif
