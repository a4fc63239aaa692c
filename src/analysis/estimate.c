#include "analysis/estimate.h"

#include <math.h>

static void add_weighted(struct estimate *e, uint64_t size, uint64_t sample_bytes, int sign)
{
    double p = -expm1(-(double)size / (double)sample_bytes), bytes = (double)size / p;
    if (!size)
        return;
    e->bytes += sign * bytes;
    e->blocks += sign / p;
    e->variance += sign * (1 - p) * bytes * bytes;
    e->sampled_bytes += (uint64_t)sign * size;
    e->sampled_blocks += (uint64_t)sign;
    // Clear the rounding errors of an empty sum.
    if (!e->sampled_blocks)
        *e = (struct estimate){0};
}

void estimate_add(struct estimate *e, uint64_t size, uint64_t sample_bytes)
{
    add_weighted(e, size, sample_bytes, 1);
}

void estimate_remove(struct estimate *e, uint64_t size, uint64_t sample_bytes)
{
    add_weighted(e, size, sample_bytes, -1);
}

void estimate_subtract(struct estimate *e, const struct estimate *part)
{
    e->bytes -= part->bytes;
    e->blocks -= part->blocks;
    e->variance -= part->variance;
    e->sampled_bytes -= part->sampled_bytes;
    e->sampled_blocks -= part->sampled_blocks;
    if (!e->sampled_blocks)
        *e = (struct estimate){0};
}

// Returns the probability that a Gamma(shape) variable is at most x, using the series for the
// incomplete gamma function. The terms increase up to about the x-th.
static double gamma_at_most(double shape, double x)
{
    double term = 1 / shape, sum = term;
    for (double k = 1; term > sum * 1e-12; k++) {
        term *= x / (shape + k);
        sum += term;
    }
    return x > 0 ? sum * exp(shape * log(x) - x - lgamma(shape)) : 0;
}

enum { LARGE = 1000 };

// Uses the approximation by Wilson and Hilferty (1931), which is accurate to 10⁻⁴ in the range used
// here.
static double large_quantile(double shape, double deviations)
{
    double root = 1 - 1 / (9 * shape) + deviations / (3 * sqrt(shape));
    return shape * root * root * root;
}

// Returns a quantile of a Gamma(shape) variable. If `truncated` is set, the probability of each
// value is divided by the probability that a Poisson count with this value as its mean is above 0.
static double quantile(double shape, double probability, int truncated)
{
    double low = 0, high = 2 * shape + 20;
    if (shape > LARGE)
        return large_quantile(shape, probability < 0.5 ? -1.959964 : 1.959964);
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2, at = gamma_at_most(shape, middle);
        if (at < probability * (truncated ? -expm1(-middle) : 1))
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Computes the interval of Fay and Feuer (1997) for weighted sums of Poisson counts. The sum is
// treated as a Poisson variable in units of variance / sum. The upper limit allows for one more
// allocation of the largest weight, which is about sample_bytes.
struct estimate_range estimate_bytes(const struct estimate *e, uint64_t sample_bytes)
{
    double one = (double)sample_bytes, unit = e->bytes > 0 ? e->variance / e->bytes : 0;
    struct estimate_range r = {e->sampled_bytes, e->sampled_bytes};
    if (unit <= 0)
        return r;
    double low = unit * quantile(e->bytes / unit, 0.025, 1);
    double more = e->bytes + one, more_unit = (e->variance + one * one) / more;
    double high = more_unit * quantile(more / more_unit, 0.975, 0);
    if (low > (double)r.low)
        r.low = (uint64_t)low;
    r.high = high < 0x1p63 ? (uint64_t)high + 1 : UINT64_MAX;
    return r;
}
