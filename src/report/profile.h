// Profiles of call sites in the formats of other tools.
#pragma once

#include "analysis/by_site.h"
#include "analysis/symbols/symbols.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"

// Figures that can be used as the weight of a call site in a profile.
enum profile_weight {
    PROFILE_PEAK, // bytes live at the peak of the process
    PROFILE_LIVE, // bytes live at the end of the recording
    PROFILE_BYTES,
    PROFILE_CALLS,
    PROFILE_GROWTH, // by_site_totals.growth_bytes
    PROFILE_SPAN,   // bytes allocated in the span and not freed in the span
};

uint64_t profile_weigh(const struct by_site_totals *t, enum profile_weight weight);

// Returns the rank of a site in a list. The rank is the site's weight, except for PROFILE_GROWTH,
// which uses by_site_growth_rank.
uint64_t profile_rank(const struct by_site_totals *t, enum profile_weight weight);

// Returns the numbers of all sites with a rank above 0, sorted by descending rank, and sets *n. The
// caller frees the array. Returns NULL when out of memory.
uint32_t *profile_order(const struct by_site *b, enum profile_weight weight, size_t *n);

// A stack consists of a prefix, which is another stack or PROFILE_NO_STACK, and one more frame.
enum { PROFILE_NO_STACK = 0xffffffff };
struct profile_stack {
    uint32_t prefix, frame;
};

struct profile_sample {
    uint64_t weight;
    uint32_t stack;
};

// Stacks as a tree. A prefix has a lower number than the stacks that begin with it. A zeroed struct
// is empty.
struct profile_stacks {
    struct symbol *frames; // the strings are borrowed from the symbols
    size_t n_frames, frames_capacity;
    struct profile_stack *stacks;
    size_t n_stacks, stacks_capacity;
    struct profile_sample *samples; // in the order of profile_stacks_add
    size_t n_samples, samples_capacity;
    struct map by_address; // maps an address to the number of its first frame plus 1
    struct map by_stack;   // maps a prefix and a frame to the number of the stack plus 1
    uint64_t total;        // sum of the weights
};

void profile_stacks_release(struct profile_stacks *t);

// Adds a site as a sample. Returns 0 or -ENOMEM.
int profile_stacks_add(struct profile_stacks *t, size_t number, struct symbols *symbols,
                       uint64_t weight);

// Appends folded stacks in the form that flamegraph.pl reads: lines such as "main;f;g 1234", with
// the outermost function first. Sites with the same functions share a line. Returns 0 or -ENOMEM.
int profile_folded(struct buf *to, const struct by_site *b, struct symbols *symbols,
                   enum profile_weight weight);

// Appends an uncompressed profile.proto of pprof (github.com/google/pprof). The sample types are
// alloc_objects, alloc_space, peak_objects, peak_space, inuse_objects and inuse_space; the inuse
// types describe the end of the recording. Returns 0 or -ENOMEM.
int profile_pprof(struct buf *to, const struct by_site *b, struct symbols *symbols,
                  uint64_t duration_ns);

// Writes the stacks, each with one weight, in the format of https://www.speedscope.app or
// https://profiler.firefox.com. Returns 0, or -ENOMEM without having written anything.
enum profile_json_format { PROFILE_SPEEDSCOPE, PROFILE_FIREFOX };
struct profile_json_of {
    const char *name;
    const struct by_site *totals;
    struct symbols *symbols;
    enum profile_weight weight;
};
int profile_json(struct json *j, enum profile_json_format format, const struct profile_json_of *of);

// Writes a heap profile of jemalloc and gperftools, with function names. The blocks in use are live
// at the end if the weight is PROFILE_LIVE, and at the peak otherwise. Returns 0, or -ENOMEM
// without having written anything.
int profile_jeprof(FILE *to, const struct profile_json_of *of);
