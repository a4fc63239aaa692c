// Opens a workload, converting it from a trace if necessary.
#pragma once

#include "convert/process.h"
#include "workload/file.h"

struct convert_open_options {
    // Pid of a process in a trace; 0 selects the process with the highest peak of live bytes.
    uint32_t pid;
    bool twice; // allow workload_file_rewind; a pipe is copied to a temporary file
    const struct convert_watch *watch; // may be NULL
};

// Opens the workload at `path`, which must outlive *w. "-" is standard input. Converts a trace into
// a temporary file. Returns 0, or a negative errno with *e set. In either case, *w may be closed
// with workload_file_close.
int convert_open(struct workload_file *w, const char *path, const struct convert_open_options *o,
                 struct err *e);
