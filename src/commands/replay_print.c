#include "commands/replay_print.h"
#include "analysis/measure.h"
#include "cli/command.h"

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

static double over_live(const struct replay_session *s, double bytes)
{
    uint64_t live = plan_facts(s->plan)->peak_live_bytes;
    return live ? bytes / (double)live : 0;
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

static void print_memory(const struct replay_session *s, const struct replay_figures *f)
{
    char t[3][32];
    printf("%-12s peak RSS %s (%.2f × live)", "memory", human_bytes(t[0], (uint64_t)f->peak_rss_bytes),
           over_live(s, f->peak_rss_bytes));
    if (f->mean_live_bytes > 0)
        printf(", mean %s (%.2f ×)", human_bytes(t[0], (uint64_t)f->mean_rss_bytes),
               f->mean_rss_bytes / f->mean_live_bytes);
    printf(", %s at the end, %s after free-all", human_bytes(t[0], (uint64_t)f->end_rss_bytes),
           human_bytes(t[1], (uint64_t)f->rss_after_free_bytes));
    if (s->settings.idle_wait_ns)
        printf(", %s after %llu s idle", human_bytes(t[2], (uint64_t)f->rss_after_idle_bytes),
               (unsigned long long)(s->settings.idle_wait_ns / 1000000000u));
    printf("\n");
}

static void print_counters(const struct replay_run *run)
{
    static const char *const names[RESULTS_COUNTERS] = {
        [RESULTS_CYCLES] = "cycles",
        [RESULTS_INSTRUCTIONS] = "instructions",
        [RESULTS_CACHE_MISSES] = "cache misses",
        [RESULTS_DTLB_MISSES] = "dTLB misses",
    };
    char t[3][32];
    const char *before = "; not counted: ";
    printf("%-12s %s minor and %s major page faults, %s context switches", "counters",
           human_count(t[0], run->minor_faults), human_count(t[1], run->major_faults),
           human_count(t[2], run->context_switches));
    for (unsigned i = 0; i < RESULTS_COUNTERS; i++) {
        if (run->counters[i] != RESULTS_UNKNOWN)
            printf(", %s %s", human_count(t[0], run->counters[i]), names[i]);
    }
    for (unsigned i = 0; i < RESULTS_COUNTERS; i++) {
        if (run->counters[i] != RESULTS_UNKNOWN)
            continue;
        printf("%s%s", before, names[i]);
        before = ", ";
    }
    if (run->counters_errno)
        printf(" (%s)", strerror(run->counters_errno));
    printf("\n");
}

enum { LIMIT_PERCENT = 5 }; // of stalls, from which on the decoder limits the replay

static const char *limit_text(double percent)
{
    return percent >= LIMIT_PERCENT ? ": decoding limited the replay; give more --memory" : "";
}

static void print_decoder(const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    const struct replay_run *run = &f->runs[f->typical];
    double percent = 100 * session_stall_share(s, f);
    char t[3][32];
    if (!facts->fed)
        return;
    printf("%-12s threads stalled for %s, %.1f %% of their time%s; %s more waiting for free space in the stream\n",
           "decoder", human_ns(t[0], (double)run->stall_ns), percent, limit_text(percent),
           human_ns(t[1], (double)run->free_space_wait_ns));
}

void replay_print_text(const struct replay_session *s, const struct replay_figures *f)
{
    char t[3][32];
    const struct replay_run *run = &f->runs[f->typical];
    printf("%-12s %s (%s)\n", "allocator", f->allocator.name, run->library);
    printf("%-12s %s wall, %s CPU (median of %zu run%s)\n", "time", human_ns(t[0], f->wall_ns),
           human_ns(t[1], f->cpu_ns), f->n_runs, f->n_runs == 1 ? "" : "s");
    printf("%-12s %.1f ns, of which replay overhead %.1f ns\n", "per event", f->ns_per_event, session_overhead_ns(s));
    print_memory(s, f);
    print_counters(run);
    if (plan_facts(s->plan)->waits)
        printf("%-12s %s, %s blocked, %s slept\n", "dependencies", human_count(t[0], plan_facts(s->plan)->waits),
               human_count(t[1], run->blocked_waits), human_count(t[2], run->sleeps));
    print_decoder(s, f);
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

static void print_row(const struct replay_session *s, size_t i)
{
    const struct replay_figures *f = &s->figures[i];
    double walls[MEASURE_MAX_RUNS], first[MEASURE_MAX_RUNS];
    char wall[32], rss[32], tail[32], ratio[64], rss_ratio[64];
    session_walls(f, walls);
    session_walls(&s->figures[0], first);
    struct measure_ratio time = measure_ratio(walls, f->n_runs, first, s->figures[0].n_runs);
    session_peaks(f, walls);
    session_peaks(&s->figures[0], first);
    struct measure_ratio memory = measure_ratio(walls, f->n_runs, first, s->figures[0].n_runs);
    struct replay_call c = session_call(s, f, main_kind(plan_facts(s->plan)));
    char name[NAME_BYTES];
    row_name(&f->allocator, name);
    printf("%-*s %10s %9.1f  %-20s %10s %9.2f  ", name_width(s), name, human_ns(wall, f->wall_ns), f->ns_per_event,
           ratio_text(ratio, &time, i == 0), human_bytes(rss, (uint64_t)f->peak_rss_bytes),
           over_live(s, f->peak_rss_bytes));
    ratio_text(rss_ratio, &memory, i == 0);
    if (c.count)
        printf("%-20s %10s\n", rss_ratio, human_ns(tail, c.p99_ns));
    else
        printf("%s\n", rss_ratio);
}

// Of the allocator whose threads stalled longest.
static void print_stalls(const struct replay_session *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n_figures; i++) {
        double percent = 100 * session_stall_share(s, &s->figures[i]);
        most = percent > most ? percent : most;
    }
    if (plan_facts(s->plan)->fed)
        printf("streamed: threads stalled for the decoder for at most %.1f %% of their time%s\n", most,
               limit_text(most));
}

void replay_print_table(const struct replay_session *s)
{
    char tail[64];
    snprintf(tail, sizeof tail, "p99 %s", event_infos[main_kind(plan_facts(s->plan))].name);
    printf("%-*s %10s %9s  %-20s %10s %9s  ", name_width(s), "allocator", "wall", "ns/event", "ratio [95 %]",
           "peak RSS", "RSS/live");
    if (s->latency)
        printf("%-20s %10s\n", "ratio [95 %]", tail);
    else
        printf("ratio [95 %%]\n");
    for (size_t i = 0; i < s->n_figures; i++)
        print_row(s, i);
    print_stalls(s);
    replay_print_fidelity_line(s);
    printf("%llu run%s each; replay overhead %.1f ns per event\n", (unsigned long long)s->n_runs,
           s->n_runs == 1 ? "" : "s", session_overhead_ns(s));
}
