// Sums estimated from a Poisson sample of allocations, with their 95 % intervals.
//
// An allocation of `size` bytes is in the sample with the probability p = 1 − exp(−size / sample_bytes), independent of all
// others, and counts 1 / p times (Horvitz and Thompson, 1952).
#ifndef HEAPTAPE_ANALYSIS_ESTIMATE_H
#define HEAPTAPE_ANALYSIS_ESTIMATE_H

#include <stdint.h>

// All zero is the sum of nothing.
struct estimate {
    double bytes, blocks;
    double variance;         // of the bytes
    uint64_t sampled_bytes;  // what was seen: the sum cannot be less
    uint64_t sampled_blocks; // …
};

struct estimate_range {
    uint64_t low, high;
};

// Adds an allocation of the sample, or takes it out again.
void estimate_add(struct estimate *e, uint64_t size, uint64_t sample_bytes);
void estimate_remove(struct estimate *e, uint64_t size, uint64_t sample_bytes);

// Takes all of `part`, which was added to *e, out again.
void estimate_subtract(struct estimate *e, const struct estimate *part);

// The interval that holds the true bytes with a probability of 95 % or more. For sums of which something was sampled: one
// of which nothing was is not listed, and that is allowed for.
struct estimate_range estimate_bytes(const struct estimate *e, uint64_t sample_bytes);

#endif
