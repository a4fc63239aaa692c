// All that a report shows of the call sites of a process: their stacks as a tree, totals, flow over the run, and parts.
#ifndef HEAPTAPE_REPORT_SITES_PROFILE_H
#define HEAPTAPE_REPORT_SITES_PROFILE_H

#include "report/json/sites_json.h"

// The object that docs/reference/json/report.schema.json calls profile, in about `max_bytes` or less: the lightest sites are
// added up as one where they do not fit. To be freed; NULL when out of memory. The count is of by_site.detailed.
char *sites_profile(const struct sites_json *n, size_t max_bytes);

#endif
