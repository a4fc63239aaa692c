// Statistics of repeated measurements.
#ifndef HEAPTAPE_ANALYSIS_MEASURE_H
#define HEAPTAPE_ANALYSIS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    MEASURE_RESAMPLES = 4000,
    MEASURE_MAX_RUNS = 1000,
    // Of each side, for an interval. Simulated, of equal sides 3 runs claim a difference in 10 %, 4 in 7 %, 5 in 4 %.
    MEASURE_MIN_RUNS = 5,
};

// The median; of an even number the mean of the two in the middle. 0 of none. `n` ≤ MEASURE_MAX_RUNS.
double measure_median(const double *values, size_t n);

// Which of the values is the median, of an even number the lower of the two in the middle. 0 of none.
size_t measure_median_index(const double *values, size_t n);

// A ratio and its 95 % interval; low and high are NAN where there is none.
struct measure_ratio {
    double ratio, low, high;
};

// The ratio of the medians of `a` and `b`. The interval is the percentile bootstrap (Efron 1979): both sets are drawn
// from with replacement MEASURE_RESAMPLES times, from the same seed each time, so that equal input gives equal output;
// it always holds the ratio itself. There is none below MEASURE_MIN_RUNS on a side. All 0 when a side is empty or the
// median of `b` is 0.
struct measure_ratio measure_ratio(const double *a, size_t n_a, const double *b, size_t n_b);

bool measure_has_interval(const struct measure_ratio *r);

// Is 1 inside the interval, so that there is no significant difference? False where there is none: nothing is known then.
bool measure_is_same(const struct measure_ratio *r);

#endif
