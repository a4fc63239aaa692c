// Imports a foreign file as a trace, as the workload of one process, or as one workload per
// process.
#pragma once

#include "convert/process.h"
#include "formats/formats.h"

struct import_settings {
    const struct format *format;
    bool keep_going; // skip invalid records; watch->note reports each of them
    // Same as when converting a trace, except that the format sets the window. Formats without
    // times produce workloads without times.
    struct convert_settings convert;
};

// The caller closes the inputs and outputs. All functions return 0, or a negative errno with the
// message set.

// Writes a trace of all processes, compressed with zstd at the level in s->convert.
int import_trace(struct input *in, struct output *out, const struct import_settings *s,
                 struct err *e);

// Writes the workload of the process that s->convert selects.
int import_one(struct input *in, struct output *out, const struct import_settings *s,
               struct workload_summary *summary, struct err *e);

// Writes one workload per process.
int import_each(struct input *in, const struct convert_files *files,
                const struct import_settings *s, struct err *e);
