// Reads workloads. Memory use is bounded by the frame size.
#pragma once

#include "base/frame.h"
#include "workload/samples.h"
#include "workload/sites.h"
#include "workload/workload.h"

// Opaque. The header is available after workload_reader_open, the summary at the end of the stream.
struct workload_reader;

// Reads the header frame. `in` is borrowed. Returns 0, or a negative errno like frame_next.
int workload_reader_open(struct workload_reader **r, struct input *in, struct err *e);
void workload_reader_close(struct workload_reader *r);

const struct workload_header *workload_reader_header(const struct workload_reader *r);

// Returns 0 if `pid` is 0 or the workload's process, or -ENOENT with the message set.
int workload_reader_find_pid(const struct workload_reader *r, uint32_t pid, struct err *e);

// Reads the summary of a regular file through the index. Keeps the stream position. Returns 0, or a
// negative errno: -ESPIPE for a pipe.
int workload_read_summary(struct workload_reader *r, struct workload_summary *s, struct err *e);

// Sets *runs to the runs of the next frame, at most one per thread; borrowed until the next call.
// Returns 1, 0 at the end, or a negative errno. Checks that kinds are valid, that slots are below
// the frame's limit, and that dependencies refer to earlier ops.
int workload_next_runs(struct workload_reader *r, const struct workload_run **runs, size_t *n,
                       struct err *e);

// Sets *op to the next op in a valid total order: by stamp, and after all its dependencies. Returns
// 1, 0 at the end, or a negative errno. Checks how slots are used and, at the end, checks the
// summary and the index. Do not mix with workload_next_runs or workload_next_ops on the same
// reader.
int workload_next_op(struct workload_reader *r, uint32_t *thread, const struct workload_op **op,
                     struct err *e);

// Like workload_next_op, but sets *ops to several ops: the next op, and all following ops of its
// thread that precede the next op of another thread.
int workload_next_ops(struct workload_reader *r, uint32_t *thread, const struct workload_op **ops,
                      size_t *n, struct err *e);

// Call before the first op to prove that each use of a slot comes after its previous use, no matter
// how fast each thread runs. Needs 8 more bytes per slot. If the file has too many dependencies,
// the proof is abandoned. At the end, workload_reader_proved_order returns true if the proof was
// completed.
void workload_reader_prove_order(struct workload_reader *r);
bool workload_reader_proved_order(const struct workload_reader *r);

// Message for a file whose proof was abandoned. The message follows the file name.
#define WORKLOAD_UNPROVED "has too many dependencies to prove that every use of a slot is ordered"

// Call if the rest of a regular file will not be read. Checks that the summary, call sites and
// index are consistent with the ops so far. Keeps the stream position. Does nothing for a pipe, or
// at the end of the stream, where everything has been checked. Returns 0, or a negative errno like
// workload_next_op.
int workload_reader_check_part(struct workload_reader *r, struct err *e);

// Returns the summary of the ops so far. Only the members that summary_result sets are valid.
struct workload_summary workload_reader_counted(const struct workload_reader *r);

// Returns the summary, or NULL before the end of the stream.
const struct workload_summary *workload_reader_summary(const struct workload_reader *r);

// Reads the samples of a regular file through the index. Keeps the stream position. *s is borrowed
// until the next call; *n is 0 if the file has no samples. Returns 0, or a negative errno: -ESPIPE
// for a pipe.
int workload_read_samples(struct workload_reader *r, const struct workload_sample **s, size_t *n,
                          struct err *e);

// Reads the call sites of a regular file through the index. Keeps the stream position. The caller
// must release *s, even after an error. Returns 0, or a negative errno: -ESPIPE for a pipe.
int workload_read_sites(struct workload_reader *r, struct workload_sites *s, struct err *e);

// Returns the call sites read so far. They are complete at the end of the stream.
const struct workload_sites *workload_reader_sites(const struct workload_reader *r);

// Reads the block residency of a regular file through the index. Keeps the stream position. *l is
// empty if the file has no residency. The caller must release *l, even after an error. Returns 0,
// or a negative errno: -ESPIPE for a pipe.
int workload_read_residency(struct workload_reader *r, struct samples_residency *l, struct err *e);

// Returns the residency read so far. It is complete at the end of the stream.
const struct samples_residency *workload_reader_residency(const struct workload_reader *r);

// Returns the samples read so far. They are complete at the end of the stream.
const struct workload_sample *workload_reader_samples(const struct workload_reader *r, size_t *n);
