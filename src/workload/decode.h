// Decodes and checks the payload of an OPS frame.
#pragma once

#include "workload/format.h"
#include "workload/planes.h"

struct decode_thread {
    uint64_t next_op, last_stamp;
    uint64_t dependency_op; // op that the last dependency on this thread names
    uint64_t wait_block;    // serial of the block that contains the last dependency
    uint64_t run_serial;    // serial of the frame that contains this thread's last run
    uint32_t run;           // index of this thread's last run in its frame
};

// The shape of an op (kind, flags, error or allocator), and properties derived from the shape.
struct decode_shape {
    uint8_t kind, flags, error, allocator, fields, use;
    bool dependencies;
};

struct decode {
    bool has_stamps;
    struct workload_run *runs;
    size_t n_runs, runs_capacity;
    struct workload_op *ops;
    size_t n_ops, ops_capacity;
    // State kept across frames.
    struct decode_thread *threads;
    size_t n_threads, threads_capacity;
    uint64_t slot_limit, ops_before, serial, blocks_before;
    unsigned unknown_kind; // set if decode_frame returns -EPROTO
    uint64_t max_site;     // highest call site number in the ops so far
    // State of the current frame.
    struct workload_dependency *dependencies;
    size_t n_dependencies, dependencies_capacity;
    uint32_t *waiting; // indices of ops with dependencies
    size_t n_waiting, waiting_capacity;
    uint32_t *history, *freed; // slots used and slots freed in the current block
    size_t history_capacity, freed_capacity;
    uint32_t age_codes, n_shapes;
    bool relative; // slots that are coded by number are stored as differences
    uint64_t base_stamp;
    struct decode_shape shapes[FORMAT_MAX_SHAPES];
    struct planes columns[FORMAT_COLUMNS];
    const uint8_t *shape_column, *text, *text_end;
};

void decode_release(struct decode *d);

// Decodes a frame into runs and ops, which point into the payload. Returns 0, -ENOMEM, -EBADMSG, or
// -EPROTO if a newer version wrote the frame. With -EBADMSG, *what describes the fault. With
// -EPROTO, either `unknown_kind` or *what is set.
int decode_frame(struct decode *d, const uint8_t *payload, size_t n, const char **what);
