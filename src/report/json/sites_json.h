// Call sites as JSON, with the names of functions.
#ifndef HEAPTAPE_REPORT_SITES_JSON_H
#define HEAPTAPE_REPORT_SITES_JSON_H

#include "analysis/by_site.h"
#include "analysis/coverage.h"
#include "analysis/symbols/symbols.h"
#include "base/json.h"

// All borrowed.
struct sites_json {
    const struct by_site *totals;
    const struct workload_sites *sites;
    struct symbols *symbols;
};

// Limits of a brief site: a report has to stay small.
enum {
    SITES_JSON_FUNCTIONS = 32,
    SITES_JSON_NAME_BYTES = 160,
};

// The frames of a site: none when it is not known, or was never defined.
const struct workload_site *sites_json_frames(const struct workload_sites *sites, uint32_t number);

// A function as an object, brief.
void sites_json_function(struct json *j, const struct symbol *s);

// A site as an object. When `brief`, with at most SITES_JSON_FUNCTIONS functions, whose names and files are cut to
// SITES_JSON_NAME_BYTES.
void sites_json_site(struct json *j, const struct sites_json *n, uint32_t number, bool brief);

// The member "span": what was allocated in it and is live at its end, by thread and by size. Nothing where none was wanted.
void sites_json_span(struct json *j, const struct by_site_span *s);

// The member "stack_coverage". Nothing where no call sites were recorded.
void sites_json_coverage(struct json *j, const struct coverage *c);

// The member "call_sites": the heaviest ones at the peak and at the end, brief.
void sites_json_top(struct json *j, const struct sites_json *n);

#endif
