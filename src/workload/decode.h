// Unpacks the payload of an OPS frame into runs of ops, and checks all of it.
#ifndef HEAPTAPE_WORKLOAD_DECODE_H
#define HEAPTAPE_WORKLOAD_DECODE_H

#include "workload/format.h"
#include "workload/planes.h"

struct decode_thread {
    uint64_t next_op, last_stamp;
    uint64_t dependency_op; // last waited for …
    uint64_t wait_block;    // … by the block of this serial
    uint64_t run_serial;    // of the frame in which it last had a run …
    uint32_t run;           // … and which
};

// A shape with what follows from it.
struct decode_shape {
    uint8_t kind, flags, error, fields, use;
    bool dependencies;
};

struct decode {
    bool has_stamps;
    struct workload_run *runs;
    size_t n_runs, runs_capacity;
    struct workload_op *ops;
    size_t n_ops, ops_capacity;
    // Between frames.
    struct decode_thread *threads;
    size_t n_threads, threads_capacity;
    uint64_t slot_limit, ops_before, serial, blocks_before;
    unsigned unknown_kind; // after -EPROTO: the kind that this version does not know
    uint64_t max_site;     // highest number of a call site that an op has
    // Of the frame under work.
    struct workload_dependency *dependencies;
    size_t n_dependencies, dependencies_capacity;
    uint32_t *waiting; // indices of ops with dependencies
    size_t n_waiting, waiting_capacity;
    uint32_t *history, *freed; // of the block under work: slots used, slots freed up
    size_t history_capacity, freed_capacity;
    uint32_t age_codes, n_shapes;
    bool relative; // slots freed up or resized by number are differences
    uint64_t base_stamp;
    struct decode_shape shapes[FORMAT_MAX_SHAPES];
    struct planes columns[FORMAT_COLUMNS];
    const uint8_t *shape_column, *text, *text_end;
};

void decode_release(struct decode *d);

// Fills in ops and runs from the payload; they point into it. Returns 0, -ENOMEM, -EBADMSG with the fault in *what, or
// -EPROTO if a newer version wrote the frame, with `unknown_kind` set or the fault in *what.
int decode_frame(struct decode *d, const uint8_t *payload, size_t n, const char **what);

#endif
