// Writes a trace or workload in another tool's format: for `export`, and for `record --format`.
#ifndef HEAPTAPE_COMMANDS_EXPORT_FILE_H
#define HEAPTAPE_COMMANDS_EXPORT_FILE_H

#include "base/fio.h"
#include "formats/formats.h"

struct export_file_options {
    const struct format *format;
    const char *output;    // FILE or "-"; each "%p" in it stands for a process's pid: a file for each process
    int fd;                // above 0: written there instead of to `output`
    bool force;            // replace the output
    bool append;           // or write behind what it has
    bool stamps;           // write when each call was
    bool live;             // the trace is being recorded: what comes is written at once, in place
    struct output *opened; // by export_file_prepare; NULL: by export_file when there is something to write
    uint32_t pid;          // of a trace: this process only; 0: all that the format has a place for
};

// Opens the one output that there will be, if there will be one, so that what is wrong with it is known early. *out stays
// closed when there will be none or several. Fill in `opened` then. 0 or a negative errno with the text set.
int export_file_prepare(const struct export_file_options *o, struct output *out, struct err *e);

// `from` as for file_open. Tells on stderr what the format could not hold. 0 or a negative errno with the text set.
int export_file(const char *from, const struct export_file_options *o, struct err *e);

#endif
