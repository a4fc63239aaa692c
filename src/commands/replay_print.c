#include "commands/replay_print.h"
#include "analysis/measure.h"
#include "cli/command.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void replay_print_workload(const struct replay_session *s)
{
    const struct plan_facts *f = plan_facts(s->plan);
    char events[32], live[32], skipped[32];
    printf("%s: %s calls, %llu thread%s, peak live %s", s->workload, human_count(events, f->events),
           (unsigned long long)f->threads, f->threads == 1 ? "" : "s", human_bytes(live, f->peak_live_bytes));
    if (f->one_thread)
        printf("; all calls in one thread, %s switches between the recorded threads",
               human_count(skipped, f->switches));
    if (f->skipped)
        printf("; %s ops skipped", human_count(skipped, f->skipped));
    printf("\n");
}

static const char *figure_text(char text[32], enum figure_unit unit, double v)
{
    switch (unit) {
    case FIGURE_COUNT:
        return human_count(text, (uint64_t)v);
    case FIGURE_BYTES:
        return human_bytes(text, (uint64_t)v);
    case FIGURE_NS:
        if (v >= 1000)
            return human_ns(text, v);
        snprintf(text, 32, "%.1f ns", v);
        return text;
    case FIGURE_RATIO:
        snprintf(text, 32, "%.2f", v);
        return text;
    case FIGURE_SHARE:
        snprintf(text, 32, "%.1f %%", 100 * v);
        return text;
    }
    return "";
}

static void print_calls(const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    char t[6][32];
    printf("\n%-22s %12s %10s %10s %10s %10s %10s\n", "call", "count", "mean", "p50", "p99", "p99.9", "max");
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        struct replay_call c = session_call(s, f, kind);
        if (!facts->by_kind[kind] || !c.count)
            continue;
        printf("%-22s %12s %10s %10s %10s %10s %10s\n", event_infos[kind].name, human_count(t[0], c.count),
               human_ns(t[1], c.mean_ns), human_ns(t[2], c.p50_ns), human_ns(t[3], c.p99_ns), human_ns(t[4], c.p999_ns),
               human_ns(t[5], c.max_ns));
    }
}

static const char *const group_names[FIGURE_GROUPS] = {
    [FIGURE_WORKLOAD] = "workload", [FIGURE_TIME] = "time",       [FIGURE_MEMORY] = "memory",
    [FIGURE_COUNTERS] = "counters", [FIGURE_DECODER] = "decoder", [FIGURE_DEPENDENCIES] = "dependencies",
};

// "memory       peak RSS 12 MiB, …", without a newline.
static void print_group(const struct replay_figures *f, enum figure_group group)
{
    char text[32];
    const char *before = "";
    printf("%-12s ", group_names[group]);
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        double v = f->figures.values[i];
        if (info->group != group || !(info->shown & FIGURE_IN_TEXT) || isnan(v))
            continue;
        bool label_first = info->unit != FIGURE_COUNT && info->unit != FIGURE_SHARE;
        const char *value = figure_text(text, info->unit, v);
        printf("%s%s %s", before, label_first ? info->label : value, label_first ? value : info->label);
        before = ", ";
    }
}

static void print_counters(const struct replay_figures *f)
{
    int error = f->runs[f->typical].counters_errno;
    const char *before = "; not counted: ";
    print_group(f, FIGURE_COUNTERS);
    for (size_t i = 0; i < FIGURES; i++) {
        if (figure_infos[i].group != FIGURE_COUNTERS || !isnan(f->figures.values[i]))
            continue;
        printf("%s%s", before, figure_infos[i].label);
        before = ", ";
    }
    if (error)
        printf(" (%s)", strerror(error));
    printf("\n");
}

// From this share of stalls on the decoder limits the replay.
static const char *limit_text(double stall_share)
{
    return stall_share >= 0.05 ? ": decoding limited the replay; give more --memory" : "";
}

void replay_print_text(const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    printf("%-12s %s (%s)\n", "allocator", f->allocator.name, f->runs[f->typical].library);
    print_group(f, FIGURE_TIME);
    printf(" (medians of %zu run%s)\n", f->n_runs, f->n_runs == 1 ? "" : "s");
    print_group(f, FIGURE_MEMORY);
    printf("\n");
    print_counters(f);
    if (facts->dependencies) {
        print_group(f, FIGURE_DEPENDENCIES);
        printf("\n");
    }
    if (facts->streamed) {
        print_group(f, FIGURE_DECODER);
        printf("%s\n", limit_text(f->figures.stall_share));
    }
    replay_print_fidelity_text(s, f);
    if (f->latency.calls)
        print_calls(s, f);
    replay_print_fragmentation_text(s, f);
}

void replay_print_verified(const struct replay_figures *f)
{
    char blocks[32];
    printf("%s: no violation: %s blocks checked in %zu run%s\n", f->allocator.name,
           human_count(blocks, f->runs[0].checked_blocks), f->n_runs, f->n_runs == 1 ? "" : "s");
}

// The kind of allocation that is called most: its tail is the one that a table has room for.
static unsigned main_kind(const struct plan_facts *facts)
{
    unsigned best = HT_MALLOC;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].class == HT_CLASS_ALLOC && facts->by_kind[kind] > facts->by_kind[best])
            best = kind;
    }
    return best;
}

static char *ratio_text(char text[64], const struct measure_ratio *r, bool is_first)
{
    if (is_first)
        snprintf(text, 64, "1");
    else if (measure_is_same(r))
        snprintf(text, 64, "no difference");
    else
        snprintf(text, 64, "%.2f [%.2f, %.2f]", r->ratio, r->low, r->high);
    return text;
}

enum { NAME_BYTES = 64 };

// "glibc", or "glibc,MALLOC_ARENA_MAX=2": what tells the rows apart.
static void row_name(const struct allocator *a, char text[NAME_BYTES])
{
    size_t n = (size_t)snprintf(text, NAME_BYTES, "%s", a->name);
    for (size_t i = 0; i < a->n_tunables && n < NAME_BYTES; i++)
        n += (size_t)snprintf(text + n, NAME_BYTES - n, ",%s", a->tunables[i]);
}

static int name_width(const struct replay_session *s)
{
    enum { LEAST = 16 };
    char name[NAME_BYTES];
    size_t width = LEAST;
    for (size_t i = 0; i < s->n_figures; i++) {
        row_name(&s->figures[i].allocator, name);
        if (strlen(name) > width)
            width = strlen(name);
    }
    return (int)width;
}

enum { FIGURE_WIDTH = 10, RATIO_WIDTH = 18 };

static int column_width(const struct figure_info *info)
{
    size_t width = strlen(info->label);
    return width > FIGURE_WIDTH ? (int)width : FIGURE_WIDTH;
}

static void print_head(const struct replay_session *s)
{
    printf("%-*s", name_width(s), "allocator");
    for (size_t i = 0; i < FIGURES; i++) {
        if (!(figure_infos[i].shown & FIGURE_IN_COLUMN))
            continue;
        printf(" %*s", column_width(&figure_infos[i]), figure_infos[i].label);
        if (figure_infos[i].ratio)
            printf("  %-*s", RATIO_WIDTH, "ratio [95 %]");
    }
    if (s->latency)
        printf("   p99 %s", event_infos[main_kind(plan_facts(s->plan))].name);
    printf("\n");
}

static void print_row(const struct replay_session *s, size_t row)
{
    const struct replay_figures *f = &s->figures[row];
    struct replay_call c = session_call(s, f, main_kind(plan_facts(s->plan)));
    char name[NAME_BYTES], text[64];
    row_name(&f->allocator, name);
    printf("%-*s", name_width(s), name);
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        if (!(info->shown & FIGURE_IN_COLUMN))
            continue;
        printf(" %*s", column_width(info), figure_text(text, info->unit, f->figures.values[i]));
        if (!info->ratio)
            continue;
        struct measure_ratio r = session_ratio(s, f, i);
        printf("  %-*s", RATIO_WIDTH, ratio_text(text, &r, row == 0));
    }
    if (c.count)
        printf(" %10s", human_ns(text, c.p99_ns));
    printf("\n");
}

// The highest share of stalls of all allocators.
static void print_stalls(const struct replay_session *s)
{
    double max = 0;
    for (size_t i = 0; i < s->n_figures; i++)
        max = fmax(max, s->figures[i].figures.stall_share);
    if (plan_facts(s->plan)->streamed)
        printf("streamed: threads stalled for the decoder for at most %.1f %% of their time%s\n", 100 * max,
               limit_text(max));
}

void replay_print_table(const struct replay_session *s)
{
    print_head(s);
    for (size_t i = 0; i < s->n_figures; i++)
        print_row(s, i);
    print_stalls(s);
    replay_print_fidelity_line(s);
    printf("%llu run%s each; replay overhead %.1f ns per event\n", (unsigned long long)s->n_runs,
           s->n_runs == 1 ? "" : "s", s->figures[0].figures.overhead_ns_per_event);
}
