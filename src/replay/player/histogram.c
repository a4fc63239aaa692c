#include "replay/player/histogram.h"

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    to->count += from->count;
    to->sum += from->sum;
    if (from->max > to->max)
        to->max = from->max;
    // The buckets above the largest value are empty. Reading them would populate their pages.
    for (unsigned i = 0; i <= histogram_bucket(from->max); i++)
        to->buckets[i] += from->buckets[i];
}

static uint64_t bucket_middle(unsigned bucket)
{
    if (bucket < 2 * HISTOGRAM_STEPS)
        return bucket;
    unsigned shift = (bucket >> HISTOGRAM_STEP_BITS) - 1;
    uint64_t low = (uint64_t)(bucket - (shift << HISTOGRAM_STEP_BITS)) << shift;
    return low + ((1ull << shift) >> 1);
}

uint64_t histogram_quantile(const struct histogram *h, double share)
{
    // Round the rank up, so that the median of two values is the lower value, and the p99 of 100
    // values is the 99th value.
    double exact = share * (double)h->count;
    uint64_t rank = (uint64_t)exact, seen = 0;
    if ((double)rank < exact || rank == 0)
        rank++;
    if (rank >= h->count)
        return h->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= rank) {
            uint64_t middle = bucket_middle(i);
            return middle < h->max ? middle : h->max;
        }
    }
    return h->max;
}

uint64_t histogram_outlier_limit(const struct histogram *h, uint64_t min)
{
    enum { TIMES = 10 };
    double count = (double)h->count, share = 0.99 * count <= count - 1 ? 0.99 : (count - 1) / count;
    uint64_t limit = TIMES * histogram_quantile(h, share);
    return limit > min ? limit : min;
}

double histogram_mean_up_to(const struct histogram *h, uint64_t limit, uint64_t *outliers)
{
    unsigned last = histogram_bucket(limit);
    double sum = 0;
    uint64_t n = 0;
    *outliers = 0;
    if (histogram_bucket(h->max) <= last)
        return h->count ? (double)h->sum / (double)h->count : 0;
    for (unsigned i = 0; i <= last; i++) {
        sum += (double)h->buckets[i] * (double)bucket_middle(i);
        n += h->buckets[i];
    }
    *outliers = h->count - n;
    return n ? sum / (double)n : 0;
}

double histogram_trimmed_mean(const struct histogram *h, double share)
{
    double left = share * (double)h->count, sum = 0, n = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && left > 0; i++) {
        double take = (double)h->buckets[i] < left ? (double)h->buckets[i] : left;
        sum += take * (double)bucket_middle(i);
        n += take;
        left -= take;
    }
    return n > 0 ? sum / n : 0;
}
