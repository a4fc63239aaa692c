// Puts the events of one process into a valid total order, and blocks in the place of addresses.
//
// The capture stamps a free before the call and an allocation after it, so with exact stamps every address alternates:
// allocated, freed, allocated. But the counter is read out of order with the instructions around it: the stamp of an
// allocation may be too early by the depth of the CPU's reordering, a few hundred ns, and then it seems to precede the
// free that made its address available. Such an allocation need not wait, because an address is not a block: for a
// while the address has two blocks, and only the block that a free means remains to be found (docs/design/convert.md).
#ifndef HEAPTAPE_CONVERT_ORDER_H
#define HEAPTAPE_CONVERT_ORDER_H

#include "trace/trace.h"
#include "workload/writer.h"

// What the record of an op says beyond the op.
struct order_call {
    uint64_t ptr, result; // addresses, as in struct event
    uint64_t notes[HT_NOTES];
    uint32_t thread, tid; // as in the trace
    bool
        added; // no record: `ptr` is that of a block from before the recording, or of one whose free was lost
};

// Where ops go, in a valid total order. They are borrowed until the call returns.
struct order_sink {
    void *context;
    // 0 or a negative errno, which ends all.
    int (*ops)(void *context, const struct workload_thread_op *ops, size_t n);
    // The output that `ops` writes to, NULL before there is one: simple ops then go to it directly. NULL: none do.
    struct workload_output *(*output)(void *context);
    // Instead, when it is not NULL: calls[i] is that of ops[i]. Slower.
    int (*calls)(void *context, const struct workload_thread_op *ops,
                 const struct order_call *calls, size_t n);
};

struct order_options {
    // Stamp units. How long a free of an unknown address waits for its allocation, and a second block of an address for
    // the free of the first.
    uint64_t window;
    // The most by which an allocation's stamp is assumed to be early: closer stamps do not prove an order.
    uint64_t skid;
};

struct order_counts {
    uint64_t
        repaired; // allocations and frees whose stamps contradicted the alternation at their address
    uint64_t
        late; // allocations, frees and resizes that were published after what came later was put out
    uint64_t
        ambiguous; // what had to be guessed: a block whose free never came, or which of two blocks a free meant
    uint64_t unmatched; // frees of addresses that were without a recorded allocation
    uint64_t dependencies, dependencies_needed; // written, and with the implied ones
    uint64_t lost;                              // words that the capture lost
    uint64_t slots;
    uint64_t threads;
    uint64_t usable_bytes,
        usable_requested_bytes; // of the blocks whose usable size was recorded, and what was asked for
    const uint32_t *tids;       // of the threads, by number; the order's
    const struct samples_residency
        *residency; // of big blocks, sorted when the order is finished; the order's
};

struct order;

// NULL when out of memory.
struct order *order_new(const struct order_options *options, const struct order_sink *sink);
void order_free(struct order *o);

// Adds a segment of the process; its words are copied. 0 or a negative errno.
int order_feed(struct order *o, const struct trace_segment *s);

// Puts out all events with stamps up to `limit`, a watermark up to which all that was published has been fed. 0 or a
// negative errno, which may be the sink's.
int order_advance(struct order *o, uint64_t limit);

// Puts out all events with stamps up to `stamp`, which nothing holds back any longer: all that could resolve what they wait
// for, up to the skid behind the stamp, has been fed. 0 or a negative errno, which may be the sink's.
int order_settle(struct order *o, uint64_t stamp);

// The recording was cut off: of what has not been put out yet, things that it depends on may be missing. So where there
// are several threads, each free in it counts as ambiguous.
void order_cut_off(struct order *o);

// Puts out the rest.
int order_finish(struct order *o);

struct order_counts order_counts(const struct order *o);

// The call sites that its ops have named; borrowed until the order is freed.
const struct workload_sites *order_sites(const struct order *o);

// A copy of them while the order goes on, into the empty *sites, which the caller releases. A site of whose stack frames some
// have not come yet is not defined in it. 0 or -ENOMEM.
int order_sites_so_far(const struct order *o, struct workload_sites *sites);

// Adds names of code that the trace holds, the payload of a frame, to those of the sites. 0, -EBADMSG, -ENOMEM.
int order_names(struct order *o, const uint8_t *at, size_t n);

// Writes what was counted into the summary of the workload; its other fields stay.
void order_summarise(const struct order_counts *counts, struct workload_summary *s);

#endif
