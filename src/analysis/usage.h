// How a program uses its heap, in one pass over its ops in a valid total order. What is counted is bounded: bins, classes
// and a sketch; only live blocks and threads need more.
#ifndef HEAPTAPE_ANALYSIS_USAGE_H
#define HEAPTAPE_ANALYSIS_USAGE_H

#include "analysis/frequent.h"
#include "analysis/live_blocks.h"
#include "analysis/timeline.h"
#include "workload/workload.h"

enum {
    USAGE_CLASSES = 32,   // of sizes: up to 8 bytes, 16, 32, …, and all over 8 GiB
    USAGE_EXACT = 8192,   // sizes up to this are counted one by one,
    USAGE_LARGE = 51 * 4, // larger ones in four classes for each power of two
    USAGE_SPANS = 48,     // of lifetimes: up to 1 event, 2, 4, …; the same in nanoseconds
    USAGE_GROWTHS = 9,    // of realloc's factors, see usage_growth_limits
    USAGE_ALIGNS = 32,    // of alignments: 2^this, the last and all over it
    USAGE_MAX_PAIRS =
        1 << 14, // of threads that free each other's blocks; further ones count as one
};

// Classes of the new size over the old one of a realloc that grows a block: up to 1.125 times, … The last has no limit.
extern const double usage_growth_limits[USAGE_GROWTHS - 1];

struct usage_kind {
    uint64_t calls, failed;
    uint64_t sized, bytes, min_bytes, max_bytes; // of calls that asked for a size and got it
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
        shrunk_moved; // bytes: of the smaller size
    uint64_t growths[USAGE_GROWTHS];
};

// What adds up over processes. ~140 KB.
struct usage_sums {
    struct usage_kind kinds[HT_KIND_LIMIT];
    uint64_t exact[USAGE_EXACT + 1];
    struct usage_count large[USAGE_LARGE];
    uint64_t large_rounding_bytes;                  // that glibc would add to the sizes in `large`
    struct frequent frequent;                       // of the sizes in `large`
    uint64_t lifetimes[USAGE_SPANS][USAGE_CLASSES]; // freed blocks, by lifetime in events and size
    uint64_t lifetime_bytes[USAGE_SPANS];
    struct usage_count times[USAGE_SPANS]; // the same by lifetime in nanoseconds
    struct usage_resizes resizes;
    struct usage_count never_freed_sizes[USAGE_CLASSES]; // live at the end
    struct usage_count never_freed_ages[USAGE_SPANS]; // the same by events since their allocation
    struct usage_count aligns[USAGE_ALIGNS];
    uint64_t align_padding_bytes; // to make each size a multiple of its alignment
    uint64_t null_frees;
    uint64_t calloc_elements_max;
};

struct usage_thread {
    uint64_t events, allocs, allocated_bytes;
    uint64_t local_frees, remote_frees; // blocks that it freed or resized: its own, those of others
    uint64_t remotely_freed;            // of its blocks
    uint64_t live_bytes;                // of its blocks, now
    uint32_t tid;                       // 0: not known
    char name[16];                      // the kernel's, which it had last; "": not known
};

// Blocks that thread `from` allocated and thread `to` freed or resized.
struct usage_pair {
    uint32_t from, to;
    struct usage_count count;
};

// Live bytes and blocks of one size class. `peak` is what they were at the peak, if they changed since it (`saved_at` is
// its number): so that a new peak costs nothing.
struct usage_class {
    struct usage_count live, peak;
    uint64_t saved_at;
};

struct usage_peak {
    uint64_t number; // how many peaks before it were higher than all before them
    uint64_t event, stamp, bytes, blocks;
};

struct usage {
    struct usage_sums *sums; // borrowed, may be shared
    uint64_t start_stamp;
    double ns_per_stamp;
    bool started;
    struct live_blocks live_blocks;
    struct usage_thread *threads;
    size_t n_threads, threads_capacity;
    struct usage_pair *pairs; // a hash table; empty: count.blocks is 0
    size_t n_pairs, pairs_capacity;
    struct usage_count other_pairs;
    uint64_t events, last_stamp; // stamps never go back here
    struct usage_count live;
    uint64_t max_blocks;
    struct usage_class classes[USAGE_CLASSES];
    struct usage_peak peak;
    struct timeline by_event, by_time;
    struct timeline_counts counts;   // since either was last cut
    uint64_t next_event, next_stamp; // where one is to be cut
};

// `start_stamp` is the time 0 of the timeline by time; 0: the first op's. Stamps without meaning have ns_per_stamp 0.
void usage_init(struct usage *u, struct usage_sums *sums, uint64_t start_stamp,
                double ns_per_stamp);
void usage_release(struct usage *u);

// Of `n` bytes, which need no end; more than fit are cut off.
void usage_name_thread(struct usage_thread *t, const char *name, size_t n);

// Counts ops. 0 or -ENOMEM.
int usage_ops(struct usage *u, const struct workload_thread_op *ops, size_t n);

// The same for consecutive ops of one thread.
int usage_run(struct usage *u, uint32_t thread, const struct workload_op *ops, size_t n);

// After the last op: closes the timelines. 0 or -ENOMEM.
int usage_finish(struct usage *u);

// The class of a size: 0 up to 8 bytes, n up to 8 << n.
static inline unsigned usage_size_class(uint64_t size)
{
    unsigned class = size <= 8 ? 0 : 61 - (unsigned)__builtin_clzll(size - 1);
    return class < USAGE_CLASSES ? class : USAGE_CLASSES - 1;
}

// Blocks freed with a lifetime in events of this class.
uint64_t usage_freed_after(const struct usage_sums *s, unsigned span);

// Live bytes and blocks of a class at the peak.
struct usage_count usage_at_peak(const struct usage *u, unsigned class);

// The group of a size class in a timeline, and the largest class in it.
unsigned usage_group(unsigned class);
extern const unsigned usage_group_last[TIMELINE_GROUPS];

#endif
