#include "analysis/measure.h"

#include "base/seed.h"

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

static double resampled_median(const double *values, size_t n, uint64_t *state)
{
    double drawn[MEASURE_MAX_RUNS];
    for (size_t i = 0; i < n; i++)
        drawn[i] = values[seed_next(state) % n];
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
    r.low = r.high = r.p = NAN;
    if (n_a < MEASURE_MIN_RUNS || n_b < MEASURE_MIN_RUNS)
        return r;
    for (size_t i = 0; i < MEASURE_RESAMPLES; i++) {
        double above = resampled_median(a, n_a, &state);
        below = resampled_median(b, n_b, &state);
        ratios[i] = below > 0 ? above / below : r.ratio;
    }
    r.p = measure_p_value(a, n_a, b, n_b);
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

#define MAX_P 0.05

bool measure_differs(const struct measure_ratio *r, size_t comparisons)
{
    return measure_has_interval(r) && !measure_is_same(r) &&
           fabs(r->ratio - 1) >= MEASURE_MIN_DIFFERENCE &&
           r->p <= MAX_P / (comparisons ? (double)comparisons : 1);
}

size_t measure_runs_needed(size_t comparisons)
{
    double p = 2; // if all values differ, n runs per side give p = 2 / (2n choose n)
    size_t n = 0;
    while (n < MEASURE_MIN_RUNS || p > MAX_P / (comparisons ? (double)comparisons : 1)) {
        n++;
        p *= (double)n / (4 * (double)n - 2);
    }
    return n;
}

// Writes twice the rank of each value: first the n_a values of `a`, then the n_b values of `b`. The
// rank of equal values is the mean of their ranks.
static void rank_values(const double *a, size_t n_a, const double *b, size_t n_b, size_t *ranks)
{
    size_t n = n_a + n_b;
    for (size_t i = 0; i < n; i++) {
        double v = i < n_a ? a[i] : b[i - n_a];
        ranks[i] = 1;
        for (size_t k = 0; k < n; k++) {
            double other = k < n_a ? a[k] : b[k - n_a];
            ranks[i] += other < v ? 2 : other == v;
        }
    }
}

enum { EXACT_VALUES = 20, EXACT_SUM = EXACT_VALUES * (EXACT_VALUES + 1) };

// Considers all ways to choose n_a ranks. Returns the share of choices whose sum is at least as far
// from the mean as `sum`.
static double exact_p(const size_t *ranks, size_t n, size_t n_a, size_t sum)
{
    // Number of choices, indexed by number of ranks and by sum.
    static double ways[EXACT_VALUES + 1][EXACT_SUM + 1];
    double all = 0, far = 0, mean = (double)n_a * (double)(n + 1);
    memset(ways, 0, sizeof ways);
    ways[0][0] = 1;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1 < n_a ? i + 1 : n_a; k > 0; k--) {
            for (size_t s = EXACT_SUM; s >= ranks[i]; s--)
                ways[k][s] += ways[k - 1][s - ranks[i]];
        }
    }
    for (size_t s = 0; s <= EXACT_SUM; s++) {
        all += ways[n_a][s];
        far += fabs((double)s - mean) >= fabs((double)sum - mean) ? ways[n_a][s] : 0;
    }
    return far / all;
}

static double normal_p(const size_t *ranks, size_t n, size_t n_a, size_t sum)
{
    double mean = (double)(n + 1), square = 0;
    for (size_t i = 0; i < n; i++)
        square += ((double)ranks[i] - mean) * ((double)ranks[i] - mean);
    double variance = (double)n_a * (double)(n - n_a) * square / ((double)n * (double)(n - 1));
    double off = fabs((double)sum - (double)n_a * mean);
    return variance > 0 ? erfc(off / sqrt(2 * variance)) : 1;
}

double measure_p_value(const double *a, size_t n_a, const double *b, size_t n_b)
{
    size_t ranks[2 * MEASURE_MAX_RUNS], sum = 0;
    n_a = limit_runs(n_a);
    n_b = limit_runs(n_b);
    if (!n_a || !n_b)
        return 1;
    rank_values(a, n_a, b, n_b, ranks);
    for (size_t i = 0; i < n_a; i++)
        sum += ranks[i];
    return n_a + n_b <= EXACT_VALUES ? exact_p(ranks, n_a + n_b, n_a, sum)
                                     : normal_p(ranks, n_a + n_b, n_a, sum);
}
