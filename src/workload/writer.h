// Writes workloads.
#ifndef HEAPTAPE_WORKLOAD_WRITER_H
#define HEAPTAPE_WORKLOAD_WRITER_H

#include "base/frame.h"
#include "workload/samples.h"
#include "workload/sites.h"
#include "workload/summary.h"
#include "workload/workload.h"

struct workload_writer; // opaque

// `out` is borrowed. `level` is zstd's. NULL when out of memory.
struct workload_writer *workload_writer_new(struct output *out, int level);
void workload_writer_free(struct workload_writer *w);

int workload_write_header(struct workload_writer *w, const struct workload_header *h,
                          struct err *e);

// Appends an op to its thread. Ops are appended in a valid total order; the writer cuts them into frames. What
// `op` points to is copied.
int workload_write_op(struct workload_writer *w, uint32_t thread, const struct workload_op *op,
                      struct err *e);

// The same for several, which saves waiting for memory.
int workload_write_ops(struct workload_writer *w, const struct workload_thread_op *ops, size_t n,
                       struct err *e);

// Samples, in order of time. They are kept, thinned where they are very many (workload/samples.h), and stand in one frame
// before the summary.
int workload_write_samples(struct workload_writer *w, const struct workload_sample *s, size_t n,
                           struct err *e);

// The call sites that the ops name, with the names of their addresses that are known; borrowed until workload_write_end, which writes them.
void workload_write_sites(struct workload_writer *w, const struct workload_sites *s);

// The residency of blocks, sorted; borrowed until workload_write_end, which writes it.
void workload_write_residency(struct workload_writer *w, const struct samples_residency *l);

// Writes what is pending, the sites, the samples, the summary and the index.
int workload_write_end(struct workload_writer *w, const struct workload_summary *s, struct err *e);

// A workload that is written op by op, with the summary that its ops make. Samples, call sites and the end are written to
// `writer` directly.
struct workload_output {
    struct output *out; // borrowed
    struct workload_writer *writer;
    struct encode *encode; // the writer's
    struct summary_counter counter;
};

// Begins the workload on `out`, which stays the caller's to close. `level` is zstd's. 0 or negative errno with the text
// set. *w can be released in either case.
int workload_output_begin(struct workload_output *w, struct output *out, int level,
                          const struct workload_header *h, struct err *e);
void workload_output_release(struct workload_output *w);

// The next op of the total order, or several, which saves waiting for memory. What they point to is borrowed until the
// call returns.
int workload_output_op(struct workload_output *w, uint32_t thread, const struct workload_op *op,
                       struct err *e);
int workload_output_ops(struct workload_output *w, const struct workload_thread_op *ops, size_t n,
                        struct err *e);

// The counts so far, without those of the conversion (summary_result).
struct workload_summary workload_output_summary(const struct workload_output *w);

#endif
