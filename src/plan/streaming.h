// Feeds a player with a plan that is bigger than the memory allowed, while it plays.
//
// A thread of this process decodes the workload once more and fills windows of a ring; each holds what the threads do in
// a part of the total order, and is filled again when all of them have left it. Nobody waits for ever: of what stands in
// the ring, the op that comes first in the total order waits for nothing that has not been played, so its window gets free.
#ifndef HEAPTAPE_PLAN_STREAMING_H
#define HEAPTAPE_PLAN_STREAMING_H

#include "plan/read.h"

struct feed; // opaque

// Reads the workload from its start, again and again.
struct feed_source {
    // A reader at the start, borrowed until the next call.
    int (*rewind)(void *context, struct workload_reader **r, struct err *e);
    void *context;
};

// Starts to fill the ring for one run of the finished plan `p`, which must be one that is fed. Both are borrowed.
int feed_start(struct feed **f, const struct plan *p, const struct feed_source *source, struct err *e);

// The file that the player maps; stays the feed's.
int feed_fd(const struct feed *f);

// Ends it when the player is gone. 0, or what went wrong with the workload.
int feed_stop(struct feed *f, struct err *e);

// After feed_stop: nanoseconds for which the reader waited for room, and plan_op_at of what was fed.
uint64_t feed_idle_ns(const struct feed *f);
uint64_t feed_op_at(const struct feed *f, uint32_t thread, uint64_t position);

void feed_free(struct feed *f); // NULL is fine

#endif
