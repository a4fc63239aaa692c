// A trace that is read more than once. file_open of workload/file.h opens it by its path.
#ifndef HEAPTAPE_TRACE_FILE_H
#define HEAPTAPE_TRACE_FILE_H

#include "base/fio.h"
#include "trace/reader.h"
#include "trace/tail.h"

struct trace_file {
    struct input in;
    struct trace_reader reader;
    bool open; // reader is
    // The end of the file, once it was read: the reader's session then has the clock rate of the whole recording.
    struct trace_tail tail;
    bool tail_read;
};

// Opens a trace on an input that stands at its first byte; *in is moved into *t. If it is to be read `twice`, a pipe is
// first copied to a temporary file. 0 or negative errno with the text set. *t can be closed in either case.
int trace_file_adopt(struct trace_file *t, struct input *in, bool twice, struct err *e);

void trace_file_close(struct trace_file *t);

// Starts again at the first frame.
int trace_file_rewind(struct trace_file *t, struct err *e);

// Reads the end of a regular file and starts again; does nothing for a pipe.
int trace_file_read_tail(struct trace_file *t, struct err *e);

#endif
