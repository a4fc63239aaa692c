#include "replay/program.h"

#include "replay/fidelity.h"

#include <math.h>

// What recording took is an estimate that may be off by half: it must be so much less than what is left.
#define RECORDING_PART 0.6

static double median_cpu_ns(const struct replay_result *r)
{
    double cpu[MEASURE_MAX_RUNS];
    for (size_t i = 0; i < r->n_runs; i++)
        cpu[i] = r->runs[i].figures.cpu_ns;
    return r->n_runs ? measure_median(cpu, r->n_runs) : NAN;
}

double program_calls_ns(const struct replay_session *s, const struct replay_result *r)
{
    double ns = median_cpu_ns(r) - median_cpu_ns(&s->null);
    return ns < 0 ? 0 : ns;
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
        return "the workload does not have the CPU time of a whole process";
    if (isnan(t->calls_ns))
        return "the recorded allocator is not among those replayed";
    if (t->recording_ns > RECORDING_PART * t->cpu_ns)
        return "recording took too much of the CPU time";
    return t->calls_ns > t->cpu_ns ? "the replayed calls took more CPU time than the program" : NULL;
}

struct program_time program_time(const struct replay_session *s)
{
    const struct replay_result *r = recorded_result(s);
    struct program_time t = {
        .recording_ns = (double)s->recording_ns,
        .cpu_ns = (double)s->recorded_cpu_ns - (double)s->recording_ns,
        .calls_ns = r ? program_calls_ns(s, r) : NAN,
    };
    t.missing_reason = missing_reason(s, &t);
    t.share = t.missing_reason ? NAN : t.calls_ns / t.cpu_ns;
    return t;
}

double program_ratio(const struct replay_session *s, const struct program_time *t, const struct replay_result *r)
{
    double rest = t->cpu_ns - t->calls_ns;
    return t->missing_reason ? NAN : (rest + program_calls_ns(s, r)) / (rest + program_calls_ns(s, &s->results[0]));
}
