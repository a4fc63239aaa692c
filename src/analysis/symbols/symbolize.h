// Stores function names in a trace or workload, so that its reports no longer need the binaries.
#pragma once

#include "base/err.h"
#include "convert/process.h"

struct symbolize_settings {
    const char *path;                  // a regular file that holds a trace or workload
    const char *to;                    // the copy with the names; NULL replaces `path`
    bool force;                        // replace `to` if it exists
    const struct convert_watch *watch; // may be NULL
};

struct symbolize_result {
    // Distinct addresses in the stacks of each process, and how many of them have names.
    uint64_t addresses, named;
    char missing[256]; // path of the first missing file, printable; may be ""
};

// Copies the file and adds names. Existing names are kept. Returns 0, or a negative errno with *e
// set and no file changed: -ENODATA if there are no call sites.
int symbolize(const struct symbolize_settings *how, struct symbolize_result *result, struct err *e);

// Copies the regular file `in`, a workload, from its start. Only names and file offsets change.
// Returns 0, or a negative errno with *e set: -ENODATA if the workload is truncated.
int symbolize_workload(struct input *in, struct output *out, const struct names *names,
                       struct err *e);
