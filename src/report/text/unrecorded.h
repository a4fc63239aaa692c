// Text about processes that were not recorded.
#ifndef HEAPTAPE_TEXT_UNRECORDED_H
#define HEAPTAPE_TEXT_UNRECORDED_H

#include "trace/trace.h"

// Returns a line such as "process 12 (sh) was not recorded: …" without a newline, or NULL when out
// of memory. The caller frees the line.
char *unrecorded_line(const struct trace_missed *m);

// Returns a static string about processes that the list may miss. Returns NULL if the list is
// complete or its completeness is unknown.
const char *unrecorded_limits(const struct trace_unrecorded *u);

#endif
