// What an order knows and what it has not put out yet, as the first records of a trace: one that begins in the middle of a
// recording.
#ifndef HEAPTAPE_FLIGHT_SNAPSHOT_H
#define HEAPTAPE_FLIGHT_SNAPSHOT_H

#include "convert/heap.h"
#include "trace/writer.h"

// The smallest stamp of a record that has not been put out. UINT64_MAX: all have been.
uint64_t snapshot_stamp(const struct order *o);

struct snapshot {
    struct trace_writer *writer; // in a batch
    uint64_t stamp;        // at which the blocks are listed: not above snapshot_stamp of any order
    uint64_t blocks;       // listed so far
    uint32_t process, pid; // of the process under work: its number in the new trace
    // By stream: what is to be added to the numbers of its words that come later, for snapshot_first_word.
    struct map shifts;
};

// Modules of the process that are its parent's: they come before its own, by whose numbers the recorder names code.
uint32_t snapshot_inherited_modules(const struct order *o);

// Writes the names of code that the order has, for the process of this number; outside of a batch. 0 or a negative errno with
// the text set.
int snapshot_write_names(struct trace_writer *w, uint32_t process, const struct order *o,
                         struct err *e);

void snapshot_release(struct snapshot *s);

// Writes one process: modules and stack frames, its live blocks as PREEXISTING, begun reallocs, and then the records that have
// not been put out. A block whose size is not known is left out. `number` is the process's number in the old trace. 0 or a
// negative errno with the text set.
int snapshot_write(struct snapshot *s, uint32_t number, const struct order *o,
                   const struct heap_notes *notes, struct err *e);

// Where the segment of the old trace, which comes after what the order was fed, stands in its stream in the new one.
uint64_t snapshot_first_word(const struct snapshot *s, const struct trace_segment *old);

#endif
