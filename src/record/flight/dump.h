// Writes what a flight recording has as a trace of its own.
#ifndef HEAPTAPE_FLIGHT_DUMP_H
#define HEAPTAPE_FLIGHT_DUMP_H

#include "convert/convert.h"
#include "record/flight/ring.h"

struct dump_source {
    struct trace_reader *reader; // of the frames that have left the ring
    struct converter *converter; // has been fed all of these
    const struct flight_ring
        *ring; // the others, in their order; frames that announce processes are not among them
    const char *reason;
};

struct dump_result {
    uint64_t events, blocks; // in the trace; live ones at its start are not among the events
    uint64_t ns;             // from its start to its end
};

// Writes the trace: it begins with the processes that have not ended, and their live blocks, where the ring begins. Changes
// what the reader knows of processes, so that this is a matter for a process that ends afterwards. 0 or a negative errno with
// the text set.
int dump_write(const struct dump_source *from, struct output *out, struct dump_result *result,
               struct err *e);

#endif
