// Resident memory of a recorded process over time, and its parts at the end.
#pragma once

#include "analysis/memory/rss.h"

// Number of moments. More moments would take longer but hardly improve the model of the growth.
enum { RSS_HISTORY_MOMENTS = 18 };

// Aligned regions, which an allocator divides into blocks of one size class and can release only as
// a whole. X(SYMBOL, bytes) is called for each size of region.
#define RSS_HISTORY_REGIONS_TABLE(X)                                                               \
    X(TCMALLOC, 8u << 10)  /* kPageSize: the smallest span */                                      \
    X(MIMALLOC, 64u << 10) /* MI_SMALL_PAGE_SIZE */

enum rss_history_region {
#define HT_X(symbol, bytes) RSS_HISTORY_##symbol,
    RSS_HISTORY_REGIONS_TABLE(HT_X)
#undef HT_X
        RSS_HISTORY_REGIONS
};

struct rss_history_moment {
    uint64_t time_ns; // since the start of the process
    uint64_t rss_bytes;
    uint64_t not_heap[TRACE_MEMORY_KINDS]; // as in struct rss
    // Resident pages that have never held a recorded block, in mappings that hold blocks of an
    // allocator other than glibc. Such pages hold the allocator's metadata, blocks from before the
    // recording, or the program's own mappings next to the heap.
    uint64_t never_held_bytes;
};

struct rss_history {
    struct rss rss; // figures of the last sample; `maps` is 0 if there are no page maps
    struct rss_history_moment moments[RSS_MOMENTS];
    size_t n, expected;
    struct trace_pages_name first_names[TRACE_PAGES_NAMES]; // names at the first moment
    size_t n_first_names;
    // The following members describe the last moment.
    bool lists_before; // the trace lists blocks from before the start of the recording
    // Free resident bytes in regions that hold a live block, for each size of region.
    uint64_t region_free_bytes[RSS_HISTORY_REGIONS];
    uint64_t top_free_bytes; // resident bytes of the brk area above its last block
    uint64_t before_blocks;  // number of live blocks from before the start of the recording
};

// Reads process number `process` of a trace that was opened for reading twice. Returns 0, or a
// negative errno like rss_read. In either case, the caller must release *h.
int rss_history_read(struct rss_history *h, struct trace_file *t, uint32_t process,
                     const struct convert_watch *watch, struct err *e);
void rss_history_release(struct rss_history *h);

// Like rss_reading_new, for the process with the highest RSS. Call the rss_reading_* functions
// while converting the trace.
int rss_history_begin(struct rss_history *h, struct rss_reading **reading, struct trace_file *t,
                      struct err *e);
