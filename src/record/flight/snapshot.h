// Starts a trace in the middle of a recording: writes an order's state and pending records.
#pragma once

#include "convert/heap.h"
#include "trace/writer.h"

struct snapshot_facts {
    uint64_t stamp;         // smallest stamp of a pending record, or UINT64_MAX
    uint64_t pending_words; // number of words in the queues
    uint64_t late;          // number of events that were published late
    uint64_t live_blocks;
    // Number of modules that the process inherited. These modules precede the modules that it
    // mapped later, and the recorder refers to code by module number.
    uint32_t inherited_modules;
    bool is_clear; // no address has two blocks, so the list of blocks is complete
    bool is_empty; // the process has had no blocks
};

struct snapshot_facts snapshot_facts_of(const struct order *o);

struct snapshot {
    struct trace_writer *writer; // inside a batch
    uint64_t stamp; // stamp of the listed blocks; must not exceed snapshot_facts.stamp of any order
    uint64_t blocks;       // number of blocks listed so far
    uint32_t process, pid; // current process: its number in the new trace, and its pid
    bool in_order;         // pending records are written by snapshot_write_passed
    uint64_t words;        // number of words written by snapshot_write_passed
    // If in_order is set, the number of the next word of each stream. Otherwise the offset that
    // snapshot_first_word adds to later word numbers of the stream.
    struct map shifts; // the caller must release it
};

// Pending words by stamp: counts[i] words have stamps in the i-th part of (from, to].
enum { SNAPSHOT_PARTS = 256 };
struct snapshot_histogram {
    uint64_t from, to;
    uint64_t counts[SNAPSHOT_PARTS];
};
void snapshot_count(const struct order *o, struct snapshot_histogram *h);

static inline uint64_t snapshot_part_stamps(const struct snapshot_histogram *h)
{
    return (h->to - h->from) / SNAPSHOT_PARTS + 1;
}

// Writes the names of code that the order contains, as names of process `process`. Call outside a
// batch. Returns 0, or a negative errno with `e` set.
int snapshot_write_names(struct trace_writer *w, uint32_t process, const struct order *o,
                         struct err *e);

// Writes the state of one process: modules, stack frames, live blocks (as PREEXISTING), unfinished
// reallocs and, unless in_order is set, pending records. Omits blocks of unknown size. `number` is
// the number of the process in the old trace. Returns 0, or a negative errno with `e` set.
int snapshot_write(struct snapshot *s, uint32_t number, const struct order *o,
                   const struct heap_notes *notes, struct err *e);

// Writes the words that the order has consumed since the last call. If `all` is set, also writes
// the pending words. Requires an order with keep_words. Returns 0, or a negative errno with `e`
// set.
int snapshot_write_passed(struct snapshot *s, uint32_t number, const struct order *o, bool all,
                          struct err *e);

// Returns the number, in the new trace, of the first word of a later segment of the old trace.
uint64_t snapshot_first_word(const struct snapshot *s, const struct trace_segment *old);
