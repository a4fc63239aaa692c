// Reads the totals at the end of a trace without reading the rest of the file.
#pragma once

#include "base/fio.h"

#include <stddef.h>
#include <stdint.h>

// Number of events counted for a process image.
struct trace_count {
    uint32_t process, pid;
    uint64_t events;
};

struct trace_tail {
    struct trace_count *counts; // indexed by process; NULL if not recorded
    size_t n;
    uint64_t clock_hz; // clock rate measured over the whole recording, or 0
};

// Reads the END frame of a regular file and leaves the position undefined. Returns 1, 0 if the
// trace was cut off, or a negative errno. After 1, call trace_tail_release.
int trace_read_tail(struct input *in, struct trace_tail *t, struct err *e);
void trace_tail_release(struct trace_tail *t);
