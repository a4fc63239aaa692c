// While the player is running, streams a plan that exceeds the memory allowed.
//
// The ops of such a plan are stored in a file, in windows. Each window contains the ops of all
// threads for part of the total order. The decoder, a thread of heaptape, copies the windows in
// order to a ring. A window may be overwritten when all threads have left the window. No thread
// waits forever: the first op in the ring, by total order, depends only on ops that have already
// been played. Therefore the thread of this op makes progress, and the window of this op eventually
// becomes free.
#pragma once

#include "replay/plan/plan.h"

struct streaming;

// Starts the decoder for one run of `p`, which must be a finished streamed plan and is borrowed.
// Returns 0, or a negative errno.
int streaming_start(struct streaming **s, const struct plan *p, struct err *e);

// Returns the file that the player maps. streaming_free() closes the file.
int streaming_fd(const struct streaming *s);

// Stops the decoder after the player has ended. Returns 0, or the error that occurred while reading
// the plan.
int streaming_stop(struct streaming *s, struct err *e);

// Returns the time in nanoseconds that the decoder waited for free space. Call after
// streaming_stop().
uint64_t streaming_idle_ns(const struct streaming *s);

// Returns true while the decoder is filling a window, and false while it is waiting for free space
// or when it has finished.
bool streaming_decodes(const struct streaming *s);

void streaming_free(struct streaming *s); // accepts NULL
