// Stores function names in a trace or workload, so that its reports no longer need the binaries.
#ifndef HEAPTAPE_ANALYSIS_SYMBOLIZE_H
#define HEAPTAPE_ANALYSIS_SYMBOLIZE_H

#include "base/err.h"
#include "convert/process.h"

struct symbolize_result {
    // Distinct addresses in the stacks of each process, and how many of them have names.
    uint64_t addresses, named;
    char missing[256]; // path of the first missing file, printable; may be ""
};

// Copies `path`, a regular file that holds a trace or workload, to `to`, and adds names. If `to` is
// NULL, replaces `path`. If `to` exists, `force` must be set. Existing names are kept. Returns 0,
// or a negative errno with *e set and no file changed: -ENODATA if there are no call sites.
int symbolize(const char *path, const char *to, bool force, const struct convert_watch *watch,
              struct symbolize_result *result, struct err *e);

// Copies the regular file `in`, a workload, from its start. Only names and file offsets change.
// Returns 0, or a negative errno with *e set: -ENODATA if the workload is truncated.
int symbolize_workload(struct input *in, struct output *out, const struct names *names,
                       struct err *e);

#endif
