#include "replay/figures.h"
#include "analysis/measure.h"

#include <math.h>
#include <stdio.h>

// Short names of the bits in the column `shown`.
enum {
    RUN = FIGURE_IN_RUN,
    TEXT = FIGURE_IN_TEXT,
    COLUMN = FIGURE_IN_COLUMN,
    DIFF = FIGURE_IN_DIFF,
    PAGE = FIGURE_IN_PAGE,
};

const struct figure_info figure_infos[FIGURES] = {
#define HT_X(name, unit, origin, summary, group, shown, ratio, better, label, meaning)             \
    {#name,          FIGURE_##unit, FIGURE_##origin, FIGURE_##summary,                             \
     FIGURE_##group, shown,         ratio,           FIGURE_##better,                              \
     label},
    HT_FIGURES(HT_X)
#undef HT_X
};

const char *const figure_objects[FIGURE_GROUPS] = {
    [FIGURE_COUNTERS] = "counters",
    [FIGURE_DECODER] = "decoder",
};

char *figure_path(const struct figure_info *info, char path[FIGURE_PATH_BYTES])
{
    const char *object = figure_objects[info->group];
    snprintf(path, FIGURE_PATH_BYTES, "%s%s%s", object ? object : "", object ? "." : "",
             info->name);
    return path;
}

const char *const figure_unit_names[] = {"count", "bytes", "ns", "ratio", "share"};
const char *const figure_better_names[] = {"less", "more", NULL};

void figures_set_measured(union figures *f, const struct results_figures *measured)
{
    const uint64_t values[FIGURES] = {
#define HT_X(name, unit, origin, summary, group, shown, ratio, better, label, meaning)             \
    measured->name,
        HT_FIGURES(HT_X)
#undef HT_X
    };
    for (size_t i = 0; i < FIGURES; i++) {
        bool is_known = figure_infos[i].origin == FIGURE_PLAYER && values[i] != RESULTS_UNKNOWN;
        f->values[i] = is_known ? (double)values[i] : NAN;
    }
}

static double known_if(bool is_known, double v)
{
    return is_known ? v : NAN;
}

static double ratio(double a, double b)
{
    return known_if(b > 0, a / b);
}

// One line per figure of origin DERIVED. `value` may use figures of other origins, and derived
// figures in earlier rows of HT_FIGURES.
#define DERIVE(name, value)                                                                        \
    static double derive_##name(const union figures *f)                                            \
    {                                                                                              \
        return value;                                                                              \
    }
DERIVE(cpu_ns, f->user_ns + f->system_ns)
DERIVE(ns_per_event, ratio(f->wall_ns, f->events))
DERIVE(events_per_second, ratio(f->events * 1e9, f->wall_ns))
DERIVE(overhead_ns_per_event,
       f->overhead_ns_per_event)            // set by session.c after the null allocator's run
DERIVE(mean_rss_bytes, f->mean_rss_bytes)   // set by run.c from the samples
DERIVE(mean_live_bytes, f->mean_live_bytes) // set by run.c from the samples
DERIVE(process_peak_rss_bytes, f->process_peak_rss_bytes) // set by process_rss.c after the runs
DERIVE(outside_rss_bytes, f->outside_rss_bytes)           // set by process_rss.c after the runs
DERIVE(peak_fragmentation, ratio(f->peak_rss_bytes, f->peak_live_bytes))
DERIVE(mean_fragmentation, ratio(f->mean_rss_bytes, f->mean_live_bytes))
DERIVE(page_faults, f->minor_faults + f->major_faults)
DERIVE(stall_share, ratio(f->stall_ns, f->wall_ns * f->threads))

void figures_derive(union figures *f, const struct plan_facts *facts, bool is_paced,
                    bool is_idle_measured)
{
#define FIGURE_FROM_PLAYER(name)
#define FIGURE_FROM_PLAN(name) f->name = (double)facts->name;
#define FIGURE_FROM_DERIVED(name)
#define HT_X(name, unit, origin, ...) FIGURE_FROM_##origin(name)
    HT_FIGURES(HT_X)
    f->start_rss_bytes = known_if(facts->preexisting, f->start_rss_bytes);
    f->thread_switches = known_if(facts->one_thread, f->thread_switches);
    f->max_lag_ns = known_if(is_paced, f->max_lag_ns);
    f->rss_after_idle_bytes = known_if(is_idle_measured, f->rss_after_idle_bytes);
    f->cache_switches = known_if(facts->one_thread, f->cache_switches);
#undef FIGURE_FROM_PLAN
#undef FIGURE_FROM_DERIVED
#define FIGURE_FROM_PLAN(name)
#define FIGURE_FROM_DERIVED(name) f->name = derive_##name(f);
    HT_FIGURES(HT_X)
#undef HT_X
}

// Returns the median, or NAN if any value is unknown.
static double median_of(const union figures *const runs[], size_t n, size_t figure)
{
    double values[MEASURE_MAX_RUNS];
    for (size_t i = 0; i < n; i++) {
        values[i] = runs[i]->values[figure];
        if (isnan(values[i]))
            return NAN;
    }
    return measure_median(values, n);
}

void figures_summarize(union figures *f, const union figures *const runs[], size_t n,
                       size_t typical)
{
    for (size_t i = 0; i < FIGURES; i++)
        f->values[i] = figure_infos[i].summary == FIGURE_MEDIAN ? median_of(runs, n, i)
                                                                : runs[typical]->values[i];
}
