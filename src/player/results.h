// The shared memory through which heaptape tells the player what to do and the player says what came of it. Both are
// of one build; the magic catches a player of another one.
#ifndef HEAPTAPE_PLAYER_RESULTS_H
#define HEAPTAPE_PLAYER_RESULTS_H

#include "event/event.h"
#include "player/figures_table.h"
#include "player/histogram.h"

#include <stdatomic.h>
#include <stdint.h>

#define RESULTS_MAGIC 0x32736c7370747448ull

enum {
    RESULTS_PLAN_FD = 3, // descriptors that the player finds open
    RESULTS_FD = 4,
    RESULTS_FEED_FD = 5, // of a plan that is fed
    RESULTS_PATH_BYTES = 4096,
    RESULTS_VERSION_BYTES = 128,
    RESULTS_NAME_BYTES = 64,
    RESULTS_KINDS = 128,   // as PLAN_OP_LIMIT
    RESULTS_SIZES = 38,    // classes of sizes: up to 8 bytes, 16, 32, …, and all from 512 GiB on
    RESULTS_HOLD_HERE = 0, // where a HOLD stands, and when all threads are gone
    RESULTS_HOLD_END = 1,
    RESULTS_HOLDS = 2,
    RESULTS_HISTOGRAMS = RESULTS_KINDS + RESULTS_SIZES,
};

enum results_touch {
    RESULTS_TOUCH_PAGE,
    RESULTS_TOUCH_NONE,
    RESULTS_TOUCH_ALL,
    RESULTS_TOUCH_USABLE,  // none, but malloc_usable_size is asked of each block
    RESULTS_TOUCH_CHECKED, // a pattern everywhere, which is looked at later: see player_verify.c
};

// What an allocator did that none may do.
enum results_violation {
    RESULTS_OVERLAP,      // memory of a live block was given out; `other_*` say which
    RESULTS_MISALIGNED,   // failed_at is the address, failed_wanted the alignment
    RESULTS_TOO_SMALL,    // failed_at is what malloc_usable_size says
    RESULTS_NOT_ZEROED,   // calloc; failed_at is the first such byte
    RESULTS_LOST_CONTENT, // realloc; failed_at is the first byte that is not what it was
    RESULTS_OVERWRITTEN,  // of the block that `other_*` took failed_at is the first byte that is not what was written
};

// How far the player came, or why it stopped. `failed_*` of struct results say where.
enum results_status {
    RESULTS_NOTHING = 0,     // it did not even start
    RESULTS_STARTED,         // it came into main
    RESULTS_PLAYING,         // the clock runs
    RESULTS_DONE,            // all figures are there
    RESULTS_WRONG_ALLOCATOR, // malloc is found_library's
    RESULTS_MIXED_ALLOCATOR, // failed_kind's function is found_library's, which malloc is not
    RESULTS_NO_FUNCTION,     // the allocator has nothing that does failed_kind
    RESULTS_NO_SETUP,        // failed_errno: the player could not map what it needs
    RESULTS_OUT_OF_MEMORY,   // failed_kind of failed_size bytes gave NULL
    RESULTS_NO_THREAD,       // failed_errno: thread failed_size could not be started
    RESULTS_NO_MORE,         // the plan that is fed broke off
    RESULTS_VIOLATION,       // failed_violation of failed_kind of failed_size bytes
};

// The class of a size: 0 up to 8 bytes, n up to 8 << n.
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
#define HT_X(name, unit, origin, summary, group, shown, ratio, better, label, meaning) uint64_t name;
    HT_FIGURES(HT_X)
#undef HT_X
};

struct results_sample {
    uint64_t event;     // calls made before, of all threads
    uint64_t ns;        // since the start
    uint64_t rss_bytes; // private resident memory of the whole player: the baseline is still in it
    uint64_t live_bytes;
};

// What the allocator says of its memory; RESULTS_UNKNOWN what it does not say.
struct results_stats {
    uint64_t event, ns, rss_bytes, live_bytes; // as struct results_sample has them
    uint64_t mapped_bytes;                     // got from the kernel
    uint64_t allocated_bytes;                  // in blocks that are live, as it sees them
    uint64_t active_bytes, resident_bytes;     // jemalloc's words
};

// When a thread of the replay was there.
struct results_span {
    uint64_t begin_ns, end_ns;       // since the start
    uint64_t begin_event, end_event; // calls made before, of all threads, as of their latest look
};

struct results {
    uint64_t magic;

    // What to do. By heaptape.
    uint32_t touch;                    // enum results_touch
    uint32_t timed;                    // 1: time each call
    uint32_t clock;                    // enum clock_kind for that
    uint32_t probe;                    // 1: there is no plan; only find out which allocator is in use
    uint32_t paced;                    // 1: heed the plan's PACE ops
    uint64_t idle_wait_ns;             // when all is given up, wait so long and look at memory again; 0: do not
    uint64_t spin_ticks;               // how long an unmet wait spins before it sleeps
    uint64_t library_dev, library_ino; // of the allocator asked for; both 0: libc itself
    uint32_t stats;                    // 1: heed the plan's STATS ops
    uint64_t max_samples, max_stats;   // entries of samples, and of the statistics behind them
    uint64_t n_spans;                  // entries behind these: the plan's threads
    uint64_t n_holds;                  // and behind these twice so many: the plan's places, if they are asked for

    // What came of it. By the player.
    _Atomic uint32_t status;  // enum results_status
    _Atomic uint32_t failing; // 1: a thread is writing why
    uint32_t failed_thread, failed_kind, failed_errno;
    uint64_t failed_position; // word number in the plan
    uint64_t failed_size;
    uint32_t failed_violation; // enum results_violation
    uint32_t other_thread;     // UINT32_MAX: the block was there before the start
    uint64_t other_position, failed_at, failed_wanted;
    char found_library[RESULTS_PATH_BYTES];
    char version[RESULTS_VERSION_BYTES]; // what the allocator says of itself
    struct results_figures figures;
    uint32_t counters_errno;                // why some of the CPU's counters are RESULTS_UNKNOWN
    uint32_t counters_with_kernel;          // 1: they include what the kernel did
    uint64_t checked_blocks;                // of RESULTS_TOUCH_CHECKED: taken and found right
    uint64_t requested_bytes, usable_bytes; // of all blocks taken, with RESULTS_TOUCH_USABLE; 0 usable: not known
    char trim_function[RESULTS_NAME_BYTES]; // what TRIM calls, "": nothing
    _Atomic uint64_t n_samples, n_stats;
    // In ticks: by kind, and then of those that ask for a size by size class.
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

// What the player's table of blocks held: entry i of RESULTS_HOLD_* h is number h * n_holds + i.
static inline uint64_t *results_holds(struct results *r)
{
    return (uint64_t *)(results_spans(r) + r->n_spans);
}

#endif
