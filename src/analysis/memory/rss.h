// Classifies a recorded process's resident memory into live blocks, free memory in pages with live
// blocks, free pages, and memory outside the heap, using recorded addresses and page maps.
// docs/reference/figures.md defines the figures.
#pragma once

#include "analysis/memory/fragmentation.h"
#include "analysis/symbols/symbols.h"
#include "base/json.h"
#include "convert/open.h"
#include "trace/file.h"
#include "trace/pages.h"
#include "workload/slice.h"

enum rss_at {
    RSS_AT_PEAK, // the page map with the highest RSS
    RSS_AT_END,  // the last map
    RSS_AT_POINT // the first page map at or after the point, or else the last page map
};

struct rss_options {
    enum rss_at at;
    struct slice_point point; // its string is borrowed
};

// The parts into which RSS is divided.
enum rss_part {
    RSS_LIVE,        // requested bytes of live blocks
    RSS_ROUNDING,    // usable bytes of these blocks beyond the requested bytes
    RSS_PARTLY_FREE, // free memory in pages that hold part of a live block
    RSS_WHOLLY_FREE, // pages that held a block earlier but do not hold one now
    // Used by the allocator itself: headers, and heap pages that have never held a block.
    RSS_OWN,
    RSS_NOT_HEAP,
    RSS_PARTS
};

struct rss_counts {
    uint64_t bytes[RSS_PARTS]; // resident bytes of each part
    uint64_t used_pages, sparse_pages, free_pages,
        own_pages;               // live blocks fill at least half of each used page
    uint64_t blocks, live_bytes; // `live_bytes` are requested bytes, whether resident or not
};

enum rss_arena_kind {
    RSS_ARENA_MAIN,   // memory obtained with brk(2)
    RSS_ARENA_HEAP,   // a heap of another arena of glibc
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
    size_t n_processes; // number of processes that have a map or a sample
    uint64_t time_ns;   // since the start of the process
    // Number of page maps of the process; if 0, `pages` contains only an RSS sample.
    size_t maps;
    bool is_last; // no map follows the point, so the last map is used
    struct trace_pages pages;
    bool is_glibc, has_usable; // if neither is set, RSS_ROUNDING is unknown
    struct rss_counts all;
    // Resident bytes in mappings without blocks. If there are no page maps, all bytes count as
    // TRACE_MEMORY_OTHER, including free pages and the allocator's own memory.
    uint64_t not_heap[TRACE_MEMORY_KINDS];
    struct rss_arena *arenas; // sorted by address
    size_t n_arenas, arenas_capacity;
    // Sparse resident pages. A block's header and usable size count as used.
    struct fragmentation pinned;
    struct workload_sites sites;
    struct symbols *symbols; // NULL if no call sites were recorded
};

// Callbacks for moments that are spread over the run. They include the first moment, the last
// moment, and the moment with the highest RSS. `begin` is called first, with all maps; it may be
// NULL. `visit` is then called for each moment, with the live blocks.
enum { RSS_MOMENTS = 24 };
struct rss_heap;
struct rss_moments {
    size_t max;       // number of moments, at most RSS_MOMENTS
    uint32_t process; // number of the process plus 1; 0 selects the process with the highest RSS
    void *context;
    int (*begin)(void *context, const struct trace_pages *maps, size_t n); // returns 0 or -ENOMEM
    int (*visit)(void *context, const struct rss *r, const struct rss_heap *heap,
                 uint64_t time_ns); // returns 0 or -ENOMEM
};

// Reads the process with the highest RSS from a trace that was opened for reading twice. Returns 0,
// or a negative errno with *e set: -ENODATA if the trace has no data about resident memory or ends
// before the point. In either case, the caller must release *r.
int rss_read(struct rss *r, struct trace_file *t, const struct rss_options *o,
             const struct convert_watch *watch, struct err *e);
void rss_release(struct rss *r);

// Like rss_read, but for several moments. If the process has no map, r->maps is 0 and the callbacks
// are not called.
int rss_read_moments(struct rss *r, struct trace_file *t, const struct rss_moments *m,
                     const struct convert_watch *watch, struct err *e);

// The steps of rss_read_moments, for callers that also convert the trace for other figures.
struct rss_reading;

// Reads the maps and restarts at the first frame. Returns 0 with *reading set, or a negative errno
// with *e set. *reading is NULL if the process has no maps. `m` is copied; the other arguments are
// borrowed. In either case, the caller must release *r.
int rss_reading_new(struct rss_reading **reading, struct rss *r, struct trace_file *t,
                    const struct rss_moments *m, struct err *e);

// Returns the number of the process.
uint32_t rss_reading_process(const struct rss_reading *reading);

// Call rss_reading_begin at the first frame of the process, rss_reading_calls for each batch of
// calls, and rss_reading_done after the last batch. The last two can be members of a convert_sink
// whose context is the reading. Each returns 0 or -ENOMEM.
int rss_reading_begin(struct rss_reading *reading, const struct trace_process *p);
int rss_reading_calls(void *reading, const struct workload_thread_op *ops,
                      const struct order_call *calls, size_t n);
int rss_reading_done(void *reading, const struct order_counts *counts,
                     const struct workload_sites *sites);

// If `whole` is set, passes the last moments. Frees *reading, which may be NULL. Returns 0 or
// -ENOMEM.
int rss_reading_end(struct rss_reading *reading, bool whole);

// Returns the sum of the parts.
uint64_t rss_sum(const struct rss *r);

// Private. Compute figures from the blocks and r->pages. rss_find computes all figures.
// rss_find_outside computes only r->not_heap and the total of RSS_NOT_HEAP, which is faster if
// there are many blocks. Return 0 or -ENOMEM.
int rss_find(struct rss *r, const struct rss_heap *heap);
int rss_find_outside(struct rss *r, const struct rss_heap *heap);

// Private. rss_find_blocks returns the live blocks in address order, with headers and rounding, or
// NULL when out of memory; the caller frees the array. rss_is_resident returns true if the page
// with this number is resident in a struct trace_pages.
struct fragmentation_block *rss_find_blocks(const struct rss *r, const struct rss_heap *heap,
                                            size_t *n);
bool rss_is_resident(const void *pages, uint64_t page);

// Writes the JSON document of `stat --rss` (docs/reference/json/stat-rss.schema.json).
void rss_json(struct json *j, const struct rss *r);
