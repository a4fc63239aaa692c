// Classifies the resident memory of a recorded process: live blocks, free memory in pages with live
// blocks, free pages, and memory outside the heap. Uses recorded addresses and page maps.
// docs/reference/figures.md defines the figures.
#ifndef HEAPTAPE_RSS_RSS_H
#define HEAPTAPE_RSS_RSS_H

#include "analysis/memory/fragmentation.h"
#include "analysis/symbols/symbols.h"
#include "convert/open.h"
#include "trace/file.h"
#include "trace/pages.h"
#include "workload/slice.h"

enum rss_at {
    RSS_AT_PEAK, // the page map with the highest RSS
    RSS_AT_END,  // the last map
    RSS_AT_POINT // the first map at or after the point, or else the last
};

struct rss_options {
    enum rss_at at;
    struct slice_point point; // its text is borrowed
};

// Parts that add up to RSS.
enum rss_part {
    RSS_LIVE,        // requested bytes of live blocks
    RSS_ROUNDING,    // usable bytes of these blocks beyond the request
    RSS_PARTLY_FREE, // free, in pages that hold a part of a live block
    RSS_WHOLLY_FREE, // pages that held a block before and hold none now
    RSS_OWN,         // allocator: headers, and heap pages that never held a block
    RSS_NOT_HEAP,
    RSS_PARTS
};

struct rss_counts {
    uint64_t bytes[RSS_PARTS]; // resident
    uint64_t used_pages, sparse_pages, free_pages,
        own_pages;               // used: at least half belongs to live blocks
    uint64_t blocks, live_bytes; // requested, resident or not
};

enum rss_arena_kind {
    RSS_ARENA_MAIN,   // memory of brk(2)
    RSS_ARENA_HEAP,   // a heap of another glibc arena
    RSS_ARENA_MAPPED, // all blocks that glibc mapped individually
    RSS_ARENA_MAPPING // a mapping of another allocator
};

struct rss_arena {
    enum rss_arena_kind kind;
    uint64_t start, bytes; // mapped range; 0 for RSS_ARENA_MAPPED
    struct rss_counts counts;
};

struct rss {
    const char *name; // file name; borrowed
    uint32_t pid;
    char *exe;          // owned, may be NULL
    size_t n_processes; // that have a map or sample
    uint64_t time_ns;   // since the start of the process
    size_t maps;        // page maps of the process; 0: `pages` holds only an RSS sample
    bool is_last;       // no map follows the point; this is the last one
    struct trace_pages pages;
    bool is_glibc, has_usable; // sources of rounding
    struct rss_counts all;
    // In mappings without blocks. Without page maps everything is in TRACE_MEMORY_OTHER, including
    // free pages and memory of the allocator.
    uint64_t not_heap[TRACE_MEMORY_KINDS];
    struct rss_arena *arenas; // by address
    size_t n_arenas, arenas_capacity;
    struct fragmentation pinned; // sparse resident pages; blocks count with usable size and header
    struct workload_sites sites;
    struct symbols *symbols; // NULL: no call sites were recorded
};

// Callbacks for up to RSS_MOMENTS moments spread over the run, including the first, the last and
// the one with the highest RSS. `begin` receives all maps first; `take` then receives each moment
// with the live blocks.
enum { RSS_MOMENTS = 24 };
struct rss_heap;
struct rss_moments {
    void *context;
    int (*begin)(void *context, const struct trace_pages *maps, size_t n); // returns 0 or -ENOMEM
    int (*take)(void *context, const struct rss *r, const struct rss_heap *heap,
                uint64_t time_ns); // returns 0 or -ENOMEM
};

// Reads the process with the highest RSS from a trace that was opened to be read twice. Returns 0,
// or a negative errno with *e set: -ENODATA if the trace has no data on resident memory or ends
// before the point. Release *r in either case.
int rss_read(struct rss *r, struct trace_file *t, const struct rss_options *o,
             const struct convert_watch *watch, struct err *e);
void rss_release(struct rss *r);

// Like rss_read, for several moments. If the process has no map, r->maps is 0 and no callback is
// called.
int rss_read_moments(struct rss *r, struct trace_file *t, const struct rss_moments *m,
                     const struct convert_watch *watch, struct err *e);

// Returns the sum of the parts.
uint64_t rss_sum(const struct rss *r);

// Private: computes the figures from the blocks and r->pages. Returns 0 or -ENOMEM.
int rss_find(struct rss *r, const struct rss_heap *heap);

// Private: returns the live blocks by address, with headers and rounding, to be freed by the
// caller, or NULL when out of memory. rss_is_resident returns true if the page with this number is
// resident in a struct trace_pages.
struct fragmentation_block *rss_find_blocks(const struct rss *r, const struct rss_heap *heap,
                                            size_t *n);
bool rss_is_resident(const void *pages, uint64_t page);

#endif
