// Streams a plan that exceeds the memory allowed, while the player runs.
//
// The ops of such a plan are in a file, in windows. Each window holds the ops of all threads in a
// part of the total order. The decoder, a thread of heaptape, copies the windows in order into a
// ring; a window may be overwritten when all threads have left it. No thread waits forever: the
// first op in the ring, by the total order, depends only on ops that have been played, so its
// thread proceeds and its window becomes free.
#ifndef HEAPTAPE_PLAN_STREAMING_H
#define HEAPTAPE_PLAN_STREAMING_H

#include "replay/plan/plan.h"

struct streaming;

// Starts the decoder for one run of the finished streamed plan `p`, which is borrowed. Returns 0,
// or a negative errno.
int streaming_start(struct streaming **s, const struct plan *p, struct err *e);

// Returns the file that the player maps; streaming_free() closes it.
int streaming_fd(const struct streaming *s);

// Stops the decoder after the player has ended. Returns 0, or the error of reading the plan.
int streaming_stop(struct streaming *s, struct err *e);

// Returns the nanoseconds that the decoder waited for free space. Call after streaming_stop().
uint64_t streaming_idle_ns(const struct streaming *s);

// Returns true while the decoder fills a window: false while it waits for free space, and when it
// is done.
bool streaming_decodes(const struct streaming *s);

void streaming_free(struct streaming *s); // accepts NULL

#endif
