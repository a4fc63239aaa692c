// Sums with 95 % confidence intervals, estimated from a Poisson sample of allocations.
//
// An allocation of `size` bytes is sampled with probability p = 1 − exp(−size / sample_bytes),
// independently of all others, and weighted by 1 / p (Horvitz and Thompson, 1952).
#pragma once

#include <stdint.h>

// A struct of zeros is an empty sum.
struct estimate {
    double bytes, blocks;
    double variance;         // variance of `bytes`
    uint64_t sampled_bytes;  // lower bound on the true sum
    uint64_t sampled_blocks; // lower bound on the true count
};

struct estimate_range {
    uint64_t low, high;
};

// Adds or removes a sampled allocation.
void estimate_add(struct estimate *e, uint64_t size, uint64_t sample_bytes);
void estimate_remove(struct estimate *e, uint64_t size, uint64_t sample_bytes);

// Removes all of `part`, which must have been added to *e.
void estimate_subtract(struct estimate *e, const struct estimate *part);

// Returns an interval that contains the true number of bytes with a probability of at least 95 %.
// The sum must contain at least one sampled allocation. Sums without a sampled allocation are not
// reported, and the interval accounts for the resulting bias.
struct estimate_range estimate_bytes(const struct estimate *e, uint64_t sample_bytes);
