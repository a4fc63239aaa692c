// Imports a foreign file: as a trace, as the workload of one process, or as one workload a process.
#ifndef HEAPTAPE_FORMATS_IMPORT_FILE_H
#define HEAPTAPE_FORMATS_IMPORT_FILE_H

#include "convert/process.h"
#include "formats/formats.h"

struct import_settings {
    const struct format *format;
    bool keep_going; // skip invalid records; watch->note gets the first of them and their number
    // As for traces, but for the window, which is the format's. Of formats without times, workloads have none.
    struct convert_settings convert;
};

// All of these: inputs and outputs stay the caller's to close. 0 or a negative errno with the text set.

// The trace of all processes, compressed with zstd at the level of s->convert.
int import_trace(struct input *in, struct output *out, const struct import_settings *s,
                 struct err *e);

// The workload of the process that s->convert chooses.
int import_one(struct input *in, struct output *out, const struct import_settings *s,
               struct workload_summary *summary, struct err *e);

// The workload of each process.
int import_each(struct input *in, const struct convert_files *files,
                const struct import_settings *s, struct err *e);

#endif
