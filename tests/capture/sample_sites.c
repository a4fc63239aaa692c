// Measures how often the confidence intervals of sampled call sites contain the true sum:
// sample_sites WORKLOAD RUNS BYTES. The workload must have a site for every allocation. Each run
// samples one stack per BYTES allocated and counts like `stat --by site`.
//
// Prints three lines, for the bytes allocated, live at the peak, and live at the end. A line
// contains the number of intervals, the number of intervals that contain the true sum, the ratio of
// the estimated to the true sum in per mille, and the standard error of this ratio, rounded up.
#include "analysis/by_site.h"
#include "workload/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALLOCATED, PEAK, END, FIGURES };

struct score {
    uint64_t shown, held;
    double estimated, truth;
};

static uint64_t state;

// Returns a random number in [0, 1). SplitMix64 (Sebastiano Vigna).
static double uniform(void)
{
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static bool is_drawn(const struct workload_op *op, uint64_t sample_bytes)
{
    uint64_t size = event_requested(op->kind, op->size, op->count);
    return uniform() < -expm1(-(double)size / (double)sample_bytes);
}

// Counts all ops. If sample_bytes is not 0, removes the site of allocations that are not sampled.
static int count(struct workload_file *w, uint64_t sample_bytes, struct by_site *b, struct err *e)
{
    const struct workload_op *op;
    uint32_t thread;
    int rc = workload_file_rewind(w, e);
    b->sample_bytes = sample_bytes;
    while (rc == 0 && (rc = workload_next_op(w->reader, &thread, &op, e)) > 0) {
        struct workload_op one = *op;
        if (sample_bytes && by_site_known(op) && !is_drawn(op, sample_bytes))
            one.value = 0;
        rc = by_site_op(b, 0, &one);
    }
    by_site_finish(b);
    return rc;
}

static void judge(struct score *s, const struct estimate *e, uint64_t sample_bytes, uint64_t truth)
{
    s->truth += (double)truth;
    s->estimated += e->bytes;
    if (!e->sampled_blocks)
        return;
    struct estimate_range r = estimate_bytes(e, sample_bytes);
    s->shown++;
    s->held += r.low <= truth && truth <= r.high;
}

static void judge_all(struct score *s, const struct by_site *b, const struct by_site *truth)
{
    static const struct by_site_totals none;
    for (size_t i = 1; i < truth->n_sites; i++) {
        const struct by_site_totals *t = i < b->n_sites ? &b->sites[i] : &none,
                                    *real = &truth->sites[i];
        judge(&s[ALLOCATED], &t->allocated, b->sample_bytes, real->bytes);
        judge(&s[PEAK], &t->peak, b->sample_bytes, real->peak_bytes);
        judge(&s[END], &t->live, b->sample_bytes, real->live_bytes);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[FIGURES] = {"allocated", "peak", "end"};
    struct score scores[FIGURES] = {0};
    struct by_site truth = {0};
    struct file f;
    struct err e;
    if (argc != 4)
        return 2;
    unsigned long runs = strtoul(argv[2], NULL, 10), sample_bytes = strtoul(argv[3], NULL, 10);
    int rc = file_open(&f, argv[1], FILE_WORKLOAD, &e);
    if (rc == 0)
        rc = count(&f.workload, 0, &truth, &e);
    for (unsigned long run = 0; rc == 0 && run < runs; run++) {
        struct by_site b = {0};
        state = run << 40;
        rc = count(&f.workload, sample_bytes, &b, &e);
        judge_all(scores, &b, &truth);
        by_site_release(&b);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", e.text);
    for (unsigned i = 0; rc == 0 && i < FIGURES; i++)
        // A block of s bytes is sampled with the probability p = 1 - exp(-s / S). It adds s^2 (1 -
        // p) / p to the variance, which is at most s S.
        printf("%s %" PRIu64 " %" PRIu64 " %.0f %.0f\n", names[i], scores[i].shown, scores[i].held,
               1000 * scores[i].estimated / scores[i].truth,
               ceil(1000 * sqrt((double)sample_bytes / scores[i].truth)));
    by_site_release(&truth);
    file_close(&f);
    return rc < 0;
}
