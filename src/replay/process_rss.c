#include "replay/process_rss.h"

#include "base/search.h"
#include "replay/fidelity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// Smaller changes in heap size between two calls are ignored.
enum { JOINED_BYTES = 256 << 10 };

// A peak that exceeds all samples by this factor lies between two samples.
#define HIDDEN_PEAK 1.02

// Ignores results with tunables, because the allocator's settings in the recorded program are
// unknown, and results with added trims, because the program did not make these calls.
static bool is_recorded(const struct replay_session *s, const struct replay_result *r)
{
    bool has_trims = s->settings.trim_every && r->trim_step;
    return !r->allocator.n_tunables && !has_trims && fidelity_has_recorded(s, r);
}

const struct replay_result *process_rss_recorded(const struct replay_session *s)
{
    for (size_t i = 0; i < s->n_results; i++) {
        if (is_recorded(s, &s->results[i]))
            return &s->results[i];
    }
    return is_recorded(s, &s->added) ? &s->added : NULL;
}

const char *process_rss_missing_reason(const struct replay_session *s)
{
    size_t n = 0;
    if (s->settings.verify)
        return "memory is not measured with --verify";
    if (s->plan)
        plan_recorded_samples(s->plan, &n);
    if (!s->has_samples || !n)
        return "the workload has no samples of the program's memory";
    return process_rss_recorded(s)
               ? NULL
               : "the recorded allocator, without tunables and trims, is not among those replayed";
}

bool process_rss_has_recording(const struct replay_session *s)
{
    return !process_rss_missing_reason(s) && !s->summary.recording_rss_bytes;
}

static double subtract(double bytes, double part)
{
    return bytes > part ? bytes - part : 0;
}

static double library_bytes(const struct replay_run *run)
{
    return isnan(run->figures.library_bytes) ? 0 : run->figures.library_bytes;
}

// Returns the number of points before the event.
static size_t count_before(const struct process_rss_outside *o, uint64_t event)
{
    return HT_SEARCH(i, o->n, o->points[i].event >= event);
}

// Returns the run's RSS at a recorded sample.
static double rss_at(const struct process_rss_outside *o, const struct replay_run *run, size_t i)
{
    uint64_t event = o->points[i].event;
    size_t first = count_before(o, event), end = count_before(o, event + 1);
    return fidelity_replayed_rss(run, event, i - first, end - first);
}

// Returns the first sample within 2 % of the highest sample, or NULL. If the allocator retains its
// memory, this sample is near the peak, and later samples are as high only because of the retained
// memory.
static const struct results_sample *find_highest(const struct replay_run *run)
{
    uint64_t most = 0;
    for (size_t i = 0; i < run->n_samples; i++)
        most = run->samples[i].rss_bytes > most ? run->samples[i].rss_bytes : most;
    for (size_t i = 0; i < run->n_samples; i++) {
        if (run->samples[i].rss_bytes >= most - most / 50)
            return &run->samples[i];
    }
    return NULL;
}

// Bounds on the memory of the heap.
struct heap_range {
    double low, high;
};

struct outside_input {
    const struct plan_recorded_sample *recorded;
    size_t n;
    struct process_rss_point *points;
    double *rss; // RSS of the replay at each recorded sample
    double recording_bytes, library_bytes;
    const struct replay_run *run;
    double highest_rss; // result of find_highest()
};

// Returns the first sample of the run at or after the event, or the end of the samples.
static const struct results_sample *find_sample(const struct replay_run *run, uint64_t event)
{
    return run->samples + HT_SEARCH(i, run->n_samples, run->samples[i].event >= event);
}

// Returns bounds on the heap of the replay at a recorded sample. If the replay was not sampled
// after the same call, the heap is between the values of the two nearest samples. The program may
// have written to a block earlier than the replay did, or the recorded sample may be in the middle
// of a call that clears or copies a block. In both cases, the heap is at most the heap at the
// replay's next sample. If a thread exited before the recorded sample, the C library or the
// allocator may not have freed its memory until after the sample. The heap is then at most the heap
// at the replay's previous sample. If the last call of a thread is a free, the kernel may still be
// unmapping the block's pages. If the peak falls between the replay's samples, the heap is at most
// the peak.
static struct heap_range find_range(const struct outside_input *in, size_t i, double rss)
{
    const struct replay_run *run = in->run;
    uint64_t event = in->recorded[i].event;
    const struct results_sample *b = find_sample(run, event), *after = find_sample(run, event + 1),
                                *end = run->samples + run->n_samples;
    struct heap_range range = {rss, rss};
    double next = after < end ? (double)after->rss_bytes : rss;
    if (b > run->samples && b < end && b->event != event) {
        range.low = fmin((double)b[-1].rss_bytes, next);
        range.high = fmax((double)b[-1].rss_bytes, next);
    } else {
        range.high = fmax(rss, next);
    }
    // After the last call, no thread is still freeing memory.
    bool is_over = i == in->n - 1 && after == end;
    if (b > run->samples && i && in->recorded[i].exits != in->recorded[i - 1].exits && !is_over)
        range.high = fmax(range.high, (double)b[-1].rss_bytes);
    double freed = is_over ? 0 : (double)in->recorded[i].freed_bytes;
    range.high = fmax(range.high, fmin(range.high + freed, run->figures.peak_rss_bytes));
    if (fmax(range.high, next) >= in->highest_rss &&
        run->figures.peak_rss_bytes > HIDDEN_PEAK * in->highest_rss)
        range.high = run->figures.peak_rss_bytes;
    return range;
}

// Returns the memory outside the heap at a recorded sample, if the heap is in the range `heap`.
// Assumes that the memory outside the heap has changed as little as possible since the previous
// sample.
static double outside_at(const struct outside_input *in, size_t i, double recorded,
                         struct heap_range heap)
{
    double most = subtract(recorded, heap.low + in->library_bytes),
           least = subtract(recorded, heap.high + in->library_bytes);
    return i ? fmax(least, fmin(most, in->points[i - 1].bytes)) : most;
}

// Sets the memory outside the heap at a recorded sample. This memory includes at least the shared
// pages, even if the replay uses more memory than the program.
static void set_point(const struct outside_input *in, size_t i, double rss)
{
    const struct plan_recorded_sample *r = &in->recorded[i];
    in->rss[i] = rss;
    double recorded = subtract((double)r->sample.rss_bytes, in->recording_bytes);
    double shared = (double)r->sample.rss_bytes - (double)r->sample.anon_bytes;
    double least = subtract(shared, in->recording_bytes + in->library_bytes);
    in->points[i].bytes = fmax(outside_at(in, i, recorded, find_range(in, i, rss)), least);
}

// If the heap grows between two calls because the program writes to its blocks, corrects the points
// between these calls. Their recorded samples cannot be matched with the replay's samples. All
// these points are therefore set to the difference between the recorded peak and the replayed peak.
static void join_points(struct outside_input *in)
{
    const struct plan_recorded_sample *r = in->recorded;
    for (size_t i = 0, end; i < in->n; i = end) {
        struct heap_range heap = {0, 0};
        double least = INFINITY, most = 0, shared = 0;
        for (end = i; end < in->n && r[end].event == r[i].event; end++) {
            heap.low = fmax(heap.low, in->rss[end]);
            heap.high = fmax(heap.high, find_range(in, end, in->rss[end]).high);
            least = fmin(least, in->rss[end]);
            most = fmax(most, (double)r[end].sample.rss_bytes - in->recording_bytes);
            shared =
                fmax(shared, (double)r[end].sample.rss_bytes - (double)r[end].sample.anon_bytes);
        }
        if (heap.low - least <= JOINED_BYTES)
            continue;
        double outside = fmax(outside_at(in, i, most, heap),
                              subtract(shared, in->recording_bytes + in->library_bytes));
        for (; i < end; i++)
            in->points[i].bytes = outside;
    }
}

double process_rss_outside(const struct process_rss_outside *o, const struct replay_run *run,
                           uint64_t event)
{
    size_t low = count_before(o, event);
    if (!o->n)
        return NAN;
    if (low == o->n)
        return o->points[o->n - 1].bytes + library_bytes(run);
    const struct process_rss_point *b = &o->points[low], *a = low ? b - 1 : b;
    double part = b->event > a->event && event < b->event
                      ? (double)(event - a->event) / (double)(b->event - a->event)
                      : 1;
    return a->bytes + part * (b->bytes - a->bytes) + library_bytes(run);
}

struct predicted_peak {
    double all, part; // bytes of the process, and bytes outside the heap
};

static void raise_peak(struct predicted_peak *p, double rss, double outside)
{
    if (rss + outside <= p->all)
        return;
    p->all = rss + outside;
    p->part = outside;
}

// Returns the memory outside the heap at the heap's peak. The peak may lie in the interval before
// the highest sample. If the peak is higher than that sample, it may also lie in the interval after
// it. Uses the highest value of the interval, because the memory outside the heap may have grown
// before the peak.
static double outside_at_peak(const struct process_rss_outside *o, const struct replay_run *run,
                              const struct results_sample *highest)
{
    size_t i = count_before(o, highest->event), end = i;
    double bytes = process_rss_outside(o, run, highest->event) - library_bytes(run);
    while (end < o->n && o->points[end].event == highest->event)
        end++;
    bool is_hidden = run->figures.peak_rss_bytes > HIDDEN_PEAK * (double)highest->rss_bytes;
    for (size_t next = end;
         is_hidden && end < o->n && o->points[end].event == o->points[next].event;)
        end++;
    for (i -= i > 0; i < end; i++)
        bytes = fmax(bytes, o->points[i].bytes);
    return bytes + library_bytes(run);
}

// Finds the process's peak from the recorded samples, the replay's samples, and the heap's peak.
// The heap's peak may lie between samples.
void process_rss_predict_run(const struct process_rss_outside *o, struct replay_run *run)
{
    struct predicted_peak p = {0, 0};
    const struct results_sample *highest = find_highest(run);
    for (size_t i = 0; i < o->n; i++)
        raise_peak(&p, rss_at(o, run, i), o->points[i].bytes + library_bytes(run));
    for (size_t i = 0; i < run->n_samples; i++) {
        const struct results_sample *at = &run->samples[i];
        raise_peak(&p, (double)at->rss_bytes, process_rss_outside(o, run, at->event));
    }
    if (highest)
        raise_peak(&p, run->figures.peak_rss_bytes, outside_at_peak(o, run, highest));
    run->figures.process_peak_rss_bytes = p.all + o->hidden_bytes;
    run->figures.outside_rss_bytes = p.part + o->hidden_bytes;
}

// Corrects the prediction, using the peak that the kernel counted. This peak includes memory that
// was resident only between two samples. Assumes that the difference is the same on all allocators.
// If the samples predict a higher peak than the kernel counted, lowers all points.
static void correct_peak(struct process_rss_outside *o, const struct replay_session *s,
                         struct replay_run run)
{
    if (!s->summary.peak_rss_bytes)
        return;
    process_rss_predict_run(o, &run);
    double error = (double)s->summary.peak_rss_bytes - (double)s->summary.recording_rss_bytes -
                   run.figures.process_peak_rss_bytes;
    for (size_t i = 0; error < 0 && i < o->n; i++)
        o->points[i].bytes = subtract(o->points[i].bytes, -error);
    o->hidden_bytes = error > 0 ? error : 0;
}

int process_rss_predict(struct replay_session *s)
{
    size_t n;
    if (process_rss_missing_reason(s))
        return 0;
    const struct replay_result *recorded = process_rss_recorded(s);
    const struct replay_run *run = &recorded->runs[recorded->typical_memory];
    struct outside_input in = {.recorded = plan_recorded_samples(s->plan, &n),
                               .recording_bytes = (double)s->summary.recording_rss_bytes,
                               .library_bytes = library_bytes(run),
                               .run = run};
    const struct results_sample *highest = find_highest(run);
    in.n = n;
    in.highest_rss = highest ? (double)highest->rss_bytes : 0;
    process_rss_release(&s->outside);
    s->outside.points = in.points = calloc(n, sizeof *in.points);
    in.rss = calloc(n, sizeof *in.rss);
    if (!in.points || !in.rss) {
        free(in.rss);
        return -ENOMEM;
    }
    s->outside.n = n;
    for (size_t i = 0; i < n; i++)
        in.points[i].event = in.recorded[i].event;
    for (size_t i = 0; i < n; i++)
        set_point(&in, i, rss_at(&s->outside, run, i));
    join_points(&in);
    free(in.rss);
    correct_peak(&s->outside, s, *run);
    for (size_t i = 0; i < s->n_results; i++) {
        for (size_t k = 0; k < s->results[i].n_runs; k++)
            process_rss_predict_run(&s->outside, &s->results[i].runs[k]);
    }
    return 0;
}

void process_rss_release(struct process_rss_outside *o)
{
    free(o->points);
    *o = (struct process_rss_outside){0};
}
