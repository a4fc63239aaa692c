// Writes a trace or workload in another tool's format: for `export`, and for `record --format`.
#ifndef HEAPTAPE_FORMATS_EXPORT_FILE_H
#define HEAPTAPE_FORMATS_EXPORT_FILE_H

#include "base/fio.h"
#include "convert/process.h"
#include "formats/formats.h"

struct export_settings {
    const struct format *format;
    const char
        *output; // FILE or "-"; each "%p" in it stands for a process's pid: one file per process
    int fd;      // above 0: written there instead of to `output`
    bool force;  // replace the output
    bool append; // or append to it
    bool stamps; // write the time of each call
    bool live;   // the trace is being recorded: what comes is written at once, in place
    struct output
        *opened; // by export_outputs_prepare; NULL: by export_file when there is something to write
    uint32_t pid; // of a trace: this process only; 0: all that the format can hold
    const struct convert_watch
        *watch; // its notes say what the format could not hold; NULL: not wanted
};

// Exports the trace or workload at `from` ("-": stdin). 0 or a negative errno with the text set.
int export_file(const char *from, const struct export_settings *s, struct err *e);

#endif
