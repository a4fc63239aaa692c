// Slice internals: the threads of the part, and the numbers, stamps and dependencies of its ops.
#pragma once

#include "workload/slice.h"

enum { SLICE_NO_NUMBER = 0xffffffff };

// Until the next shift, op N ≥ `from` of the source is op N + `by` (modulo 2^64) of the part.
struct slice_shift {
    uint64_t from, by;
};

// A thread of the source.
struct slice_thread {
    bool known, wanted;
    uint32_t number;  // number of the thread in the part, or SLICE_NO_NUMBER
    uint64_t read;    // number of ops read from the source
    uint64_t next_op; // number of the thread's next op in the part
    uint64_t last_stamp;
    bool created;               // the part contains the creation of the thread
    bool in_part;               // the thread has ops in the part
    struct slice_shift *shifts; // the first shift starts at the thread's first op in the part
    size_t n_shifts, shifts_capacity;
    // For each other thread of the part, the highest op on which this thread depends. Used only if
    // ops are dropped.
    struct workload_dependency *waited;
    size_t n_waited, waited_capacity;
};

// State of a slot of the source.
enum slice_state {
    SLICE_EMPTY,
    SLICE_OUTSIDE, // holds a block that is not in the part yet
    SLICE_INSIDE,  // holds a block of the part
};

struct slice_slot {
    uint64_t size;
    struct workload_dependency from; // op of the source that allocated or last resized the block
    uint64_t last_op;                // last op of the part that used the slot
    uint32_t last_thread;            // thread of last_op in the source, or SLICE_NO_NUMBER
    uint32_t number;                 // number in the part, or SLICE_NO_NUMBER
    uint32_t site;                   // call site, or 0 if unknown
    uint8_t state;                   // enum slice_state
    uint8_t allocated_by;            // kind of call, or 0 if unknown
    uint8_t align_log2;              // 0 if no alignment was requested
    uint8_t allocator;               // as in struct workload_op
    bool unknown_size;
    bool own;     // a thread of the part allocated the block before the part began
    bool dropped; // slice_options.choice excludes the block
    bool stale;   // a dropped thread resized the block, so its size in the part is outdated
};

struct slice {
    struct slice_options options;
    struct slice_sink sink;
    struct slice_range *ranges;
    struct slice_counts counts;
    struct slice_thread *threads; // indexed by number of the thread in the source
    size_t n_threads, threads_capacity;
    struct slice_slot *slots; // indexed by number of the slot in the source
    size_t n_slots, slots_capacity;
    // Preexisting blocks that a dropped thread freed before any use in the part.
    struct slice_slot *left;
    size_t n_left, left_capacity;
    uint64_t n_blocks; // number of blocks in the source so far
    bool begun, over;
    // True if ops inside the part are dropped. A dependency in the source may then be on a dropped
    // op.
    bool has_gaps;
    uint32_t next_thread, next_slot; // next free numbers in the part
    uint32_t some_thread;            // a thread of the source that has ops in the part
    uint64_t events, ops_out;
    uint64_t rebase;                          // added to stamps
    size_t needed;                            // number of dependencies that the current op needs
    struct workload_dependency *dependencies; // dependencies of the current op
    size_t n_dependencies, dependencies_capacity;
};

// Returns the thread, and registers it if it is new. Returns NULL if memory runs out. The pointer
// is valid until the next call.
struct slice_thread *slice_thread_get(struct slice *s, uint32_t thread);

// Returns the thread's number in the part. A new thread gets the next number.
uint32_t slice_thread_number(struct slice *s, uint32_t thread);

// Adds a dependency on op `op` of thread `on` in the part to the current op, unless other
// dependencies imply it. Returns 0 or -ENOMEM.
int slice_depend(struct slice *s, uint32_t thread, uint32_t on, uint64_t op);

// Adds the dependencies of `op`, an op of the source, on ops in the part. Returns 0 or -ENOMEM.
int slice_keep_dependencies(struct slice *s, uint32_t thread, const struct workload_op *op);

// Drops the last op read from the thread. Returns 0 or -ENOMEM.
int slice_drop(struct slice *s, uint32_t thread);

// Emits an op of the thread with the dependencies of the current op. The stamp of the op is a stamp
// of the source. `extra` is true if the source does not contain the op. Returns 0, or a negative
// errno.
int slice_emit(struct slice *s, uint32_t thread, struct workload_op *op, bool extra);
