// Several workloads as one: their threads run side by side, their blocks are apart. Ops come out in the order of their
// stamps, each workload's counted from its own first op. Memory depends on the slots and threads of the workloads.
#ifndef HEAPTAPE_WORKLOAD_MERGED_H
#define HEAPTAPE_WORKLOAD_MERGED_H

#include "base/progress.h"
#include "workload/file.h"

struct merged_input {
    struct workload_reader *reader; // borrowed, at its first op
    uint64_t offset_ns;             // how long its first op comes after the merged workload's start
};

struct merged; // opaque

// `n` ≥ 1 inputs. The clock is that of the first one. Where one of them has no stamps, the merged one has none: then
// they alternate op by op. NULL when out of memory.
struct merged *merged_new(const struct merged_input *inputs, size_t n);
void merged_free(struct merged *m);

// Of the merged workload, borrowed: argv holds those of all inputs, with "+" between them.
const struct workload_header *merged_header(const struct merged *m);

// The next op in a valid total order, borrowed until the next call. 1, 0 at the end, negative errno as of
// workload_next_op, and -EOVERFLOW when there are more slots or threads than have numbers.
int merged_next(struct merged *m, uint32_t *thread, const struct workload_op **op, struct err *e);

// The call sites of all inputs, whose ops have all been read. *to is the caller's to release. 0 or -ENOMEM.
int merged_sites(const struct merged *m, struct workload_sites *to);

// The same of the residency of blocks, sorted.
int merged_residency(const struct merged *m, struct samples_residency *to);

struct merged_files {
    struct workload_file *in;   // n ≥ 1, at their first ops
    const uint64_t *offsets_ns; // how long each one's first op comes after the start
    size_t n;
    int level; // zstd's
    struct progress
        *progress; // initialised; its total is set to the size of the files. NULL: not wanted
};

// Writes the merged workload to `out`, which stays the caller's to close; *s is its summary. 0 or a negative errno with the
// text set.
int merged_files_write(const struct merged_files *m, struct output *out, struct workload_summary *s,
                       struct err *e);

#endif
