// Opens a trace that is read more than once, and chooses a process of it.
#ifndef HEAPTAPE_COMMANDS_TRACE_FILE_H
#define HEAPTAPE_COMMANDS_TRACE_FILE_H

#include "base/fio.h"
#include "trace/reader.h"
#include "trace/tail.h"

struct trace_file {
    struct input in;
    struct trace_reader reader;
    bool open; // reader is
    // What the end of the file says, once it was read: the reader's session then has the clock rate of the whole recording.
    struct trace_tail tail;
    bool tail_read;
};

// Opens the trace at `path` ("-": stdin), which must outlive *t. When it is to be read `twice`, a pipe is first copied to
// a temporary file. 0 or negative errno with the text set. *t can be closed in either case.
int trace_file_open(struct trace_file *t, const char *path, bool twice, struct err *e);

// The same for an input that is open already and stands at the trace's first byte; it becomes the trace_file's.
int trace_file_take(struct trace_file *t, struct input *in, bool twice, struct err *e);

void trace_file_close(struct trace_file *t);

// Starts again at the first frame.
int trace_file_rewind(struct trace_file *t, struct err *e);

// Reads what the end of a regular file says, and starts again; of a pipe nothing is known.
int trace_file_tail(struct trace_file *t, struct err *e);

// The process with most events, or with most of those with this pid (0: any). The trace was opened to be read twice:
// its end says it, and only where that is missing it is read through. It is rewound then. *of says how many processes
// have events. -ENOENT when there is none; the text then names pids that there are.
int trace_file_choose(struct trace_file *t, uint32_t pid, uint32_t *process, size_t *of, struct err *e);

#endif
