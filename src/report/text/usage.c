// The sections of `stat` about heap usage.
#include "analysis/size_classes.h"
#include "base/printable.h"
#include "cli/bar.h"
#include "cli/command.h"
#include "record/entries/plan.h"
#include "report/text/stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BAR_CELLS = 24, TOP_SIZES = 8, TOP_THREADS = 8, TOP_PAIRS = 8, LEVELS = 16 };

static double share(uint64_t part, uint64_t of)
{
    return of ? (double)part / (double)of : 0;
}

static void print_bar(double of_one)
{
    char text[BAR_BYTES(BAR_CELLS)];
    printf("  %s\n", bar_text(text, BAR_CELLS, of_one));
}

static void print_calls(const struct usage_sums *s)
{
    cli_table_head("\n%-22s %15s %10s %10s %10s %10s", "requested size by call", "calls", "failed",
                   "min", "mean", "max");
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const struct usage_kind *k = &s->kinds[kind];
        if (!k->calls || !(event_infos[kind].fields & HT_F_RESULT) ||
            event_infos[kind].class == HT_CLASS_MAP)
            continue;
        printf("%-22s %15s %10" PRIu64, event_infos[kind].name, human_number(k->calls), k->failed);
        if (k->sized)
            printf(" %10s %10s %10s", human_size(k->min_bytes), human_size(k->bytes / k->sized),
                   human_size(k->max_bytes));
        putchar('\n');
    }
}

static void print_size(unsigned class, struct usage_count c, struct usage_count peak, uint64_t max)
{
    bool last = class == USAGE_CLASSES - 1;
    printf("%2s %12s %15s %12s %12s", last ? "" : "<=", last ? "larger" : human_size(8ull << class),
           human_number(c.blocks), human_size(c.bytes), human_size(peak.bytes));
    print_bar(share(c.blocks, max));
}

static void print_sizes(const struct file_stat *s)
{
    struct usage_count counts[USAGE_CLASSES];
    uint64_t max = 0;
    size_classes_two(s->sums, counts);
    for (unsigned i = 0; i < USAGE_CLASSES; i++)
        max = counts[i].blocks > max ? counts[i].blocks : max;
    cli_table_head("\n%15s %15s %12s %12s  %s", "size", "requests", "bytes", "live at peak",
                   "requests");
    for (unsigned i = 0; i < USAGE_CLASSES; i++) {
        struct usage_count peak = usage_at_peak(&s->usage, i);
        if (counts[i].blocks || peak.blocks)
            print_size(i, counts[i], peak, max);
    }
}

static void print_top(const struct usage_sums *s)
{
    struct size_classes_top_size count[TOP_SIZES], bytes[TOP_SIZES];
    size_t n = size_classes_top(s, false, count, TOP_SIZES);
    size_classes_top(s, true, bytes, TOP_SIZES);
    cli_table_head("\n%15s %15s   %15s %12s", "size by count", "requests", "size by bytes",
                   "bytes");
    for (size_t i = 0; i < n; i++)
        printf("%13s B %15s   %13s B %12s\n", human_number(count[i].size),
               human_number(count[i].count), human_number(bytes[i].size),
               human_size(bytes[i].size * bytes[i].count));
}

static void print_rounding(const struct usage_sums *s, uint64_t requested)
{
    struct size_classes c;
    size_classes_glibc(s, &c);
    printf("\n%-46s %12s %6.1f %%\n", "internal fragmentation, glibc",
           human_size(c.internal_fragmentation_bytes),
           100 * share(c.internal_fragmentation_bytes, requested));
    size_classes_four(s, &c);
    printf("%-46s %12s %6.1f %%\n", "internal fragmentation, 4 classes per doubling",
           human_size(c.internal_fragmentation_bytes),
           100 * share(c.internal_fragmentation_bytes, requested));
    if (s->align_padding_bytes)
        printf("%-46s %12s %6.1f %%\n", "padding to multiples of the alignment",
               human_size(s->align_padding_bytes), 100 * share(s->align_padding_bytes, requested));
}

// Prints the blocks that were freed, by lifetime in events or in time. Returns false if no block
// was freed. Class i of `counts` has the lifetimes up to 2^i.
static bool print_spans(const struct usage_count counts[USAGE_SPANS], bool by_time)
{
    uint64_t freed = 0, max = 0, cumulative = 0;
    for (unsigned span = 0; span < USAGE_SPANS; span++) {
        freed += counts[span].blocks;
        max = counts[span].blocks > max ? counts[span].blocks : max;
    }
    if (!freed)
        return false;
    cli_table_head("\n%17s %15s %12s %10s  %s", "freed within", "blocks", "bytes", "cumulative",
                   "blocks");
    for (unsigned span = 0; span < USAGE_SPANS; span++) {
        const struct usage_count *c = &counts[span];
        cumulative += c->blocks;
        if (!c->blocks)
            continue;
        printf(by_time ? "%17s" : "%10s events",
               by_time ? human_time((double)(1ull << span)) : human_number(1ull << span));
        printf(" %15s %12s %8.1f %%", human_number(c->blocks), human_size(c->bytes),
               100 * share(cumulative, freed));
        print_bar(share(c->blocks, max));
    }
    return true;
}

// If the process did not read the clock at every event, prints the error of the timestamps.
static void print_early(const struct workload_summary *s)
{
    if (!s->early_max_ns)
        return;
    printf("times of calls may be early by up to %s", human_time((double)s->early_usual_ns));
    if (s->early_events && s->early_max_ns > s->early_usual_ns)
        printf(", of about %s by up to %s", human_items(s->early_events, "call", "calls"),
               human_time((double)s->early_max_ns));
    printf(" ('record --clock=exact' avoids this)\n");
}

static void print_lifetimes(const struct file_stat *s)
{
    struct usage_count by_events[USAGE_SPANS];
    for (unsigned span = 0; span < USAGE_SPANS; span++)
        by_events[span] =
            (struct usage_count){usage_freed_after(s->sums, span), s->sums->lifetime_bytes[span]};
    print_spans(by_events, false);
    if (s->usage.ns_per_stamp > 0 && print_spans(s->sums->times, true))
        print_early(&s->processes[s->of_usage].summary);
}

static void print_moves(const char *what, struct usage_count stayed, struct usage_count moved)
{
    if (!stayed.blocks && !moved.blocks)
        return;
    printf("  %-10s %15s in place, %s moved (%.1f %%, %s copied)\n", what,
           human_number(stayed.blocks), human_number(moved.blocks),
           100 * share(moved.blocks, stayed.blocks + moved.blocks), human_size(moved.bytes));
}

static void print_growths(const struct usage_resizes *r)
{
    uint64_t all = 0, max = 0;
    for (unsigned i = 0; i < USAGE_GROWTHS; i++) {
        all += r->growths[i];
        max = r->growths[i] > max ? r->growths[i] : max;
    }
    for (unsigned i = 0; all && i < USAGE_GROWTHS; i++) {
        bool last = i == USAGE_GROWTHS - 1;
        printf("  %s %6.3f x %13s %6.1f %%",
               last ? ">" : "<=", usage_growth_limits[last ? i - 1 : i],
               human_number(r->growths[i]), 100 * share(r->growths[i], all));
        print_bar(share(r->growths[i], max));
    }
}

static void print_resizes(const struct usage_resizes *r)
{
    if (!r->same && !r->grown_in_place.blocks && !r->grown_moved.blocks &&
        !r->shrunk_in_place.blocks && !r->shrunk_moved.blocks)
        return;
    printf("\nrealloc: %s from NULL, %s to the same size, %s to size 0\n",
           human_number(r->from_null), human_number(r->same), human_number(r->freed));
    print_moves("grown", r->grown_in_place, r->grown_moved);
    print_moves("shrunk", r->shrunk_in_place, r->shrunk_moved);
    print_growths(r);
}

static void print_threads(const struct usage *u)
{
    char name[4 * sizeof u->threads->name];
    size_t n = 0;
    if (u->n_threads < 2)
        return;
    bool named = false;
    for (size_t i = 0; i < u->n_threads; i++)
        named |= u->threads[i].name[0] != 0;
    cli_table_head("\n%8s %15s %15s %15s %15s%s", "thread", "events", "local frees", "remote frees",
                   "remotely freed", named ? " name" : "");
    for (size_t i = 0; i < u->n_threads; i++) {
        const struct usage_thread *h = &u->threads[i];
        n += h->events > 0;
        if (!h->events || n > TOP_THREADS)
            continue;
        printable_copy(name, sizeof name, h->name, strlen(h->name));
        printf("%8zu %15s %15s %15s %15s%s%s\n", i, human_number(h->events),
               human_number(h->local_frees), human_number(h->remote_frees),
               human_number(h->remotely_freed), *name ? " " : "", name);
    }
    if (n > TOP_THREADS)
        printf("%8s %s (--json prints up to 64)\n", "...",
               human_items(n - TOP_THREADS, "more thread", "more threads"));
}

// If functions of several allocators were called, prints the allocators.
static void print_allocators(const struct usage *u)
{
    if (!usage_has_allocators(u))
        return;
    cli_table_head("\n%-20s %15s %12s %8s %12s", "allocator", "calls", "live at peak", "share",
                   "live at end");
    for (unsigned i = 0; i < HT_ALLOCATORS; i++) {
        struct usage_allocator_figures f = usage_of_allocator(u, i);
        if (f.calls || f.peak.blocks)
            printf("%-20s %15s %12s %6.1f %% %12s\n", entries_allocator_name(i),
                   human_number(f.calls), human_size(f.peak.bytes),
                   100 * share(f.peak.bytes, u->peak.bytes), human_size(f.live.bytes));
    }
    if (u->mismatched_frees)
        printf("%s freed or resized a block of another allocator\n",
               human_items(u->mismatched_frees, "call", "calls"));
}

// Prints the live bytes over the run as a row of bars. Each character represents one or more bins.
static void print_level(const struct usage *u)
{
    const struct timeline *t = &u->by_event;
    char cell[BAR_LEVEL_BYTES];
    size_t cells = t->n < 64 ? t->n : 64;
    if (!u->peak.bytes || !cells)
        return;
    printf("\nlive bytes over events, full height %s:\n|", human_size(u->peak.bytes));
    for (size_t i = 0; i < cells; i++) {
        uint64_t max = 0;
        for (size_t bin = i * t->n / cells; bin < (i + 1) * t->n / cells; bin++)
            max = t->bins[bin].counts.max_bytes > max ? t->bins[bin].counts.max_bytes : max;
        fputs(bar_level(cell, share(max, u->peak.bytes)), stdout);
    }
    printf("|\n");
}

static void print_peak(const struct file_stat *s)
{
    const struct usage *u = &s->usage;
    printf("\npeak of process %u: %s live in %s after event %s (%.0f %% of the events)",
           s->processes[s->of_usage].pid, human_size(u->peak.bytes),
           human_items(u->peak.blocks, "block", "blocks"), human_number(u->peak.event),
           100 * share(u->peak.event, u->events));
    if (u->ns_per_stamp > 0)
        printf(", %s after the start", human_time((double)u->peak.stamp * u->ns_per_stamp));
    print_level(u);
}

static double peak_rate(const struct usage *u)
{
    double max = 0, width = (double)(1ull << u->by_time.width_shift) * u->ns_per_stamp / 1e9;
    for (size_t i = 0; i + 1 < u->by_time.n; i++)
        max = (double)u->by_time.bins[i].counts.events > max
                  ? (double)u->by_time.bins[i].counts.events
                  : max;
    return width > 0 ? max / width : 0;
}

static void print_rates(const struct usage *u)
{
    double seconds = (double)u->last_stamp * u->ns_per_stamp / 1e9;
    if (!(seconds > 0))
        return;
    printf("%s events per second", human_number((uint64_t)((double)u->events / seconds)));
    if (u->by_time.n > 1)
        printf(", max %s in intervals of %s", human_number((uint64_t)peak_rate(u)),
               human_time((double)(1ull << u->by_time.width_shift) * u->ns_per_stamp));
    printf("\n");
}

void stat_print_usage(const struct file_stat *s)
{
    if (!s->sums || !s->n_processes)
        return;
    print_calls(s->sums);
    print_sizes(s);
    print_top(s->sums);
    print_rounding(s->sums, s->total.requested_bytes);
    print_lifetimes(s);
    print_resizes(&s->sums->resizes);
    print_threads(&s->usage);
    print_allocators(&s->usage);
    print_peak(s);
    print_rates(&s->usage);
}
