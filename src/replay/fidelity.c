#include "replay/fidelity.h"
#include "base/search.h"
#include "replay/machine.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// If one of these limits is exceeded, memory is not compared.
enum {
    FEW_SAMPLES = 5,
    // At the first sample, at most 1/EARLY_PART of the peak live bytes are live.
    EARLY_PART = 4,
    OVERMAPPED_PART = 10, // at most 1/OVERMAPPED_PART of the samples count as `overmapped`
};

// Returns live bytes after `event` calls in the workload's order, interpolated between known
// points.
static double recorded_live(const struct plan *p, uint64_t event)
{
    const struct plan_facts *facts = plan_facts(p);
    size_t n;
    const struct plan_live_point *points = plan_live_points(p, &n);
    size_t low = HT_SEARCH(i, n, points[i].event >= event);
    if (low < n && points[low].event == event)
        return (double)points[low].live_bytes;
    struct plan_live_point end = {facts->events, (int64_t)facts->live_at_end_bytes};
    struct plan_live_point begin = {0, (int64_t)facts->preexisting_bytes};
    struct plan_live_point a = low ? points[low - 1] : begin, b = low < n ? points[low] : end;
    if (b.event <= a.event)
        return (double)b.live_bytes;
    double part = (double)(event - a.event) / (double)(b.event - a.event);
    return (double)a.live_bytes + part * (double)(b.live_bytes - a.live_bytes);
}

struct fidelity_live fidelity_live(const struct plan *p, const struct replay_run *run)
{
    struct fidelity_live f = {0};
    double sum = 0;
    for (size_t i = 0; i < run->n_samples; i++) {
        double is = (double)run->samples[i].live_bytes,
               was = recorded_live(p, run->samples[i].event);
        double off = fabs(is - was);
        f.points++;
        f.equal += off < 1;
        sum += off;
        if (off > (double)f.max_bytes)
            f.max_bytes = (uint64_t)off;
    }
    f.mean_bytes = f.points ? sum / (double)f.points : 0;
    double recorded_peak = (double)plan_facts(p)->peak_live_bytes;
    f.peak_ratio = recorded_peak > 0 ? run->figures.replayed_peak_live_bytes / recorded_peak : NAN;
    return f;
}

double fidelity_replayed_rss(const struct replay_run *run, uint64_t event, size_t place,
                             size_t places)
{
    size_t n = 0, i = HT_SEARCH(at, run->n_samples, run->samples[at].event >= event);
    if (i == run->n_samples)
        return run->figures.end_rss_bytes;
    while (i + n < run->n_samples && run->samples[i + n].event == event)
        n++;
    if (n)
        return (double)run->samples[i + place * n / places].rss_bytes;
    const struct results_sample *b = &run->samples[i], *a = i ? b - 1 : b;
    if (b->event <= a->event)
        return (double)b->rss_bytes;
    double part = (double)(event - a->event) / (double)(b->event - a->event);
    return (double)a->rss_bytes + part * ((double)b->rss_bytes - (double)a->rss_bytes);
}

// Returns the program's private memory without its own mappings. The sum is negative if the program
// hardly used these mappings.
static double private_bytes(const struct plan_recorded_sample *r)
{
    return (double)r->sample.anon_bytes - (double)r->mapped_bytes;
}

struct fidelity_memory fidelity_memory(const struct plan *p, const struct replay_run *run)
{
    size_t n;
    const struct plan_recorded_sample *r = plan_recorded_samples(p, &n);
    struct fidelity_memory f = {0};
    double off = 0, bias = 0, sum = 0;
    if (n) {
        f.baseline_bytes = (uint64_t)fmax(private_bytes(r) - (double)r->live_bytes, 0);
        f.first_live_bytes = r->live_bytes > 0 ? (uint64_t)r->live_bytes : 0;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t event = r[i].event;
        if (event == 0 && i > 0)
            continue;
        // Samples `first` to `end` - 1 were taken after the same call.
        size_t first = HT_SEARCH(k, n, r[k].event >= event),
               end = HT_SEARCH(k, n, r[k].event > event);
        double heap = private_bytes(&r[i]) - (double)f.baseline_bytes, was = fmax(heap, 0),
               is = fidelity_replayed_rss(run, event, i - first, end - first) -
                    run->figures.baseline_rss_bytes;
        f.samples++;
        f.overmapped += heap < 0 && r[i].mapped_bytes > 0;
        off += fabs(is - was);
        bias += is - was;
        sum += was;
        f.recorded_peak_bytes = fmax(was, f.recorded_peak_bytes);
        if (r[i].mapped_bytes > f.mapped_bytes)
            f.mapped_bytes = r[i].mapped_bytes;
    }
    f.replayed_peak_bytes = run->figures.peak_rss_bytes - run->figures.baseline_rss_bytes;
    f.mean_error = sum > 0 ? off / sum : 0;
    f.mean_bias = sum > 0 ? bias / sum : 0;
    return f;
}

// Start (+1) or end (-1) of a thread. The position is a time or a number of calls.
struct boundary {
    double at;
    int step;
};

static int by_place(const void *a, const void *b)
{
    const struct boundary *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->step - y->step; // ends sort first
}

// Returns the time during which at least two threads run, divided by the time during which at least
// one thread runs.
static double shared_part(struct boundary *boundaries, size_t n)
{
    double any = 0, several = 0;
    int threads = 0;
    qsort(boundaries, n, sizeof *boundaries, by_place);
    for (size_t i = 0; i < n; i++) {
        double length = i ? boundaries[i].at - boundaries[i - 1].at : 0;
        any += threads >= 1 ? length : 0;
        several += threads >= 2 ? length : 0;
        threads += boundaries[i].step;
    }
    return any > 0 ? several / any : 0;
}

int fidelity_overlap(const struct plan *p, const struct replay_run *run, struct fidelity_overlap *o)
{
    size_t n = 0, threads = plan_threads(p), capacity = 2 * threads + 2;
    struct boundary *boundaries = calloc(4 * capacity, sizeof *boundaries), *at[4];
    *o = (struct fidelity_overlap){0};
    if (!boundaries)
        return -ENOMEM;
    for (size_t i = 0; i < 4; i++)
        at[i] = boundaries + i * capacity;
    for (size_t i = 0; i < threads; i++) {
        const struct plan_span *was = plan_span(p, i);
        const struct results_span *is = &run->spans[i];
        if (!was)
            continue;
        const double spans[4][2] = {{(double)was->first_stamp, (double)was->last_stamp},
                                    {(double)is->begin_ns, (double)is->end_ns},
                                    {(double)was->first_event, (double)was->last_event},
                                    {(double)is->begin_event, (double)is->end_event}};
        for (size_t k = 0; k < 4; k++) {
            at[k][n] = (struct boundary){spans[k][0], 1};
            at[k][n + 1] = (struct boundary){spans[k][1], -1};
        }
        n += 2;
    }
    o->recorded_time = shared_part(at[0], n);
    o->replayed_time = shared_part(at[1], n);
    o->recorded_events = shared_part(at[2], n);
    o->replayed_events = shared_part(at[3], n);
    free(boundaries);
    return 0;
}

static bool is_recorded(const struct replay_session *s, const char *library, const char *build_id)
{
    const char *recorded = s->recorded_allocator;
    char a[PATH_MAX], b[PATH_MAX], id[MACHINE_BUILD_ID_BYTES];
    if (!recorded || !library)
        return false;
    if (s->recorded_build_id && s->recorded_build_id[0])
        return strcmp(s->recorded_build_id, build_id) == 0;
    if (strcmp(recorded, library) == 0)
        return true;
    if (realpath(recorded, a) && realpath(library, b) && strcmp(a, b) == 0)
        return true;
    machine_build_id(recorded, id, sizeof id);
    return strcmp(basename(recorded), basename(library)) == 0 && id[0] && strcmp(id, build_id) == 0;
}

bool fidelity_is_recorded(const struct replay_session *s, const char *library)
{
    char id[MACHINE_BUILD_ID_BYTES] = "";
    if (library)
        machine_build_id(library, id, sizeof id);
    return is_recorded(s, library, id);
}

bool fidelity_has_recorded(const struct replay_session *s, const struct replay_result *r)
{
    return r->n_runs && is_recorded(s, r->runs[r->typical].library, r->build_id);
}

static const char *missing_reason(const struct replay_session *s, const struct fidelity *f)
{
    if (!f->recorded_allocator)
        return "the allocator of the recording is not known";
    if (!f->same_allocator)
        return "the workload was recorded on another allocator";
    if (!s->has_samples)
        return "the workload has no samples of the program's memory";
    if (f->memory.samples < FEW_SAMPLES)
        return "the recording has too few samples of the program's memory";
    if (f->memory.first_live_bytes > plan_facts(s->plan)->peak_live_bytes / EARLY_PART)
        return "many blocks were live at the first sample, so the memory outside them is not known";
    if (f->memory.overmapped > f->memory.samples / OVERMAPPED_PART)
        return "the program has not used all of its own mappings, so their share of its memory is "
               "not known";
    return f->memory.recorded_peak_bytes > 0 ? NULL : "the program's private memory did not grow";
}

static double allocator_ns(const struct replay_session *s, const struct replay_result *r)
{
    double ns = 0;
    if (!r->latency.calls)
        return NAN;
    for (unsigned kind = 0; kind < RESULTS_KINDS; kind++) {
        struct replay_call c = replay_run_call(&r->latency, &s->null.latency, kind);
        ns += c.mean_ns * (double)c.count;
    }
    return ns;
}

struct fidelity fidelity_of(const struct replay_session *s, const struct replay_result *r)
{
    const struct replay_run *run = &r->runs[r->typical], *memory = &r->runs[r->typical_memory];
    double recorded_ns = (double)plan_facts(s->plan)->duration_stamps * s->ns_per_stamp;
    struct fidelity f = {
        .recorded_allocator =
            s->recorded_allocator && s->recorded_allocator[0] ? s->recorded_allocator : NULL,
        .same_allocator = fidelity_has_recorded(s, r),
        .live = fidelity_live(s->plan, memory),
        .memory = fidelity_memory(s->plan, memory),
        .allocator_ns = allocator_ns(s, r),
        .recorded_ns = recorded_ns > 0 ? recorded_ns : NAN,
    };
    f.missing_reason = missing_reason(s, &f);
    f.peak_is_far =
        !f.missing_reason && fabs(f.memory.replayed_peak_bytes - f.memory.recorded_peak_bytes) >
                                 FIDELITY_FAR * f.memory.recorded_peak_bytes;
    f.is_far = f.peak_is_far || (!f.missing_reason && f.memory.mean_error > FIDELITY_FAR);
    f.has_overlap =
        plan_facts(s->plan)->threads > 1 && fidelity_overlap(s->plan, run, &f.overlap) == 0;
    if (!(s->ns_per_stamp > 0))
        f.overlap.recorded_time = NAN;
    return f;
}
