// Heap usage of a program, computed in one pass over its ops in a valid total order. Memory use
// depends only on the number of live blocks and threads.
#pragma once

#include "analysis/frequent.h"
#include "analysis/live_blocks.h"
#include "analysis/timeline.h"
#include "base/map.h"
#include "workload/workload.h"

enum {
    USAGE_CLASSES = 32,   // size classes: up to 8 bytes, 16, 32, …, and above 8 GiB
    USAGE_EXACT = 8192,   // sizes up to this limit are counted individually
    USAGE_LARGE = 51 * 4, // larger sizes are counted in four classes per power of two
    USAGE_SPANS = 48,     // lifetime classes: up to 1 event or ns, 2, 4, …
    USAGE_GROWTHS = 9,    // classes of growth factors of reallocs (usage_growth_limits)
    USAGE_ALIGNS = 32,    // classes of alignments by power of two; the last class has no limit
    // Limit on pairs of threads that free each other's blocks. Additional pairs are counted
    // together.
    USAGE_MAX_PAIRS = 1 << 14,
};

// Upper limits of the classes of growing reallocs. The limits apply to the new size divided by the
// old size. The last class has no limit.
extern const double usage_growth_limits[USAGE_GROWTHS - 1];

struct usage_kind {
    uint64_t calls, failed;
    uint64_t sized, bytes, min_bytes, max_bytes; // successful calls that have a size
};

struct usage_count {
    uint64_t blocks, bytes;
};

static inline void usage_count_block(struct usage_count *c, uint64_t bytes)
{
    c->blocks++;
    c->bytes += bytes;
}

struct usage_resizes {
    uint64_t from_null, freed, failed, same;
    struct usage_count grown_in_place, grown_moved, shrunk_in_place,
        shrunk_moved; // bytes of the smaller of the two sizes
    uint64_t growths[USAGE_GROWTHS];
};

// Sums over all processes. The size of the struct is about 140 KB.
struct usage_sums {
    struct usage_kind kinds[HT_KIND_LIMIT];
    uint64_t exact[USAGE_EXACT + 1];
    struct usage_count large[USAGE_LARGE];
    uint64_t large_rounding_bytes;                  // bytes that glibc adds to sizes in `large`
    struct frequent frequent;                       // most frequent sizes in `large`
    uint64_t lifetimes[USAGE_SPANS][USAGE_CLASSES]; // freed blocks by lifetime in events and size
    uint64_t lifetime_bytes[USAGE_SPANS];
    struct usage_count times[USAGE_SPANS]; // freed blocks by lifetime in ns
    struct usage_resizes resizes;
    struct usage_count never_freed_sizes[USAGE_CLASSES]; // blocks live at the end
    struct usage_count never_freed_ages[USAGE_SPANS];    // blocks live at the end, by age in events
    struct usage_count aligns[USAGE_ALIGNS];
    uint64_t align_padding_bytes; // padding that makes each size a multiple of its alignment
    uint64_t null_frees;
    uint64_t calloc_elements_max;
};

struct usage_thread {
    uint64_t events, allocs, allocated_bytes;
    // Blocks that this thread freed or resized. local_frees counts blocks that this thread had
    // allocated, and remote_frees counts blocks that other threads had allocated.
    uint64_t local_frees, remote_frees;
    uint64_t remotely_freed; // blocks of this thread that other threads freed
    uint64_t live_bytes;     // current live bytes
    uint32_t tid;            // 0 if unknown
    char name[16];           // the thread's latest name in the kernel, or ""
};

// Blocks allocated by thread `from` and freed or resized by thread `to`.
struct usage_pair {
    uint32_t from, to;
    struct usage_count count;
};

// Live blocks of a size class. `peak` holds the class's count at peak number `saved_at`. The count
// is saved only when the class changes, so a new peak requires no pass over all classes.
struct usage_class {
    struct usage_count live, peak;
    uint64_t saved_at;
};

// Calls that allocated, freed or resized a block of an allocator, and the allocator's live blocks.
struct usage_allocator {
    uint64_t calls;
    struct usage_class blocks;
};

struct usage_peak {
    uint64_t number; // incremented whenever the maximum increases
    uint64_t event, stamp, bytes, blocks;
};

struct usage {
    struct usage_sums *sums; // borrowed; several usages may share the sums
    uint64_t start_stamp;
    double ns_per_stamp;
    bool started;
    struct live_blocks live_blocks;
    struct usage_thread *threads;
    size_t n_threads, threads_capacity;
    struct usage_pair *pairs;
    struct map pair_of; // maps `from << 32 | to` to the index in `pairs` plus 1
    size_t n_pairs, pairs_capacity;
    struct usage_count other_pairs;
    uint64_t events, last_stamp; // last_stamp is relative to start_stamp and never decreases
    struct usage_count live;
    uint64_t max_blocks;
    struct usage_class classes[USAGE_CLASSES];
    // Indexed by allocator (event_allocator). The blocks of allocator 0 are not counted;
    // usage_of_allocator computes them.
    struct usage_allocator allocators[HT_ALLOCATORS];
    uint64_t mismatched_frees; // calls that free or resize a block of another allocator
    struct usage_peak peak;
    struct timeline by_event, by_time;
    struct timeline_counts counts;   // counts since the last bin end in either timeline
    uint64_t next_event, next_stamp; // event and stamp of the next bin ends
};

// Initializes *u. `start_stamp` is the origin of the timeline by time; if it is 0, the origin is
// the first op. If stamps are not times, set ns_per_stamp to 0.
void usage_init(struct usage *u, struct usage_sums *sums, uint64_t start_stamp,
                double ns_per_stamp);
void usage_release(struct usage *u);

// Copies a name of `n` bytes, which is not NUL-terminated. Truncates a long name.
void usage_name_thread(struct usage_thread *t, const char *name, size_t n);

// Counts ops. Returns 0 or -ENOMEM.
int usage_ops(struct usage *u, const struct workload_thread_op *ops, size_t n);

// Like usage_ops, but for consecutive ops of one thread.
int usage_run(struct usage *u, uint32_t thread, const struct workload_op *ops, size_t n);

// Closes the timelines after the last op. Returns 0 or -ENOMEM.
int usage_finish(struct usage *u);

// Returns 0 for sizes up to 8 bytes, and n for larger sizes up to 8 << n.
static inline unsigned usage_size_class(uint64_t size)
{
    unsigned class = size <= 8 ? 0 : 61 - (unsigned)__builtin_clzll(size - 1);
    return class < USAGE_CLASSES ? class : USAGE_CLASSES - 1;
}

// Returns the number of blocks whose lifetime in events belongs to span `span`.
uint64_t usage_freed_after(const struct usage_sums *s, unsigned span);

// Returns the live blocks of a size class at the peak.
struct usage_count usage_at_peak(const struct usage *u, unsigned class);

// Figures of an allocator: its calls, its live blocks at the end of the pass, and its live blocks
// when the total live bytes were at their peak.
struct usage_allocator_figures {
    uint64_t calls;
    struct usage_count live, peak;
};

// Returns the figures of an allocator. They are all 0 if the allocator was not used.
struct usage_allocator_figures usage_of_allocator(const struct usage *u, unsigned allocator);

// Returns true if the pass contained calls of an allocator other than the process's malloc.
bool usage_has_allocators(const struct usage *u);

// The largest size class of each group in timelines.
extern const unsigned usage_group_last[TIMELINE_GROUPS];
