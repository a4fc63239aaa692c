// Streams a plan that does not fit into the memory allowed to the player, while it plays.
//
// The decoder, a thread of heaptape, decodes the workload once more and fills the windows of a ring; each window holds
// the ops of all threads in a part of the total order, and is filled again when all threads have left it. No thread
// waits forever: of the ops in the ring, the first in the total order depends only on ops that have been played, so the
// thread goes on and its window becomes free.
#ifndef HEAPTAPE_PLAN_STREAMING_H
#define HEAPTAPE_PLAN_STREAMING_H

#include "plan/plan.h"

struct streaming; // opaque

// Reads the workload from its start, again for each run.
struct streaming_source {
    // A reader at the start, borrowed until the next call.
    int (*rewind)(void *context, struct workload_reader **r, struct err *e);
    void *context;
};

// Starts the decoder for one run of the finished streamed plan `p`. Both are borrowed.
int streaming_start(struct streaming **s, const struct plan *p, const struct streaming_source *source, struct err *e);

// The file that the player maps; closed by streaming_free.
int streaming_fd(const struct streaming *s);

// Ends the decoder when the player has ended. 0, or the error of reading the workload.
int streaming_stop(struct streaming *s, struct err *e);

// After streaming_stop: nanoseconds that the decoder waited for free space, and plan_op_at of the streamed ops.
uint64_t streaming_idle_ns(const struct streaming *s);
uint64_t streaming_op_at(const struct streaming *s, uint32_t thread, uint64_t position);

// Is the decoder at work, so that threads may wait for it? Not when it waits for free space or is done.
bool streaming_decodes(const struct streaming *s);

void streaming_free(struct streaming *s); // NULL is fine

#endif
