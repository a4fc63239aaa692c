// Workload, format version 1: ordered, without addresses, ready for replay. Layout:
// docs/reference/workload-format.md.
#ifndef HEAPTAPE_WORKLOAD_WORKLOAD_H
#define HEAPTAPE_WORKLOAD_WORKLOAD_H

#include "trace/event/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORKLOAD_VERSION = 1 };

// Op that must be finished first: number `op`, from 0, of a thread.
struct workload_dependency {
    uint32_t thread;
    uint64_t op;
};

enum {
    // free(NULL), source of realloc(NULL, …), result of a failed call
    WORKLOAD_NO_SLOT = 0xffffffff,

    WORKLOAD_FAILED = 1,    // flag: the recorded call failed with `error` and allocated no block
    WORKLOAD_FROM_NULL = 2, // flag: realloc(NULL, n): `slot` is allocated, nothing is freed
    WORKLOAD_FREED = 4,     // flag: realloc(p, 0) freed p and returned NULL: `slot` is freed
    WORKLOAD_MOVED = 8,     // flag: the recorded realloc returned another address
    WORKLOAD_SIZE_UNKNOWN = 16, // flag: preexisting block of unknown size
};

// Call of the malloc API, thread event or mark.
struct workload_op {
    uint64_t stamp; // in units of the header's clock, never decreasing within a thread
    uint64_t size;  // as in struct event
    uint64_t count;
    uint64_t align;
    // THREAD_CREATE: number of the new thread. PREEXISTING: kind of the call that allocated the
    // block (0: unknown) + 256 times the number of its call site. Other ALLOC kinds and RESIZE:
    // number of the call site. Call site 0: unknown.
    uint64_t value;
    uint32_t slot; // block that is allocated, freed or resized; a realloc keeps the slot
    uint32_t n_dependencies;
    const struct workload_dependency *dependencies; // borrowed
    const char *text; // of MARK and THREAD_START; not terminated; borrowed
    uint32_t text_bytes;
    uint8_t kind; // enum event_kind
    uint8_t flags;
    uint8_t error;
};

// Op with its thread, for arrays in total order.
struct workload_thread_op {
    struct workload_op op;
    uint32_t thread;
};

// Consecutive ops of one thread.
struct workload_run {
    uint32_t thread;
    uint64_t first_op; // number of ops[0] in its thread
    size_t n_ops;
    const struct workload_op *ops;
};

// Contents of the header. Strings are owned; release with workload_header_release.
struct workload_header {
    uint64_t clock_hz;    // ticks per second
    unsigned stamp_shift; // unit of stamps: 2^this ticks
    bool has_stamps;
    uint64_t start_stamp; // start of the recorded process
    uint32_t pid;
    uint32_t forked_from; // pid of the process whose blocks it inherited, or 0
    char *exe, *allocator;
    char *argv; // arguments, each terminated by NUL
    uint32_t argv_bytes;
    uint64_t
        stack_sample_bytes; // one op per this many allocated bytes has a call site; 0: all or none
};

// Contents of the summary.
struct workload_summary {
    uint64_t events; // counted ops
    uint64_t by_kind[HT_KIND_LIMIT];
    uint64_t threads;
    uint64_t slots; // highest slot + 1
    uint64_t first_stamp, last_stamp;
    uint64_t requested_bytes;
    uint64_t peak_live_bytes, live_at_end_bytes, live_at_end_blocks;
    uint64_t remote_frees; // blocks freed or resized by another thread than the allocating one
    // frees without a recorded allocation; the blocks are PREEXISTING here
    uint64_t unmatched_frees;
    uint64_t preexisting_blocks;  // live at the start with a recorded allocation; also PREEXISTING
    uint64_t preexisting_bytes;   // size of these blocks
    uint64_t order_repaired;      // events moved from the place of their stamps
    uint64_t order_ambiguous;     // events whose place could not be proved
    uint64_t dependencies;        // dependencies in the file
    uint64_t dependencies_needed; // uses by another thread, including implied dependencies
    uint64_t lost_records;        // words lost by the capture
    uint64_t usable_bytes;        // usable size of the blocks for which it was recorded
    uint64_t usable_requested_bytes; // requested size of these blocks
    uint64_t recorded_from,
        recorded_to; // stamps of the recording or slice; recorded_to 0: recorded from start to end
    uint64_t cpu_ns; // CPU time of the process since its first event; 0: unknown
    uint64_t recording_ns; // estimated part of cpu_ns spent on recording
    uint64_t calls_min_ns,
        calls_max_ns;            // bounds of the time in the allocator's functions; max 0: unknown
    uint64_t samples_at;         // offset of the frame of samples, or 0; set by the writer
    uint64_t sites_at;           // offset of the first frame of call sites, or 0
    uint64_t residency_at;       // offset of the frame of residency, or 0
    uint64_t residency_steps_at; // offset of the frame of residency steps, or 0
};

// Sample of the recorded program's memory, taken by the recorder. `anon_bytes` is anonymous memory:
// heap, stacks and the program's writable data, without files and shared memory.
struct workload_sample {
    uint64_t stamp, rss_bytes, anon_bytes;
};

// Assumed page size, which is not recorded.
enum { WORKLOAD_PAGE_BYTES = 4096, WORKLOAD_PAGE_KIB = WORKLOAD_PAGE_BYTES >> 10 };

// Memory used by a block of HT_BIG_BYTES or more, between the op that allocated or resized the
// block and the next one that resized or freed it. Counts pages that belong to the block alone, in
// KiB. If the first of them is used, each figure includes the block's part of the preceding page,
// which is less than a page.
struct workload_residency {
    uint64_t op; // number in its thread
    uint32_t thread;
    uint32_t used;     // known to be used; for calloc: pages that are not all zero
    uint32_t resident; // upper bound, except for calloc'ed blocks
    uint32_t front;    // used without a gap from the start of the block
};

// Memory used by such a block at a moment, in KiB.
struct workload_residency_step {
    uint64_t op, stamp;
    uint32_t thread, used;
};

void workload_header_release(struct workload_header *h);

#endif
