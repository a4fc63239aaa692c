// Puts the events of one process into a valid total order and replaces addresses by slots.
//
// The capture stamps a free before the call and an allocation after it, so with exact stamps every
// address alternates between allocated and free. But the CPU may read the counter ahead of
// surrounding instructions: the stamp of an allocation may be a few hundred ns early and seem to
// precede the free that released its address. Such an allocation need not wait, because addresses
// are not slots: the address has two blocks for a while, and the order only has to find which block
// a free means (docs/design/convert.md).
#ifndef HEAPTAPE_CONVERT_ORDER_H
#define HEAPTAPE_CONVERT_ORDER_H

#include "trace/trace.h"
#include "workload/writer.h"

// Fields of a record that the op does not have.
struct order_call {
    uint64_t ptr, result; // addresses, as in struct event
    uint64_t notes[HT_NOTES];
    uint32_t thread, tid; // as in the trace
    bool added;           // no record: a block from before the recording, or a lost free
};

// Receives the ops in a valid total order. Ops are borrowed until the callback returns.
struct order_sink {
    void *context;
    // Returns 0, or a negative errno, which ends the order.
    int (*ops)(void *context, const struct workload_thread_op *ops, size_t n);
    // Returns the output that `ops` writes to, or NULL if it is not open yet. Simple ops bypass
    // `ops` and go to this output directly. May be NULL.
    struct workload_output *(*output)(void *context);
    // Called instead of `ops` if set; calls[i] belongs to ops[i]. Slower.
    int (*calls)(void *context, const struct workload_thread_op *ops,
                 const struct order_call *calls, size_t n);
};

struct order_options {
    // In stamps: how long a free of an unknown address waits for the allocation, and a second block
    // of an address for the free of the first.
    uint64_t window;
    // In stamps: the largest assumed error of an allocation's stamp. Closer stamps do not prove an
    // order.
    uint64_t skid;
};

struct order_counts {
    uint64_t repaired;  // allocations and frees whose stamps contradicted the alternation
    uint64_t late;      // block events that were published after later ones were emitted
    uint64_t ambiguous; // guesses: a lost free, or which of two blocks was freed
    uint64_t unmatched; // frees of addresses without a recorded allocation
    uint64_t dependencies, dependencies_needed; // written to the workload; including implied ones
    uint64_t lost;                              // words that the capture lost
    uint64_t slots;
    uint64_t threads;
    uint64_t usable_bytes,
        usable_requested_bytes;                // of blocks with a known usable size
    const uint32_t *tids;                      // by thread number; borrowed from the order
    const struct samples_residency *residency; // sorted by order_finish; borrowed
};

struct order;

// Returns NULL when out of memory.
struct order *order_new(const struct order_options *options, const struct order_sink *sink);
void order_free(struct order *o);

// Adds a segment of the process; the words are copied. Returns 0, or a negative errno.
int order_feed(struct order *o, const struct trace_segment *s);

// Emits all events with stamps up to `limit`. Requires that everything published up to this
// watermark was fed. Returns 0, or a negative errno, which may come from the sink.
int order_advance(struct order *o, uint64_t limit);

// Emits all events with stamps up to `stamp` even if they wait for other events. Requires that
// everything up to `stamp` plus the skid was fed. Returns 0, or a negative errno, which may come
// from the sink.
int order_settle(struct order *o, uint64_t stamp);

// Call before order_finish if the recording was cut off. Events that the remaining ones depend on
// may be missing, so frees count as ambiguous if there are several threads.
void order_cut_off(struct order *o);

// Emits the remaining events.
int order_finish(struct order *o);

struct order_counts order_counts(const struct order *o);

// The call sites of the emitted ops; borrowed until order_free.
const struct workload_sites *order_sites(const struct order *o);

// Copies the call sites known so far into the empty *sites, which the caller releases. Sites with a
// frame that was not read yet have no stack. Returns 0 or -ENOMEM.
int order_sites_so_far(const struct order *o, struct workload_sites *sites);

// Adds names of code, the payload of a NAMES frame. Returns 0, -EBADMSG or -ENOMEM.
int order_names(struct order *o, const uint8_t *at, size_t n);

// Copies the counts into the summary of the workload; other fields are unchanged.
void order_summarise(const struct order_counts *counts, struct workload_summary *s);

#endif
