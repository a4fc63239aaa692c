// What each call site allocates, and what of it is live, in one pass over the ops of a workload in a valid total order.
#ifndef HEAPTAPE_ANALYSIS_BY_SITE_H
#define HEAPTAPE_ANALYSIS_BY_SITE_H

#include "analysis/estimate.h"
#include "analysis/site_uses.h"
#include "analysis/usage.h"
#include "base/map.h"
#include "workload/format.h"
#include "workload/slice.h"

// Sites of a higher number, which only a broken file has, count as not known.
enum { BY_SITE_MAX = 1 << 22 };

// The live bytes of each site are noted at up to so many ends of bins of equal width in events; bins are joined two and two
// when there are as many. Growth is that of the eighths of the run.
enum { BY_SITE_BINS = 64, BY_SITE_PARTS = 8 };

// In the order by growth, a site that frees blocks counts as one of a quarter of its growth, see by_site_growth_rank.
enum { BY_SITE_FREES_WEIGH = 4 };

struct by_site_totals {
    uint64_t calls, bytes; // allocations, and their requested bytes
    uint64_t peak_blocks,
        peak_bytes; // of its blocks, at the moment when most bytes were live in all
    uint64_t live_blocks, live_bytes; // still live: at the end of the pass, never freed by then
    uint64_t
        freed_blocks; // freed, not resized; where call sites are sampled, an estimate with the resized ones
    uint64_t seen_peak;               // at which peak the two above it were last brought up to date
    uint64_t span_blocks, span_bytes; // allocated in the span, and live at its end
    // Bytes by which it grew steadily: the median of its growth in the eighths of the run, times eight. One burst that
    // stays is in one eighth and leaves the median at 0; a leak is in all. 0 where it shrank.
    uint64_t growth_bytes;
    // Where call sites are sampled: what the figures above are set to by by_site_finish, but for those of the span.
    struct estimate allocated, peak, live;
};

// Blocks by how long they lived: up to 10 us, 1 ms, 100 ms, 10 s, longer; without timestamps, up to 16 events, 1,024, …
enum { BY_SITE_LIVES = 5 };
extern const uint64_t by_site_lives_ns[BY_SITE_LIVES - 1], by_site_lives_events[BY_SITE_LIVES - 1];

// What a site allocated in one thread in one class of sizes (usage_size_class).
struct by_site_part {
    uint32_t site, thread, size_class;
    struct usage_count all, live, peak; // peak: at the moment when most bytes were live in all
    struct usage_count freed[BY_SITE_LIVES];
    uint64_t seen_peak; // as in by_site_totals
};

// Of a site, up to the end of each bin.
struct by_site_flow {
    uint64_t calls[BY_SITE_BINS], bytes[BY_SITE_BINS];
};

// What is allocated in a part of the run and live at its end. Set from and to before the first op; times are resolved to
// stamps (slice_point_resolve).
struct by_site_span {
    bool wanted, begun, over;
    struct slice_point from, to;
    struct usage_count all, sizes[USAGE_CLASSES];
    struct usage_count *threads;
    size_t n_threads, threads_capacity;
};

// The live blocks of a site in a pool.
struct by_site_pool_part {
    uint64_t blocks, bytes;
    struct estimate live; // where call sites are sampled
    size_t next;          // place of the next part of this pool; 0: there is none
    uint32_t site;
};

// What is live in the pools of a program, by pool and call site: a reset releases the blocks of all sites at once. Places of parts are counted from 1.
struct by_site_pools {
    struct map part_of;  // pool and site → place
    struct map first_of; // pool → place of its newest part
    struct by_site_pool_part *parts;
    size_t n_parts, parts_capacity;
};

// All zero is an empty count. Set sample_bytes before the first op, if call sites are sampled: then all figures are estimates
// after by_site_finish, and site 0, which most calls have, has none.
struct by_site {
    uint64_t sample_bytes;
    struct by_site_totals *sites; // by number; 0 is for calls whose site is not known
    size_t n_sites, sites_capacity;
    struct live_blocks live; // marked: the block was allocated in the span
    uint64_t live_bytes, peak_bytes;
    uint64_t peaks; // how often live_bytes has been higher than ever before
    struct by_site_span span;
    bool of_pools; // to be set before the first op: the blocks are those of the program's pools
    struct by_site_pools pools;
    bool count_uses; // to be set before the first op; not where call sites are sampled
    struct site_uses uses;
    uint64_t events, next_cut; // of the bins
    uint64_t bin_events;       // 0: 1
    bool by_time; // `events`, `next_cut` and `bin_events` count stamps since the start, not events
    uint64_t first_event; // how many there were before the first one here
    size_t n_bins;
    uint64_t (*levels)[BY_SITE_BINS]; // of the sites
    size_t n_levels, levels_capacity;
    // The flows and the parts are kept only if this is set before the first op; of sampled sites there are no parts.
    bool detailed;
    double ns_per_stamp;        // for how long blocks lived; 0: without timestamps
    struct by_site_flow *flows; // as many as levels
    size_t flows_capacity;
    struct by_site_part *parts;
    size_t n_parts, parts_capacity;
    uint32_t *parts_of; // by slot: the number + 1 of the part of the block
    size_t n_parts_of, parts_of_capacity;
    struct map part_of; // site, thread and class → its number + 1
};

void by_site_release(struct by_site *b);

// The site of an op that allocates; 0: not known.
static inline uint32_t by_site_of(const struct workload_op *op)
{
    uint64_t site = format_op_site(op);
    return site <= BY_SITE_MAX ? (uint32_t)site : 0;
}

// The parts of by_site_op, for those who know themselves which block has which site: a block of the site is allocated
// (`before`: it was there before the first op), or is there no more; and the end of a bin, which joins bins when there are
// as many as fit. 0 or -ENOMEM.
int by_site_add(struct by_site *b, uint32_t site, uint64_t bytes, bool before);
void by_site_remove(struct by_site *b, uint32_t site, uint64_t bytes);
int by_site_cut(struct by_site *b);

// Counts an op of a thread. 0 or -ENOMEM.
int by_site_op(struct by_site *b, uint32_t thread, const struct workload_op *op);

// Begins counting after ops that had no sites: their live blocks and their peak, in *before, are those of site 0. To be
// called once, first. 0 or -ENOMEM.
int by_site_begin(struct by_site *b, const struct usage *before);

// Has the op a call site?
bool by_site_known(const struct workload_op *op);

// What sites are ordered by to find leaks first. Until a cache has reached its limit it grows as a leak does, and nothing
// but the frees tells the two apart: a program frees what it replaces or expires in a cache, if seldom at first, and never a
// block of a leak. A leak among blocks that are freed is possible, too, so growth still counts there, but less.
static inline double by_site_growth_rank(double growth_bytes, double freed_blocks)
{
    return freed_blocks > 0 ? growth_bytes / BY_SITE_FREES_WEIGH : growth_bytes;
}

// Brings what was live at the peak up to date for all sites, and finds their growth. Call after the last op.
void by_site_finish(struct by_site *b);

#endif
