// Log-linear histogram with 64 buckets per power of two, so values are accurate to 1/64 (1.6 %).
// Does not use malloc.
#pragma once

#include <stdint.h>

enum {
    HISTOGRAM_STEP_BITS = 6,
    HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
    HISTOGRAM_VALUE_BITS = 42, // size of the largest stored value: half an hour at 2.6 GHz
    HISTOGRAM_BUCKETS = (HISTOGRAM_VALUE_BITS - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS,
};

// A zeroed struct is empty.
struct histogram {
    uint64_t count, sum, max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t value)
{
    if (value < 2 * HISTOGRAM_STEPS)
        return (unsigned)value;
    if (value >> HISTOGRAM_VALUE_BITS)
        return HISTOGRAM_BUCKETS - 1;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
    return (shift << HISTOGRAM_STEP_BITS) + (unsigned)(value >> shift);
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    h->count++;
    h->sum += value;
    if (value > h->max)
        h->max = value;
    h->buckets[histogram_bucket(value)]++;
}

void histogram_merge(struct histogram *to, const struct histogram *from);

// Returns the quantile `share` (0 to 1). The quantile is the middle of its bucket, but at most max.
// Returns 0 for an empty histogram.
uint64_t histogram_quantile(const struct histogram *h, double share);

// Returns the mean of the lowest `share` of the values, using the middles of their buckets. The
// highest values are excluded, because they are outliers caused by interrupts and other programs.
// Returns 0 for an empty histogram.
double histogram_trimmed_mean(const struct histogram *h, double share);

// Returns the limit above which a value counts as an outlier: `min`, or ten times the 99th
// percentile if that is more. If there are fewer than 100 values, the percentile ignores the
// largest value. Interrupts and other programs delay calls, and a single delay of a few
// milliseconds would dominate the mean of a million calls.
uint64_t histogram_outlier_limit(const struct histogram *h, uint64_t min);

// Returns the mean of the values up to `limit`, and sets *outliers to the number of values above
// `limit`, which is rounded to a bucket. The mean is exact if there are no outliers. Returns 0 for
// an empty histogram.
double histogram_mean_up_to(const struct histogram *h, uint64_t limit, uint64_t *outliers);
