// What call sites take and hold, as JSON with the names of functions.
#ifndef HEAPTAPE_REPORT_SITES_JSON_H
#define HEAPTAPE_REPORT_SITES_JSON_H

#include "analysis/sites.h"
#include "analysis/symbols.h"
#include "base/json.h"

// All borrowed.
struct named_sites {
    const struct by_site *totals;
    const struct workload_sites *sites;
    struct symbols *symbols;
};

// What of a site's functions and names is wanted: a page has to stay small.
enum {
    SITE_FUNCTIONS = 32,
    SITE_NAME_BYTES = 160,
};

// The frames of a site: none when it is not known, or was never defined.
const struct workload_site *site_frames(const struct workload_sites *sites, uint32_t number);

// A site as an object. When `brief`, with at most SITE_FUNCTIONS functions, whose names and files are cut to
// SITE_NAME_BYTES.
void print_site_json(struct json *j, const struct named_sites *n, uint32_t number, bool brief);

// The member "call_sites": the heaviest ones at the peak and at the end, brief.
void print_call_sites(struct json *j, const struct named_sites *n);

#endif
