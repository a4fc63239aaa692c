// Statistics of repeated measurements.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    MEASURE_RESAMPLES = 4000,
    MEASURE_MAX_RUNS = 1000,
    // An interval requires this many runs per side. In simulations with equal sides, a difference
    // was reported in 10 % of the cases with 3 runs, in 7 % with 4 runs, and in 4 % with 5 runs.
    MEASURE_MIN_RUNS = 5,
};

// Smaller relative differences are not reported, because a side has only a few runs, which can be
// nearly equal by chance.
#define MEASURE_MIN_DIFFERENCE 0.01

// Returns the median. If `n` is even, this is the mean of the two middle values. Returns 0 if `n`
// is 0. `n` must not exceed MEASURE_MAX_RUNS.
double measure_median(const double *values, size_t n);

// Returns the index of the median. If `n` is even, this is the index of the lower middle value.
// Returns 0 if `n` is 0.
size_t measure_median_index(const double *values, size_t n);

// A ratio and its 95 % confidence interval. `low` and `high` are NAN if there is no interval.
struct measure_ratio {
    double ratio, low, high;
    // Probability that two equal sides differ by at least this amount, according to the
    // Mann-Whitney test. NAN if there is no interval.
    double p;
};

// Returns the ratio of the medians of `a` and `b`. The interval is a percentile bootstrap interval
// (Efron 1979) from MEASURE_RESAMPLES resamples. The seed is fixed, so equal input gives equal
// output. The interval always contains the ratio. There is no interval if either side has fewer
// than MEASURE_MIN_RUNS runs. Returns zeros if either side is empty or if the median of `b` is 0.
struct measure_ratio measure_ratio(const double *a, size_t n_a, const double *b, size_t n_b);

bool measure_has_interval(const struct measure_ratio *r);

// Returns true if the interval contains 1, which means that the difference is not significant.
// Returns false if there is no interval.
bool measure_is_same(const struct measure_ratio *r);

// Returns true if the sides differ by MEASURE_MIN_DIFFERENCE or more, the interval does not contain
// 1, and the difference is significant at 5 % among this number of comparisons (Bonferroni).
bool measure_differs(const struct measure_ratio *r, size_t comparisons);

// Returns the minimum number of runs per side that can show a significant difference.
size_t measure_runs_needed(size_t comparisons);

// Returns the two-sided p value of the Mann-Whitney test. The value is exact for up to 20 values,
// and otherwise approximated by the normal distribution. Returns 1 if a side is empty.
double measure_p_value(const double *a, size_t n_a, const double *b, size_t n_b);
