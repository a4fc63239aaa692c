// The call sites of a process for the HTML report: the stacks as a tree, the totals, the flow over
// the run, and the parts.
#ifndef HEAPTAPE_REPORT_SITES_PROFILE_H
#define HEAPTAPE_REPORT_SITES_PROFILE_H

#include "report/json/sites_json.h"

// Returns the object that docs/reference/json/report.schema.json calls "profile". The object has
// about `max_bytes` bytes. The lightest sites, for which there is no space, are summed. Requires
// sites that were counted with by_site.detailed. Returns NULL when out of memory. The caller frees
// the string.
char *sites_profile(const struct sites_json *n, size_t max_bytes);

#endif
