// A trace that can be read several times. To open one by path, use file_open of workload/file.h.
#pragma once

#include "base/fio.h"
#include "trace/pages.h"
#include "trace/reader.h"
#include "trace/tail.h"

struct trace_file {
    struct input in;
    struct trace_reader reader;
    bool open; // `reader` is open
    // The totals at the end of the file. trace_file_read_tail reads them, and also sets the clock
    // rate of the reader's session to the rate measured over the whole recording.
    struct trace_tail tail;
    bool tail_read;
};

// Opens the trace at the start of an input, and moves *in into *t. If `twice` is set, first copies
// a pipe to a temporary file, so that it can be read again. Returns 0, or a negative errno with the
// message set. The caller must call trace_file_close, even after an error.
int trace_file_adopt(struct trace_file *t, struct input *in, bool twice, struct err *e);

void trace_file_close(struct trace_file *t);

// Restarts at the first frame. Returns 0, or a negative errno.
int trace_file_rewind(struct trace_file *t, struct err *e);

// Calls `take` with each page map and its number in the file, until `take` returns a positive
// number or -ENOMEM. Then restarts at the first frame. To keep a map, `take` replaces it with an
// empty map. A corrupt frame counts as the end of the file. Returns 0, or a negative errno.
int trace_file_each_map(struct trace_file *t,
                        int (*take)(void *context, struct trace_pages *p, uint32_t number),
                        void *context, struct err *e);

// Reads the end of a regular file, and restarts at the first frame. Does nothing for a pipe.
// Returns 0, or a negative errno.
int trace_file_read_tail(struct trace_file *t, struct err *e);
