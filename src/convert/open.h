// Opens a workload, or the workload that a trace is converted to on the way.
#ifndef HEAPTAPE_CONVERT_OPEN_H
#define HEAPTAPE_CONVERT_OPEN_H

#include "convert/process.h"
#include "workload/file.h"

struct convert_open_options {
    uint32_t pid; // of a trace: the process; 0: the one with the highest peak of live bytes
    bool twice;   // workload_file_rewind has to work: a pipe is first copied to a temporary file
    const struct convert_watch *watch; // NULL: not wanted
};

// Opens the workload at `path` ("-": stdin), which must outlive *w. A trace is converted into a temporary file. 0 or
// negative errno with the text set. *w can be closed (workload_file_close) in either case.
int convert_open(struct workload_file *w, const char *path, const struct convert_open_options *o,
                 struct err *e);

#endif
