// Opens what a command that reads traces and workloads alike was given.
#ifndef HEAPTAPE_COMMANDS_OPEN_FILE_H
#define HEAPTAPE_COMMANDS_OPEN_FILE_H

#include "commands/open_workload.h"
#include "commands/trace_file.h"

struct open_file {
    bool is_trace; // which of the two it is
    struct trace_file trace;
    struct open_workload workload;
};

// Opens the trace or workload at `path` ("-": stdin), which must outlive *f. 0 or negative errno with the text set: also
// for a file that is neither. *f can be closed in either case.
int open_file(struct open_file *f, const char *path, struct err *e);

// The same; a trace can be read `twice`.
int open_file_to_read(struct open_file *f, const char *path, bool twice, struct err *e);

void close_file(struct open_file *f);

#endif
