// Live blocks and allocations of a process, by call site, size and thread. Memory use depends only
// on the number of live blocks, call sites and threads.
//
// Calls are counted in the order of their timestamps. A few timestamps contradict each other
// (docs/design/convert.md); these contradictions are not resolved.
#pragma once

#include "analysis/symbols/symbols.h"
#include "base/map.h"
#include "convert/site_table.h"
#include "convert/walk.h"

enum live_by { LIVE_SITES, LIVE_SIZES, LIVE_THREADS, LIVE_VIEWS };

// Figures for a row: live bytes and blocks, and totals since the start.
enum live_figure { LIVE_BYTES, LIVE_BLOCKS, LIVE_ALLOCS, LIVE_ALLOCATED, LIVE_FREES, LIVE_FIGURES };

struct live_row {
    double now[LIVE_FIGURES];
    double cut[LIVE_FIGURES];   // values at the last cut
    double per_s[LIVE_FIGURES]; // change per second between the last two cuts
};

struct live_rows {
    struct live_row *items;
    size_t n, capacity;
};

struct live_block {
    uint64_t size;
    // If the address is freed up to this stamp, the free belongs to the previous block. 0 if there
    // was no previous block.
    uint64_t owed_until;
    uint32_t site, thread;
};

struct live_site {
    uint64_t id;     // id of the site in the trace
    char *name;      // location and function, or NULL if not looked up yet
    size_t function; // offset of the function in `name`
    bool known;
    uint32_t looked_up; // value of live.names_known at the last lookup
};

enum { LIVE_NAME_BYTES = 16 };

struct live_thread {
    uint32_t tid;
    char name[LIVE_NAME_BYTES]; // unfiltered, as recorded; "" if not recorded yet
    bool ended;
    // Used between the two halves of a realloc: a block is being resized, and that block is known.
    bool resizes, resizes_known;
    uint64_t resized;
    struct live_block resized_block;
};

struct live {
    const struct trace_process *process; // borrowed
    // Mean number of allocated bytes per sampled allocation; 0 if all stacks are recorded.
    uint64_t sample_bytes;
    uint64_t skid; // largest assumed error of a timestamp, in stamps
    struct live_row total;
    double peak_bytes;
    uint64_t rss_bytes; // RSS of the last sample, or 0 if there is no sample
    // Indexed by site number, by usage_size_class, and by index in `threads`, respectively.
    struct live_rows rows[LIVE_VIEWS];
    struct live_thread *threads;
    size_t n_threads, threads_capacity, running;
    // Private.
    struct map thread_numbers; // maps (number of the thread in the trace + 1) to its index plus 1
    uint32_t last_number, last_thread;
    struct map addresses; // maps an address to the index in `blocks` plus 1
    struct live_block *blocks;
    size_t n_blocks, blocks_capacity;
    // Index of the first free block plus 1, or 0. The `size` of a free block is the index of the
    // next free block plus 1, or 0.
    uint64_t free_block;
    struct site_table sites;
    size_t sites_resolved;   // number of call sites when they were last resolved
    struct live_site *names; // indexed by site number
    char *site_name;         // last result of live_site_name
    size_t n_names, names_capacity;
    struct symbols *symbols;
    size_t symbols_modules;
    uint32_t names_known; // increases when new names arrive
};

// Creates a struct live. `p` is borrowed. Returns NULL when out of memory.
struct live *live_new(const struct trace_session *s, const struct trace_process *p);
void live_free(struct live *l);

// Counts a call of the process. The walk must use walk_options.halves. Returns 0 or -ENOMEM.
int live_call(struct live *l, const struct walk_call *c);

// Adds the function names in the payload of a NAMES frame. Returns 0, -EBADMSG or -ENOMEM.
int live_names(struct live *l, const uint8_t *at, size_t n);

// Frees the addresses of the blocks. Call after the last call of the process. The totals remain
// valid.
void live_end(struct live *l);

// Ends an interval of `seconds` and sets the rates. The rates are averages over this interval or,
// if `whole` is set, over the whole recording. The rates are 0 if `seconds` is 0.
void live_cut(struct live *l, double seconds, bool whole);

// Returns the printable name of a call site, which consists of the source location and the
// function. The function is shortened so that the name fits in `columns`; 0 means no limit.
// Borrowed until the next call.
const char *live_site_name(struct live *l, size_t site, size_t columns);
