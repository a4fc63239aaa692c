// Puts the events of one process into a valid total order and replaces addresses with slots.
//
// The capture library stamps a free before the call and an allocation after the call. With exact
// stamps, every address therefore alternates between allocated and free. But the CPU may read the
// counter ahead of the surrounding instructions: the stamp of an allocation may be a few hundred ns
// too early and appear to precede the free that released its address. Such an allocation need not
// wait, because ops refer to slots, not to addresses. The address has two blocks for a while. Only
// when one of them is freed must it be decided which of the two it is (docs/design/convert.md).
#pragma once

#include "trace/trace.h"
#include "workload/writer.h"

// The parts of a record that its op does not contain.
struct order_call {
    uint64_t ptr, result; // addresses, as in struct event
    uint64_t notes[HT_NOTES];
    uint32_t thread, tid; // numbered as in the trace
    // This call was not recorded: the block existed before the recording, or its free was lost.
    bool added;
};

// Receives the ops in a valid total order. Ops are borrowed until the callback returns.
struct order_sink {
    void *context;
    // Returns 0, or a negative errno, which ends the conversion.
    int (*ops)(void *context, const struct workload_thread_op *ops, size_t n);
    // Faster alternative to `ops`, for simple ops of one thread. May be NULL.
    int (*simple)(void *context, uint32_t thread, const struct workload_simple *ops, size_t n);
    // If not NULL, called instead of `ops`; calls[i] belongs to ops[i]. Requires that `simple` is
    // NULL. Slower than `ops`.
    int (*calls)(void *context, const struct workload_thread_op *ops,
                 const struct order_call *calls, size_t n);
};

struct order_options {
    // The longest time, in stamps, that the free of an unknown address waits for the allocation of
    // the address. If an address gets a second block, this is also the longest time that the second
    // block waits for the free of the first.
    uint64_t window;
    // Largest assumed error of an allocation's stamp, in stamps. If two stamps are closer than
    // this, they do not prove an order.
    uint64_t skid;
    // Every free follows the allocation of its block, so the free of an unknown address does not
    // wait.
    bool no_early_frees;
    bool keep_words;         // keep consumed words (see merge_stream.kept)
    unsigned only_allocator; // see struct merge
};

// Number of events with a fault, and the first of them.
struct order_faults {
    uint64_t n;
    uint64_t address; // 0 if unknown
    uint64_t stamp;   // early by less than 2^CODEC_STAMP_BITS for lost words
    uint32_t tid;
};

struct order_counts {
    uint64_t repaired; // number of allocations and frees that are not in the order of their stamps
    // Number of block events that were published after later events had been emitted.
    uint64_t late;
    // Guesses: a free may have been lost, or may have freed either of two blocks.
    struct order_faults ambiguous;
    struct order_faults unmatched; // frees of addresses without a recorded allocation
    struct order_faults lost;      // words lost during capture
    // Number of dependencies in the workload, and number of all dependencies including implied
    // ones.
    uint64_t dependencies, dependencies_needed;
    uint64_t slots;
    uint64_t threads;
    uint64_t usable_bytes,
        usable_requested_bytes;                // totals for the blocks whose usable size is known
    const uint32_t *tids;                      // indexed by thread number; borrowed from the order
    const struct samples_residency *residency; // sorted by order_finish; borrowed
};

struct order;

// Creates an order. Returns NULL when out of memory.
struct order *order_new(const struct order_options *options, const struct order_sink *sink);
void order_free(struct order *o);

// Adds a segment of the process, copying its words. Returns 0, or a negative errno.
int order_feed(struct order *o, const struct trace_segment *s);

// Emits all events with stamps up to the watermark `limit`. Requires that all events published up
// to `limit` have been fed. Returns 0, or a negative errno; the error may come from the sink.
int order_advance(struct order *o, uint64_t limit);

// Emits all events with stamps up to `stamp`, even events that wait for other events. Requires that
// all events up to `stamp` plus the skid have been fed. Returns 0, or a negative errno; the error
// may come from the sink.
int order_settle(struct order *o, uint64_t stamp);

// Call before order_finish if the recording is truncated. Events on which later events depend may
// be missing. If there are several threads, frees therefore count as ambiguous.
void order_cut_off(struct order *o);

// Emits the remaining events. Returns 0, or a negative errno.
int order_finish(struct order *o);

struct order_counts order_counts(const struct order *o);

// Returns the call sites of the emitted ops; borrowed until order_free.
const struct workload_sites *order_sites(const struct order *o);

// Copies the call sites known so far into the empty *sites, which the caller must release. A site
// has no stack if one of its frames has not been read yet. Returns 0 or -ENOMEM.
int order_sites_so_far(const struct order *o, struct workload_sites *sites);

// Adds code names from the payload of a NAMES frame. Returns 0, -EBADMSG or -ENOMEM.
int order_names(struct order *o, const uint8_t *at, size_t n);

// Copies the counts into the workload summary. Leaves the other members of the summary unchanged.
void order_summarise(const struct order_counts *counts, struct workload_summary *s);
