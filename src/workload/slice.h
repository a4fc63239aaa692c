// Extracts part of a workload, processing ops in total order. Blocks that are live at the start of
// the part get a PREEXISTING op. Dependencies on ops outside the part are dropped. Slots and
// threads are renumbered. Memory use depends on the number of slots and threads, not on the length
// of the workload.
#pragma once

#include "base/progress.h"
#include "workload/file.h"
#include "workload/workload.h"

// Kinds of points that can be the start or the end of a part.
enum slice_at {
    SLICE_AT_EDGE, // start or end of the workload
    // Event with this number in the total order, excluding PREEXISTING ops.
    SLICE_AT_EVENT,
    SLICE_AT_STAMP, // first op with at least this stamp
    // Time since the start of the program in ns, which slice_point_resolve converts to a stamp.
    SLICE_AT_TIME,
    SLICE_AT_MARK, // first mark with this text
};

struct slice_point {
    enum slice_at at;
    uint64_t number;  // event number, stamp or time
    const char *mark; // borrowed
};

// Converts a time to a stamp, for a process that started at `start_stamp` with a clock of
// `clock_hz` ticks per second and 2^stamp_shift ticks per stamp. Leaves other points unchanged.
void slice_point_resolve(struct slice_point *p, uint64_t start_stamp, uint64_t clock_hz,
                         unsigned stamp_shift);

// Returns true if the point is at or before this op. `events` is the number of events before the
// op. Returns false for SLICE_AT_EDGE.
bool slice_point_reached(const struct slice_point *p, const struct workload_op *op,
                         uint64_t events);

// Returns true if a part ends before this op. A mark ends only a part that began at an earlier op;
// `begins` is set if the part begins at this op.
bool slice_point_ends(const struct slice_point *to, const struct workload_op *op, uint64_t events,
                      bool begins);

struct slice_range {
    uint32_t first, last;
};

// The blocks and other ops to keep. If a block is kept, all calls on it are kept.
struct slice_choice {
    // Indexed by block number. Blocks are numbered in the order of the source's PREEXISTING ops and
    // allocating ops. NULL if all blocks are kept.
    const bool *blocks;
    uint64_t n_blocks;   // blocks with this number or a higher number are dropped
    const bool *threads; // threads whose thread.create, start and exit are kept
    size_t n_threads;
    bool others; // keep ops without a block: marks, failed calls and frees of NULL
};

struct slice_options {
    struct slice_point from,
        to; // first op after the part
    // Threads to keep, or NULL for all. Borrowed.
    const struct slice_range *threads;
    size_t n_threads;
    const struct slice_choice *choice; // NULL keeps all ops; borrowed until slice_free
    bool has_stamps;                   // if false, the stamps of the part are op numbers
    bool rebase;                       // move the stamp of the first op to rebase_to
    // Stamp of the first op; the other stamps are shifted by the same amount.
    uint64_t rebase_to;
};

// Receives the ops of the part in total order. The arguments are borrowed until the callback
// returns. The callbacks return 0, or a negative errno, which stops the slice.
struct slice_sink {
    void *context;
    int (*op)(void *context, uint32_t thread, const struct workload_op *op);
    // Optional. Called after an op that allocates or resizes a block of HT_BIG_BYTES or more.
    // `from` is the op in the source, `to` is the same op in the part.
    int (*placed)(void *context, struct workload_dependency from, struct workload_dependency to);
};

struct slice_counts {
    uint64_t events;      // number of events, excluding PREEXISTING ops
    uint64_t preexisting; // number of blocks that were live at the start
    // Number of blocks that a dropped thread freed; these blocks stay live in the part.
    uint64_t left;
    // Number of uses of a block whose previous use was by another thread.
    uint64_t dependencies_needed;
    uint64_t first_stamp, last_stamp; // stamps in the source
    bool begun, ended;                // an op reached the start, or the end, of the part
};

struct slice; // opaque

// Copies the options and the sink. Returns NULL if memory runs out.
struct slice *slice_new(const struct slice_options *options, const struct slice_sink *sink);
void slice_free(struct slice *s);

// Processes the next op. Returns 0, 1 after the end of the part, or a negative errno: an error from
// the sink, or -EBADMSG if the format does not allow the op in the current state of its slot.
int slice_op(struct slice *s, uint32_t thread, const struct workload_op *op);

// Emits the preexisting blocks that the part never uses.
int slice_finish(struct slice *s);

struct slice_counts slice_counts(const struct slice *s);

struct slice_file_options {
    // `has_stamps` and `rebase_to` are ignored, because the file determines them.
    struct slice_options part;
    int level;                 // zstd level
    struct progress *progress; // initialized, or NULL
};

// Writes part of a workload file to `out`, which the caller closes, and sets *counts. Returns 0, or
// a negative errno with the message set: -ENODATA if the part has no events.
int slice_file(struct workload_file *in, struct output *out, const struct slice_file_options *o,
               struct slice_counts *counts, struct err *e);
