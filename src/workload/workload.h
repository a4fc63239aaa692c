// Workload, format version 1: ops in total order, without addresses, ready for replay. Layout:
// docs/reference/workload-format.md.
//
// A slot is the number of a live block, and is reused after the block is freed. A frame of ops
// contains a window of the total order, as one run of ops for each thread.
#pragma once

#include "trace/event/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORKLOAD_VERSION = 1 };

// A dependency: op number `op` of `thread` must finish before the dependent op starts. The ops of a
// thread are numbered from 0.
struct workload_dependency {
    uint32_t thread;
    uint64_t op;
};

enum {
    // The op has no block, for example free(NULL) or a malloc that failed.
    WORKLOAD_NO_SLOT = 0xffffffff,

    WORKLOAD_FAILED = 1,    // flag: the recorded call failed with `error`; no block was allocated
    WORKLOAD_FROM_NULL = 2, // flag: realloc(NULL, n), which allocates `slot` and frees nothing
    WORKLOAD_FREED = 4,     // flag: realloc(p, 0), which freed `slot` and returned NULL
    WORKLOAD_MOVED = 8,     // flag: the recorded realloc returned another address
    WORKLOAD_SIZE_UNKNOWN = 16, // flag: a preexisting block of unknown size
};

// A call of the malloc API, a thread event or a mark.
struct workload_op {
    uint64_t stamp; // in units of the header's clock, never decreasing within a thread
    uint64_t size;  // as in struct event
    uint64_t count;
    uint64_t align;
    // For THREAD_CREATE, the number of the new thread. For PREEXISTING, the kind of the allocating
    // call (0 if unknown) plus 256 times the call site number. For other ALLOC kinds and RESIZE,
    // the call site number. Call site number 0 means unknown.
    uint64_t value;
    uint32_t slot; // block that is allocated, freed or resized; a realloc keeps its slot
    uint32_t n_dependencies;
    const struct workload_dependency *dependencies; // borrowed
    const char *text; // text of a MARK or THREAD_START; not terminated; borrowed
    uint32_t text_bytes;
    uint8_t kind; // enum event_kind
    uint8_t flags;
    uint8_t error;
    // Allocator of the called function (event_allocator), for classes ALLOC, FREE and RESIZE. 0 for
    // the process's malloc, and for calls that failed.
    uint8_t allocator;
};

// An op and its thread, for arrays in total order.
struct workload_thread_op {
    struct workload_op op;
    uint32_t thread;
};

// An op that allocates or frees one block. The op has no dependencies, and no field except the
// block's size. The count of a calloc is 1, and a realloc is WORKLOAD_FROM_NULL. Conversion
// produces nearly all ops in this form.
struct workload_simple {
    uint64_t stamp;
    uint32_t slot, size; // `size` is 0 if the kind has no size
    uint8_t kind;
    bool allocates;
};

// Returns the op in the general form.
static inline struct workload_op workload_simple_op(const struct workload_simple *from)
{
    return (struct workload_op){.stamp = from->stamp,
                                .size = from->size,
                                .count = from->kind == HT_CALLOC,
                                .slot = from->slot,
                                .kind = from->kind,
                                .flags = from->kind == HT_REALLOC ? WORKLOAD_FROM_NULL : 0};
}

// Consecutive ops of one thread.
struct workload_run {
    uint32_t thread;
    uint64_t first_op; // number of ops[0] in its thread
    size_t n_ops;
    const struct workload_op *ops;
};

// Header contents. Strings are owned; release with workload_header_release.
struct workload_header {
    uint64_t clock_hz;    // ticks per second
    unsigned stamp_shift; // a stamp is 2^stamp_shift ticks
    bool has_stamps;
    uint64_t start_stamp; // stamp at which the recorded process started
    uint32_t pid;
    uint32_t forked_from; // pid of the process from which this process inherited blocks, or 0
    char *exe, *allocator, *allocator_build_id;
    char *heaptape; // version of heaptape that wrote the file, or NULL; writers ignore this member
    char *argv;     // each argument is terminated by NUL
    uint32_t argv_bytes;
    // Call sites are sampled once per this many allocated bytes. 0 if they are not sampled.
    uint64_t stack_sample_bytes;
};

// Summary contents.
struct workload_summary {
    uint64_t events; // number of ops that count as events
    uint64_t by_kind[HT_KIND_LIMIT];
    uint64_t threads;
    uint64_t slots; // highest slot plus 1
    uint64_t first_stamp, last_stamp;
    uint64_t requested_bytes;
    uint64_t peak_live_bytes, live_at_end_bytes, live_at_end_blocks;
    // Number of blocks freed or resized by a thread other than the allocating thread.
    uint64_t remote_frees;
    // Frees whose allocation was not recorded. Their blocks are PREEXISTING in the workload.
    uint64_t unmatched_frees;
    // Blocks that were live at the start and whose allocation was recorded. Their ops are
    // PREEXISTING as well.
    uint64_t preexisting_blocks;
    uint64_t preexisting_bytes; // total size of the preexisting blocks
    // Number of events whose position differs from the order of their timestamps.
    uint64_t order_repaired;
    uint64_t order_ambiguous; // number of events whose position could not be proved
    uint64_t dependencies;    // number of dependencies in the file
    // Number of uses of a block whose last use was by another thread, including uses whose
    // dependency is implied.
    uint64_t dependencies_needed;
    uint64_t lost_records; // number of words lost during capture
    // Total usable size of the blocks whose usable size was recorded.
    uint64_t usable_bytes;
    uint64_t usable_requested_bytes; // total requested size of these blocks
    uint64_t recorded_from,
        recorded_to;       // recorded interval, in stamps; recorded_to is 0 if all was recorded
    uint64_t cpu_ns;       // CPU time of the process since its first event, or 0 if unknown
    uint64_t recording_ns; // estimated part of cpu_ns that was spent on recording
    uint64_t calls_min_ns,
        calls_max_ns; // bounds on the time in allocator functions; calls_max_ns is 0 if unknown
    // Resident memory that the recording uses in the process, or 0 if unknown. The samples include
    // this memory.
    uint64_t recording_rss_bytes;
    uint64_t libraries; // libraries of the process, as in trace/libraries.h; 0 if none or unknown
    uint64_t cxx_bytes; // above 0 if an older workload notes the C++ library
    // Peak RSS of the process, as the kernel counts it, or 0 if unknown. Includes the memory of the
    // recording.
    uint64_t peak_rss_bytes;
    // Stamps may be earlier than their events. About early_events stamps are early by up to
    // early_max_ns, and all others by up to early_usual_ns. If no stamp is early, all three members
    // are 0.
    uint64_t early_events, early_max_ns, early_usual_ns;
    uint64_t samples_at;         // offset of the samples frame, or 0; the writer sets the offsets
    uint64_t sites_at;           // offset of the first call sites frame, or 0
    uint64_t residency_at;       // offset of the residency frame, or 0
    uint64_t residency_steps_at; // offset of the residency steps frame, or 0
};

// Sample of the program's memory, taken by the recorder. `anon_bytes` is anonymous memory: the
// heap, stacks and the program's writable data, but not files or shared memory.
struct workload_sample {
    uint64_t stamp, rss_bytes, anon_bytes;
};

// Assumed page size. The actual page size is not recorded.
enum { WORKLOAD_PAGE_BYTES = 4096, WORKLOAD_PAGE_KIB = WORKLOAD_PAGE_BYTES >> 10 };

// Memory used by a block of HT_BIG_BYTES or more, from the op that allocated or resized the block
// to the next op that resized or freed it. Sizes are in KiB and count only pages that belong
// entirely to the block. If the block's first whole page is used, each figure also includes the
// part of the block before that page.
struct workload_residency {
    uint64_t op; // number of the op within its thread
    uint32_t thread;
    uint32_t used;     // KiB known to be used; for calloc, of pages that are not all zeros
    uint32_t resident; // an upper bound on the resident KiB, except for blocks from calloc
    uint32_t front;    // KiB used contiguously from the start of the block
};

// Memory used by a block of HT_BIG_BYTES or more at one point in time, in KiB.
struct workload_residency_step {
    uint64_t op, stamp;
    uint32_t thread, used;
};

void workload_header_release(struct workload_header *h);
