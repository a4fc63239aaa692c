// Writes the state of an order and its pending records as the start of a trace that begins in the
// middle of a recording.
#ifndef HEAPTAPE_FLIGHT_SNAPSHOT_H
#define HEAPTAPE_FLIGHT_SNAPSHOT_H

#include "convert/heap.h"
#include "trace/writer.h"

// Smallest stamp of a pending record; UINT64_MAX if all are written.
uint64_t snapshot_stamp(const struct order *o);

struct snapshot {
    struct trace_writer *writer; // inside a batch
    uint64_t stamp;        // of the listed blocks; must not exceed snapshot_stamp of any order
    uint64_t blocks;       // listed so far
    uint32_t process, pid; // current process: its number in the new trace, its pid
    // Per stream: offset of its later word numbers, for snapshot_first_word.
    struct map shifts;
};

// Number of modules that the process inherited. They precede its own modules, and the recorder
// names code by module number.
uint32_t snapshot_inherited_modules(const struct order *o);

// Writes the order's names of code for process `process`. Call outside a batch. Returns 0, or a
// negative errno with `e` set.
int snapshot_write_names(struct trace_writer *w, uint32_t process, const struct order *o,
                         struct err *e);

void snapshot_release(struct snapshot *s);

// Writes modules, stack frames, live blocks as PREEXISTING, begun reallocs, and pending records of
// one process. Omits blocks of unknown size. `number`: the process in the old trace. Returns 0, or
// a negative errno with `e` set.
int snapshot_write(struct snapshot *s, uint32_t number, const struct order *o,
                   const struct heap_notes *notes, struct err *e);

// Position in the new trace of a later segment of the old trace.
uint64_t snapshot_first_word(const struct snapshot *s, const struct trace_segment *old);

#endif
