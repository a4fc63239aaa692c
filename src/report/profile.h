// Call sites as profiles that other tools read.
#ifndef HEAPTAPE_REPORT_PROFILE_H
#define HEAPTAPE_REPORT_PROFILE_H

#include "analysis/by_site.h"
#include "analysis/symbols/symbols.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"

// What a folded profile weighs sites by.
enum profile_weight {
    PROFILE_PEAK, // bytes live at the peak
    PROFILE_LIVE, // bytes live at the end
    PROFILE_BYTES,
    PROFILE_CALLS,
    PROFILE_GROWTH, // steady growth
    PROFILE_SPAN,   // allocated in the span, and live at its end
};

uint64_t profile_weigh(const struct by_site_totals *t, enum profile_weight weight);

// What sites are ordered by: their weight, but for growth (by_site_growth_rank).
uint64_t profile_rank(const struct by_site_totals *t, enum profile_weight weight);

// The numbers of all sites that have anything, that of the highest rank first, to be freed. NULL when out of memory.
uint32_t *profile_order(const struct by_site *b, enum profile_weight weight, size_t *n);

// A stack is the one that leads to it, and a frame.
enum { PROFILE_NO_STACK = 0xffffffff };
struct profile_stack {
    uint32_t prefix, frame;
};

struct profile_sample {
    uint64_t weight;
    uint32_t stack;
};

// Stacks as a tree: each prefix stands before the stacks that it leads to. All zero is empty.
struct profile_stacks {
    struct symbol *frames; // texts borrowed from the symbols
    size_t n_frames, frames_capacity;
    struct profile_stack *stacks;
    size_t n_stacks, stacks_capacity;
    struct profile_sample *samples; // in the order in which they were added
    size_t n_samples, samples_capacity;
    struct map by_address; // its first frame + 1
    struct map by_stack;   // prefix and frame → number + 1
    uint64_t total;        // of the weights
};

void profile_stacks_release(struct profile_stacks *t);

// Adds a site as a sample. 0 or -ENOMEM.
int profile_stacks_add(struct profile_stacks *t, const struct workload_sites *sites, size_t number,
                       struct symbols *symbols, uint64_t weight);

// Folded stacks, as flamegraph.pl and its kin read them: "main;f;g 1234" lines, the outermost function first; sites of the
// same functions stand in one line each. Appends to *to. 0 or -ENOMEM.
int profile_folded(struct buf *to, const struct by_site *b, const struct workload_sites *sites,
                   struct symbols *symbols, enum profile_weight weight);

// pprof's profile.proto (github.com/google/pprof), not compressed, with the sample types alloc_objects, alloc_space,
// peak_objects, peak_space, inuse_objects and inuse_space, the last ones those at the end. `duration_ns` is the
// recording's. Appends to *to. 0 or -ENOMEM.
int profile_pprof(struct buf *to, const struct by_site *b, const struct workload_sites *sites,
                  struct symbols *symbols, uint64_t duration_ns);

// What is written in JSON: the stacks with one weight each, as https://www.speedscope.app and https://profiler.firefox.com
// read them. `name` is the recording's. 0 or -ENOMEM, before anything is written.
enum profile_json_format { PROFILE_SPEEDSCOPE, PROFILE_FIREFOX };
struct profile_json_of {
    const char *name;
    const struct by_site *totals;
    const struct workload_sites *sites;
    struct symbols *symbols;
    enum profile_weight weight;
};
int profile_json(struct json *j, enum profile_json_format format, const struct profile_json_of *of);

#endif
