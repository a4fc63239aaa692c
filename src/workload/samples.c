#include "workload/samples.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void samples_release(struct samples *s)
{
    free(s->items);
    *s = (struct samples){0};
}

// What is kept is the heap's own low and high, where they are equal the process's.
static bool is_less(const struct workload_sample *a, const struct workload_sample *b)
{
    return a->anon_bytes != b->anon_bytes ? a->anon_bytes < b->anon_bytes : a->rss_bytes < b->rss_bytes;
}

// The lowest and the highest of `n` samples, in the order in which they stand, to `to`, which may be among them.
static void keep_extremes(const struct workload_sample *from, size_t n, struct workload_sample *to)
{
    size_t low = 0, high = 0;
    for (size_t i = 1; i < n; i++) {
        low = is_less(&from[i], &from[low]) ? i : low;
        high = is_less(&from[high], &from[i]) ? i : high;
    }
    if (low == high) // all are equal
        high = n - 1;
    struct workload_sample first = from[low < high ? low : high], second = from[low < high ? high : low];
    to[0] = first;
    to[1] = second;
}

static void halve(struct samples *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i += 4, kept += 2)
        keep_extremes(s->items + i, 4, s->items + kept);
    s->n = kept;
    s->group = s->group ? 2 * s->group : 4;
}
_Static_assert(SAMPLES_MAX % 4 == 0, "halve finds whole groups");

int samples_add(struct samples *s, const struct workload_sample *sample)
{
    if (HT_GROW(&s->items, &s->capacity, s->n + 2) < 0)
        return -ENOMEM;
    if (!s->group) {
        s->items[s->n++] = *sample;
    } else {
        s->held[s->n_held++] = *sample;
        if (s->n_held == 3) {
            keep_extremes(s->held, 3, s->held);
            s->n_held = 2;
        }
        if (++s->in_group == s->group)
            samples_finish(s);
    }
    if (s->n == SAMPLES_MAX)
        halve(s);
    return 0;
}

void samples_finish(struct samples *s)
{
    for (size_t i = 0; i < s->n_held; i++)
        s->items[s->n++] = s->held[i];
    s->in_group = s->n_held = 0;
}
