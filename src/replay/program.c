#include "replay/program.h"

#include "replay/fidelity.h"

#include <math.h>

// Maximum estimated cost of recording, relative to the remaining time; the estimate may be off by
// half.
#define RECORDING_PART 0.6

// Maximum share of CPU time spent in page faults of big blocks. These also depend on huge pages,
// which makes the remainder uncertain.
#define USE_PART 0.5

// Maximum factor by which cold caches may slow down calls in the program compared to the replay.
#define MAX_SLOWER 4

static double median_of(const struct replay_result *r, unsigned figure)
{
    double values[MEASURE_MAX_RUNS];
    for (size_t i = 0; i < r->n_runs; i++)
        values[i] = r->runs[i].figures.values[figure];
    return r->n_runs ? measure_median(values, r->n_runs) : NAN;
}

// Returns a median minus the null allocator's median. The null allocator uses the same pages over
// and over.
static double more_than_null(const struct replay_session *s, const struct replay_result *r,
                             unsigned figure)
{
    double ns = median_of(r, figure) - median_of(&s->null, figure);
    return ns < 0 ? 0 : ns;
}

double program_use_ns(const struct replay_session *s, const struct replay_result *r)
{
    return fmin(more_than_null(s, r, FIGURE_touch_ns), more_than_null(s, r, FIGURE_cpu_ns));
}

double program_calls_ns(const struct replay_session *s, const struct replay_result *r)
{
    return more_than_null(s, r, FIGURE_cpu_ns) - program_use_ns(s, r);
}

static const struct replay_result *recorded_result(const struct replay_session *s)
{
    for (size_t i = 0; i < s->n_results; i++) {
        const struct replay_result *r = &s->results[i];
        if (fidelity_same_allocator(s->recorded_allocator, r->runs[r->typical].library))
            return r;
    }
    return NULL;
}

static const char *missing_reason(const struct replay_session *s, const struct program_time *t)
{
    if (!s->recorded_cpu_ns)
        return "the workload lacks the CPU time of a whole process";
    if (isnan(t->calls_ns))
        return "the recording did not time the calls, and the recorded allocator is not among those replayed";
    if (t->recording_ns > RECORDING_PART * t->cpu_ns)
        return "recording took too much of the CPU time";
    return t->calls_ns > t->cpu_ns ? "the calls took more CPU time than the program" : NULL;
}

struct program_time program_time(const struct replay_session *s)
{
    const struct replay_result *r = recorded_result(s);
    struct program_time t = {
        .recording_ns = (double)s->recording_ns,
        .cpu_ns = (double)s->recorded_cpu_ns - (double)s->recording_ns,
        .replayed_calls_ns = r ? program_calls_ns(s, r) : NAN,
        .timed_calls_ns = s->calls_max_ns ? (double)s->calls_min_ns : NAN,
    };
    // Both are lower bounds; fmax() ignores NAN.
    t.calls_ns = fmax(t.replayed_calls_ns, t.timed_calls_ns);
    t.missing_reason = missing_reason(s, &t);
    t.share = t.missing_reason ? NAN : t.calls_ns / t.cpu_ns;
    t.max_share = t.missing_reason || !s->calls_max_ns
                      ? NAN
                      : fmin(1, fmax(t.calls_ns, (double)s->calls_max_ns) / t.cpu_ns);
    return t;
}

double program_load_ns(const struct replay_session *s, const struct replay_result *r)
{
    const struct replay_result *recorded = recorded_result(s);
    return recorded ? median_of(r, FIGURE_load_cpu_ns) - median_of(recorded, FIGURE_load_cpu_ns)
                    : NAN;
}

static double predicted_ns(const struct replay_session *s, const struct program_time *t,
                           const struct replay_result *r)
{
    double slower =
        t->replayed_calls_ns > 0 ? fmin(t->calls_ns / t->replayed_calls_ns, MAX_SLOWER) : 1;
    return t->cpu_ns + slower * (program_calls_ns(s, r) - t->replayed_calls_ns) +
           program_use_ns(s, r) - program_use_ns(s, recorded_result(s)) + program_load_ns(s, r);
}

static bool is_mostly_use(const struct replay_session *s, const struct replay_result *r,
                          double cpu_ns)
{
    return program_use_ns(s, r) > USE_PART * cpu_ns;
}

const char *program_ratio_missing_reason(const struct replay_session *s,
                                         const struct program_time *t,
                                         const struct replay_result *r)
{
    const struct replay_result *first = &s->results[0];
    if (t->missing_reason)
        return t->missing_reason;
    if (isnan(t->replayed_calls_ns))
        return "the recorded allocator is not among those replayed";
    return is_mostly_use(s, recorded_result(s), t->cpu_ns) ||
                   is_mostly_use(s, first, predicted_ns(s, t, first)) ||
                   is_mostly_use(s, r, predicted_ns(s, t, r))
               ? "in replay, page faults in big blocks alone take over half of it"
               : NULL;
}

double program_ratio(const struct replay_session *s, const struct program_time *t,
                     const struct replay_result *r)
{
    return program_ratio_missing_reason(s, t, r)
               ? NAN
               : predicted_ns(s, t, r) / predicted_ns(s, t, &s->results[0]);
}
