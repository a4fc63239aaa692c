// Shared memory through which heaptape passes the task to the player and the player returns its
// results. Both programs must be from the same build; the magic number detects a mismatch.
#pragma once

#include "replay/player/figures_table.h"
#include "replay/player/histogram.h"
#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdint.h>

#define RESULTS_MAGIC 0x36736c7370747448ull

enum {
    RESULTS_PLAN_FD = 3, // descriptors that are open in the player
    RESULTS_FD = 4,
    RESULTS_STREAM_FD = 5,  // only for streamed plans
    RESULTS_LIBRARY_FD = 6, // the allocator's library, if LD_PRELOAD cannot contain its path
    RESULTS_PATH_BYTES = 4096,
    RESULTS_VERSION_BYTES = 128,
    RESULTS_NAME_BYTES = 64,
    RESULTS_KINDS = 128, // same as PLAN_OP_LIMIT
    RESULTS_BINS = 48,   // jemalloc has 36 to 39 bins
    RESULTS_SIZES = 38, // size classes: up to 8 bytes, 16, 32, …; the last class starts at 512 GiB
    RESULTS_SNAPSHOT_OP = 0, // one copy is made by a SNAPSHOT op, the other after all threads exit
    RESULTS_SNAPSHOT_END = 1,
    RESULTS_SNAPSHOTS = 2,
    RESULTS_HISTOGRAMS = RESULTS_KINDS + RESULTS_SIZES,
};

enum results_touch {
    RESULTS_TOUCH_PAGE,
    RESULTS_TOUCH_NONE,
    RESULTS_TOUCH_ALL,
    RESULTS_TOUCH_USABLE, // like NONE, but also calls malloc_usable_size for each block
    RESULTS_TOUCH_VERIFY, // fill blocks with patterns and check them; see verify.c
};

// Violation of the malloc contract by an allocator.
enum results_violation {
    RESULTS_OVERLAP,      // returned memory of the live block described by `other_*`
    RESULTS_MISALIGNED,   // failed_at: the address; failed_wanted: the required alignment
    RESULTS_TOO_SMALL,    // failed_at: result of malloc_usable_size
    RESULTS_NOT_ZEROED,   // calloc; failed_at: first nonzero byte
    RESULTS_LOST_CONTENT, // realloc; failed_at: first byte that changed
    // failed_at: first byte that changed in a block allocated by `other_*`.
    RESULTS_OVERWRITTEN,
    // failed_at: address of a block allocated by `other_*`. failed_wanted: address of its first
    // inaccessible byte. failed_errno: the signal's si_code.
    RESULTS_UNUSABLE,
    // failed_at, failed_wanted: results of malloc_usable_size for the new block and for the live
    // block described by `other_*`. Only these sizes overlap, not the requested sizes.
    RESULTS_USABLE_OVERLAP,
};

// The progress of the player, or the reason why it stopped. Details are in `failed_*`.
enum results_status {
    RESULTS_NOTHING = 0,     // the player has not started
    RESULTS_STARTED,         // the player has entered main
    RESULTS_PLAYING,         // the measured part is running
    RESULTS_DONE,            // all results are complete
    RESULTS_WRONG_ALLOCATOR, // malloc belongs to found_library
    // The function for failed_kind belongs to found_library, but malloc does not.
    RESULTS_MIXED_ALLOCATOR,
    RESULTS_NO_FUNCTION,   // the allocator has no function for failed_kind
    RESULTS_NO_SETUP,      // the player could not map its own memory; see failed_errno
    RESULTS_OUT_OF_MEMORY, // a call of failed_kind for failed_size bytes returned NULL
    RESULTS_NO_THREAD,     // thread failed_size could not be started; see failed_errno
    RESULTS_STREAM_ENDED,  // the decoder of the streamed plan failed
    RESULTS_VIOLATION, // violation failed_violation by a call of failed_kind with failed_size bytes
    RESULTS_NO_FIGURES, // /proc/self/statm became unreadable; see failed_errno
};

// Returns the size class: 0 for up to 8 bytes, and n for up to 8 << n bytes.
static inline unsigned results_size_class(uint64_t size)
{
    if (size <= 8)
        return 0;
    unsigned class = 61 - (unsigned)__builtin_clzll(size - 1);
    return class < RESULTS_SIZES ? class : RESULTS_SIZES - 1;
}

// Value that was not measured or that the allocator does not report.
#define RESULTS_UNKNOWN UINT64_MAX

// Figures of origin PLAYER. The other members stay 0.
struct results_figures {
#define HT_X(name, unit, origin, summary, group, shown, ratio, better, label, meaning)             \
    uint64_t name;
    HT_FIGURES(HT_X)
#undef HT_X
};

struct results_sample {
    uint64_t event;         // number of calls before the sample, in all threads
    uint64_t ns;            // time since the start
    uint64_t rss_bytes;     // private resident memory excluding the player's own
    uint64_t virtual_bytes; // excludes the baseline
    uint64_t live_bytes;
};

// Free memory in the allocator's pages for blocks of one size.
struct results_bin {
    uint64_t block_bytes;  // 0 at the end of the bins
    uint64_t unused_bytes; // bytes of free blocks in pages that are in use
};

// The allocator's own statistics. A value is RESULTS_UNKNOWN if it is not reported.
struct results_stats {
    uint64_t event, ns, rss_bytes, live_bytes; // as in struct results_sample
    uint64_t mapped_bytes;                     // bytes obtained from the kernel
    uint64_t allocated_bytes;                  // bytes in live blocks, as counted by the allocator
    uint64_t active_bytes;                     // bytes in pages with live blocks
    uint64_t metadata_bytes;                   // bytes of the allocator's bookkeeping
    uint64_t resident_bytes; // physically resident bytes, as counted by the allocator
    uint64_t retained_bytes; // address space kept without physical memory
    uint64_t dirty_bytes;    // bytes of unused pages not returned to the kernel
    // Bytes of free blocks in caches, and in pages (slabs, spans) that are in use.
    uint64_t bin_unused_bytes;
    struct results_bin bins[RESULTS_BINS]; // jemalloc only
};

// Lifetime of a thread in the replay.
struct results_span {
    uint64_t begin_ns, end_ns; // times since the start
    // Number of calls in all threads before begin and end. Includes calls only up to each thread's
    // last SAMPLE or COUNT.
    uint64_t begin_event, end_event;
};

// A thread's current op, for heaptape's watchdog. Fills a cache line. The last position is for the
// main thread before and after the threads run.
struct results_position {
    _Atomic uint64_t pc; // address of the word after the first word of the op; 0 before the start
    uint64_t base;       // offset that is added to the number of that word; see player_position()
    uint64_t reserved[6];
};

// How to play the plan.
struct results_task {
    uint32_t touch; // enum results_touch
    // Flags, 0 or 1.
    uint32_t timed;     // time each call, which slows down the run
    uint32_t stats;     // read the allocator's own statistics at STATS ops
    uint32_t paced;     // keep the pace of the plan: execute PACE ops
    uint32_t coupled;   // keep threads as close together as when recorded: execute COUPLE ops
    uint32_t trim_step; // execute every n-th TRIM op, or none if 0
    // If calls are timed: CPU time of the program between two calls (mean), or 0 to leave caches as
    // warm as they are in the replay; and the rest of the recorded time per call.
    uint64_t gap_ns, other_ns;
    uint64_t libraries; // libraries of the recorded program, as in trace/libraries.h
    // Measure memory again this long after everything has been freed. If 0, do not measure again.
    uint64_t idle_wait_ns;
};

// Results besides the figures and the arrays.
struct results_report {
    uint32_t refused_kind; // first call that was refused
    uint64_t refused_size, refused_alignment;
    uint32_t counters_errno;       // why a hardware counter is RESULTS_UNKNOWN
    uint32_t counters_with_kernel; // 1 if counters include the kernel's work
    uint64_t checked_blocks;       // number of blocks found correct, with RESULTS_TOUCH_VERIFY
    // Sums over all blocks, with RESULTS_TOUCH_USABLE. usable_bytes is 0 if unknown.
    uint64_t requested_bytes, usable_bytes;
    char version[RESULTS_VERSION_BYTES];    // as reported by the allocator; "" if unknown
    char trim_function[RESULTS_NAME_BYTES]; // function that TRIM ops call, or ""
};

struct results {
    uint64_t magic;

    // Written by heaptape.
    struct results_task task;
    uint32_t clock;               // enum clock_kind, used for times
    uint32_t probe;               // 1 to only find the allocator and its version, without a plan
    uint64_t plan_at, plan_bytes; // location of the plan in its file
    uint64_t spin_ticks;          // time for which a blocked wait spins before sleeping
    uint64_t library_dev, library_ino; // identify the allocator's library; both are 0 for libc
    // Sizes of the arrays that follow this struct: samples, statistics, spans of the plan's
    // threads, RESULTS_SNAPSHOTS copies of the slot table, n_spans + 1 positions.
    uint64_t max_samples, max_stats;
    uint64_t n_spans;
    uint64_t snapshot_entries;

    // The results, written by the player.
    _Atomic uint32_t status;  // enum results_status
    _Atomic uint32_t failing; // 1 while a thread is writing the reason for a failure
    _Atomic uint32_t idle;    // 1 while the player is sleeping for idle_wait_ns
    _Atomic uint64_t words;   // address of the plan's word 0 within the player
    _Atomic uint32_t refused; // 1 if the report describes a call that was refused
    uint32_t failed_thread, failed_kind, failed_errno;
    uint64_t failed_position; // word number in the plan
    uint64_t failed_size;
    uint64_t live_threads;     // only with RESULTS_NO_THREAD
    uint32_t failed_violation; // enum results_violation
    uint32_t other_thread;     // UINT32_MAX for a preexisting block
    uint64_t other_position, failed_at, failed_wanted;
    char found_library[RESULTS_PATH_BYTES];
    struct results_figures figures;
    struct results_report report;
    // Number of calls in all streams; equals plan_facts.calls if all ops were played.
    uint64_t calls_made;
    _Atomic uint64_t n_samples, n_stats;
    // Latencies in ticks, first by kind of call, then by size class.
    struct histogram calls[RESULTS_HISTOGRAMS];
    struct results_sample samples[];
};

static inline struct results_stats *results_all_stats(struct results *r)
{
    return (struct results_stats *)(r->samples + r->max_samples);
}

static inline struct results_span *results_spans(struct results *r)
{
    return (struct results_span *)(results_all_stats(r) + r->max_stats);
}

// Returns the copies of the slot table. Entry i of copy n is at index n * snapshot_entries + i.
static inline uint64_t *results_snapshots(struct results *r)
{
    return (uint64_t *)(results_spans(r) + r->n_spans);
}

static inline struct results_position *results_positions(struct results *r)
{
    uintptr_t end = (uintptr_t)(results_snapshots(r) + RESULTS_SNAPSHOTS * r->snapshot_entries);
    return (struct results_position *)((end + sizeof(struct results_position) - 1) /
                                       sizeof(struct results_position) *
                                       sizeof(struct results_position));
}
