// Keeps the calls of a walk in an order in which every address is allocated, freed, allocated: for formats that name
// blocks by their addresses and have one line a call. An allocation's stamp may be early by what the processor
// reorders, and a realloc stands at the stamp of its end, so another thread's allocation of the same address may come
// before the free: it is put aside until that has come, for a window of recorded time at most (docs/design/convert.md).
#ifndef HEAPTAPE_CONVERT_REORDER_H
#define HEAPTAPE_CONVERT_REORDER_H

#include "base/map.h"
#include "convert/merge.h"

struct reorder_held {
    struct merge_stream *stream;
    uint64_t address, deadline; // stamp
};

// All zero but for `window` is the beginning.
struct reorder {
    uint64_t window;  // stamp units
    struct map *live; // by number of the process: addresses that are allocated
    size_t n_live;
    struct reorder_held *held;
    size_t n_held, held_capacity;
    bool woken;        // a stream was put back since this was last set to false
    uint64_t repaired; // calls that were put into another place than that of their stamps
    uint64_t broken;   // allocations of addresses whose free did not come within the window
};

void reorder_release(struct reorder *a);

// Nothing more comes of the process.
void reorder_forget(struct reorder *a, uint32_t process);

// The stream's next record is this call: 0, and it is to be handed on and then passed to reorder_done; 1 when the
// stream was put aside instead; -ENOMEM.
int reorder_hold(struct reorder *a, struct merge *m, struct merge_stream *s, const struct event *ev);

// The call has been handed on: streams that waited for it are put back. 0 or -ENOMEM.
int reorder_done(struct reorder *a, struct merge *m, const struct merge_stream *s, const struct event *ev);

// The first deadline, up to which other streams may go on; UINT64_MAX when none is held.
uint64_t reorder_deadline(const struct reorder *a);

// Puts back one stream that has waited beyond its deadline, which lies before `now`: true when there was one.
bool reorder_expire(struct reorder *a, struct merge *m, uint64_t now);

bool reorder_holds(const struct reorder *a, const struct merge_stream *s);

#endif
