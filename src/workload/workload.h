// The workload, format version 1: ordered, pointer-free, ready to replay. The contract is
// docs/reference/workload-format.md.
#ifndef HEAPTAPE_WORKLOAD_WORKLOAD_H
#define HEAPTAPE_WORKLOAD_WORKLOAD_H

#include "trace/event/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORKLOAD_VERSION = 1 };

// An op that has to be finished first: number `op`, counted from 0, of thread `thread`.
struct workload_dependency {
    uint32_t thread;
    uint64_t op;
};

enum {
    WORKLOAD_NO_SLOT = 0xffffffff, // free(NULL), realloc(NULL, …)'s source, a failed call's result

    WORKLOAD_FAILED =
        1, // flag: the recorded call failed (`error` says how): no block was allocated
    WORKLOAD_FROM_NULL = 2, // flag: realloc(NULL, n): `slot` is allocated, nothing freed
    WORKLOAD_FREED = 4,     // flag: realloc(p, 0) that freed p and returned NULL: `slot` is freed
    WORKLOAD_MOVED =
        8, // flag: a realloc whose result stood at another address when it was recorded
    WORKLOAD_SIZE_UNKNOWN = 16, // flag: a preexisting block of which no size was recorded
};

// One op: one call of the malloc API, or a thread or mark event.
struct workload_op {
    uint64_t stamp; // units of the header's clock; never decreasing within a thread
    uint64_t size;  // as struct event
    uint64_t count;
    uint64_t align;
    // THREAD_CREATE: number of the new thread; PREEXISTING: kind of call that allocated it, 0: not known, and 256 times
    // the number of its call site; others of ALLOC, and RESIZE: number of the call site. 0: no site is known.
    uint64_t value;
    uint32_t slot; // block allocated, freed or resized in place of itself: a realloc keeps its slot
    uint32_t n_dependencies;
    const struct workload_dependency *dependencies; // to be met before the op; borrowed
    const char *text; // MARK's, THREAD_START's; not terminated; borrowed
    uint32_t text_bytes;
    uint8_t kind; // enum event_kind
    uint8_t flags;
    uint8_t error;
};

// An op and whose it is: the total order is handed on in arrays of them.
struct workload_thread_op {
    struct workload_op op;
    uint32_t thread;
};

// A run of consecutive ops of one thread.
struct workload_run {
    uint32_t thread;
    uint64_t first_op; // number of ops[0] in its thread
    size_t n_ops;
    const struct workload_op *ops;
};

// Facts of the header. Strings are owned by the holder of the struct.
struct workload_header {
    uint64_t clock_hz;    // ticks a second
    unsigned stamp_shift; // a stamp counts 2^this ticks
    bool has_stamps;
    uint64_t start_stamp; // of the recorded process
    uint32_t pid;
    uint32_t forked_from; // pid of the process whose blocks it began with; 0: there is none
    char *exe, *allocator;
    char *argv; // each argument ended by NUL
    uint32_t argv_bytes;
    uint64_t
        stack_sample_bytes; // call sites are those of one op per so many bytes allocated; 0: of all or none
};

// Facts of the summary, which stands at the end of the file.
struct workload_summary {
    uint64_t events; // counted ops
    uint64_t by_kind[HT_KIND_LIMIT];
    uint64_t threads;
    uint64_t slots; // highest slot + 1
    uint64_t first_stamp, last_stamp;
    uint64_t requested_bytes;
    uint64_t peak_live_bytes, live_at_end_bytes, live_at_end_blocks;
    uint64_t remote_frees;    // blocks that another thread than the allocating one freed or resized
    uint64_t unmatched_frees; // of blocks without a recorded allocation: they are PREEXISTING here
    uint64_t preexisting_blocks;  // live at the start, with a recorded allocation: PREEXISTING, too
    uint64_t preexisting_bytes;   // of these
    uint64_t order_repaired;      // events put into another place than that of their stamps
    uint64_t order_ambiguous;     // events whose place could not be proved
    uint64_t dependencies;        // written to the file
    uint64_t dependencies_needed; // cross-thread uses before implied ones were left out
    uint64_t lost_records;        // words that the capture lost
    uint64_t usable_bytes;        // of the blocks with a recorded usable size
    uint64_t usable_requested_bytes; // requested for these blocks
    uint64_t recorded_from,
        recorded_to;       // stamps: of the recording, or of a slice; to 0: all the process's life
    uint64_t cpu_ns;       // CPU time of the process since its first event; 0: not known
    uint64_t recording_ns; // of it, what recording took: an estimate
    uint64_t calls_min_ns,
        calls_max_ns; // … and what the allocator's functions took, as timed; max 0: not known
    uint64_t
        samples_at;    // offset of the frame of samples, 0: there is none; filled in by the writer
    uint64_t sites_at; // the same of the first frame of call sites
    uint64_t residency_at;       // the same of the frame of residency
    uint64_t residency_steps_at; // the same of the frame of its steps
};

// A sample of the recorded program's memory, taken from outside. `anon_bytes` is its heap's part: with the stacks and the
// program's own data, without its files and what it shares.
struct workload_sample {
    uint64_t stamp, rss_bytes, anon_bytes;
};

// Assumed: the page size is not recorded.
enum { WORKLOAD_PAGE_BYTES = 4096, WORKLOAD_PAGE_KIB = WORKLOAD_PAGE_BYTES >> 10 };

// How much the program used of a block of HT_BIG_BYTES or more, from the op that allocated or resized it to the
// next one that resized or freed it: of the pages that belong to the block alone, in KiB. If the first of them is used, each
// figure has the block's part of the page before it, too, which is less than a page.
struct workload_residency {
    uint64_t op; // number in its thread
    uint32_t thread;
    uint32_t used;     // known to be used: of a block from calloc, not all zero
    uint32_t resident; // at most so much, unless the block is from calloc
    uint32_t front;    // of what is used, at the block's start without a gap
};

// So much of such a block was used by then, in KiB.
struct workload_residency_step {
    uint64_t op, stamp;
    uint32_t thread, used;
};

void workload_header_release(struct workload_header *h);

#endif
