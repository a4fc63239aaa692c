// Reads workloads, in memory bounded by a frame.
#ifndef HEAPTAPE_WORKLOAD_READER_H
#define HEAPTAPE_WORKLOAD_READER_H

#include "base/frame.h"
#include "workload/samples.h"
#include "workload/sites.h"
#include "workload/workload.h"

// Opaque. `header` is valid after open; `summary` at the end of the stream, or after workload_read_summary.
struct workload_reader;

// Reads the header frame. `in` is borrowed. Errors as frame_next.
int workload_reader_open(struct workload_reader **r, struct input *in, struct err *e);
void workload_reader_close(struct workload_reader *r);

const struct workload_header *workload_reader_header(const struct workload_reader *r);

// On a regular file: the summary by the index at the end, without reading the rest; the position stays.
// -ESPIPE on a pipe.
int workload_read_summary(struct workload_reader *r, struct workload_summary *s, struct err *e);

// The runs of the next frame, at most one a thread: 1; 0 at the end (the summary has come); negative errno.
// Borrowed until the next call. Every op is checked: kind, slot below the limit that the frame states,
// dependencies on earlier ops only.
int workload_next_runs(struct workload_reader *r, const struct workload_run **runs, size_t *n,
                       struct err *e);

// The ops one by one in a valid total order: by stamp, with every dependency satisfied. 1, 0 at the end, negative errno.
// Each uses its slot as it may, and at the end they make what summary and index say.
// Not to be mixed with workload_next_runs on one reader, nor with workload_next_ops.
int workload_next_op(struct workload_reader *r, uint32_t *thread, const struct workload_op **op,
                     struct err *e);

// The same as arrays: the next op and those of its thread that follow it without another thread's op between them.
int workload_next_ops(struct workload_reader *r, uint32_t *thread, const struct workload_op **ops,
                      size_t *n, struct err *e);

// From the first op on: each use of a slot is proved to come after the use before, whatever the threads' speed. That
// takes 8 bytes a slot more. proved: at the end, false for a file so entangled that the proof was given up.
void workload_reader_prove_order(struct workload_reader *r);
bool workload_reader_proved_order(const struct workload_reader *r);

// What to say of such a file, behind its name.
#define WORKLOAD_UNPROVED                                                                          \
    "its dependencies are too entangled to prove that every use of a slot is ordered"

// When the rest of a regular file is not to be read: do its summary, call sites and index agree with the ops so far, as
// far as they can? The position stays. On a pipe, and at the end, where all has been compared, 0. Errors as
// workload_next_op.
int workload_reader_check_part(struct workload_reader *r, struct err *e);

// What a summary of the ops so far would say, as far as summary_result knows it.
struct workload_summary workload_reader_counted(const struct workload_reader *r);

// The summary that the end of the stream held, NULL before it came.
const struct workload_summary *workload_reader_summary(const struct workload_reader *r);

// On a regular file: its samples, by the index, without reading the rest; the position stays. Borrowed until the next
// call of this function; none is no error. -ESPIPE on a pipe.
int workload_read_samples(struct workload_reader *r, const struct workload_sample **s, size_t *n,
                          struct err *e);

// On a regular file: its call sites, by the index, without reading the rest; the position stays. *s is the caller's to
// release, also after an error. -ESPIPE on a pipe.
int workload_read_sites(struct workload_reader *r, struct workload_sites *s, struct err *e);

// The call sites that have come in the stream so far: all of them at its end.
const struct workload_sites *workload_reader_sites(const struct workload_reader *r);

// On a regular file: the residency of blocks, by the index, without reading the rest; the position stays. *l is the
// caller's to release, also after an error; none is no error. -ESPIPE on a pipe.
int workload_read_residency(struct workload_reader *r, struct samples_residency *l, struct err *e);

// What has come of it in the stream so far: all at its end.
const struct samples_residency *workload_reader_residency(const struct workload_reader *r);

// Samples that have come in the stream so far: all of them at its end.
const struct workload_sample *workload_reader_samples(const struct workload_reader *r, size_t *n);

#endif
