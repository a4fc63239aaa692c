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

// Reads the counts of a regular file from its END frame, in an array that the caller frees. Leaves the position anywhere.
// 1; 0 when the trace was cut off or its recorder did not count; negative errno.
int trace_read_counts(struct input *in, struct trace_count **counts, size_t *n, struct err *e);

#endif
