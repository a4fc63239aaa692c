// Keeps the calls of a walk in an order in which every address is taken, given up, taken: for formats that name blocks by
// their addresses and have one line a call. A take's stamp may be early by what the processor reorders, and a realloc
// stands at the stamp of its end, so another thread's take of the same address may come before the give: it is put aside
// until that has come, for a window of recorded time at most (docs/design/convert.md).
#ifndef HEAPTAPE_CONVERT_ALTERNATION_H
#define HEAPTAPE_CONVERT_ALTERNATION_H

#include "base/map.h"
#include "convert/merge.h"

struct alternation_held {
    struct merge_stream *stream;
    uint64_t address, deadline; // stamp
};

// All zero but for `window` is the beginning.
struct alternation {
    uint64_t window;  // stamp units
    struct map *live; // by number of the process: addresses that are taken
    size_t n_live;
    struct alternation_held *held;
    size_t n_held, held_capacity;
    bool woken;        // a stream was put back since this was last set to false
    uint64_t repaired; // calls that were put into another place than their stamps say
    uint64_t broken;   // takes of addresses whose give did not come within the window
};

void alternation_release(struct alternation *a);

// Nothing more comes of the process.
void alternation_forget(struct alternation *a, uint32_t process);

// The stream's next record is this call: 0, and it is to be handed on and then told to alternation_done; 1 when the
// stream was put aside instead; -ENOMEM.
int alternation_hold(struct alternation *a, struct merge *m, struct merge_stream *s, const struct event *ev);

// The call has been handed on: streams that waited for it are put back. 0 or -ENOMEM.
int alternation_done(struct alternation *a, struct merge *m, const struct merge_stream *s, const struct event *ev);

// The first deadline, up to which other streams may go on; UINT64_MAX when none is held.
uint64_t alternation_deadline(const struct alternation *a);

// Puts back one stream that has waited beyond its deadline, which lies before `now`: true when there was one.
bool alternation_expire(struct alternation *a, struct merge *m, uint64_t now);

bool alternation_holds(const struct alternation *a, const struct merge_stream *s);

#endif
