// Live blocks and allocations of a process, by call site, size and thread. Calls are counted in the
// order of the recording; the memory depends only on the number of live blocks, call sites and
// threads.
//
// Timestamps decide the order. The few that contradict each other (docs/design/convert.md) are not
// resolved.
#ifndef HEAPTAPE_TOP_LIVE_H
#define HEAPTAPE_TOP_LIVE_H

#include "analysis/symbols/symbols.h"
#include "base/map.h"
#include "convert/site_table.h"
#include "convert/walk.h"

enum live_by { LIVE_SITES, LIVE_SIZES, LIVE_THREADS, LIVE_VIEWS };

// Figures of a row: live bytes and blocks, and totals since the start.
enum live_figure { LIVE_BYTES, LIVE_BLOCKS, LIVE_ALLOCS, LIVE_ALLOCATED, LIVE_FREES, LIVE_FIGURES };

struct live_row {
    double now[LIVE_FIGURES];
    double cut[LIVE_FIGURES];   // at the last cut
    double per_s[LIVE_FIGURES]; // change per second between the last two cuts
};

struct live_rows {
    struct live_row *items;
    size_t n, capacity;
};

struct live_block {
    uint64_t size;
    uint64_t
        // a free of the address up to this stamp belongs to the previous block; 0: there was no
        // previous block
        owed_until;
    uint32_t site, thread;
};

struct live_site {
    uint64_t id;     // in the trace
    char *name;      // location and function; NULL: not looked up yet
    size_t function; // where the function begins in `name`
    bool known;
    uint32_t looked_up; // value of live.names_known at the last lookup
};

enum { LIVE_NAME_BYTES = 16 };

struct live_thread {
    uint32_t tid;
    char name[LIVE_NAME_BYTES]; // as recorded, unfiltered; "": not recorded yet
    bool ended;
    // Between the two halves of a realloc: whether the block is being resized, and whether it is
    // known.
    bool resizes, resizes_known;
    uint64_t resized;
    struct live_block resized_block;
};

struct live {
    const struct trace_process *process; // borrowed
    uint64_t sample_bytes;               // of call sites; 0: all stacks are recorded
    uint64_t skid;                       // largest assumed error of a timestamp, in stamps
    struct live_row total;
    double peak_bytes;
    uint64_t rss_bytes;                // last sample; 0: no sample
    struct live_rows rows[LIVE_VIEWS]; // by site number; by usage_size_class; by index in `threads`
    struct live_thread *threads;
    size_t n_threads, threads_capacity, running;
    // Private.
    struct map thread_numbers; // number in the trace + 1 → index + 1
    uint32_t last_number, last_thread;
    struct map addresses; // address → index in blocks + 1
    struct live_block *blocks;
    size_t n_blocks, blocks_capacity;
    uint64_t free_block; // index + 1 of the first free block; its `size` holds the next one
    struct site_table sites;
    size_t sites_resolved;   // number of call sites when all were resolved
    struct live_site *names; // by site number
    char *site_name;         // the last result of live_site_name
    size_t n_names, names_capacity;
    struct symbols *symbols;
    size_t symbols_modules;
    uint32_t names_known; // increases when new names have arrived
};

// Returns NULL when out of memory. `p` is borrowed.
struct live *live_new(const struct trace_session *s, const struct trace_process *p);
void live_free(struct live *l);

// Counts a call of the process, like walk_options.call with `halves`. Returns 0 or -ENOMEM.
int live_call(struct live *l, const struct walk_call *c);

// Adds the function names in the payload of a NAMES frame. Returns 0, -EBADMSG or -ENOMEM.
int live_names(struct live *l, const uint8_t *at, size_t n);

// Frees the addresses of the blocks after the last call of the process. The totals stay.
void live_end(struct live *l);

// Ends an interval of `seconds` and sets the rates. The rates are averages over this interval, or
// over the whole recording if `whole`. The rates are 0 if `seconds` is 0.
void live_cut(struct live *l, double seconds, bool whole);

// Returns the printable name of a call site: source location and function. The function is
// shortened so that the name fits into `columns`; 0: no limit. Borrowed until the next call.
const char *live_site_name(struct live *l, size_t site, size_t columns);

#endif
