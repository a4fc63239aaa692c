// Opens a workload, converting it from a trace if necessary.
#ifndef HEAPTAPE_CONVERT_OPEN_H
#define HEAPTAPE_CONVERT_OPEN_H

#include "convert/process.h"
#include "workload/file.h"

struct convert_open_options {
    uint32_t pid; // process in a trace; 0: the process with the highest peak of live bytes
    bool twice;   // workload_file_rewind must work; a pipe is copied to a temporary file
    const struct convert_watch *watch; // may be NULL
};

// Opens the workload at `path` ("-": standard input), which must outlive *w. A trace is converted
// into a temporary file. Returns 0, or a negative errno with *e set. In either case, *w may be
// closed with workload_file_close.
int convert_open(struct workload_file *w, const char *path, const struct convert_open_options *o,
                 struct err *e);

#endif
