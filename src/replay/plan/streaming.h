// Streams a plan that does not fit into the memory allowed to the player, while it plays.
//
// The ops of such a plan are in windows, in a file; each window holds the ops of all threads in a part of the total
// order. The decoder, a thread of heaptape, copies one window after the other into a ring, where each makes room for
// another one when all threads have left it. No thread waits forever: of the ops in the ring, the first in the total
// order depends only on ops that have been played, so the thread goes on and its window becomes free.
#ifndef HEAPTAPE_PLAN_STREAMING_H
#define HEAPTAPE_PLAN_STREAMING_H

#include "replay/plan/plan.h"

struct streaming; // opaque

// Starts the decoder for one run of the finished streamed plan `p`, which is borrowed.
int streaming_start(struct streaming **s, const struct plan *p, struct err *e);

// The file that the player maps; closed by streaming_free.
int streaming_fd(const struct streaming *s);

// Ends the decoder when the player has ended. 0, or the error of reading the plan.
int streaming_stop(struct streaming *s, struct err *e);

// After streaming_stop: nanoseconds that the decoder waited for free space.
uint64_t streaming_idle_ns(const struct streaming *s);

// Is the decoder at work, so that threads may wait for it? Not when it waits for free space or is done.
bool streaming_decodes(const struct streaming *s);

void streaming_free(struct streaming *s); // NULL is fine

#endif
