// What of a process's blocks is live now, and what it allocates, by call site, size and thread. Calls are counted one by one
// as they were recorded, in memory that depends on live blocks, call sites and threads alone.
//
// Timestamps decide the order of calls: the few that contradict each other (docs/design/convert.md) are not sorted out.
#ifndef HEAPTAPE_TOP_LIVE_H
#define HEAPTAPE_TOP_LIVE_H

#include "analysis/symbols/symbols.h"
#include "base/map.h"
#include "convert/site_table.h"
#include "convert/walk.h"

enum live_by { LIVE_SITES, LIVE_SIZES, LIVE_THREADS, LIVE_VIEWS };

// Figures of a row: live bytes and blocks, and what has come and gone since the start.
enum live_figure { LIVE_BYTES, LIVE_BLOCKS, LIVE_ALLOCS, LIVE_ALLOCATED, LIVE_FREES, LIVE_FIGURES };

struct live_row {
    double now[LIVE_FIGURES];
    double cut[LIVE_FIGURES];   // what it was at the last cut, and
    double per_s[LIVE_FIGURES]; // by how much it changed each second between the last two
};

struct live_rows {
    struct live_row *items;
    size_t n, capacity;
};

struct live_block {
    uint64_t size;
    uint64_t
        owed_until; // up to this stamp a free of the address means the block that was there before; 0: none was
    uint32_t site, thread;
};

struct live_site {
    uint64_t id; // in the trace
    char *name;  // NULL: not looked up
    bool known;
    uint32_t looked_up; // live.names_known then
};

enum { LIVE_NAME_BYTES = 16 };

struct live_thread {
    uint32_t tid;
    char name[LIVE_NAME_BYTES]; // as recorded, not printable; "": not recorded yet
    bool ended;
    // Between the halves of a realloc: the block, if it was known.
    bool resizes, resizes_known;
    uint64_t resized;
    struct live_block resized_block;
};

struct live {
    const struct trace_process *process; // borrowed
    uint64_t sample_bytes;               // of call sites, 0: all are recorded
    uint64_t skid; // the most by which a timestamp is assumed to be early, in stamps
    struct live_row total;
    double peak_bytes;
    uint64_t rss_bytes; // as sampled last, 0: never
    struct live_rows
        rows[LIVE_VIEWS]; // by number of the site; by usage_size_class; by thread in `threads`
    struct live_thread *threads;
    size_t n_threads, threads_capacity, running;
    // Inside.
    struct map thread_numbers; // of the trace + 1 → index + 1
    uint32_t last_number, last_thread;
    struct map addresses; // → index in blocks + 1
    struct live_block *blocks;
    size_t n_blocks, blocks_capacity;
    uint64_t free_block; // + 1; the next one is in `size`
    struct site_table sites;
    struct live_site *names; // by number of the site
    size_t n_names, names_capacity;
    struct symbols *symbols;
    size_t symbols_modules;
    uint32_t names_known; // grows when there is more to look up names in
};

// NULL when out of memory. `p` is borrowed.
struct live *live_new(const struct trace_session *s, const struct trace_process *p);
void live_free(struct live *l);

// A call of the process, as walk_options.call with halves. 0 or -ENOMEM.
int live_call(struct live *l, const struct walk_call *c);

// Adds names of code, the payload of a NAMES frame. 0, -EBADMSG, -ENOMEM.
int live_names(struct live *l, const uint8_t *at, size_t n);

// Nothing more comes of the process: forgets where its blocks are, not what they add up to.
void live_end(struct live *l);

// Begins a new interval and sets the rates: those of the last one, which took so many seconds, or, if `whole`, of all that has
// been counted. Of 0 seconds there are none.
void live_cut(struct live *l, double seconds, bool whole);

// Name of a call site, printable: where in the source, and the function. Borrowed until the process is freed.
const char *live_site_name(struct live *l, size_t site);

#endif
