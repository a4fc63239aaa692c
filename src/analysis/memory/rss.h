// Why the memory of a recorded process is resident: what is live, what is free in pages that a live block keeps, what is free
// in pages of its own, what is not the heap's. From the addresses of the recording and its maps of pages; docs/reference/figures.md
// defines each figure.
#ifndef HEAPTAPE_RSS_RSS_H
#define HEAPTAPE_RSS_RSS_H

#include "analysis/memory/fragmentation.h"
#include "analysis/symbols/symbols.h"
#include "convert/open.h"
#include "trace/file.h"
#include "trace/pages.h"
#include "workload/slice.h"

enum rss_at {
    RSS_AT_PEAK, // the map of pages with most RSS
    RSS_AT_END,  // the last one
    RSS_AT_POINT // the first one at or after the point; if there is none, the last one
};

struct rss_options {
    enum rss_at at;
    struct slice_point point; // its text is borrowed
};

// Of what RSS is made up.
enum rss_part {
    RSS_LIVE,        // requested bytes of live blocks
    RSS_ROUNDING,    // what these blocks can hold beyond that
    RSS_PARTLY_FREE, // free, in pages that hold a part of a live block
    RSS_WHOLLY_FREE, // pages that have held a block and hold none now
    RSS_OWN, // the allocator's: headers of the blocks, pages beside blocks that have never held one
    RSS_NOT_HEAP,
    RSS_PARTS
};

struct rss_counts {
    uint64_t bytes[RSS_PARTS]; // resident ones
    uint64_t used_pages, sparse_pages, free_pages,
        own_pages;               // used: half of it or more belongs to live blocks
    uint64_t blocks, live_bytes; // requested, resident or not
};

enum rss_arena_kind {
    RSS_ARENA_MAIN,   // the memory of brk(2)
    RSS_ARENA_HEAP,   // a heap of another arena of glibc
    RSS_ARENA_MAPPED, // all blocks that glibc has mapped one by one
    RSS_ARENA_MAPPING // a mapping of another allocator's
};

struct rss_arena {
    enum rss_arena_kind kind;
    uint64_t start, bytes; // of what is mapped; MAPPED: 0
    struct rss_counts counts;
};

struct rss {
    const char *name; // of the file; borrowed
    uint32_t pid;
    char *exe;          // owned, may be NULL
    size_t n_processes; // that have any map or sample
    uint64_t time_ns;   // since the start of the process
    size_t
        maps; // of the process in the trace; 0: it has none, then `pages` holds a sample of its RSS alone, …
    bool is_last; // … there is no map behind the point: this is the last one
    struct trace_pages pages;
    bool is_glibc, has_usable; // where rounding is known from
    struct rss_counts all;
    // In mappings without blocks. Without maps all is in TRACE_MEMORY_OTHER: it is the rest, with free pages and the
    // allocator's own.
    uint64_t not_heap[TRACE_MEMORY_KINDS];
    struct rss_arena *arenas; // by address
    size_t n_arenas, arenas_capacity;
    struct fragmentation
        pinned; // sparse resident pages; a block takes what it can hold, and its header
    struct workload_sites sites;
    struct symbols *symbols; // NULL: no call sites were recorded
};

// For those who want to see more than one moment: up to RSS_MOMENTS maps from all of the run, the first and the last one and
// that with most RSS among them. `begin` gets them all before the first, `take` one after the other, with what lives then.
enum { RSS_MOMENTS = 24 };
struct rss_heap;
struct rss_moments {
    void *context;
    int (*begin)(void *context, const struct trace_pages *maps, size_t n); // 0 or -ENOMEM
    int (*take)(void *context, const struct rss *r, const struct rss_heap *heap,
                uint64_t time_ns); // likewise
};

// Reads the trace, which must have been opened to be read twice, for the process with most RSS. 0, or a negative errno with
// the text set: -ENODATA if the file says nothing about resident memory, or does not come to the point. *r is to be released
// in any case.
int rss_read(struct rss *r, struct trace_file *t, const struct rss_options *o,
             const struct convert_watch *watch, struct err *e);
void rss_release(struct rss *r);

// The same for all these moments. r->maps is 0 where the process has no map, and then no function is called.
int rss_read_moments(struct rss *r, struct trace_file *t, const struct rss_moments *m,
                     const struct convert_watch *watch, struct err *e);

// The sum of the parts.
uint64_t rss_sum(const struct rss *r);

// Fills in what follows from the blocks and r->pages. 0 or -ENOMEM. Inside of the folder.
int rss_find(struct rss *r, const struct rss_heap *heap);

// The live blocks by address, with their headers and rounding, for the caller to free. NULL: out of memory. Inside of the
// folder, as is the next one: is the page with this number resident in the struct trace_pages?
struct fragmentation_block *rss_find_blocks(const struct rss *r, const struct rss_heap *heap,
                                            size_t *n);
bool rss_is_resident(const void *pages, uint64_t page);

#endif
