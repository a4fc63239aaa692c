// Converts one process of a trace: for `convert`, and for commands that want a workload and are given a trace.
#ifndef HEAPTAPE_COMMANDS_CONVERT_TRACE_H
#define HEAPTAPE_COMMANDS_CONVERT_TRACE_H

#include "commands/trace_file.h"
#include "workload/workload.h"

struct convert_trace_options {
    uint32_t pid;       // 0: the process with most events
    uint64_t window_ns; // 0: the converter's own
    int level;          // zstd's
    bool strict;        // fail when something had to be guessed or is missing
    bool no_stamps;
};

// Writes the process's workload to `out`, which stays the caller's to close. The trace was opened to be read twice. Tells
// on stderr which process it is, when there are several, and when the recording was cut off. *summary is what the workload
// says of itself. 0 or negative errno with the text set.
int convert_trace(struct trace_file *t, struct output *out, const struct convert_trace_options *options,
                  struct workload_summary *summary, struct err *e);

#endif
