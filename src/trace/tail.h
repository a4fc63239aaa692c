// What the end of a trace says of the whole, without reading the rest.
#ifndef HEAPTAPE_TRACE_TAIL_H
#define HEAPTAPE_TRACE_TAIL_H

#include "base/fio.h"

#include <stddef.h>
#include <stdint.h>

// Counted events of a process image.
struct trace_count {
    uint32_t process, pid;
    uint64_t events;
};

struct trace_tail {
    struct trace_count *counts; // by process; NULL when the recorder did not count
    size_t n;
    uint64_t clock_hz; // as measured over the whole recording; 0: not given
};

// Reads the END frame of a regular file. Leaves the position anywhere. 1; 0 when the trace was cut off; negative errno.
// What *t holds is to be released in the first case.
int trace_read_tail(struct input *in, struct trace_tail *t, struct err *e);
void trace_tail_release(struct trace_tail *t);

#endif
