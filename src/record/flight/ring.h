// The last frames of an incoming trace, in stored form. When a limit is exceeded, the oldest frames
// are dropped.
#ifndef HEAPTAPE_FLIGHT_RING_H
#define HEAPTAPE_FLIGHT_RING_H

#include "base/frame.h"

// A frame; `stored` is owned.
struct ring_frame {
    struct frame frame; // its data is in `stored`
    uint64_t came_ns;   // time of arrival, CLOCK_MONOTONIC
    struct buf stored;
};

// For an empty ring, set the limits and zero the other members.
struct flight_ring {
    uint64_t max_bytes; // including the ring's own memory
    uint64_t max_ns;    // UINT64_MAX if there is no limit
    struct ring_frame *frames;
    size_t first, n, capacity; // capacity is a power of two
    uint64_t bytes;
};

void flight_ring_release(struct flight_ring *r);

// Appends a copy of a frame from frame_read_stored. Returns 0, or -ENOMEM.
int flight_ring_push(struct flight_ring *r, const struct frame *f, const struct buf *stored,
                     uint64_t now_ns);

// Returns frame `i`, counted from the oldest; requires i < n.
const struct ring_frame *flight_ring_at(const struct flight_ring *r, size_t i);

// Returns true if the oldest frame exceeds a limit.
bool flight_ring_is_over(const struct flight_ring *r, uint64_t now_ns);

// Drops the oldest frame.
void flight_ring_drop(struct flight_ring *r);

#endif
