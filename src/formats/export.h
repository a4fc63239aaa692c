// Exports calls to a foreign format. Calls arrive in a valid total order and are changed or dropped
// if the format cannot store them.
#pragma once

#include "formats/export_buffer.h"
#include "formats/formats.h"
#include "workload/workload.h"

// A call. In a workload, ev.ptr and ev.result are the slot plus 1, or 0 for NULL, and the size of a
// realloc's old block is unknown. In a raw trace, ev.ptr and ev.result are addresses.
struct export_call {
    struct event ev; // the stamp is in ns
    uint32_t pid, tid;
    uint32_t thread; // number within the process, from 0; equals tid in a workload
    uint8_t flags;   // WORKLOAD_*; 0 in a raw trace
    bool failed;     // nothing was allocated or freed
    bool earlier;    // ev.ptr was allocated before the recording
    bool glibc;      // recorded on glibc's malloc, or imported with malloc paths
    // This free was not recorded. The exporter added it, because its address was allocated again.
    bool added;
    const struct workload_dependency *dependencies;
    uint32_t n_dependencies;
};

// Properties of all calls of an export.
struct export_facts {
    bool slots; // the calls come from a workload
    bool has_stamps;
    uint64_t realtime_ns; // CLOCK_REALTIME at stamp 0, or 0 if unknown
};

// Calls that were changed or dropped although the format has their kind.
enum export_loss {
    EXPORT_NOTES, // calls whose notes were dropped
    EXPORT_FAILED,
    EXPORT_NULL_FREES,
    EXPORT_EARLIER_FREES,
    EXPORT_EARLIER_REALLOCS,
    EXPORT_DROPPED, // calls dropped by export_drop
    EXPORT_FREED_BY_REALLOC,
    EXPORT_LOSSES
};

struct export
{
    // For use by formats.
    const struct format *format;
    struct export_facts facts;
    struct export_buffer out;
    // Directory to write, if the format's output is a directory; borrowed.
    const char *folder;
    struct err *e;
    void *state;
    // Called for each call that a format drops with export_drop, and for each other loss, with a
    // description. May be NULL.
    void (*note)(const char *text);
    // Progress in reading the input, for formats with a `profile` function. May be NULL.
    struct progress *progress;
    const struct input *in;

    uint64_t calls;
    // Indexed by kind.
    uint8_t as[HT_KIND_LIMIT];       // kind that is written instead, or 0 if the calls are dropped
    uint64_t changed[HT_KIND_LIMIT]; // calls written as another kind, and dropped calls
    uint64_t losses[EXPORT_LOSSES];
};

// Initializes *x. The caller has set `format` and `facts`, and zeroed the other members. `out` is
// borrowed. Returns 0, or a negative errno with the message set.
int export_open(struct export *x, struct output *out, struct err *e);

// Writes a call. Returns 0, or a negative errno with the message set.
int export_put(struct export *x, const struct export_call *c);

// Counts a call that cannot be written in the format. `text` describes the call and the reason.
// Called by formats. Returns 0.
int export_drop(struct export *x, const char *text);

// Sets the error "out of memory" and returns -ENOMEM.
int export_no_memory(struct export *x);

// Writes pending data and completes the output.
int export_finish(struct export *x);
void export_release(struct export *x);

// Adds the losses of `x` to `sum`, which is initially all zero.
void export_add_losses(struct export *sum, const struct export *x);

// Reports the losses, one per line, for example "wl cannot store timestamps: dropped".
void export_report_losses(const struct export *x, void (*note)(const char *text));

// Rounds an alignment up to a power of two, like glibc's memalign; tcmalloc requires a power of
// two.
static inline uint64_t export_power_of_two(uint64_t align)
{
    uint64_t power = 1;
    while (power < align && power << 1)
        power <<= 1;
    return power;
}

// Returns a block's address. In a raw trace, this is the recorded address; in a workload, it is a
// unique address derived from the slot. Returns 0 for NULL.
static inline uint64_t export_address(const struct export *x, uint64_t block)
{
    return x->facts.slots ? block << 4 : block;
}

// Returns the event with slots replaced by addresses.
static inline struct event export_event(const struct export *x, const struct event *ev)
{
    struct event with_addresses = *ev;
    with_addresses.ptr = export_address(x, ev->ptr);
    with_addresses.result = export_address(x, ev->result);
    return with_addresses;
}
