// Totals of a workload by call site, for formats that store totals instead of calls.
#pragma once

#include "analysis/by_site.h"
#include "analysis/symbols/symbols.h"
#include "formats/export.h"
#include "workload/reader.h"
#include "workload/sites.h"

// Figures of a call site, in addition to those that by_site computes. If call sites are sampled,
// the figures are estimates.
struct heap_profile_site {
    uint64_t max_bytes;  // maximum of the site's live bytes
    uint64_t max_blocks; // number of the site's live blocks at that time
    // Sum of the lifetimes of all blocks except preexisting ones, in the unit of `now`.
    double lifetimes;
    double earlier_blocks, earlier_bytes; // preexisting blocks
};

struct heap_profile {
    struct export *x;
    struct workload_reader *reader;
    const struct workload_header *header;
    struct workload_summary summary;
    struct workload_sites sites;
    struct symbols *symbols;
    struct by_site counts;
    struct heap_profile_site *more; // by site, up to counts.n_sites
    size_t n_more, more_capacity;
    // Ns since the start of the process or, without timestamps, the number of events.
    uint64_t now;
    uint64_t peak_at; // value of `now` when live bytes were at their maximum
    uint64_t ops;
};

// Reads the summary and the call sites. The reader is borrowed and must be able to seek. Call
// heap_profile_release even after an error. Returns 0, or a negative errno with the message set in
// x->e.
int heap_profile_open(struct heap_profile *p, struct export *x, struct workload_reader *r);
void heap_profile_release(struct heap_profile *p);

// Counts the next op. Returns 1, 0 at the end of the workload, or a negative errno with the message
// set.
int heap_profile_next(struct heap_profile *p);

// Converts a stamp to nanoseconds since the start of the process.
uint64_t heap_profile_ns(const struct heap_profile *p, uint64_t stamp);

// Completes the figures. Call after the last op.
void heap_profile_finish(struct heap_profile *p);

// Blocks and bytes of the site: allocated so far, and currently live. Preexisting blocks count as
// allocated.
struct heap_profile_level {
    uint64_t allocated_blocks, allocated_bytes, live_blocks, live_bytes;
};
struct heap_profile_level heap_profile_level(const struct heap_profile *p, uint32_t site);

// Returns the site's frames, the innermost first, and sets *n to their number. *n is 0 for an
// unknown site.
const struct workload_frame *heap_profile_frames(const struct heap_profile *p, uint32_t site,
                                                 uint32_t *n);
