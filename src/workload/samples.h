// Samples of the recorded program's memory, however many come, in bounded memory: past a limit they are thinned, which
// keeps the lowest and the highest of each group of neighbours.
#ifndef HEAPTAPE_WORKLOAD_SAMPLES_H
#define HEAPTAPE_WORKLOAD_SAMPLES_H

#include "workload/workload.h"

enum { SAMPLES_MAX = 1 << 16 }; // 11 minutes at 100 a second, and 24 bytes each

// All zero is empty.
struct samples {
    struct workload_sample *items; // in the order in which they were added
    size_t n, capacity;
    // Once they are thinned, a group of this many frees two. 0: none is.
    size_t group;
    size_t in_group;                // added to the group under way
    struct workload_sample held[3]; // its lowest and highest, in order of time, and room for the next
    size_t n_held;
};

void samples_release(struct samples *s);

// 0 or -ENOMEM.
int samples_add(struct samples *s, const struct workload_sample *sample);

// Puts the group under way behind the others: `items` is complete.
void samples_finish(struct samples *s);

#endif
