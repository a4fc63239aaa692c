// Writes a trace or workload in the format of another tool, for `export` and `record --format`.
#ifndef HEAPTAPE_FORMATS_EXPORT_FILE_H
#define HEAPTAPE_FORMATS_EXPORT_FILE_H

#include "base/fio.h"
#include "convert/process.h"
#include "formats/formats.h"

struct export_settings {
    const struct format *format;
    // FILE or "-". If it contains "%p", each process has its own file, with its pid for "%p".
    const char *output;
    int fd;      // above 0: file descriptor used instead of `output`
    bool force;  // replace an existing output
    bool append; // append to an existing output
    bool stamps; // write the time of each call
    bool live;   // the trace is still being recorded: write events at once, in place
    // Output opened by export_outputs_prepare. NULL: export_file opens it at the first event.
    struct output *opened;
    uint32_t pid; // export only this process of a trace; 0: all that the format can hold
    // Its notes report the losses. May be NULL.
    const struct convert_watch *watch;
};

// Exports the trace or workload at `from` ("-" is stdin). Returns 0, or a negative errno with the
// text set.
int export_file(const char *from, const struct export_settings *s, struct err *e);

#endif
