// Inside of slices: the threads of the part, and how ops get their numbers, stamps and dependencies.
#ifndef HEAPTAPE_WORKLOAD_SLICE_PRIVATE_H
#define HEAPTAPE_WORKLOAD_SLICE_PRIVATE_H

#include "workload/slice.h"

enum { SLICE_NO_NUMBER = 0xffffffff };

// From op `from` of the source on, the numbers in the part are this much higher (modulo 2^64) than in the source.
struct slice_shift {
    uint64_t from, by;
};

// A thread of the source.
struct slice_thread {
    bool known, wanted;
    uint32_t number;  // in the part; SLICE_NO_NUMBER: not named yet
    uint64_t read;    // ops of the source that have come
    uint64_t next_op; // in the part
    uint64_t last_stamp;
    bool created;               // its creation is in the part
    bool in_part;               // has ops in it
    struct slice_shift *shifts; // the first one for its first op in the part
    size_t n_shifts, shifts_capacity;
    struct workload_dependency *
        waited; // per thread of the part the highest op waited for; used where threads are left out
    size_t n_waited, waited_capacity;
};

// What a slot of the source holds.
enum slice_state {
    SLICE_EMPTY,
    SLICE_OUTSIDE, // a block that the part does not have yet
    SLICE_INSIDE,  // a block of the part
};

struct slice_slot {
    uint64_t size;
    struct workload_dependency from; // op of the source that allocated or last resized the block
    uint64_t last_op;                // of the part, that used it last …
    uint32_t last_thread; // … and the source's number of whose it is; SLICE_NO_NUMBER: none yet
    uint32_t number;      // in the part; SLICE_NO_NUMBER: none yet
    uint32_t site;        // call site, 0: not known
    uint8_t state;        // enum slice_state
    uint8_t allocated_by; // kind of call; 0: not known
    uint8_t align_log2;   // 0: none was asked for
    bool unknown_size;
    bool own;     // allocated, before the part began, by a thread that belongs to it
    bool dropped; // the block does not belong to the part by slice_options.choice
    bool stale;   // a thread outside resized it: what the part knows as its size is an earlier one
};

struct slice {
    struct slice_options options;
    struct slice_sink sink;
    struct slice_range *ranges;
    struct slice_counts counts;
    struct slice_thread *threads; // by number in the source
    size_t n_threads, threads_capacity;
    struct slice_slot *slots; // by number in the source
    size_t n_slots, slots_capacity;
    struct slice_slot *left; // blocks from before that a thread outside has freed unused
    size_t n_left, left_capacity;
    uint64_t n_blocks; // of the source that have come
    bool begun, over;
    bool
        has_gaps; // ops inside the part are left out: the source's dependencies may lead through them
    uint32_t next_thread, next_slot; // numbers in the part
    uint32_t some_thread;            // of the source, that has ops in the part
    uint64_t events, ops_out;
    uint64_t rebase;                          // added to stamps
    size_t needed;                            // what the op under work depends on
    struct workload_dependency *dependencies; // of it
    size_t n_dependencies, dependencies_capacity;
};

// Makes the thread known. NULL when out of memory; good until the next call.
struct slice_thread *slice_thread_get(struct slice *s, uint32_t thread);

// The thread's number in the part, which it gets now unless it has one.
uint32_t slice_thread_number(struct slice *s, uint32_t thread);

// Adds a dependency on an op of the part to the op under work, unless it is implied. 0 or -ENOMEM.
int slice_depend(struct slice *s, uint32_t thread, uint32_t on, uint64_t op);

// Adds those dependencies of the source's op that point into the part. 0 or -ENOMEM.
int slice_keep_dependencies(struct slice *s, uint32_t thread, const struct workload_op *op);

// The source's op that the thread has just read is not put out. 0 or -ENOMEM.
int slice_drop(struct slice *s, uint32_t thread);

// Puts out an op of the thread with the dependencies of the op under work; its stamp is one of the source's. `extra`:
// it is no op of the source. 0 or a negative errno.
int slice_emit(struct slice *s, uint32_t thread, struct workload_op *op, bool extra);

#endif
