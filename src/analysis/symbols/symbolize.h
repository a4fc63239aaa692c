// Writes the names of functions into a trace or workload, so that it needs no other files any more.
#ifndef HEAPTAPE_ANALYSIS_SYMBOLIZE_H
#define HEAPTAPE_ANALYSIS_SYMBOLIZE_H

#include "base/err.h"
#include "convert/process.h"

struct symbolize_result {
    uint64_t addresses, named; // of all stacks, each once in its process
    char missing[256]; // path of the first file that was not found, as it may be printed; "": none
};

// Copies the trace or workload at `path`, a regular file, to `to` with the names in it: to another file, which may exist if
// `force`, or in place of itself if `to` is NULL. Names that it has already stay. 0 or a negative errno with the text set:
// nothing is changed then. -ENODATA if it has no call sites.
int symbolize(const char *path, const char *to, bool force, const struct convert_watch *watch,
              struct symbolize_result *result, struct err *e);

#endif
