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
    size_t in_group; // added to the group under way
    struct workload_sample
        held[3]; // its lowest and highest, in order of time, and room for the next
    size_t n_held;
};

void samples_release(struct samples *s);

// 0 or -ENOMEM.
int samples_add(struct samples *s, const struct workload_sample *sample);

// Puts the group under way behind the others: `items` is complete.
void samples_finish(struct samples *s);

// What is known of the residency of blocks, in bounded memory: past a limit every second one is dropped.
enum { RESIDENCY_MAX = 1 << 19 };
struct samples_residency {
    struct workload_residency *items;
    size_t n, capacity;
    uint64_t every, skipped; // one in so many is kept; 0: all are
    // How much of them was used while they lived, at most RESIDENCY_MAX.
    struct workload_residency_step *steps;
    size_t n_steps, steps_capacity;
};

void samples_residency_release(struct samples_residency *l);

// 0 or -ENOMEM.
int samples_residency_add(struct samples_residency *l, const struct workload_residency *r);

int samples_residency_add_step(struct samples_residency *l,
                               const struct workload_residency_step *s);

// Orders them by thread and op, each op once, and the steps: for writing and finding. Only steps of blocks that were not used
// as far as in the end when they were first measured are kept.
void samples_residency_sort(struct samples_residency *l);

// NULL: not known.
const struct workload_residency *samples_residency_find(const struct samples_residency *l,
                                                        uint32_t thread, uint64_t op);

// The first of *n steps of the op.
const struct workload_residency_step *
samples_residency_steps(const struct samples_residency *l, uint32_t thread, uint64_t op, size_t *n);

#endif
