#include "experiments/advise/advise.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

const struct advise_figure_info advise_figures[ADVISE_FIGURES] = {
#define HT_X(number, figure, ratio, head, name)                                                    \
    [ADVISE_##number] = {FIGURE_##figure, ratio, head, name},
    ADVISE_FIGURE_TABLE(HT_X)
#undef HT_X
};

uint64_t advise_trim_interval(uint64_t events)
{
    enum { TRIMS = 64, LEAST_CALLS = 100 };
    uint64_t interval = 1, most = events / TRIMS;
    while (interval * 10 <= most)
        interval *= 10;
    interval *= most >= 5 * interval ? 5 : most >= 2 * interval ? 2 : 1;
    return interval >= LEAST_CALLS ? interval : 0;
}

uint64_t advise_turn_ns(uint64_t budget_ns, enum advise_group group, bool is_first)
{
    uint64_t all_ns = budget_ns / 2;
    return is_first ? all_ns : all_ns / ADVISE_GROUPS * (group + 1u);
}

static bool is_present(const struct advise *a, const struct advise_setting *s)
{
    const struct allocator *present = &a->session->results[0].allocator;
    return !s->environment[0] && !s->trim_step && !s->huge_pages_off && !present->n_tunables &&
           strcmp(present->name, s->allocator) == 0;
}

// Returns the reason why a setting is not tried, or NULL if it is tried.
static const char *reason_to_skip(const struct advise *a, const struct advise_setting *s)
{
    const struct replay_session *session = a->session;
    const char *huge = session->machine.transparent_hugepages;
    if (is_present(a, s))
        return "is the current setting";
    if (s->trim_step && !a->trim_interval)
        return "the workload is too short";
    if (s->needs & ADVISE_NEEDS_THREADS && plan_facts(session->plan)->threads < 2)
        return "the workload has one thread";
    if (s->needs & ADVISE_NEEDS_PACE && !(session->settings.speed > 0))
        return "needs the recorded pace (--speed recorded)";
    if (s->needs & ADVISE_NEEDS_HUGE && strcmp(huge, "madvise") != 0)
        return "transparent huge pages are not set to madvise on this machine";
    if (s->needs & ADVISE_NEEDS_HUGE_ALWAYS && strcmp(huge, "always") != 0)
        return "transparent huge pages are not set to always on this machine";
    return NULL;
}

static int run_one(struct advise *a, struct advise_row *r, struct err *e)
{
    bool no_huge = r->setting && r->setting->huge_pages_off;
    if (no_huge)
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    int rc = replay_session_run_one(a->session, r->result, e);
    if (no_huge)
        prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    return rc;
}

static int add_allocator(struct advise *a, struct advise_row *r, struct err *e)
{
    const struct advise_setting *s = r->setting;
    struct replay_session *session = a->session;
    char spec[ADVISE_NAME_BYTES];
    snprintf(spec, sizeof spec, "%s%s%s", s->allocator, s->environment[0] ? "," : "",
             s->environment);
    r->result = session->n_results;
    int rc = replay_session_add(session, spec, e);
    if (rc == 0)
        session->results[r->result].trim_step = s->trim_step;
    return rc;
}

// If the remaining time is at least the duration of the longest run so far, runs a setting for the
// first time.
static void try_row(struct advise *a, struct advise_row *r, uint64_t end_ns, uint64_t longest_ns)
{
    const char *reason = reason_to_skip(a, r->setting);
    struct err *e = &r->missing_reason;
    uint64_t before_ns = clock_monotonic_ns();
    if (!reason && before_ns + longest_ns > end_ns)
        reason = "no time is left (--budget)";
    if (reason)
        err_set(e, -EAGAIN, "%s", reason);
    else
        r->tried = add_allocator(a, r, e) == 0 && run_one(a, r, e) == 0;
    r->first_ns = clock_monotonic_ns() - before_ns;
}

// Collects the runs to compare. If there are repetitions, excludes the first run, because the first
// runs determine which settings are repeated.
static size_t values_of(const struct advise *a, const struct advise_row *r,
                        enum advise_figure figure, double *values)
{
    const struct replay_result *result = &a->session->results[r->result];
    size_t first = result->n_runs > 1;
    for (size_t i = first; i < result->n_runs; i++)
        values[i - first] = result->runs[i].figures.values[advise_figures[figure].figure];
    return result->n_runs - first;
}

enum { MAX_VALUES = ADVISE_MAX_ROUNDS + 1 };

double advise_value(const struct advise *a, const struct advise_row *r, enum advise_figure figure)
{
    double values[MAX_VALUES];
    size_t n = values_of(a, r, figure, values);
    return measure_median(values, n);
}

struct measure_ratio advise_ratio(const struct advise *a, const struct advise_row *r,
                                  enum advise_figure figure)
{
    double values[MAX_VALUES], present[MAX_VALUES];
    size_t n = values_of(a, r, figure, values),
           n_present = values_of(a, &a->rows[0], figure, present);
    return measure_ratio(values, n, present, n_present);
}

static void find_range(const double *values, size_t n, double range[2])
{
    range[0] = range[1] = values[0];
    for (size_t i = 1; i < n; i++) {
        range[0] = fmin(range[0], values[i]);
        range[1] = fmax(range[1], values[i]);
    }
}

int advise_verdict_of(const double *values, size_t n, const double *present, size_t n_present)
{
    double range[2], before[2];
    if (n < ADVISE_MIN_ROUNDS || n_present < ADVISE_MIN_ROUNDS)
        return 0;
    find_range(values, n, range);
    find_range(present, n_present, before);
    double now = measure_median(present, n_present), distance = measure_median(values, n) - now;
    if (fabs(distance) < 0.01 * now ||
        !(fabs(distance) > fmax(range[1] - range[0], before[1] - before[0])))
        return 0;
    return range[1] < before[0] ? -1 : range[0] > before[1] ? 1 : 0;
}

int advise_verdict(const struct advise *a, const struct advise_row *r, enum advise_figure figure)
{
    double values[MAX_VALUES], present[MAX_VALUES];
    size_t n = values_of(a, r, figure, values),
           n_present = values_of(a, &a->rows[0], figure, present);
    return r->tried ? advise_verdict_of(values, n, present, n_present) : 0;
}

struct ranked {
    const struct advise_row *row;
    double value;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

size_t advise_rank(const struct advise *a, enum advise_figure figure,
                   const struct advise_row **order)
{
    struct ranked *all = calloc(a->n_rows, sizeof *all);
    size_t n = 0;
    order[0] = &a->rows[0];
    for (size_t i = 1; all && i < a->n_rows; i++) {
        if (a->rows[i].tried)
            all[n++] = (struct ranked){&a->rows[i], advise_value(a, &a->rows[i], figure)};
    }
    if (n)
        qsort(all, n, sizeof *all, by_value);
    for (size_t i = 0; i < n; i++)
        order[i + 1] = all[i].row;
    free(all);
    return n + 1;
}

// Chooses as many rows as can be repeated ADVISE_MIN_ROUNDS times in `left_ns`. Starts with the
// best row by each figure, continues with the second best, and so on. Returns the number of rows.
static size_t choose_rows(const struct advise *a, uint64_t left_ns, bool *chosen)
{
    const struct advise_row **order = calloc(a->n_rows * ADVISE_FIGURES, sizeof *order);
    uint64_t round_ns = a->rows[0].first_ns;
    size_t n = 0, tried = 0;
    for (unsigned f = 0; order && f < ADVISE_FIGURES; f++)
        tried = advise_rank(a, f, order + f * a->n_rows);
    for (size_t i = ADVISE_FIGURES; i < tried * ADVISE_FIGURES; i++) {
        enum advise_figure f = i % ADVISE_FIGURES;
        const struct advise_row *r = order[f * a->n_rows + i / ADVISE_FIGURES];
        bool fits = (round_ns + r->first_ns) * ADVISE_MIN_ROUNDS <= left_ns;
        if (isnan(advise_value(a, &a->rows[0], f)) || !fits || chosen[r - a->rows])
            continue;
        chosen[r - a->rows] = true;
        round_ns += r->first_ns;
        n++;
    }
    free(order);
    return n;
}

static void repeat_rows(struct advise *a, uint64_t end_ns)
{
    uint64_t before_ns = clock_monotonic_ns(), now_ns = before_ns;
    bool *chosen = calloc(a->n_rows, sizeof *chosen);
    if (!chosen || before_ns >= end_ns || choose_rows(a, end_ns - before_ns, chosen) == 0) {
        free(chosen);
        return;
    }
    chosen[0] = true;
    for (; a->rounds < ADVISE_MAX_ROUNDS; a->rounds++) {
        struct err unused = {0};
        uint64_t round_ns = a->rounds ? (now_ns - before_ns) / a->rounds : 0;
        if (a->rounds >= ADVISE_MIN_ROUNDS && now_ns + round_ns > end_ns)
            break;
        for (size_t i = 0; i < a->n_rows; i++)
            chosen[i] = chosen[i] && run_one(a, &a->rows[i], &unused) == 0;
        now_ns = clock_monotonic_ns();
    }
    free(chosen);
}

static int make_rows(struct advise *a, struct err *e)
{
    while (advise_settings[a->n_rows].allocator)
        a->n_rows++;
    a->n_rows++; // row of the current setting
    a->rows = calloc(a->n_rows, sizeof *a->rows);
    for (size_t i = 1; a->rows && i < a->n_rows; i++)
        a->rows[i].setting = &advise_settings[i - 1];
    return a->rows ? 0 : err_no_memory(e, NULL);
}

static uint64_t row_turn_ns(const struct advise *a, size_t row)
{
    enum advise_group group = a->rows[row].setting->group;
    bool is_first = true;
    for (size_t i = 1; i < row; i++)
        is_first &= !a->rows[i].tried || a->rows[i].setting->group != group;
    return advise_turn_ns(a->budget_ns, group, is_first);
}

int advise_run(struct advise *a, uint64_t start_ns, struct err *e)
{
    struct replay_session *s = a->session;
    int rc = make_rows(a, e);
    machine_read(&s->machine);
    s->results[0].trim_step = 0;
    progress_init(&s->progress, "replaying", "runs", 0, s->settings.quiet);
    uint64_t before_ns = clock_monotonic_ns(), longest_ns;
    if (rc == 0)
        rc = run_one(a, &a->rows[0], e);
    if (rc == 0) {
        a->rows[0].tried = true;
        a->rows[0].first_ns = longest_ns = clock_monotonic_ns() - before_ns;
        for (size_t i = 1; i < a->n_rows; i++) {
            try_row(a, &a->rows[i], start_ns + row_turn_ns(a, i), longest_ns);
            longest_ns = a->rows[i].first_ns > longest_ns ? a->rows[i].first_ns : longest_ns;
        }
        repeat_rows(a, start_ns + a->budget_ns);
    }
    a->spent_ns = clock_monotonic_ns() - start_ns;
    progress_clear(&s->progress);
    return rc;
}

void advise_release(struct advise *a)
{
    free(a->rows);
    *a = (struct advise){0};
}

const struct advise_row *advise_best(const struct advise *a, enum advise_figure figure, bool cheap)
{
    const struct advise_row *best = NULL;
    for (size_t i = 1; i < a->n_rows; i++) {
        const struct advise_row *r = &a->rows[i];
        bool costs = cheap && advise_verdict(a, r, ADVISE_CPU) > 0;
        if (!costs && advise_verdict(a, r, figure) < 0 &&
            (!best || advise_value(a, r, figure) < advise_value(a, best, figure)))
            best = r;
    }
    return best;
}

bool advise_is_repeated(const struct advise *a, const struct advise_row *r)
{
    return r->tried && a->session->results[r->result].n_runs > ADVISE_MIN_ROUNDS;
}

const struct advise_row *advise_undecided(const struct advise *a, enum advise_figure figure,
                                          bool cheap, const struct advise_row *best)
{
    double least = 0.99 * advise_value(a, best ? best : &a->rows[0], figure);
    const struct advise_row *found = NULL;
    for (size_t i = 1; i < a->n_rows; i++) {
        const struct advise_row *r = &a->rows[i];
        bool costs = cheap && advise_verdict(a, r, ADVISE_CPU) > 0;
        if (!r->tried || costs || advise_verdict(a, r, figure) != 0 ||
            !(advise_value(a, r, figure) <= least))
            continue;
        least = advise_value(a, r, figure);
        found = r;
    }
    return found;
}

double advise_returned_share(const struct advise *a, const struct advise_row *r)
{
    double end = advise_value(a, &a->rows[0], ADVISE_END);
    double unused = end - (double)plan_facts(a->session->plan)->live_at_end_bytes;
    return unused > 0 ? (end - advise_value(a, r, ADVISE_END)) / unused : NAN;
}
