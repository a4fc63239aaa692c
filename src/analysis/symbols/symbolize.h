// Stores function names in a trace or workload, so that other files are no longer needed.
#ifndef HEAPTAPE_ANALYSIS_SYMBOLIZE_H
#define HEAPTAPE_ANALYSIS_SYMBOLIZE_H

#include "base/err.h"
#include "convert/process.h"

struct symbolize_result {
    uint64_t addresses, named; // distinct addresses in the stacks of each process
    char missing[256];         // path of the first missing file, printable; may be ""
};

// Copies the regular file `path`, a trace or workload, to `to` and adds names. `to` may exist if
// `force` is set; NULL replaces `path`. Existing names are kept. Returns 0, or a negative errno
// with *e set and no file changed; -ENODATA if there are no call sites.
int symbolize(const char *path, const char *to, bool force, const struct convert_watch *watch,
              struct symbolize_result *result, struct err *e);

#endif
