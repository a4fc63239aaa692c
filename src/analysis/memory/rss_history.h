// Resident memory of a recorded process over time, and its parts at the end.
#ifndef HEAPTAPE_RSS_HISTORY_H
#define HEAPTAPE_RSS_HISTORY_H

#include "analysis/memory/rss.h"

// More moments than this cost time and hardly improve the model of the growth.
enum { RSS_HISTORY_MOMENTS = 18 };

// mimalloc's pages for small blocks: MI_SMALL_PAGE_SIZE.
#define RSS_HISTORY_REGION_BYTES (64u << 10)

struct rss_history_moment {
    uint64_t time_ns; // since the start of the process
    uint64_t rss_bytes;
    uint64_t not_heap[TRACE_MEMORY_KINDS]; // as in struct rss
    // Resident pages that have never held a recorded block, in mappings that hold blocks of an
    // allocator other than glibc. Such pages hold the allocator's metadata, blocks from before the
    // recording, or mappings of the program next to the heap.
    uint64_t never_held_bytes;
};

struct rss_history {
    struct rss rss; // at the last moment; `maps` is 0 if there are no maps
    struct rss_history_moment moments[RSS_MOMENTS];
    size_t n, expected;
    struct trace_pages_name first_names[TRACE_PAGES_NAMES]; // at the first moment
    size_t n_first_names;
    // At the last moment.
    bool lists_before; // the trace lists blocks from before the start of the recording
    // Free resident bytes in regions of RSS_HISTORY_REGION_BYTES with a live block.
    uint64_t region_free_bytes;
    uint64_t top_free_bytes; // resident bytes of the brk area above its last block
    uint64_t before_blocks;  // live blocks from before the start of the recording
};

// Reads process number `process` of the trace at `path`, or the process with the highest RSS if
// `process` is UINT32_MAX. Returns 0, or a negative errno like rss_read. In either case, the caller
// must release *h.
int rss_history_read(struct rss_history *h, const char *path, uint32_t process,
                     const struct convert_watch *watch, struct err *e);
void rss_history_release(struct rss_history *h);

#endif
