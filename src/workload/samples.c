#include "workload/samples.h"

#include "base/buf.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

void samples_release(struct samples *s)
{
    free(s->items);
    *s = (struct samples){0};
}

// Compares two samples by anon_bytes, then by rss_bytes.
static bool is_less(const struct workload_sample *a, const struct workload_sample *b)
{
    return a->anon_bytes != b->anon_bytes ? a->anon_bytes < b->anon_bytes
                                          : a->rss_bytes < b->rss_bytes;
}

// Copies the lowest and the highest of `n` samples to `to`, keeping their order. `to` may overlap
// `from`.
static void keep_extremes(const struct workload_sample *from, size_t n, struct workload_sample *to)
{
    size_t low = 0, high = 0;
    for (size_t i = 1; i < n; i++) {
        low = is_less(&from[i], &from[low]) ? i : low;
        high = is_less(&from[high], &from[i]) ? i : high;
    }
    if (low == high) // all samples are equal
        high = n - 1;
    struct workload_sample first = from[low < high ? low : high],
                           second = from[low < high ? high : low];
    to[0] = first;
    to[1] = second;
}

static void halve_samples(struct samples *s)
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
        halve_samples(s);
    return 0;
}

void samples_finish(struct samples *s)
{
    for (size_t i = 0; i < s->n_held; i++)
        s->items[s->n++] = s->held[i];
    s->in_group = s->n_held = 0;
}

void samples_residency_release(struct samples_residency *l)
{
    free(l->items);
    free(l->steps);
    *l = (struct samples_residency){0};
}

int samples_residency_add(struct samples_residency *l, const struct workload_residency *r)
{
    if (l->every && ++l->skipped % l->every)
        return 0;
    if (l->n == RESIDENCY_MAX) {
        for (size_t i = 0; i < RESIDENCY_MAX / 2; i++)
            l->items[i] = l->items[2 * i];
        l->n = RESIDENCY_MAX / 2;
        l->every = l->every ? 2 * l->every : 2;
        l->skipped = 0;
    }
    return HT_APPEND(&l->items, &l->n, &l->capacity, *r);
}

int samples_residency_add_step(struct samples_residency *l, const struct workload_residency_step *s)
{
    if (l->n_steps == RESIDENCY_MAX)
        return 0;
    return HT_APPEND(&l->steps, &l->n_steps, &l->steps_capacity, *s);
}

static int compare_ops(const void *a, const void *b)
{
    const struct workload_residency *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static int compare_step_ops(const struct workload_residency_step *x, uint32_t thread, uint64_t op)
{
    if (x->thread != thread)
        return x->thread < thread ? -1 : 1;
    return x->op < op ? -1 : x->op > op;
}

static int compare_steps(const void *a, const void *b)
{
    const struct workload_residency_step *x = a, *y = b;
    int order = compare_step_ops(x, y->thread, y->op);
    return order ? order : x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

// Appends the residency of blocks that have only steps, because a signal killed the program before
// it freed them. The last step becomes the residency.
static void add_unreleased(struct samples_residency *l)
{
    if (HT_GROW(&l->items, &l->capacity, l->n + l->n_steps) < 0)
        return;
    const struct samples_residency sorted = *l;
    for (size_t i = 0; i < l->n_steps && l->n < RESIDENCY_MAX; i++) {
        const struct workload_residency_step *s = &l->steps[i];
        bool is_last = i + 1 == l->n_steps || compare_step_ops(s + 1, s->thread, s->op) != 0;
        if (is_last && !samples_residency_find(&sorted, s->thread, s->op))
            l->items[l->n++] = (struct workload_residency){.op = s->op,
                                                           .thread = s->thread,
                                                           .used = s->used,
                                                           .resident = s->used,
                                                           .front = s->used};
    }
    qsort(l->items, l->n, sizeof *l->items, compare_ops);
}

static void sort_steps(struct samples_residency *l)
{
    size_t kept = 0, n;
    if (!l->n_steps)
        return;
    qsort(l->steps, l->n_steps, sizeof *l->steps, compare_steps);
    add_unreleased(l);
    for (size_t i = 0; i < l->n_steps; i += n) {
        const struct workload_residency_step first = l->steps[i];
        const struct workload_residency *r = samples_residency_find(l, first.thread, first.op);
        // The final figure may include a partial page, but steps never do.
        bool is_late = r && first.used / WORKLOAD_PAGE_KIB < r->used / WORKLOAD_PAGE_KIB;
        for (n = 0;
             i + n < l->n_steps && compare_step_ops(&l->steps[i + n], first.thread, first.op) == 0;
             n++) {
            if (is_late)
                l->steps[kept++] = l->steps[i + n];
        }
    }
    l->n_steps = kept;
}

void samples_residency_sort(struct samples_residency *l)
{
    size_t kept = 0;
    if (l->n)
        qsort(l->items, l->n, sizeof *l->items, compare_ops);
    for (size_t i = 0; i < l->n; i++) {
        bool again = kept && compare_ops(&l->items[kept - 1], &l->items[i]) == 0;
        if (!again)
            l->items[kept++] = l->items[i];
        else if (l->items[i].used > l->items[kept - 1].used)
            l->items[kept - 1] = l->items[i];
    }
    l->n = kept;
    sort_steps(l);
}

const struct workload_residency *samples_residency_find(const struct samples_residency *l,
                                                        uint32_t thread, uint64_t op)
{
    const struct workload_residency key = {.thread = thread, .op = op};
    return l->n ? bsearch(&key, l->items, l->n, sizeof *l->items, compare_ops) : NULL;
}

const struct workload_residency_step *
samples_residency_steps(const struct samples_residency *l, uint32_t thread, uint64_t op, size_t *n)
{
    size_t first = HT_SEARCH(i, l->n_steps, compare_step_ops(&l->steps[i], thread, op) >= 0),
           end = first;
    while (end < l->n_steps && compare_step_ops(&l->steps[end], thread, op) == 0)
        end++;
    *n = end - first;
    return *n ? &l->steps[first] : NULL;
}
