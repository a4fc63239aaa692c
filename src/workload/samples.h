// Samples of the recorded program's memory, stored in bounded memory. Beyond a limit, only the
// lowest and the highest sample in each group of neighbors are kept.
#pragma once

#include "workload/workload.h"

enum { SAMPLES_MAX = 1 << 16 }; // enough for 11 minutes at 100 samples per second; 24 bytes each

// Empty if all zero.
struct samples {
    struct workload_sample *items; // in the order they were appended
    size_t n, capacity;
    // Number of samples per group. Two samples of each group are kept. 0 if all samples are kept.
    size_t group;
    size_t in_group; // samples in the current group
    // The lowest and the highest sample of the group in time order, with space for the next sample.
    struct workload_sample held[3];
    size_t n_held;
};

void samples_release(struct samples *s);

// Appends a sample. Returns 0 or -ENOMEM.
int samples_add(struct samples *s, const struct workload_sample *sample);

// Appends the kept samples of the current group to `items`. Call after the last sample.
void samples_finish(struct samples *s);

// Residency of blocks, stored in bounded memory. Beyond a limit, every second block is dropped.
enum { RESIDENCY_MAX = 1 << 19 };
struct samples_residency {
    struct workload_residency *items;
    size_t n, capacity;
    uint64_t every, skipped; // one in `every` blocks is kept; 0 if all blocks are kept
    // Used bytes of the blocks over time; at most RESIDENCY_MAX steps.
    struct workload_residency_step *steps;
    size_t n_steps, steps_capacity;
};

void samples_residency_release(struct samples_residency *l);

// Append a block or a step. Return 0 or -ENOMEM.
int samples_residency_add(struct samples_residency *l, const struct workload_residency *r);

int samples_residency_add_step(struct samples_residency *l,
                               const struct workload_residency_step *s);

// Sorts blocks and steps by thread and op, for writing and searching, and removes duplicate ops.
// Keeps a block's steps only if the first step is below the block's final residency. If a block has
// no final residency, its last step becomes the final residency.
void samples_residency_sort(struct samples_residency *l);

// Returns the residency of the block, or NULL.
const struct workload_residency *samples_residency_find(const struct samples_residency *l,
                                                        uint32_t thread, uint64_t op);

// Sets *n to the number of steps of the op. Returns the first step, or NULL if *n is 0.
const struct workload_residency_step *
samples_residency_steps(const struct samples_residency *l, uint32_t thread, uint64_t op, size_t *n);
