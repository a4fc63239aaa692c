// Sums with 95 % confidence intervals, estimated from a Poisson sample of allocations.
//
// An allocation of `size` bytes is sampled with probability p = 1 − exp(−size / sample_bytes),
// independently of others, and weighted by 1 / p (Horvitz and Thompson, 1952).
#ifndef HEAPTAPE_ANALYSIS_ESTIMATE_H
#define HEAPTAPE_ANALYSIS_ESTIMATE_H

#include <stdint.h>

// All zero is an empty sum.
struct estimate {
    double bytes, blocks;
    double variance;         // of `bytes`
    uint64_t sampled_bytes;  // lower bound of the true sum
    uint64_t sampled_blocks; // lower bound of the true count
};

struct estimate_range {
    uint64_t low, high;
};

// Adds or removes a sampled allocation.
void estimate_add(struct estimate *e, uint64_t size, uint64_t sample_bytes);
void estimate_remove(struct estimate *e, uint64_t size, uint64_t sample_bytes);

// Removes all of `part`, which must have been added to *e.
void estimate_subtract(struct estimate *e, const struct estimate *part);

// Returns an interval that contains the true bytes with a probability of at least 95 %. Requires a
// sum with at least one sampled allocation and corrects for sums without one not being reported.
struct estimate_range estimate_bytes(const struct estimate *e, uint64_t sample_bytes);

#endif
