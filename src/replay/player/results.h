// The shared memory through which heaptape gives the player its task and the player returns its results. Both are of
// one build; the magic detects a player of another one.
#ifndef HEAPTAPE_PLAYER_RESULTS_H
#define HEAPTAPE_PLAYER_RESULTS_H

#include "replay/player/figures_table.h"
#include "replay/player/histogram.h"
#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdint.h>

#define RESULTS_MAGIC 0x35736c7370747448ull

enum {
    RESULTS_PLAN_FD = 3, // descriptors that are open when the player starts
    RESULTS_FD = 4,
    RESULTS_STREAM_FD = 5,  // of a streamed plan
    RESULTS_LIBRARY_FD = 6, // of the allocator, if LD_PRELOAD cannot hold its path
    RESULTS_PATH_BYTES = 4096,
    RESULTS_VERSION_BYTES = 128,
    RESULTS_NAME_BYTES = 64,
    RESULTS_KINDS = 128,     // as PLAN_OP_LIMIT
    RESULTS_BINS = 48,       // jemalloc has 36 to 39
    RESULTS_SIZES = 38,      // size classes: up to 8 bytes, 16, 32, …, and all from 512 GiB on
    RESULTS_SNAPSHOT_OP = 0, // taken at a SNAPSHOT op, and when all threads have exited
    RESULTS_SNAPSHOT_END = 1,
    RESULTS_SNAPSHOTS = 2,
    RESULTS_HISTOGRAMS = RESULTS_KINDS + RESULTS_SIZES,
};

enum results_touch {
    RESULTS_TOUCH_PAGE,
    RESULTS_TOUCH_NONE,
    RESULTS_TOUCH_ALL,
    RESULTS_TOUCH_USABLE, // as NONE, but malloc_usable_size is called for each block
    RESULTS_TOUCH_VERIFY, // a pattern everywhere, which is checked later: see verify.c
};

// How an allocator violated the malloc contract.
enum results_violation {
    RESULTS_OVERLAP,      // returned memory of a live block, which `other_*` name
    RESULTS_MISALIGNED,   // failed_at is the address, failed_wanted the alignment
    RESULTS_TOO_SMALL,    // failed_at is the result of malloc_usable_size
    RESULTS_NOT_ZEROED,   // calloc; failed_at is the first such byte
    RESULTS_LOST_CONTENT, // realloc; failed_at is the first byte that changed
    RESULTS_OVERWRITTEN, // failed_at is the first byte that changed in the block which `other_*` allocated
    RESULTS_UNUSABLE, // failed_at is the address of a block that `other_*` allocated, failed_wanted that of a byte of
                      // it that cannot be read or written, failed_errno the si_code of the signal
};

// How far the player got, or why it stopped; the `failed_*` fields say where.
enum results_status {
    RESULTS_NOTHING = 0,     // it did not start
    RESULTS_STARTED,         // it entered main
    RESULTS_PLAYING,         // the measured part runs
    RESULTS_DONE,            // all results are complete
    RESULTS_WRONG_ALLOCATOR, // malloc belongs to found_library
    RESULTS_MIXED_ALLOCATOR, // malloc is the allocator's, but the function of failed_kind belongs to found_library
    RESULTS_NO_FUNCTION,   // the allocator has no function for failed_kind
    RESULTS_NO_SETUP,      // failed_errno: the player could not map its own memory
    RESULTS_OUT_OF_MEMORY, // failed_kind of failed_size bytes returned NULL
    RESULTS_NO_THREAD,     // failed_errno: thread failed_size could not be started
    RESULTS_STREAM_ENDED,  // the decoder of the streamed plan failed
    RESULTS_VIOLATION,     // failed_violation of failed_kind of failed_size bytes
    RESULTS_NO_FIGURES,    // failed_errno: /proc/self/statm can no longer be read
};

// The size class: 0 up to 8 bytes, n up to 8 << n.
static inline unsigned results_size_class(uint64_t size)
{
    if (size <= 8)
        return 0;
    unsigned class = 61 - (unsigned)__builtin_clzll(size - 1);
    return class < RESULTS_SIZES ? class : RESULTS_SIZES - 1;
}

#define RESULTS_UNKNOWN UINT64_MAX // of a figure, or of what an allocator does not report

// The figures that the player measures, by origin PLAYER and RSS of the table; the other members stay 0.
struct results_figures {
#define HT_X(name, unit, origin, summary, group, shown, ratio, better, label, meaning)             \
    uint64_t name;
    HT_FIGURES(HT_X)
#undef HT_X
};

struct results_sample {
    uint64_t event;         // calls before it, of all threads
    uint64_t ns;            // since the start
    uint64_t rss_bytes;     // private resident memory, less the player's own
    uint64_t virtual_bytes; // without the baseline
    uint64_t live_bytes;
};

// Blocks of one size, which an allocator cuts out of pages for them alone.
struct results_bin {
    uint64_t block_bytes;  // 0: there are no more bins
    uint64_t unused_bytes; // of free blocks in pages that are in use
};

// The allocator's own statistics; RESULTS_UNKNOWN what it does not report.
struct results_stats {
    uint64_t event, ns, rss_bytes, live_bytes; // as in struct results_sample
    uint64_t mapped_bytes;                     // obtained from the kernel
    uint64_t allocated_bytes;                  // in live blocks, as the allocator counts them
    uint64_t active_bytes;                     // in pages with live blocks
    uint64_t metadata_bytes;                   // of the allocator's bookkeeping
    uint64_t resident_bytes;                   // physically resident, as the allocator counts them
    uint64_t retained_bytes;                   // of address space kept without memory behind it
    uint64_t dirty_bytes;      // in unused pages that are not returned to the kernel
    uint64_t bin_unused_bytes; // free blocks in pages (slabs, spans) and caches that are in use
    struct results_bin bins[RESULTS_BINS]; // of jemalloc
};

// The lifetime of a thread of the replay.
struct results_span {
    uint64_t begin_ns, end_ns; // since the start
    uint64_t begin_event,
        end_event; // calls before it, of all threads, as of their last SAMPLE or COUNT
};

// What a thread is at, for heaptape to read while it replays; on a cache line of its own. The last one is of what the
// main thread does before and after the threads.
struct results_position {
    _Atomic uint64_t pc; // address of the word after the first one of the op; 0: not started
    uint64_t base;       // to add to the number of that word: see player_position()
    uint64_t reserved[6];
};

struct results {
    uint64_t magic;

    // The task, written by heaptape.
    uint32_t touch; // enum results_touch
    uint32_t timed; // 1: time each call
    uint32_t clock; // enum clock_kind to time with
    uint32_t probe; // 1: there is no plan; only find the allocator in use and its version
    uint64_t plan_at, plan_bytes; // of the plan in its file
    uint32_t paced;               // 1: execute the plan's PACE ops
    uint32_t coupled;             // 1: execute the plan's COUPLE ops
    uint64_t
        idle_wait_ns; // after all blocks are freed, idle so long and measure RSS again; 0: do not
    uint64_t spin_ticks;               // a blocked wait spins so long before it sleeps
    uint64_t library_dev, library_ino; // of the allocator asked for; both 0: libc itself
    uint32_t stats;                    // 1: execute the plan's STATS ops
    uint32_t trim_step;                // execute every so many-th of the plan's TRIM ops; 0: none
    uint64_t max_samples,
        max_stats;    // lengths of the arrays behind this struct: samples, then statistics,
    uint64_t n_spans; // then the spans of the plan's threads,
    uint64_t
        snapshot_entries; // then RESULTS_SNAPSHOTS copies of a slot table of so many entries, and
                          // n_spans + 1 positions

    // The results, written by the player.
    _Atomic uint32_t status;  // enum results_status
    _Atomic uint32_t failing; // 1: a thread is writing the reason
    _Atomic uint32_t idle;    // 1: it waits for idle_wait_ns to pass
    _Atomic uint64_t words;   // address of word 0 of the plan in the player
    _Atomic uint32_t refused; // 1: one thread has written the call that was refused first
    uint32_t refused_kind;    // of it
    uint64_t refused_size, refused_alignment;
    uint32_t failed_thread, failed_kind, failed_errno;
    uint64_t failed_position; // word number in the plan
    uint64_t failed_size;
    uint64_t live_threads;     // with RESULTS_NO_THREAD
    uint32_t failed_violation; // enum results_violation
    uint32_t other_thread;     // UINT32_MAX: the block existed before the start
    uint64_t other_position, failed_at, failed_wanted;
    char found_library[RESULTS_PATH_BYTES];
    char version[RESULTS_VERSION_BYTES]; // as the allocator reports it, "": unknown
    struct results_figures figures;
    uint64_t calls_made;     // of all streams: plan_facts.calls if all ops of the plan were played
    uint32_t counters_errno; // why some hardware counters are RESULTS_UNKNOWN
    uint32_t counters_with_kernel; // 1: they include the work of the kernel
    uint64_t checked_blocks;       // with RESULTS_TOUCH_VERIFY: blocks found correct
    uint64_t requested_bytes,
        usable_bytes; // of all blocks, with RESULTS_TOUCH_USABLE; usable 0: not known
    char trim_function[RESULTS_NAME_BYTES]; // called by TRIM, "": none
    _Atomic uint64_t n_samples, n_stats;
    // Latencies in ticks: by kind of call, then by size class of those with a size.
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

// The copies of the slot table: entry i of RESULTS_SNAPSHOT_* n is number n * snapshot_entries + i.
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

#endif
