// Allocations and live blocks by call site, computed in one pass over a workload's ops in a valid
// total order.
#pragma once

#include "analysis/estimate.h"
#include "analysis/site_uses.h"
#include "analysis/usage.h"
#include "base/map.h"
#include "workload/format.h"
#include "workload/slice.h"

// Limit on site numbers. Higher numbers occur only in corrupt files, and count as unknown.
enum { BY_SITE_MAX = 1 << 22 };

// Each site's live bytes are stored at the end of every bin. All bins span the same number of
// events. When all bins are in use, adjacent bins are merged. Growth is measured over eighths of
// the run.
enum { BY_SITE_BINS = 64, BY_SITE_PARTS = 8 };

// If a site frees blocks, by_site_growth_rank divides the site's growth by this number.
enum { BY_SITE_FREES_WEIGH = 4 };

struct by_site_totals {
    uint64_t calls, bytes; // number of allocations, and their requested bytes
    uint64_t peak_blocks,
        peak_bytes;                   // at the peak of the total live bytes
    uint64_t live_blocks, live_bytes; // at the end of the pass
    // Number of freed blocks. If sites are sampled, this is an estimate that includes resized
    // blocks. Otherwise, resized blocks are not included.
    uint64_t freed_blocks;
    // Number of the peak that peak_blocks and peak_bytes describe.
    uint64_t seen_peak;
    // Blocks allocated in the span that are live at the end of the span.
    uint64_t span_blocks, span_bytes;
    // Steady growth: eight times the median growth over the eighths of the run, or 0 if the site
    // shrank. A burst affects one eighth, so the median stays 0. A leak affects all eighths.
    uint64_t growth_bytes;
    // Used only if sites are sampled. by_site_finish computes the figures above from these
    // estimates, except span_blocks and span_bytes.
    struct estimate allocated, peak, live;
};

// Lifetime classes. Their upper limits are 10 µs, 1 ms, 100 ms and 10 s; the last class has no
// limit. If there are no timestamps, the limits are numbers of events: 16, 1,024, …
enum { BY_SITE_LIVES = 5 };
extern const uint64_t by_site_lives_ns[BY_SITE_LIVES - 1], by_site_lives_events[BY_SITE_LIVES - 1];

// A site's allocations in one thread and size class (usage_size_class).
struct by_site_part {
    uint32_t site, thread, size_class;
    // `peak` is the count of live blocks at the peak of the total live bytes.
    struct usage_count all, live, peak;
    struct usage_count freed[BY_SITE_LIVES];
    uint64_t seen_peak; // as in by_site_totals
};

// A site's totals up to the end of each bin.
struct by_site_flow {
    uint64_t calls[BY_SITE_BINS], bytes[BY_SITE_BINS];
};

// Blocks that were allocated between two points of the run and are still live at the second point.
// Set `from` and `to` before the first op. Times must already be converted to stamps
// (slice_point_resolve).
struct by_site_span {
    bool wanted, begun, over;
    struct slice_point from, to;
    struct usage_count all, sizes[USAGE_CLASSES];
    struct usage_count *threads;
    size_t n_threads, threads_capacity;
};

// A site's live blocks in a pool.
struct by_site_pool_part {
    uint64_t blocks, bytes;
    struct estimate live; // used only if sites are sampled
    size_t next;          // index of the pool's next part, or 0
    uint32_t site;
};

// Live blocks in the program's pools, by pool and call site. Blocks are stored by site, because a
// reset of a pool frees the blocks of all sites. Part indices start at 1.
struct by_site_pools {
    struct map part_of;  // maps a pool and a site to the index of their part
    struct map first_of; // maps a pool to the index of its newest part
    struct by_site_pool_part *parts;
    size_t n_parts, parts_capacity;
};

// An all-zero struct is empty. If call sites are sampled, set sample_bytes before the first op.
// by_site_finish then replaces the figures with estimates, and clears site 0, which counts the
// calls that were not sampled.
struct by_site {
    uint64_t sample_bytes;
    struct by_site_totals *sites; // indexed by site number; site 0 means unknown
    size_t n_sites, sites_capacity;
    struct live_blocks live; // is_marked is set if the block was allocated in the span
    uint64_t live_bytes, peak_bytes;
    uint64_t peaks; // number of times that peak_bytes has increased
    struct by_site_span span;
    bool of_pools; // set before the first op to count blocks in the program's pools
    struct by_site_pools pools;
    bool count_uses; // set before the first op to count uses; not for sampled sites
    struct site_uses uses;
    uint64_t events, next_cut; // `next_cut` is the end of the current bin
    uint64_t bin_events;       // width of a bin; 0 counts as 1
    // If set, `events`, next_cut and bin_events count stamps since the start instead of events.
    bool by_time;
    uint64_t first_event; // number of events before the first event that is counted
    size_t n_bins;
    uint64_t (*levels)[BY_SITE_BINS]; // indexed by site
    size_t n_levels, levels_capacity;
    // Set before the first op to count flows and parts. Parts are not counted if sites are sampled.
    bool detailed;
    double ns_per_stamp;        // used for lifetimes; 0 if there are no timestamps
    struct by_site_flow *flows; // n_levels entries
    size_t flows_capacity;
    struct by_site_part *parts;
    size_t n_parts, parts_capacity;
    uint32_t *parts_of; // indexed by slot: number of the block's part plus 1
    size_t n_parts_of, parts_of_capacity;
    struct map part_of; // maps a site, a thread and a size class to the number of their part plus 1
};

void by_site_release(struct by_site *b);

// Returns the site of an op that allocates, or 0 if unknown.
static inline uint32_t by_site_of(const struct workload_op *op)
{
    uint64_t site = format_op_site(op);
    return site <= BY_SITE_MAX ? (uint32_t)site : 0;
}

// The steps of by_site_op, for callers that track blocks themselves. by_site_add counts an
// allocated block; `before` is set for a preexisting block. by_site_remove counts a freed block.
// by_site_cut ends a bin. by_site_add and by_site_cut return 0 or -ENOMEM.
int by_site_add(struct by_site *b, uint32_t site, uint64_t bytes, bool before);
void by_site_remove(struct by_site *b, uint32_t site, uint64_t bytes);
int by_site_cut(struct by_site *b);

// Counts a thread's op. Returns 0 or -ENOMEM.
int by_site_op(struct by_site *b, uint32_t thread, const struct workload_op *op);

// Continues a count that began with ops without call sites. Attributes the live blocks and the peak
// in *before to site 0. Call only once, before the other functions. Returns 0 or -ENOMEM.
int by_site_begin(struct by_site *b, const struct usage *before);

// Returns true if the op has a call site.
bool by_site_known(const struct workload_op *op);

// Returns the rank of a site in a list of possible leaks. A cache grows like a leak until it is
// full. However, a program frees a cache's blocks when entries are replaced or expire, whereas it
// never frees leaked blocks. If a site frees blocks, its growth therefore has a lower weight.
static inline double by_site_growth_rank(double growth_bytes, double freed_blocks)
{
    return freed_blocks > 0 ? growth_bytes / BY_SITE_FREES_WEIGH : growth_bytes;
}

// Returns a site's steady growth between two numbers of counted events: eight times the median
// growth over the eighths of this part of the run, but at most the site's growth in this part.
// Negative if the site shrinks steadily. Call after by_site_finish.
double by_site_growth(const struct by_site *b, size_t site, uint64_t from, uint64_t to);

// Computes each site's growth and its figures at the peak. Call after the last op.
void by_site_finish(struct by_site *b);
