// Merges workloads into one. The threads of all inputs run in parallel, and the inputs share no
// blocks. Ops are ordered by the time since the first op of their input, plus the offset of the
// input. Memory use depends on the number of slots and threads.
#pragma once

#include "base/progress.h"
#include "workload/file.h"

struct merged_input {
    struct workload_reader *reader; // borrowed, at its first op
    uint64_t offset_ns; // time from the start of the merged workload to the input's first op
};

struct merged; // opaque

// Merges n ≥ 1 inputs, using the clock of the first. If any input lacks stamps, the merged workload
// has no stamps, and takes its ops from the inputs in turn. Returns NULL if memory runs out.
struct merged *merged_new(const struct merged_input *inputs, size_t n);
void merged_free(struct merged *m);

// Returns the header, borrowed. Its argv joins the command lines of all inputs with "+".
const struct workload_header *merged_header(const struct merged *m);

// Sets *op to the next op in a valid total order, borrowed until the next call. Returns 1, 0 at the
// end, or a negative errno like workload_next_op, or -EOVERFLOW if slot or thread numbers run out.
int merged_next(struct merged *m, uint32_t *thread, const struct workload_op **op, struct err *e);

struct merged_files {
    struct workload_file *in;   // n ≥ 1 inputs, each positioned at its first op
    const uint64_t *offsets_ns; // as merged_input.offset_ns, one for each input
    size_t n;
    int level; // zstd level
    // Initialized by the caller, or NULL; the total is set to the size of all files.
    struct progress *progress;
};

// Writes the merged workload to `out`, which the caller closes, and sets *s to its summary. Returns
// 0, or a negative errno with the message set.
int merged_files_write(const struct merged_files *m, struct output *out, struct workload_summary *s,
                       struct err *e);
