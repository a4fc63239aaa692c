// Opens what a command that wants a workload was given.
#ifndef HEAPTAPE_COMMANDS_OPEN_WORKLOAD_H
#define HEAPTAPE_COMMANDS_OPEN_WORKLOAD_H

#include "base/fio.h"
#include "workload/reader.h"

struct open_workload {
    struct input in;
    struct workload_reader *reader;
};

// Opens the workload at `path` ("-": stdin), which must outlive *w. Of a trace, the process with most events is converted
// into a temporary file first, and stderr tells which one. 0 or negative errno with the text set: also for a file that is
// neither. *w can be closed in either case.
int open_workload(struct open_workload *w, const char *path, struct err *e);

// The same; of a trace the process with this pid (0: as above).
int open_workload_of(struct open_workload *w, const char *path, uint32_t pid, struct err *e);

// open_workload, and rewind_workload works: what comes through a pipe is copied into a temporary file.
int open_workload_to_rewind(struct open_workload *w, const char *path, struct err *e);

// open_workload with an input that is open already and stands at its start; it is moved into *w.
int workload_take(struct open_workload *w, struct input *in, struct err *e);

// Reads on from the start, with a new reader. -ESPIPE when the input cannot be read twice.
int rewind_workload(struct open_workload *w, struct err *e);

void close_workload(struct open_workload *w);

#endif
