#include "replay/program.h"

#include "replay/fidelity.h"

#include <math.h>

// Maximum estimated cost of recording, relative to the remaining time. The estimate may be off by
// 50 %.
#define RECORDING_PART 0.6

// Maximum share of CPU time spent on page faults in big blocks. The time of these faults also
// depends on huge pages, so the remaining time is uncertain.
#define USE_PART 0.5

// The code outside the calls runs faster or slower if blocks are placed differently. In 95 % of
// cases, its time changes by at most this share (docs/design/replay.md).
#define PLACEMENT_PART 0.12

// Largest factor by which cold caches are assumed to slow down calls in the program, compared with
// the replay.
#define MAX_SLOWER 4

static double value_of(const struct replay_result *r, unsigned figure, size_t run)
{
    double values[MEASURE_MAX_RUNS];
    if (run < r->n_runs)
        return r->runs[run].figures.values[figure];
    for (size_t i = 0; i < r->n_runs; i++)
        values[i] = r->runs[i].figures.values[figure];
    return r->n_runs ? measure_median(values, r->n_runs) : NAN;
}

// Returns a figure minus the null allocator's figure. The null allocator reuses the same pages, so
// its figure includes hardly any page faults.
static double more_than_null(const struct replay_session *s, const struct replay_result *r,
                             unsigned figure, size_t run)
{
    double ns = value_of(r, figure, run) - value_of(&s->null, figure, run);
    return ns < 0 ? 0 : ns;
}

double program_use_ns(const struct replay_session *s, const struct replay_result *r, size_t run)
{
    return fmin(more_than_null(s, r, FIGURE_touch_ns, run),
                more_than_null(s, r, FIGURE_cpu_ns, run));
}

double program_calls_ns(const struct replay_session *s, const struct replay_result *r, size_t run)
{
    return more_than_null(s, r, FIGURE_cpu_ns, run) - program_use_ns(s, r, run);
}

const struct replay_result *program_recorded(const struct replay_session *s)
{
    const struct replay_result *found = process_rss_recorded(s);
    for (size_t i = 0; !found && i < s->n_results; i++) {
        const struct replay_result *r = &s->results[i];
        if (fidelity_has_recorded(s, r))
            found = r;
    }
    return found;
}

static const char *missing_reason(const struct replay_session *s, const struct program_time *t)
{
    if (!s->summary.cpu_ns)
        return "the workload lacks the CPU time of a whole process";
    if (isnan(t->calls_ns))
        return "the recording did not time the calls, and the recorded allocator is not among "
               "those replayed";
    if (t->recording_ns > RECORDING_PART * t->cpu_ns)
        return "recording took too much of the CPU time";
    return t->calls_ns > t->cpu_ns ? "the calls took more CPU time than the program" : NULL;
}

struct program_time program_time(const struct replay_session *s)
{
    const struct replay_result *r = program_recorded(s);
    struct program_time t = {
        .recording_ns = (double)s->summary.recording_ns,
        .cpu_ns = (double)s->summary.cpu_ns - (double)s->summary.recording_ns,
        .replayed_calls_ns = r ? program_calls_ns(s, r, PROGRAM_ALL_RUNS) : NAN,
        .timed_calls_ns = s->summary.calls_max_ns ? (double)s->summary.calls_min_ns : NAN,
    };
    // Both values are lower bounds. fmax() ignores NAN.
    t.calls_ns = fmax(t.replayed_calls_ns, t.timed_calls_ns);
    t.missing_reason = missing_reason(s, &t);
    t.share = t.missing_reason ? NAN : t.calls_ns / t.cpu_ns;
    t.rest_share = 1 - t.share;
    t.max_share = t.missing_reason || !s->summary.calls_max_ns
                      ? NAN
                      : fmin(1, fmax(t.calls_ns, (double)s->summary.calls_max_ns) / t.cpu_ns);
    return t;
}

double program_load_ns(const struct replay_session *s, const struct replay_result *r, size_t run)
{
    const struct replay_result *recorded = program_recorded(s);
    return recorded
               ? value_of(r, FIGURE_load_cpu_ns, run) - value_of(recorded, FIGURE_load_cpu_ns, run)
               : NAN;
}

// Returns `ns`, the time of the calls in the program, divided by the time of the calls in the
// replay. Returns at most MAX_SLOWER.
static double slower_by(const struct program_time *t, double ns)
{
    return t->replayed_calls_ns > 0 ? fmin(ns / t->replayed_calls_ns, MAX_SLOWER) : 1;
}

// Predicts the program's CPU time on an allocator. The prediction is the recorded CPU time, plus
// the difference between this allocator and the recorded allocator in one run or in the medians.
static double predicted_run_ns(const struct replay_session *s, const struct program_time *t,
                               const struct replay_result *r, double slower, size_t run)
{
    const struct replay_result *recorded = program_recorded(s);
    return t->cpu_ns + slower * (program_calls_ns(s, r, run) - program_calls_ns(s, recorded, run)) +
           program_use_ns(s, r, run) - program_use_ns(s, recorded, run) +
           program_load_ns(s, r, run);
}

static double predicted_ns(const struct replay_session *s, const struct program_time *t,
                           const struct replay_result *r)
{
    return predicted_run_ns(s, t, r, slower_by(t, t->calls_ns), PROGRAM_ALL_RUNS);
}

static bool is_mostly_use(const struct replay_session *s, const struct replay_result *r,
                          double cpu_ns)
{
    return program_use_ns(s, r, PROGRAM_ALL_RUNS) > USE_PART * cpu_ns;
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
    return is_mostly_use(s, program_recorded(s), t->cpu_ns) ||
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

// Returns the ratio of the predicted times, with an interval over the rounds of runs. Runs with the
// same index belong to one round.
static struct measure_ratio ratio_of_rounds(const struct replay_session *s,
                                            const struct program_time *t,
                                            const struct replay_result *r, double slower)
{
    const struct replay_result *first = &s->results[0];
    double ratios[MEASURE_MAX_RUNS], ones[MEASURE_MAX_RUNS];
    size_t n = 0;
    for (; n < r->n_runs && n < first->n_runs && n < s->null.n_runs; n++) {
        ratios[n] = predicted_run_ns(s, t, r, slower, n) / predicted_run_ns(s, t, first, slower, n);
        ones[n] = 1;
    }
    return measure_ratio(ratios, n, ones, n);
}

struct measure_ratio program_interval(const struct replay_session *s, const struct program_time *t,
                                      const struct replay_result *r)
{
    struct measure_ratio all = {program_ratio(s, t, r), NAN, NAN, NAN};
    if (isnan(all.ratio))
        return all;
    double max_calls_ns = isnan(t->max_share) ? t->calls_ns : t->max_share * t->cpu_ns;
    struct measure_ratio low = ratio_of_rounds(s, t, r, slower_by(t, t->calls_ns)),
                         high = ratio_of_rounds(s, t, r, slower_by(t, max_calls_ns));
    if (!measure_has_interval(&low))
        return all;
    double rest = PLACEMENT_PART * t->rest_share;
    rest = r == &s->results[0] ? 0 : rest * t->cpu_ns / predicted_ns(s, t, &s->results[0]);
    all.low = fmax(fmin(all.ratio, fmin(low.low, high.low)) - rest, 0);
    all.high = fmax(all.ratio, fmax(low.high, high.high)) + rest;
    return all;
}
