// Writes workloads.
#pragma once

#include "base/frame.h"
#include "workload/samples.h"
#include "workload/sites.h"
#include "workload/summary.h"
#include "workload/workload.h"

struct workload_writer; // opaque

// Creates a writer. `out` is borrowed; `level` is a zstd level. Returns NULL if memory runs out.
struct workload_writer *workload_writer_new(struct output *out, int level);
void workload_writer_free(struct workload_writer *w);

int workload_write_header(struct workload_writer *w, const struct workload_header *h,
                          struct err *e);

// Appends an op to its thread. Ops must arrive in a valid total order. Copies the op's data.
// Returns 0, or a negative errno.
int workload_write_op(struct workload_writer *w, uint32_t thread, const struct workload_op *op,
                      struct err *e);

// Like workload_write_op, but for several ops, with prefetching.
int workload_write_ops(struct workload_writer *w, const struct workload_thread_op *ops, size_t n,
                       struct err *e);

// Appends samples in time order. Beyond a limit, not all samples are kept (workload/samples.h). The
// samples are written before the summary.
int workload_write_samples(struct workload_writer *w, const struct workload_sample *s, size_t n,
                           struct err *e);

// Sets the call sites of the ops, including the names of their addresses. Borrowed until
// workload_write_end.
void workload_write_sites(struct workload_writer *w, const struct workload_sites *s);

// Sets the block residency, which must be sorted. Borrowed until workload_write_end.
void workload_write_residency(struct workload_writer *w, const struct samples_residency *l);

// Writes the pending ops, call sites, samples, summary and index. Returns 0, or a negative errno.
int workload_write_end(struct workload_writer *w, const struct workload_summary *s, struct err *e);

// A workload that is written op by op, together with its summary. For samples, call sites,
// residency and the end, call the workload_write functions with `writer`.
struct workload_output {
    struct output *out; // borrowed
    struct workload_writer *writer;
    struct summary_counter counter;
};

// Starts a workload on `out`, which the caller closes. `level` is a zstd level. Returns 0, or a
// negative errno with the message set. The caller must release *w, even after an error.
int workload_output_begin(struct workload_output *w, struct output *out, int level,
                          const struct workload_header *h, struct err *e);
void workload_output_release(struct workload_output *w);

// Append one op (workload_output_op), several ops with prefetching (workload_output_ops), or ops of
// one thread whose stamps do not decrease (workload_output_simple), in total order. The data is
// borrowed until the call returns.
int workload_output_op(struct workload_output *w, uint32_t thread, const struct workload_op *op,
                       struct err *e);
int workload_output_ops(struct workload_output *w, const struct workload_thread_op *ops, size_t n,
                        struct err *e);
int workload_output_simple(struct workload_output *w, uint32_t thread,
                           const struct workload_simple *ops, size_t n, struct err *e);

// Returns the totals so far, except the members that only a converter sets.
struct workload_summary workload_output_summary(const struct workload_output *w);
