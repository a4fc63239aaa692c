#include "cli/command.h"
#include "cli/wrap.h"
#include "experiments/advise/advise.h"
#include "replay/real.h"
#include "report/text/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_figure(const struct advise *a, enum advise_figure f)
{
    return !isnan(advise_value(a, &a->rows[0], f));
}

static const char *value_text(enum advise_figure f, double v)
{
    return f == ADVISE_CPU ? human_time(v) : human_size((uint64_t)v);
}

// Prints "50.5 MiB" in the first row, and ratios in the rows below it. A ratio is "0.27", or
// "~0.98" if the difference may be noise.
static void print_cell(const struct advise *a, const struct advise_row *r, enum advise_figure f)
{
    char text[48];
    int verdict = advise_verdict(a, r, f);
    enum cli_color color = verdict < 0 ? CLI_BETTER : verdict > 0 ? CLI_WORSE : CLI_PLAIN;
    if (r == &a->rows[0])
        snprintf(text, sizeof text, "%s", value_text(f, advise_value(a, r, f)));
    else
        snprintf(text, sizeof text, "%s%.2f", verdict ? "" : "~", advise_ratio(a, r, f).ratio);
    printf("%s%10s%s ", color ? cli_color(color) : "", text, color ? cli_color(CLI_PLAIN) : "");
}

static void print_table(const struct advise *a, enum advise_figure rank)
{
    const struct advise_row **order = calloc(a->n_rows, sizeof *order);
    size_t n = order ? advise_rank(a, rank, order) : 0;
    char name[ADVISE_NAME_BYTES];
    printf("\n%s", cli_color(CLI_BOLD));
    for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
        if (has_figure(a, f))
            printf("%10s ", advise_figures[f].head);
    }
    printf(" setting, by %s%s\n", advise_figures[rank].name, cli_color(CLI_PLAIN));
    for (size_t i = 0; i < n; i++) {
        for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
            if (has_figure(a, f))
                print_cell(a, order[i], f);
        }
        printf(" %s%s\n", cli_text(advise_name(a, order[i], name)), i == 0 ? " (current)" : "");
    }
    free(order);
}

// Returns true if the row is the best by any figure before `figure` in the table.
static bool is_best_before(const struct advise *a, const struct advise_row *r, bool cheap,
                           enum advise_figure figure)
{
    for (unsigned f = 0; f < figure; f++) {
        if (advise_best(a, f, cheap) == r)
            return true;
    }
    return false;
}

static void print_undecided(const struct advise *a, enum advise_figure f, bool cheap,
                            const struct advise_row *best)
{
    const struct advise_row *r = advise_undecided(a, f, cheap, best);
    char name[ADVISE_NAME_BYTES];
    if (r)
        printf("  %s may be lower with %s: ~%.2f, %s\n", advise_figures[f].name,
               cli_text(advise_name(a, r, name)), advise_ratio(a, r, f).ratio,
               advise_is_repeated(a, r) ? "within noise"
                                        : "one run (a larger --budget repeats it)");
}

static void print_change(const struct advise *a, const struct advise_row *r, enum advise_figure f)
{
    struct measure_ratio ratio = advise_ratio(a, r, f);
    if (!advise_verdict(a, r, f)) {
        printf("  %s: no measurable difference\n", advise_figures[f].name);
        return;
    }
    printf("  %s: %s instead of %s, %.2f [%.2f, %.2f]", advise_figures[f].name,
           value_text(f, advise_value(a, r, f)), value_text(f, advise_value(a, &a->rows[0], f)),
           ratio.ratio, ratio.low, ratio.high);
    double returned = advise_returned_share(a, r);
    if (f == ADVISE_END && returned > 0)
        printf("; returns %.0f %% of the unused memory", 100 * returned);
    printf("\n");
}

static void print_program(const struct advise *a, const struct advise_row *r)
{
    const struct replay_session *s = a->session;
    if (!a->has_run_program)
        return;
    if (!advise_has_program(a, r)) {
        printf("  the program: not run, because no variable sets this\n");
        return;
    }
    for (unsigned i = 0; i < REAL_FIGURES; i++) {
        enum advise_figure unit = i >= REAL_PEAK_RSS ? ADVISE_PEAK : ADVISE_CPU;
        struct measure_ratio ratio = replay_real_ratio(s, &s->results[r->result], i);
        if (!advise_program_verdict(a, r, i))
            printf("  %s of the program: no measurable difference\n", replay_real_infos[i].label);
        else
            printf("  %s of the program: %s instead of %s, %.2f [%.2f, %.2f]\n",
                   replay_real_infos[i].label,
                   value_text(unit, replay_real_median(&s->results[r->result], i)),
                   value_text(unit, replay_real_median(&s->results[0], i)), ratio.ratio, ratio.low,
                   ratio.high);
    }
}

// Prints a setting and the figures for which it is the best. If the program's runs confirm none of
// these figures, prints that instead.
static void print_headline(const struct advise *a, const struct advise_row *r, bool cheap)
{
    char name[ADVISE_NAME_BYTES], headline[ADVISE_HEADLINE_BYTES];
    bool costs = advise_program_verdict(a, r, REAL_CPU) > 0;
    advise_headline(a, r, cheap, headline);
    printf("\n%s%s%s: %s%s\n", cli_color(CLI_BOLD),
           *headline ? headline : "better in the replay, but not in the program",
           !*headline       ? ""
           : cheap && costs ? " (with more CPU time in the program)"
           : cheap          ? " without more CPU time"
                            : "",
           cli_text(advise_name(a, r, name)), cli_color(CLI_PLAIN));
}

static void print_best(const struct advise *a, const struct advise_row *r, bool cheap)
{
    char deploy[ADVISE_DEPLOY_BYTES];
    print_headline(a, r, cheap);
    for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
        if (has_figure(a, f))
            print_change(a, r, f);
        if (advise_best(a, f, cheap) == r)
            print_undecided(a, f, cheap, r);
    }
    print_program(a, r);
    const char *environment = advise_environment(a, r, deploy);
    if (environment && *environment)
        wrap_keep_line();
    printf("  deploy: %s\n", cli_text(advise_deploy(a, r, deploy)));
}

// Prints each row that is the best by some figure. With `cheap`, considers only cheap rows, and
// omits a row if it is also the best of all rows by that figure.
static bool print_bests(const struct advise *a, bool cheap)
{
    bool found = false;
    for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
        const struct advise_row *best = advise_best(a, f, cheap);
        if (!best || (cheap && best == advise_best(a, f, false)))
            continue;
        found = true;
        if (!is_best_before(a, best, cheap, f))
            print_best(a, best, cheap);
    }
    return found;
}

static void print_advice(const struct advise *a)
{
    bool found = print_bests(a, false);
    if (!found)
        printf("\n%s\n",
               a->rounds ? "no setting tried is better than the current one by more than noise"
                         : "the budget is too small to repeat runs: differences are not judged");
    for (unsigned f = 0; !found && a->rounds && f < ADVISE_FIGURES; f++)
        print_undecided(a, f, false, NULL);
    print_bests(a, true);
}

static void print_not_tried(const struct advise *a)
{
    char name[ADVISE_NAME_BYTES];
    bool begun = false;
    for (size_t i = 1; i < a->n_rows; i++) {
        if (a->rows[i].tried ||
            strcmp(a->rows[i].missing_reason.text, "is the current setting") == 0)
            continue;
        printf("%s  %s: %s\n", begun ? "" : "\nnot tried:\n",
               cli_text(advise_name(a, &a->rows[i], name)),
               cli_text(a->rows[i].missing_reason.text));
        begun = true;
    }
}

// Prints a warning if the replay was much faster than the program. Allocators release cached memory
// with a delay, so a fast replay shows more memory than the program would use.
static void print_pace(const struct advise *a)
{
    const struct replay_session *s = a->session;
    double recorded_ns = (double)plan_facts(s->plan)->duration_stamps * s->ns_per_stamp;
    if (!(s->settings.speed > 0) && recorded_ns > 2 * s->results[0].runs[0].figures.wall_ns)
        printf("the replay took %s, the program %s: allocators that keep freed memory for some "
               "time return more of it in the program (try --speed recorded)\n",
               human_time(s->results[0].runs[0].figures.wall_ns), human_time(recorded_ns));
}

void advise_print(const struct advise *a, enum advise_figure rank)
{
    size_t tried = 0, repeated = 0;
    for (size_t i = 1; i < a->n_rows; i++) {
        tried += a->rows[i].tried;
        repeated += a->rows[i].tried && a->session->results[a->rows[i].result].n_runs > 1;
    }
    replay_print_workload(a->session);
    printf("tried %zu settings in %.0f s of %.0f s; repeated %zu of them %u times, in turn with "
           "the current one\n",
           tried, (double)a->spent_ns / 1e9, (double)a->budget_ns / 1e9, repeated, a->rounds);
    printf("live at the end: %s; resident memory above that is unused\n",
           human_size(plan_facts(a->session->plan)->live_at_end_bytes));
    print_pace(a);
    print_advice(a);
    print_table(a, rank);
    printf("rows below the first: ratios to it; ~: within noise, or not repeated\n");
    print_not_tried(a);
}
