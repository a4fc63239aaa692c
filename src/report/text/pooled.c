#include "report/text/pooled.h"

#include "analysis/measure.h"
#include "base/buf.h"
#include "cli/command.h"
#include "replay/figures.h"
#include "report/text/figures.h"
#include "report/text/pooled_process.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 120 };

// All runs of the same build of an allocator with the same tunables.
struct pooled_group {
    char name[NAME_BYTES];              // "glibc,MALLOC_ARENA_MAX=2"
    const struct json_value *allocator; // the allocator in the first file that contains it
    size_t n_files, n_runs;
    double *values; // FIGURES values for each run; NAN if a figure has no ratio
};

struct pooled {
    struct pooled_group *groups; // in the order of the files
    size_t n, capacity;
    struct process_rss_outside outside; // empty if unknown
};

// Members that must be equal in two results. Otherwise, the results' times and memory are not
// comparable.
struct equal_members {
    const char *difference; // what differs if a member does
    const char *keys[10];   // the last is NULL
};
static const struct equal_members
    machine_members = {"measured on another machine",
                       {"architecture", "cpu_model", "cores", "memory_bytes", "page_bytes",
                        "kernel", "cpu_governor", "transparent_hugepages", "cpu_boost"}},
    workload_members = {"made from another workload",
                        {"events", "skipped", "preexisting", "preexisting_bytes", "peak_live_bytes",
                         "live_at_end_bytes"}},
    settings_members = {"replayed with other options",
                        {"threads", "memory_threads", "speed", "touch_zeroed"}};

static bool is_same(const struct json_value *a, const struct json_value *b)
{
    const char *s = json_value_string(a), *t = json_value_string(b);
    double x = json_value_number(a), y = json_value_number(b);
    if (s || t)
        return s && t && strcmp(s, t) == 0;
    return json_value_kind(a) == json_value_kind(b) && json_value_bool(a) == json_value_bool(b) &&
           (isnan(x) ? isnan(y) : x == y);
}

static int expect_same(const struct json_value *a, const struct json_value *b,
                       const struct equal_members *m, const char *names[2], struct err *e)
{
    for (const char *const *key = m->keys; *key; key++) {
        if (!is_same(json_value_get(a, *key), json_value_get(b, *key)))
            return err_set(e, -EINVAL, "%s: %s than %s: '%s' differs", names[1], m->difference,
                           names[0], *key);
    }
    return 0;
}

static int expect_comparable(const struct document_item *a, const struct document_item *b,
                             bool across_machines, struct err *e)
{
    const char *names[2] = {a->name, b->name};
    int rc = across_machines
                 ? 0
                 : expect_same(json_value_get(a->file, "machine"),
                               json_value_get(b->file, "machine"), &machine_members, names, e);
    return rc ?: expect_same(a->result, b->result, &workload_members, names, e)
              ?: expect_same(a->result, b->result, &settings_members, names, e);
}

// Finds or adds the group of an allocator. If there is a second build of an allocator, its name
// includes the build ID. Returns NULL when out of memory.
static struct pooled_group *find_group(struct pooled *p, const struct json_value *allocator)
{
    char name[NAME_BYTES];
    const struct json_value *build = json_value_get(allocator, "build_id");
    findings_allocator_name(allocator, name, sizeof name);
    for (size_t i = 0; i < p->n; i++) {
        char other[NAME_BYTES];
        findings_allocator_name(p->groups[i].allocator, other, sizeof other);
        if (strcmp(name, other) != 0)
            continue;
        if (is_same(json_value_get(p->groups[i].allocator, "build_id"), build))
            return &p->groups[i];
        const char *id = json_value_string(build);
        size_t n = strlen(name);
        snprintf(name + n, sizeof name - n, " (build %.8s)", id ? id : "unknown");
    }
    if (HT_GROW(&p->groups, &p->capacity, p->n + 1) < 0)
        return NULL;
    struct pooled_group *g = &p->groups[p->n++];
    *g = (struct pooled_group){.allocator = allocator};
    memcpy(g->name, name, sizeof g->name);
    return g;
}

// Returns true if the runs of the last file repeat earlier runs. The runs of the last file begin at
// `at`.
static bool is_twice(const struct pooled_group *g, size_t at)
{
    size_t n = g->n_runs - at;
    for (size_t i = 0; n && i + n <= at; i++) {
        size_t same = 0;
        while (same < n && g->values[(i + same) * FIGURES + FIGURE_wall_ns] ==
                               g->values[(at + same) * FIGURES + FIGURE_wall_ns])
            same++;
        if (same == n)
            return true;
    }
    return false;
}

// Sets the peak RSS of the process in the runs of a result that lacks this figure.
static int add_process_rss(const struct pooled *p, const struct document_item *item, double *values,
                           size_t n)
{
    double extra;
    int rc = pooled_process_extra(&p->outside, item->result, &extra);
    for (size_t r = 0; rc == 0 && r < n; r++, values += FIGURES) {
        if (isnan(values[FIGURE_process_peak_rss_bytes]))
            values[FIGURE_process_peak_rss_bytes] = values[FIGURE_peak_rss_bytes] + extra;
    }
    return rc;
}

static int add_runs(const struct pooled *p, struct pooled_group *g,
                    const struct document_item *item, struct err *e)
{
    const struct json_value *runs = json_value_get(item->result, "runs");
    size_t n = json_value_length(runs), at = g->n_runs;
    if (n > MEASURE_MAX_RUNS - at)
        return err_set(e, -EINVAL, "%s: adds up to more than %d runs on %s", item->name,
                       MEASURE_MAX_RUNS, g->name);
    double *values = realloc(g->values, (at + n + 1) * FIGURES * sizeof *values);
    if (!values)
        return -ENOMEM;
    g->values = values;
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < FIGURES; i++)
            values[(at + r) * FIGURES + i] =
                figure_infos[i].ratio
                    ? json_value_number_at(json_value_at(runs, r), figure_infos[i].name)
                    : NAN;
    }
    g->n_runs += n;
    g->n_files++;
    return is_twice(g, at) ? err_set(e, -EINVAL, "%s: repeats the runs on %s of another file",
                                     item->name, g->name)
                           : add_process_rss(p, item, values + at * FIGURES, n);
}

static int pool_results(struct pooled *p, const struct document *d, bool across_machines,
                        struct err *e)
{
    const struct document_item *first = NULL;
    int rc = pooled_process_read(&p->outside, d);
    for (size_t i = 0; rc == 0 && i < d->n_items; i++) {
        const struct document_item *item = &d->items[i];
        if (!item->result)
            return err_set(e, -EINVAL,
                           "%s: is not the result of 'replay --json' or 'compare --json'",
                           item->name);
        first = first ? first : item;
        rc = expect_comparable(first, item, across_machines, e);
        struct pooled_group *g =
            rc == 0 ? find_group(p, json_value_get(item->result, "allocator")) : NULL;
        if (rc == 0)
            rc = g ? add_runs(p, g, item, e) : -ENOMEM;
    }
    return rc;
}

static void release_groups(struct pooled *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->groups[i].values);
    free(p->groups);
    process_rss_release(&p->outside);
    *p = (struct pooled){0};
}

static size_t values_of(const struct pooled_group *g, size_t figure, double *values)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_runs; i++) {
        double v = g->values[i * FIGURES + figure];
        if (!isnan(v))
            values[n++] = v;
    }
    return n;
}

static double median_of(const struct pooled_group *g, size_t figure)
{
    double values[MEASURE_MAX_RUNS];
    size_t n = values_of(g, figure, values);
    return n ? measure_median(values, n) : NAN;
}

static struct measure_ratio ratio_of(const struct pooled_group *base, const struct pooled_group *g,
                                     size_t figure)
{
    double of[MEASURE_MAX_RUNS], to[MEASURE_MAX_RUNS];
    size_t n = values_of(g, figure, of), n_to = values_of(base, figure, to);
    return measure_ratio(of, n, to, n_to);
}

static const char *median_text(const struct pooled_group *g, size_t figure)
{
    return figures_text(figure_infos[figure].unit, median_of(g, figure));
}

// The mark of a difference that is significant among all comparisons in the table.
#define SURE_MARK "*"

// Writes the ratio and returns its color.
static enum cli_color ratio_text(const struct measure_ratio *r, size_t figure, size_t comparisons,
                                 char text[64])
{
    if (!(r->ratio > 0))
        snprintf(text, 64, "-");
    else if (!measure_has_interval(r))
        snprintf(text, 64, "%.2f", r->ratio);
    else if (!measure_differs(r, 1))
        snprintf(text, 64, "no difference");
    else {
        snprintf(text, 64, "%.2f [%.2f, %.2f]%s", r->ratio, r->low, r->high,
                 comparisons > 1 && measure_differs(r, comparisons) ? SURE_MARK : "");
        return cli_color_of_change(r->ratio, figure_infos[figure].better == FIGURE_MORE);
    }
    return CLI_PLAIN;
}

static void print_row(const struct pooled *p, const struct pooled_group *g, size_t figure)
{
    char ratio[64] = "1";
    enum cli_color color = CLI_PLAIN;
    if (g != p->groups) {
        const struct measure_ratio r = ratio_of(p->groups, g, figure);
        color = ratio_text(&r, figure, p->n - 1, ratio);
    }
    printf("%s %5zu %5zu %11s  %s%s%s\n", cli_cell(g->name, 28), g->n_files, g->n_runs,
           median_text(g, figure), color ? cli_color(color) : "", ratio,
           color ? cli_color(CLI_PLAIN) : "");
}

// Prints a warning about recorded conditions that may have affected the times, such as the CPU
// governor.
static void print_cautions(const struct document *d)
{
    const char *governor = NULL;
    bool boost = false;
    double cores = 0, online = 0;
    for (size_t i = 0; i < d->n_items; i++) {
        const struct json_value *m = json_value_get(d->items[i].file, "machine");
        const char *text = json_value_string(json_value_get(m, "cpu_governor"));
        double may_use = json_value_number(json_value_get(m, "cores")),
               of = json_value_number(json_value_get(m, "online_cpus"));
        governor = text && strcmp(text, "performance") != 0 ? text : governor;
        boost |= json_value_bool(json_value_get(m, "cpu_boost"));
        if (may_use < of) {
            cores = may_use;
            online = of;
        }
    }
    if (governor)
        printf("The frequency of CPUs may have changed during a run: their governor is %s, not "
               "performance.\n",
               cli_text(governor));
    if (boost)
        puts("CPUs may run above their base frequency (boost), which depends on their load and "
             "temperature.");
    if (online > 0)
        printf(
            "Runs used %.0f of %.0f CPUs: programs on the other CPUs shared caches and memory.\n",
            cores, online);
}

static bool has_ratio(const struct pooled *p, size_t figure)
{
    size_t known = 0;
    for (size_t i = 0; figure_infos[figure].ratio && i < p->n; i++)
        known += !isnan(median_of(&p->groups[i], figure));
    // A single allocator is not compared, but the table shows its median.
    return known > 1 || (known == 1 && p->n == 1);
}

enum { LABEL_WIDTH = 11, FIGURE_WIDTH = 12, COLUMN_WIDTH = 20 };

// The ratios of an allocator in one figure, over several workloads.
struct pooled_total {
    size_t n;
    double log_sum; // sum of the logarithms of the ratios
    // The least favourable ratio that is significant or has no interval, or 0 if there is none.
    double worst;
    char worst_workload[LABEL_WIDTH + 1];
};

void pooled_print_head(const struct pooled_table *t)
{
    printf("%-*s %-*s", LABEL_WIDTH, "workload", FIGURE_WIDTH, "");
    for (size_t i = 0; i < t->n; i++)
        printf(" %s", i + 1 < t->n ? cli_cell(t->names[i], COLUMN_WIDTH) : cli_text(t->names[i]));
    putchar('\n');
}

// Prints the meaning of the process's RSS, or the reason why this figure is missing.
static void print_process_rss(const struct pooled *p, const struct document *d)
{
    const char *missing =
        json_value_string(json_value_get(d->items[0].result, "process_rss_missing_reason"));
    if (has_ratio(p, FIGURE_process_peak_rss_bytes))
        puts("Process RSS: the replayed heap plus the memory outside it in the recording.");
    else if (missing)
        printf("The peak RSS of the whole process is not predicted:\n%s.\n", cli_text(missing));
}

// Returns how often a figure is compared with the first allocator. For measure_differs, these
// comparisons are one family of tests.
static size_t count_comparisons(const struct pooled_table *t)
{
    return t->workloads * (t->n - 1);
}

static void print_meaning(size_t comparisons)
{
    if (comparisons < 2)
        return;
    printf("Each ratio has an error probability of 5 %%. " SURE_MARK
           " marks differences that are significant among all\n"
           "%zu comparisons of a figure, which takes at least %zu runs.\n",
           comparisons, measure_runs_needed(comparisons));
}

static bool is_worse(double ratio, double than, size_t figure)
{
    return figure_infos[figure].better == FIGURE_MORE ? ratio < than : ratio > than;
}

// Adds a ratio of the workload to a total.
static void add_ratio(struct pooled_total *to, const struct measure_ratio *r, size_t figure,
                      const char *label)
{
    if (!(r->ratio > 0))
        return;
    to->n++;
    to->log_sum += log(r->ratio);
    bool counts = !measure_has_interval(r) || measure_differs(r, 1);
    if (!counts || (to->worst > 0 && !is_worse(r->ratio, to->worst, figure)))
        return;
    to->worst = r->ratio;
    snprintf(to->worst_workload, sizeof to->worst_workload, "%s", label);
}

static void mean_text(const struct pooled_total *total, size_t workloads, char text[64])
{
    if (!total->n)
        snprintf(text, 64, "-");
    else if (total->n < workloads)
        snprintf(text, 64, "%.2f (%zu)", exp(total->log_sum / (double)total->n), total->n);
    else
        snprintf(text, 64, "%.2f", exp(total->log_sum / (double)total->n));
}

static void worst_text(const struct pooled_total *total, char text[64])
{
    if (total->worst > 0)
        snprintf(text, 64, "%.2f %s", total->worst, total->worst_workload);
    else
        snprintf(text, 64, "%s", total->n ? "no difference" : "-");
}

// Prints the rows with the mean, or with the worst, of each figure's ratios.
static void print_totals(const struct pooled_table *t, bool worst)
{
    const char *label = worst ? "worst" : "mean";
    for (size_t f = 0; f < FIGURES; f++) {
        size_t known = 0;
        for (size_t i = 1; i < t->n; i++)
            known += t->totals[f * t->n + i].n;
        if (!known)
            continue;
        printf("%s %s %-*s", cli_cell(label, LABEL_WIDTH),
               cli_cell(figure_infos[f].label, FIGURE_WIDTH), COLUMN_WIDTH, worst ? "" : "1");
        for (size_t i = 1; i < t->n; i++) {
            char text[64];
            if (worst)
                worst_text(&t->totals[f * t->n + i], text);
            else
                mean_text(&t->totals[f * t->n + i], t->workloads, text);
            printf(" %-*s", i + 1 < t->n ? COLUMN_WIDTH : 0, text);
        }
        putchar('\n');
        label = "";
    }
}

void pooled_print_foot(const struct pooled_table *t)
{
    if (t->workloads > 1 && t->totals) {
        print_totals(t, false);
        print_totals(t, true);
        puts("mean: geometric mean of the ratios; (N): of N workloads only. worst: the least\n"
             "favourable ratio that is not \"no difference\", and its workload.");
    }
    if (t->n)
        print_meaning(count_comparisons(t));
}

void pooled_table_release(struct pooled_table *t)
{
    free(t->totals);
    t->totals = NULL;
}

static const struct pooled_group *named_group(const struct pooled *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strncmp(p->groups[i].name, name, NAME_BYTES - 1) == 0)
            return &p->groups[i];
    }
    return NULL;
}

static void print_cells(const struct pooled *p, const struct pooled_table *t, size_t figure,
                        const char *workload)
{
    const struct pooled_group *base = t->n ? named_group(p, t->names[0]) : NULL;
    for (size_t i = 0; i < t->n; i++) {
        const struct pooled_group *g = named_group(p, t->names[i]);
        char ratio[64] = "-";
        enum cli_color color = CLI_PLAIN;
        if (g && i > 0 && base) {
            const struct measure_ratio r = ratio_of(base, g, figure);
            color = ratio_text(&r, figure, count_comparisons(t), ratio);
            add_ratio(&t->totals[figure * t->n + i], &r, figure, workload);
        }
        printf(" %s%-*s%s", color ? cli_color(color) : "", i + 1 < t->n ? COLUMN_WIDTH : 0,
               i == 0 && g ? median_text(g, figure) : ratio, color ? cli_color(CLI_PLAIN) : "");
    }
    putchar('\n');
}

int pooled_print_rows(const struct document *d, const char *label, struct pooled_table *t,
                      struct err *e)
{
    struct pooled p = {0};
    const char *workload = label;
    if (!t->totals && !(t->totals = calloc(FIGURES * t->n + 1, sizeof *t->totals)))
        return err_no_memory(e, NULL);
    int rc = pool_results(&p, d, false, e);
    for (size_t i = 0; rc == 0 && i < FIGURES; i++) {
        if (!has_ratio(&p, i))
            continue;
        printf("%s %s", cli_cell(label, LABEL_WIDTH),
               cli_cell(figure_infos[i].label, FIGURE_WIDTH));
        print_cells(&p, t, i, workload);
        label = "";
    }
    release_groups(&p);
    return rc == -ENOMEM ? err_no_memory(e, NULL) : rc;
}

// Returns how often a figure is compared with an earlier run.
static size_t count_changes(const struct pooled_table *t)
{
    return t->workloads * t->n;
}

static void print_change(const struct pooled_group *sides[2], size_t figure,
                         const struct pooled_table *t, struct pooled_changes *c)
{
    const struct measure_ratio r = ratio_of(sides[0], sides[1], figure);
    if (!(r.ratio > 0) || !measure_differs(&r, count_changes(t)))
        return;
    bool worse = is_worse(r.ratio, 1, figure);
    enum cli_color color = cli_color_of_change(r.ratio, figure_infos[figure].better == FIGURE_MORE);
    printf("%s %s %s %s -> ", cli_cell(c->label, LABEL_WIDTH),
           cli_cell(figure_infos[figure].label, FIGURE_WIDTH),
           cli_cell(sides[1]->name, COLUMN_WIDTH), median_text(sides[0], figure));
    printf("%s  %s%.2f [%.2f, %.2f]%s\n", median_text(sides[1], figure), cli_color(color), r.ratio,
           r.low, r.high, cli_color(CLI_PLAIN));
    c->worse += worse;
    c->better += !worse;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void print_workload_changes(const struct pooled sides[2], const struct pooled_table *t,
                                   struct pooled_changes *c)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct pooled_group *g[2] = {named_group(&sides[0], t->names[i]),
                                           named_group(&sides[1], t->names[i])};
        if (!g[0] || !g[1])
            continue;
        c->runs = least(c->runs, least(g[0]->n_runs, g[1]->n_runs));
        for (size_t f = 0; f < FIGURES; f++) {
            if (!isnan(median_of(g[0], f)) && !isnan(median_of(g[1], f)))
                print_change(g, f, t, c);
        }
    }
}

int pooled_print_changes(const struct document *before, const struct document *now,
                         const struct pooled_table *t, struct pooled_changes *c, struct err *e)
{
    struct pooled sides[2] = {0};
    int rc = pool_results(&sides[0], before, false, e) ?: pool_results(&sides[1], now, false, e);
    if (rc == 0 && before->n_items && now->n_items)
        rc = expect_comparable(&before->items[0], &now->items[0], false, e);
    if (rc == 0)
        print_workload_changes(sides, t, c);
    release_groups(&sides[0]);
    release_groups(&sides[1]);
    return rc == -ENOMEM ? err_no_memory(e, NULL) : rc;
}

void pooled_print_changes_foot(const struct pooled_changes *c, const struct pooled_table *t,
                               const char *against)
{
    size_t comparisons = count_changes(t), needed = measure_runs_needed(comparisons);
    if (c->runs == SIZE_MAX)
        printf("%s has no results of these workloads and allocators.\n", cli_text(against));
    else if (c->runs < needed)
        printf(
            "%zu runs cannot show a significant change since %s among %zu comparisons of a figure: "
            "at least %zu are needed.\n",
            c->runs, cli_text(against), comparisons, needed);
    else
        printf(
            "Since %s: %zu figures are significantly worse, %zu better (among %zu comparisons of a "
            "figure).\n",
            cli_text(against), c->worse, c->better, comparisons);
}

int pooled_print(const struct document *d, bool across_machines, struct err *e)
{
    struct pooled p = {0};
    int rc = pool_results(&p, d, across_machines, e);
    for (size_t i = 0; rc == 0 && i < FIGURES; i++) {
        if (!has_ratio(&p, i))
            continue;
        cli_table_head("%-28s %5s %5s %11s  %s", figure_infos[i].label, "files", "runs", "median",
                       "ratio [95 %]");
        for (size_t k = 0; k < p.n; k++)
            print_row(&p, &p.groups[k], i);
        putchar('\n');
    }
    if (rc == 0) {
        printf("Allocators with fewer than %d runs have no interval.\n", MEASURE_MIN_RUNS);
        print_meaning(p.n - 1);
        print_process_rss(&p, d);
        print_cautions(d);
    }
    release_groups(&p);
    return rc == -ENOMEM ? err_no_memory(e, NULL) : rc;
}
