// The last frames of a trace that comes in, as they are stored: those for which there is no more room leave at the other end.
#ifndef HEAPTAPE_FLIGHT_RING_H
#define HEAPTAPE_FLIGHT_RING_H

#include "base/frame.h"

// `stored` is owned.
struct ring_frame {
    struct frame frame; // all but the data
    uint64_t came_ns;   // CLOCK_MONOTONIC
    struct buf stored;
};

// All but the limits is the ring's own; all zero is empty.
struct flight_ring {
    uint64_t max_bytes; // with what the ring itself needs
    uint64_t max_ns;    // UINT64_MAX: there is no limit in time
    struct ring_frame *frames;
    size_t first, n, capacity; // a power of two
    uint64_t bytes;
};

void flight_ring_release(struct flight_ring *r);

// Takes a copy of what frame_read_stored has read. 0 or -ENOMEM.
int flight_ring_push(struct flight_ring *r, const struct frame *f, const struct buf *stored,
                     uint64_t now_ns);

// The i-th frame, the oldest first; i < n.
const struct ring_frame *flight_ring_at(const struct flight_ring *r, size_t i);

// Is there one that has to leave?
bool flight_ring_is_over(const struct flight_ring *r, uint64_t now_ns);

// Drops the oldest frame.
void flight_ring_drop(struct flight_ring *r);

#endif
