// Cuts a part out of a workload, op by op in its total order, so that it is a workload of its own: blocks that are alive
// where it begins are PREEXISTING in it, dependencies on ops outside are left out, slots and threads have new numbers.
// Memory depends on the slots and threads of the workload, not on its length.
#ifndef HEAPTAPE_WORKLOAD_SLICE_H
#define HEAPTAPE_WORKLOAD_SLICE_H

#include "base/progress.h"
#include "workload/file.h"
#include "workload/workload.h"

// Where the part begins or ends.
enum slice_at {
    SLICE_AT_EDGE,  // of the workload
    SLICE_AT_EVENT, // at the event with this number in the total order; PREEXISTING are no events
    SLICE_AT_STAMP, // at the first op with this stamp or a later one
    SLICE_AT_TIME, // at this time in ns since the program's start; slice_point_resolve makes it a stamp
    SLICE_AT_MARK, // at the first mark with this text
};

struct slice_point {
    enum slice_at at;
    uint64_t number;  // of the event, the stamp, or the time
    const char *mark; // borrowed
};

// Makes a time a stamp: of a process that began at `start_stamp`, with a clock of `clock_hz` ticks a second and stamps of
// 2^stamp_shift ticks. Other points stay as they are.
void slice_point_resolve(struct slice_point *p, uint64_t start_stamp, uint64_t clock_hz,
                         unsigned stamp_shift);

// Does the part begin or end before the op, before which there were so many events? Never at an edge.
bool slice_point_reached(const struct slice_point *p, const struct workload_op *op,
                         uint64_t events);

struct slice_range {
    uint32_t first, last;
};

// Which blocks belong to the part, each with all of its calls, and what belongs to it beside them.
struct slice_choice {
    // By number: in the order in which they are allocated, or are PREEXISTING, in the source. NULL: all.
    const bool *blocks;
    uint64_t n_blocks;   // those from here on do not belong to it
    const bool *threads; // whose creation, start and exit belong to it
    size_t n_threads;
    bool others; // so do ops without a block: marks, calls that failed, frees of NULL
};

struct slice_options {
    struct slice_point from,
        to; // the op at `to` does not belong to it. The part is what stands between in the total order
    // Threads of it; NULL: all. Borrowed.
    const struct slice_range *threads;
    size_t n_threads;
    const struct slice_choice *choice; // NULL: all. Borrowed until slice_free
    bool has_stamps;                   // else the part's stamps count its ops
    bool rebase;                       // the part's first op gets the stamp …
    uint64_t rebase_to;                // … and the others follow
};

// Where the part's ops go, in its total order. They are borrowed until the call returns. 0 or a negative errno, which
// ends all.
struct slice_sink {
    void *context;
    int (*op)(void *context, uint32_t thread, const struct workload_op *op);
    // Called after `op` for a block of HT_BIG_BYTES or more that it allocates or resizes: the op of the source
    // that did so, and its own number in the part. NULL: not wanted. 0 or a negative errno.
    int (*placed)(void *context, struct workload_dependency from, struct workload_dependency to);
};

struct slice_counts {
    uint64_t events;                  // without PREEXISTING
    uint64_t preexisting;             // blocks that are there when it begins
    uint64_t left;                    // blocks that a thread outside frees: here they live on
    uint64_t dependencies_needed;     // uses of blocks that another thread used last
    uint64_t first_stamp, last_stamp; // of the part, as they are in the source
};

struct slice; // opaque

// NULL when out of memory. Both are copied.
struct slice *slice_new(const struct slice_options *options, const struct slice_sink *sink);
void slice_free(struct slice *s);

// Adds the next op. 0; 1 when the part is over, and no more need come; a negative errno, which may be the sink's:
// -EBADMSG when the op uses a slot against the rules of the format.
int slice_op(struct slice *s, uint32_t thread, const struct workload_op *op);

// Puts out the rest: the preexisting blocks that no op of the part uses.
int slice_finish(struct slice *s);

struct slice_counts slice_counts(const struct slice *s);

struct slice_file_options {
    struct slice_options part; // without has_stamps and rebase_to, which come from the file
    int level;                 // zstd's
    struct progress *progress; // initialised; NULL: not wanted
};

// Writes the part of a workload's file to `out`, which stays the caller's to close, and counts it in *counts. 0 or a
// negative errno with the text set, -ENODATA if the part contains no events.
int slice_file(struct workload_file *in, struct output *out, const struct slice_file_options *o,
               struct slice_counts *counts, struct err *e);

#endif
