#include "report/text/pooled_process.h"

#include "analysis/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// Returns the number of the result with the median peak RSS. Considers only results with samples of
// the memory outside the heap. Returns d->n_items if there is no such result.
static size_t find_recorded(const struct document *d)
{
    double peaks[MEASURE_MAX_RUNS];
    size_t items[MEASURE_MAX_RUNS], n = 0;
    for (size_t i = 0; i < d->n_items && n < MEASURE_MAX_RUNS; i++) {
        const struct json_value *r = d->items[i].result;
        double peak = json_value_number_at(r, "peak_rss_bytes");
        if (!json_value_length(json_value_get(r, "outside_samples")) || isnan(peak))
            continue;
        items[n] = i;
        peaks[n++] = peak;
    }
    return n ? items[measure_median_index(peaks, n)] : d->n_items;
}

int pooled_process_read(struct process_rss_outside *o, const struct document *d)
{
    size_t recorded = find_recorded(d);
    if (recorded == d->n_items)
        return 0;
    const struct json_value *rows = json_value_get(d->items[recorded].result, "outside_samples");
    size_t n = json_value_length(rows);
    o->points = calloc(n, sizeof *o->points);
    if (!o->points)
        return -ENOMEM;
    o->n = n;
    double hidden = json_value_number_at(d->items[recorded].result, "outside_hidden_bytes");
    o->hidden_bytes = hidden > 0 ? hidden : 0;
    for (size_t i = 0; i < n; i++) {
        const struct json_value *row = json_value_at(rows, i);
        o->points[i] = (struct process_rss_point){json_value_u64(json_value_at(row, 0)),
                                                  (double)json_value_u64(json_value_at(row, 1))};
    }
    return 0;
}

int pooled_process_extra(const struct process_rss_outside *o, const struct json_value *result,
                         double *bytes)
{
    const struct json_value *rows = json_value_get(result, "timeline");
    struct replay_run run = {.n_samples = json_value_length(rows)};
    run.figures.peak_rss_bytes = json_value_number_at(result, "peak_rss_bytes");
    run.figures.end_rss_bytes = json_value_number_at(result, "end_rss_bytes");
    run.figures.library_bytes = json_value_number_at(result, "library_bytes");
    *bytes = NAN;
    if (!o->n || !run.n_samples)
        return 0;
    run.samples = calloc(run.n_samples, sizeof *run.samples);
    if (!run.samples)
        return -ENOMEM;
    for (size_t i = 0; i < run.n_samples; i++) {
        const struct json_value *row = json_value_at(rows, i);
        run.samples[i].event = json_value_u64(json_value_at(row, 0));
        run.samples[i].rss_bytes = json_value_u64(json_value_at(row, 2));
    }
    process_rss_predict_run(o, &run);
    *bytes = run.figures.process_peak_rss_bytes - run.figures.peak_rss_bytes;
    free(run.samples);
    return 0;
}
