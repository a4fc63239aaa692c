// Exports: calls come in a valid total order, are made into what the format can hold, and are written.
#ifndef HEAPTAPE_FORMATS_EXPORT_H
#define HEAPTAPE_FORMATS_EXPORT_H

#include "formats/export_buffer.h"
#include "formats/formats.h"
#include "workload/workload.h"

// One call. From a workload ev.ptr and ev.result are the slot + 1 (0: none), the size of a realloc's block is not known;
// from a raw trace they are addresses.
struct export_call {
    struct event ev; // stamp in ns
    uint32_t pid, tid;
    uint32_t thread; // number in its process, from 0; of a workload tid is the same
    uint8_t flags;   // WORKLOAD_*; of a raw trace 0
    bool failed;     // nothing was allocated or freed
    bool earlier;    // the block at ev.ptr is from before the recording: it is in no call before
    bool glibc;      // recorded on glibc's malloc, or imported with its paths
    bool added;      // a free that was not recorded, of a block whose address is allocated again
    const struct workload_dependency *dependencies;
    uint32_t n_dependencies;
};

// What is known of all calls.
struct export_facts {
    bool slots; // they come from a workload
    bool has_stamps;
    uint64_t realtime_ns; // CLOCK_REALTIME at stamp 0; 0 when it is not known
};

struct export
{
    // For the formats.
    const struct format *format;
    struct export_facts facts;
    struct export_buffer out;
    const char *folder; // borrowed, of a format that is one
    struct err *e;
    void *state;
    void (*note)(
        const char *text); // gets each call that a format drops by export_drop; NULL: not wanted

    // What was not written as it is, by kind.
    uint64_t calls;
    uint8_t as[HT_KIND_LIMIT];       // what a kind is written as; 0: not at all
    uint64_t changed[HT_KIND_LIMIT]; // calls written as another kind, or dropped when that is 0
    uint64_t failed, null_frees;     // dropped
    uint64_t earlier_frees;          // dropped
    uint64_t earlier_reallocs;       // written as malloc
    uint64_t notes;                  // calls whose notes were dropped
    uint64_t freed_by_realloc;       // written as a free
    uint64_t dropped;                // named as they were
};

// `x` is all zero but for format and facts; `out` is borrowed. 0 or a negative errno with the text set.
int export_open(struct export *x, struct output *out, struct err *e);

// Writes a call. 0 or a negative errno with the text set.
int export_put(struct export *x, const struct export_call *c);

// For formats: the call is not written; `text` names it and the reason. Returns 0.
int export_drop(struct export *x, const char *text);

// Sets the error "out of memory" and returns -ENOMEM.
int export_no_memory(struct export *x);

// Writes what is left; the output is complete then.
int export_finish(struct export *x);
void export_release(struct export *x);

// Adds what `x` could not hold to `sum`, which is all zero at first.
void export_add_losses(struct export *sum, const struct export *x);

// What could not be held, in lines for `note`: "wl cannot store timestamps: dropped".
void export_report_losses(const struct export *x, void (*note)(const char *text));

// Of a memalign: tcmalloc's wants a power of two, where glibc's rounds up.
static inline uint64_t export_power_of_two(uint64_t align)
{
    uint64_t power = 1;
    while (power < align && power << 1)
        power <<= 1;
    return power;
}

// An address for the block: that of a raw trace, or one of its own that belongs to the slot. 0: none.
static inline uint64_t export_address(const struct export *x, uint64_t block)
{
    return x->facts.slots ? block << 4 : block;
}

// The event with addresses instead of slots.
static inline struct event export_event(const struct export *x, const struct event *ev)
{
    struct event with_addresses = *ev;
    with_addresses.ptr = export_address(x, ev->ptr);
    with_addresses.result = export_address(x, ev->result);
    return with_addresses;
}

#endif
