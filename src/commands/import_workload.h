// Imports a process of a foreign file as a workload, without a trace in between.
#ifndef HEAPTAPE_COMMANDS_IMPORT_WORKLOAD_H
#define HEAPTAPE_COMMANDS_IMPORT_WORKLOAD_H

#include "convert/process.h"
#include "formats/formats.h"

struct import_workload_options {
    const struct format *format;
    bool keep_going;
    // pid 0: the process that comes first. Formats without times give a workload without stamps whatever no_stamps says.
    struct convert_settings convert;
};

// Writes the workload of what `in` holds to `out`; both stay the caller's to close. Tells on stderr what was skipped. 0 or
// a negative errno with the text set.
int import_workload(struct input *in, struct output *out, const struct import_workload_options *o,
                    struct workload_summary *summary, struct err *e);

#endif
