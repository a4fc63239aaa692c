// Writes the contents of a flight recording as a trace.
#ifndef HEAPTAPE_FLIGHT_DUMP_H
#define HEAPTAPE_FLIGHT_DUMP_H

#include "convert/convert.h"
#include "record/flight/ring.h"

struct dump_source {
    struct trace_reader *reader;    // positioned after the frames that were dropped from the ring
    struct converter *converter;    // has converted all dropped frames
    const struct flight_ring *ring; // the frames after these, in order, except PROCESS frames
    const char *reason;
};

struct dump_result {
    // Numbers of events and blocks in the trace. `events` excludes the blocks that were live at its
    // start.
    uint64_t events, blocks;
    uint64_t ns; // time from the trace's start to its end
};

// Writes a trace that starts where the ring starts. The trace contains the processes that have not
// ended and their live blocks. Changes the reader's state of processes, so call this in a process
// that exits afterwards. Returns 0, or a negative errno with `e` set.
int dump_write(const struct dump_source *from, struct output *out, struct dump_result *result,
               struct err *e);

#endif
