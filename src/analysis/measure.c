#include "analysis/measure.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_in_place(double *values, size_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static size_t limit_runs(size_t n)
{
    return n < MEASURE_MAX_RUNS ? n : MEASURE_MAX_RUNS;
}

double measure_median(const double *values, size_t n)
{
    double copy[MEASURE_MAX_RUNS];
    n = limit_runs(n);
    if (n)
        memcpy(copy, values, n * sizeof *values);
    return median_in_place(copy, n);
}

size_t measure_median_index(const double *values, size_t n)
{
    double copy[MEASURE_MAX_RUNS];
    n = limit_runs(n);
    if (n == 0)
        return 0;
    memcpy(copy, values, n * sizeof *values);
    qsort(copy, n, sizeof *copy, by_value);
    for (size_t i = 0; i < n; i++) {
        if (values[i] == copy[(n - 1) / 2])
            return i;
    }
    return 0;
}

// SplitMix64 (Steele, Lea, Flood 2014): good enough for drawing indices, and identical on every
// platform.
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double resampled_median(const double *values, size_t n, uint64_t *state)
{
    double drawn[MEASURE_MAX_RUNS];
    for (size_t i = 0; i < n; i++)
        drawn[i] = values[next_random(state) % n];
    return median_in_place(drawn, n);
}

struct measure_ratio measure_ratio(const double *a, size_t n_a, const double *b, size_t n_b)
{
    static double ratios[MEASURE_RESAMPLES];
    struct measure_ratio r = {0};
    uint64_t state = 1;
    n_a = limit_runs(n_a);
    n_b = limit_runs(n_b);
    double below = measure_median(b, n_b);
    if (n_a == 0 || below == 0)
        return r;
    r.ratio = measure_median(a, n_a) / below;
    r.low = r.high = NAN;
    if (n_a < MEASURE_MIN_RUNS || n_b < MEASURE_MIN_RUNS)
        return r;
    for (size_t i = 0; i < MEASURE_RESAMPLES; i++) {
        double above = resampled_median(a, n_a, &state);
        below = resampled_median(b, n_b, &state);
        ratios[i] = below > 0 ? above / below : r.ratio;
    }
    qsort(ratios, MEASURE_RESAMPLES, sizeof *ratios, by_value);
    r.low = ratios[MEASURE_RESAMPLES * 25 / 1000];
    r.high = ratios[MEASURE_RESAMPLES * 975 / 1000 - 1];
    if (r.low > r.ratio)
        r.low = r.ratio;
    if (r.high < r.ratio)
        r.high = r.ratio;
    return r;
}

bool measure_has_interval(const struct measure_ratio *r)
{
    return !isnan(r->low);
}

bool measure_is_same(const struct measure_ratio *r)
{
    return r->low <= 1 && r->high >= 1;
}
