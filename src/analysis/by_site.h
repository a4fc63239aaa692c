// Allocations and live blocks by call site, in one pass over the ops of a workload in a valid total
// order.
#ifndef HEAPTAPE_ANALYSIS_BY_SITE_H
#define HEAPTAPE_ANALYSIS_BY_SITE_H

#include "analysis/estimate.h"
#include "analysis/site_uses.h"
#include "analysis/usage.h"
#include "base/map.h"
#include "workload/format.h"
#include "workload/slice.h"

// Higher numbers, which only a corrupt file has, count as unknown.
enum { BY_SITE_MAX = 1 << 22 };

// Live bytes of each site are stored at the ends of bins of equal width in events. When the bins
// are full, neighbours are merged. Growth is measured over eighths of the run.
enum { BY_SITE_BINS = 64, BY_SITE_PARTS = 8 };

// Sites that free blocks rank with a quarter of their growth, see by_site_growth_rank.
enum { BY_SITE_FREES_WEIGH = 4 };

struct by_site_totals {
    uint64_t calls, bytes; // allocations and their requested bytes
    uint64_t peak_blocks,
        peak_bytes;                   // when most bytes were live over all sites
    uint64_t live_blocks, live_bytes; // at the end of the pass
    uint64_t freed_blocks; // without resized blocks; if sites are sampled, an estimate with them
    uint64_t seen_peak;    // number of the peak in peak_blocks and peak_bytes
    uint64_t span_blocks, span_bytes; // allocated in the span and live at its end
    // Steady growth: eight times the median growth in the eighths of the run, or 0 if the site
    // shrank. A burst affects one eighth and leaves the median at 0; a leak affects all.
    uint64_t growth_bytes;
    // If sites are sampled: by_site_finish derives the figures above from these, except the span.
    struct estimate allocated, peak, live;
};

// Classes of lifetimes: up to 10 us, 1 ms, 100 ms, 10 s, longer; without timestamps up to 16
// events, 1,024, …
enum { BY_SITE_LIVES = 5 };
extern const uint64_t by_site_lives_ns[BY_SITE_LIVES - 1], by_site_lives_events[BY_SITE_LIVES - 1];

// Allocations of a site in one thread and size class (usage_size_class).
struct by_site_part {
    uint32_t site, thread, size_class;
    struct usage_count all, live, peak; // peak: when most bytes were live over all sites
    struct usage_count freed[BY_SITE_LIVES];
    uint64_t seen_peak; // as in by_site_totals
};

// Totals of a site up to the end of each bin.
struct by_site_flow {
    uint64_t calls[BY_SITE_BINS], bytes[BY_SITE_BINS];
};

// Blocks allocated between two points of the run and still live at the second. Set `from` and `to`
// before the first op, with times resolved to stamps (slice_point_resolve).
struct by_site_span {
    bool wanted, begun, over;
    struct slice_point from, to;
    struct usage_count all, sizes[USAGE_CLASSES];
    struct usage_count *threads;
    size_t n_threads, threads_capacity;
};

// Live blocks of a site in a pool.
struct by_site_pool_part {
    uint64_t blocks, bytes;
    struct estimate live; // if sites are sampled
    size_t next;          // index of the next part of this pool, or 0
    uint32_t site;
};

// Live blocks in the pools of a program by pool and call site, because a reset frees the blocks of
// all sites. Indices of parts start at 1.
struct by_site_pools {
    struct map part_of;  // pool and site → index
    struct map first_of; // pool → index of its newest part
    struct by_site_pool_part *parts;
    size_t n_parts, parts_capacity;
};

// All zero is empty. If call sites are sampled, set sample_bytes before the first op:
// by_site_finish then turns all figures into estimates. Site 0, which most calls have, has no
// estimates.
struct by_site {
    uint64_t sample_bytes;
    struct by_site_totals *sites; // by number; 0: unknown
    size_t n_sites, sites_capacity;
    struct live_blocks live; // marked: allocated in the span
    uint64_t live_bytes, peak_bytes;
    uint64_t peaks; // number of increases of peak_bytes
    struct by_site_span span;
    bool of_pools; // set before the first op: count blocks of the program's pools
    struct by_site_pools pools;
    bool count_uses; // set before the first op, unless sites are sampled
    struct site_uses uses;
    uint64_t events, next_cut; // next_cut: end of the current bin
    uint64_t bin_events;       // width of a bin; 0 counts as 1
    bool by_time;              // events, next_cut and bin_events count stamps since the start
    uint64_t first_event;      // events before the first one counted here
    size_t n_bins;
    uint64_t (*levels)[BY_SITE_BINS]; // by site
    size_t n_levels, levels_capacity;
    // Set before the first op to count flows and parts. Sampled sites have no parts.
    bool detailed;
    double ns_per_stamp;        // for lifetimes; 0: no timestamps
    struct by_site_flow *flows; // n_levels entries
    size_t flows_capacity;
    struct by_site_part *parts;
    size_t n_parts, parts_capacity;
    uint32_t *parts_of; // by slot: part number of the block + 1
    size_t n_parts_of, parts_of_capacity;
    struct map part_of; // site, thread and size class → part number + 1
};

void by_site_release(struct by_site *b);

// Returns the site of an op that allocates; 0: unknown.
static inline uint32_t by_site_of(const struct workload_op *op)
{
    uint64_t site = format_op_site(op);
    return site <= BY_SITE_MAX ? (uint32_t)site : 0;
}

// Steps of by_site_op for callers that track blocks themselves: a block of the site is allocated
// (`before`: it is preexisting) or freed, and a bin ends. Return 0 or -ENOMEM.
int by_site_add(struct by_site *b, uint32_t site, uint64_t bytes, bool before);
void by_site_remove(struct by_site *b, uint32_t site, uint64_t bytes);
int by_site_cut(struct by_site *b);

// Counts an op of a thread. Returns 0 or -ENOMEM.
int by_site_op(struct by_site *b, uint32_t thread, const struct workload_op *op);

// Starts counting after ops without sites, whose live blocks and peak in *before are attributed to
// site 0. Call once, before other functions. Returns 0 or -ENOMEM.
int by_site_begin(struct by_site *b, const struct usage *before);

// Returns true if the op has a call site.
bool by_site_known(const struct workload_op *op);

// Rank for finding leaks. A cache grows like a leak until it is full, but a program frees blocks of
// a cache when it replaces or expires entries, and never blocks of a leak. Growth of sites that
// free blocks still counts, with a lower weight.
static inline double by_site_growth_rank(double growth_bytes, double freed_blocks)
{
    return freed_blocks > 0 ? growth_bytes / BY_SITE_FREES_WEIGH : growth_bytes;
}

// Computes the figures at the peak and the growth of all sites. Call after the last op.
void by_site_finish(struct by_site *b);

#endif
