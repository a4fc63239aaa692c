// The processes that were not recorded, in words.
#ifndef HEAPTAPE_PRINT_UNRECORDED_H
#define HEAPTAPE_PRINT_UNRECORDED_H

#include "trace/trace.h"

// "process 12 (sh) was not recorded: …": a line without its end, which the caller frees. NULL when out of memory.
char *unrecorded_line(const struct trace_missed *m);

// What the list leaves out. NULL: nothing, or nothing is known of it. The text is static.
const char *unrecorded_limits(const struct trace_unrecorded *u);

#endif
