// Reads workloads. Memory is bounded by the size of a frame.
#ifndef HEAPTAPE_WORKLOAD_READER_H
#define HEAPTAPE_WORKLOAD_READER_H

#include "base/frame.h"
#include "workload/samples.h"
#include "workload/sites.h"
#include "workload/workload.h"

// `header` is valid after workload_reader_open, `summary` at the end of the stream or after
// workload_read_summary.
struct workload_reader;

// Reads the header frame. `in` is borrowed. Returns 0, or a negative errno as frame_next does.
int workload_reader_open(struct workload_reader **r, struct input *in, struct err *e);
void workload_reader_close(struct workload_reader *r);

const struct workload_header *workload_reader_header(const struct workload_reader *r);

// Reads the summary of a regular file through the index and keeps the position. Returns 0, or a
// negative errno, -ESPIPE for a pipe.
int workload_read_summary(struct workload_reader *r, struct workload_summary *s, struct err *e);

// Returns the runs of the next frame, at most one per thread, borrowed until the next call. Returns
// 1, 0 at the end, or a negative errno. Kinds, slots below the limit of the frame and dependencies
// on earlier ops are checked.
int workload_next_runs(struct workload_reader *r, const struct workload_run **runs, size_t *n,
                       struct err *e);

// Returns the next op in a valid total order: by stamp, after all its dependencies. Returns 1, 0 at
// the end, or a negative errno. Checks the use of slots, and at the end summary and index. Do not
// mix with workload_next_runs or workload_next_ops on one reader.
int workload_next_op(struct workload_reader *r, uint32_t *thread, const struct workload_op **op,
                     struct err *e);

// Like workload_next_op, for several ops: the next op and the following ops of its thread up to an
// op of another thread.
int workload_next_ops(struct workload_reader *r, uint32_t *thread, const struct workload_op **ops,
                      size_t *n, struct err *e);

// Call before the first op. Also proves that each use of a slot comes after its previous use at any
// speed of the threads; takes 8 more bytes per slot. workload_reader_proved_order returns at the
// end whether the proof was completed; it is not for files with too many dependencies.
void workload_reader_prove_order(struct workload_reader *r);
bool workload_reader_proved_order(const struct workload_reader *r);

// Note for such a file, after its name.
#define WORKLOAD_UNPROVED "has too many dependencies to prove that every use of a slot is ordered"

// Call if the rest of a regular file is not read. Compares summary, call sites and index with the
// ops so far and keeps the position. Returns 0 for a pipe and at the end, where all has been
// compared, or a negative errno as workload_next_op does.
int workload_reader_check_part(struct workload_reader *r, struct err *e);

// Returns the summary of the ops so far, with the members that summary_result sets.
struct workload_summary workload_reader_counted(const struct workload_reader *r);

// Returns the summary read at the end of the stream, or NULL before.
const struct workload_summary *workload_reader_summary(const struct workload_reader *r);

// Reads the samples of a regular file through the index and keeps the position. Borrowed until the
// next call. *n is 0 for a file without samples. Returns 0, or a negative errno, -ESPIPE for a
// pipe.
int workload_read_samples(struct workload_reader *r, const struct workload_sample **s, size_t *n,
                          struct err *e);

// Reads the call sites of a regular file through the index and keeps the position. The caller
// releases *s, even after an error. Returns 0, or a negative errno, -ESPIPE for a pipe.
int workload_read_sites(struct workload_reader *r, struct workload_sites *s, struct err *e);

// Returns the call sites read so far, all at the end of the stream.
const struct workload_sites *workload_reader_sites(const struct workload_reader *r);

// Reads the residency of blocks of a regular file through the index and keeps the position. *l is
// empty for a file without residency. The caller releases *l, even after an error. Returns 0, or a
// negative errno, -ESPIPE for a pipe.
int workload_read_residency(struct workload_reader *r, struct samples_residency *l, struct err *e);

// Returns the residency read so far, all at the end of the stream.
const struct samples_residency *workload_reader_residency(const struct workload_reader *r);

// Returns the samples read so far, all at the end of the stream.
const struct workload_sample *workload_reader_samples(const struct workload_reader *r, size_t *n);

#endif
