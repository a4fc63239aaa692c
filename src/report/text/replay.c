#include "report/text/replay.h"
#include "analysis/measure.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/wrap.h"
#include "replay/fidelity.h"
#include "replay/program.h"
#include "replay/real.h"
#include "report/text/figures.h"
#include "report/text/fragmentation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_preexisting(const struct replay_session *s, const struct plan_facts *f)
{
    if (!f->preexisting)
        return;
    printf("start        %s (%s) allocated before the clock starts\n",
           human_items(f->preexisting, "block", "blocks"), human_size(f->preexisting_bytes));
    if (s->forked_from)
        printf("             inherited from process %u; in the recorded run, both shared a page "
               "until one wrote to it\n",
               s->forked_from);
}

void replay_print_workload(const struct replay_session *s)
{
    const struct plan_facts *f = plan_facts(s->plan);
    printf("%s: %s calls, %llu thread%s, peak live %s", cli_text(s->workload),
           human_number(f->events), (unsigned long long)f->threads, f->threads == 1 ? "" : "s",
           human_size(f->peak_live_bytes));
    if (f->one_thread)
        printf("; all calls in one thread, %s switches between the recorded threads",
               human_number(f->thread_switches));
    if (f->skipped)
        printf("; %s ops skipped", human_number(f->skipped));
    if (replay_session_memory_apart(s))
        printf("; time is measured with threads at full speed, memory with threads as close as "
               "recorded");
    printf("\n");
    print_preexisting(s, f);
    // If big blocks make up less than a tenth of the live bytes, they hardly affect memory.
    if (s->settings.touch != RESULTS_TOUCH_PAGE || f->big_bytes < f->peak_live_bytes / 10)
        return;
    if (!f->big_known_bytes)
        printf("the use of blocks of 16 KiB and more was not recorded: the replay writes to all "
               "pages of malloc's blocks\n");
    else
        printf("use of blocks of 16 KiB and more: measured for %.0f %% of their bytes, estimated "
               "for %.0f %%\n",
               100 * (double)f->big_known_bytes / (double)f->big_bytes,
               100 * (double)f->big_estimated_bytes / (double)f->big_bytes);
}

static const char *figure_text(enum figure_unit unit, double v)
{
    char *text = human_buffer();
    if (unit != FIGURE_NS || !(v < 1000))
        return figures_text(unit, v);
    snprintf(text, HUMAN_BYTES, "%.1f ns", v);
    return text;
}

static void print_calls(const struct replay_session *s, const struct replay_result *r)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    uint64_t outliers = 0;
    cli_table_head("\n%-18s %11s %9s %9s %9s %9s %9s", "call", "count", "mean", "p50", "p99",
                   "p99.9", "max");
    for (unsigned kind = 0; kind < RESULTS_KINDS; kind++) {
        struct replay_call c = replay_run_call(&r->latency, &s->null.latency, kind);
        if (!facts->by_kind[kind] || !c.count)
            continue;
        printf("%-18s %11s %9s %9s %9s %9s %9s\n", event_infos[kind].name, human_number(c.count),
               human_time(c.mean_ns), human_time(c.p50_ns), human_time(c.p99_ns),
               human_time(c.p999_ns), human_time(c.max_ns));
        outliers += c.outliers;
    }
    if (outliers)
        printf("means without %s outlier%s: calls of over 10 %s and ten times the p99\n",
               human_number(outliers), outliers == 1 ? "" : "s", wrap_is_utf8() ? "µs" : "us");
}

static const char *const group_names[FIGURE_GROUPS] = {
    [FIGURE_WORKLOAD] = "workload", [FIGURE_TIME] = "time",
    [FIGURE_MEMORY] = "memory",     [FIGURE_COUNTERS] = "counters",
    [FIGURE_DECODER] = "decoder",   [FIGURE_DEPENDENCIES] = "dependencies",
};

// Prints "memory       peak RSS 12 MiB, …" without a newline.
static void print_group(const struct replay_result *r, enum figure_group group)
{
    const char *before = "";
    printf("%-12s ", group_names[group]);
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        double v = r->figures.values[i];
        if (info->group != group || !(info->shown & FIGURE_IN_TEXT) || isnan(v))
            continue;
        bool label_first = info->unit != FIGURE_COUNT && info->unit != FIGURE_SHARE;
        const char *value = figure_text(info->unit, v);
        printf("%s%s %s", before, label_first ? info->label : value,
               label_first ? value : info->label);
        before = ", ";
    }
}

static void print_counters(const struct replay_result *r)
{
    uint32_t error = r->runs[r->typical].report.counters_errno;
    const char *before = "; not counted: ";
    print_group(r, FIGURE_COUNTERS);
    for (size_t i = 0; i < FIGURES; i++) {
        if (figure_infos[i].group != FIGURE_COUNTERS || !isnan(r->figures.values[i]))
            continue;
        printf("%s%s", before, figure_infos[i].label);
        before = ", ";
    }
    if (error)
        printf(" (%s)", strerror((int)error));
    printf("\n");
}

// If stalls take at least 5 % of a replay's time, the decoder limits the replay.
static const char *limit_text(double stall_share)
{
    return stall_share >= 0.05 ? ": decoding limited the replay; increase --memory" : "";
}

// If the replay's peak exceeds the recorded peak by more than this share, the excess is reported.
// Such an excess occurs only if threads run ahead; sampling causes smaller differences.
#define PEAK_LIVE_TOLERANCE 0.5

static void print_fidelity_live(const struct fidelity_live *l)
{
    if (l->equal == l->points)
        printf("%-12s live bytes equal the recorded ones at all %s points\n", "fidelity",
               human_number(l->points));
    else
        printf("%-12s live bytes equal the recorded ones at %s of %s points, max difference %s: "
               "threads interleaved differently\n",
               "fidelity", human_number(l->equal), human_number(l->points),
               human_size(l->max_bytes));
    if (l->peak_ratio > 1 + PEAK_LIVE_TOLERANCE)
        printf("%-12s peak live %.2f × recorded: threads ran ahead of those that free their "
               "blocks, so memory is too high (--threads auto keeps them together)\n",
               "", l->peak_ratio);
}

// The mark of unreliable figures and of their column headings.
#define FAR_MARK "! "

static const char *far_text(const struct fidelity *f)
{
    return f->is_far ? FAR_MARK : "";
}

static void print_fidelity_memory(const struct fidelity *f)
{
    const struct fidelity_memory *m = &f->memory;
    if (f->missing_reason) {
        printf("%-12s memory cannot be judged, because %s\n", "", cli_text(f->missing_reason));
        return;
    }
    printf("%-12s %speak RSS %.2f × recorded (%s of %s), mean error %.1f %%; recorded memory is "
           "private memory minus %s at the start",
           "", far_text(f), m->replayed_peak_bytes / m->recorded_peak_bytes,
           human_size((uint64_t)m->replayed_peak_bytes),
           human_size((uint64_t)m->recorded_peak_bytes), 100 * m->mean_error,
           human_size(m->baseline_bytes));
    if (m->mapped_bytes)
        printf(" and up to %s of the program's own mappings\n", human_size(m->mapped_bytes));
    else
        printf("; it includes the program's own mappings and stacks (record --maps)\n");
}

// Prints the share of the program's CPU time that malloc used.
static void print_program(const struct replay_session *s)
{
    const struct program_time p = program_time(s);
    if (p.missing_reason)
        printf("%-12s the calls' share of the program's CPU time is unknown: %s\n", "program",
               p.missing_reason);
    else if (isnan(p.max_share))
        printf("%-12s the calls take at least %.1f %% of its CPU time: %s in the replay, of %s "
               "(without about %s of recording)\n",
               "program", 100 * p.share, human_time(p.calls_ns), human_time(p.cpu_ns),
               human_time(p.recording_ns));
    else
        printf("%-12s the calls take %.1f to %.1f %% of its CPU time of %s (without about %s of "
               "recording)\n",
               "program", 100 * p.share, 100 * p.max_share, human_time(p.cpu_ns),
               human_time(p.recording_ns));
}

static void print_fidelity(const struct replay_session *s, const struct replay_result *r)
{
    const struct fidelity f = fidelity_of(s, r);
    print_fidelity_live(&f.live);
    print_fidelity_memory(&f);
    if (f.has_overlap)
        printf("%-12s two or more threads active for %.0f %% of the time (recorded %.0f %%) and "
               "%.0f %% of the calls (%.0f %%)\n",
               "", 100 * f.overlap.replayed_time, 100 * f.overlap.recorded_time,
               100 * f.overlap.replayed_events, 100 * f.overlap.recorded_events);
    print_program(s);
}

// Returns the fidelity of the allocator on which the workload was recorded, and stores its result
// in *of. If this allocator was not replayed, uses the first allocator.
static struct fidelity recorded_fidelity(const struct replay_session *s,
                                         const struct replay_result **of)
{
    const struct replay_result *recorded = program_recorded(s);
    *of = recorded ? recorded : s->results;
    return fidelity_of(s, *of);
}

static void print_fidelity_line(const struct fidelity *f, const char *allocator)
{
    if (f->missing_reason)
        printf("memory cannot be judged, because %s\n", cli_text(f->missing_reason));
    else
        printf("%srecorded on %s: peak RSS %.2f × recorded, mean error %.1f %%%s\n", far_text(f),
               cli_text(allocator), f->memory.replayed_peak_bytes / f->memory.recorded_peak_bytes,
               100 * f->memory.mean_error,
               f->is_far ? "; memory in the other rows may be off by as much" : "");
}

// A column of the table of statistics. The table omits columns that the allocator does not report.
struct stats_column {
    const char *label;
    size_t at;
};

static uint64_t stats_value(const struct results_stats *s, const struct stats_column *c)
{
    uint64_t value;
    memcpy(&value, (const char *)s + c->at, sizeof value);
    return value;
}

static void print_bins(const struct results_stats *s)
{
    if (!s->bins[0].block_bytes)
        return;
    cli_table_head("\n%12s %10s after %s calls", "bin", "unused", human_number(s->event));
    for (size_t i = 0; i < RESULTS_BINS && s->bins[i].block_bytes; i++) {
        if (s->bins[i].unused_bytes)
            printf("%12s %10s\n", human_size(s->bins[i].block_bytes),
                   human_size(s->bins[i].unused_bytes));
    }
}

static void print_stats(const struct replay_result *r)
{
    static const struct stats_column columns[] = {
#define COLUMN(label, field) {label, offsetof(struct results_stats, field)}
        COLUMN("live", live_bytes),           COLUMN("RSS", rss_bytes),
        COLUMN("allocated", allocated_bytes), COLUMN("active", active_bytes),
        COLUMN("metadata", metadata_bytes),   COLUMN("resident", resident_bytes),
        COLUMN("mapped", mapped_bytes),       COLUMN("retained", retained_bytes),
        COLUMN("dirty", dirty_bytes),         COLUMN("bin unused", bin_unused_bytes),
#undef COLUMN
    };
    enum { COLUMNS = sizeof columns / sizeof *columns };
    const struct replay_run *run = &r->stats;
    if (!run->n_stats)
        return;
    printf("\n%12s", "after calls");
    for (size_t i = 0; i < COLUMNS; i++) {
        if (stats_value(&run->stats[0], &columns[i]) != RESULTS_UNKNOWN)
            printf(" %10s", columns[i].label);
    }
    for (size_t row = 0; row < run->n_stats; row++) {
        printf("\n%12s", human_number(run->stats[row].event));
        for (size_t i = 0; i < COLUMNS; i++) {
            uint64_t value = stats_value(&run->stats[row], &columns[i]);
            if (value != RESULTS_UNKNOWN)
                printf(" %10s", human_size(value));
        }
    }
    printf("\n");
    print_bins(&run->stats[run->n_stats - 1]);
}

static void print_fragmentation_at(const struct replay_session *s, const char *when,
                                   const struct fragmentation *h)
{
    printf("\n"
           "fragmentation %s, after %s calls: %s live in %s pages, of which %s are sparse with %s "
           "stranded\n",
           when, human_number(h->event), human_size(h->live_bytes), human_number(h->pages),
           human_number(h->sparse_pages), human_size(h->stranded_bytes));
    fragmentation_print(h, s->symbols);
}

static void print_fragmentation(const struct replay_session *s, const struct replay_result *r)
{
    if (!s->settings.fragmentation)
        return;
    print_fragmentation_at(s, "at the peak of live bytes", &r->fragmentation[PLAN_SNAPSHOT_PEAK]);
    print_fragmentation_at(s, "at the end", &r->fragmentation[PLAN_SNAPSHOT_END]);
}

// Describes the calls that the allocator refused. Returns false if there are no such calls.
static bool refused_text(const struct replay_run *run, char text[static 160])
{
    const struct results_report *r = &run->report;
    bool power = r->refused_alignment && !(r->refused_alignment & (r->refused_alignment - 1));
    if (!(run->figures.refused_calls > 0))
        return false;
    snprintf(text, 160, "%s call%s, which %s skipped: first %s of %llu bytes aligned to %llu%s",
             human_number((uint64_t)run->figures.refused_calls),
             run->figures.refused_calls > 1 ? "s" : "",
             run->figures.refused_calls > 1 ? "are" : "is", event_infos[r->refused_kind].name,
             (unsigned long long)r->refused_size, (unsigned long long)r->refused_alignment,
             power ? "" : ", which is not a power of two");
    return true;
}

// Compares the usable sizes of all blocks with the requested sizes. Returns false if they were not
// compared.
static bool rounding_text(const struct replay_session *s, const struct replay_result *r,
                          char text[static 160])
{
    const struct results_report *u = &r->usable.report;
    int n = 0;
    if (!s->settings.internal_fragmentation)
        return false;
    if (!u->usable_bytes) {
        snprintf(text, 160, "unknown: the allocator has no malloc_usable_size");
        return true;
    }
    if (u->requested_bytes)
        n = snprintf(text, 160, "%+.1f %%: ",
                     100 * ((double)u->usable_bytes / (double)u->requested_bytes - 1));
    snprintf(text + n, 160 - (size_t)n, "usable sizes of %s for %s requested, over all blocks",
             human_size(u->usable_bytes), human_size(u->requested_bytes));
    return true;
}

static const char recording_note[] =
    "             too high by the memory of heaptape in the recorded process, whose size is "
    "unknown: the recording has no map of its pages\n";

void replay_print_text(const struct replay_session *s, const struct replay_result *r)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    char refused[160], rounding[160];
    printf("%-12s %s (%s)\n", "allocator", cli_text(r->allocator.name),
           cli_text(r->runs[r->typical].library));
    print_group(r, FIGURE_TIME);
    printf(" (medians of %zu run%s)\n", r->n_runs, r->n_runs == 1 ? "" : "s");
    print_group(r, FIGURE_MEMORY);
    printf("\n");
    if (process_rss_missing_reason(s))
        printf("%-12s the RSS of the whole process is not predicted: %s\n", "",
               process_rss_missing_reason(s));
    else if (process_rss_has_recording(s))
        fputs(recording_note, stdout);
    if (refused_text(&r->runs[r->typical], refused))
        printf("%-12s %s\n", "refused", refused);
    if (rounding_text(s, r, rounding))
        printf("%-12s %s\n", "rounding", rounding);
    if (r->figures.cache_switches > 0)
        printf("%-12s %s swapped, in %s switches between the recorded threads\n", "thread cache",
               human_number((uint64_t)r->figures.cache_switches),
               human_number(facts->thread_switches));
    print_counters(r);
    if (facts->dependencies) {
        print_group(r, FIGURE_DEPENDENCIES);
        printf("\n");
    }
    if (facts->streamed) {
        print_group(r, FIGURE_DECODER);
        printf("%s\n", limit_text(r->figures.stall_share));
    }
    print_fidelity(s, r);
    if (r->latency.calls)
        print_calls(s, r);
    print_stats(r);
    print_fragmentation(s, r);
}

void replay_print_verified(const struct replay_result *r)
{
    char refused[160];
    printf("%s: no violation: %s checked in %zu run%s\n", cli_text(r->allocator.name),
           human_items(r->runs[0].report.checked_blocks, "block", "blocks"), r->n_runs,
           r->n_runs == 1 ? "" : "s");
    if (refused_text(&r->runs[0], refused))
        printf("%s refused %s\n", cli_text(r->allocator.name), refused);
}

// Returns the kind of allocation with the most calls. The table shows the tail latency of this
// kind.
static unsigned main_kind(const struct plan_facts *facts)
{
    unsigned best = HT_MALLOC;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].class == HT_CLASS_ALLOC &&
            facts->by_kind[kind] > facts->by_kind[best])
            best = kind;
    }
    return best;
}

// Returns how often a column is compared with the first allocator. For measure_differs, these
// comparisons are one family of tests.
static size_t count_comparisons(const struct replay_session *s)
{
    return s->n_results - 1;
}

static const char *ratio_text(const struct measure_ratio *r, bool is_first, size_t comparisons)
{
    char *text = human_buffer();
    if (is_first)
        return "1";
    if (!measure_has_interval(r))
        snprintf(text, HUMAN_BYTES, "%.2f", r->ratio);
    else if (!measure_differs(r, comparisons))
        return "no difference";
    else
        snprintf(text, HUMAN_BYTES, "%.2f [%.2f, %.2f]", r->ratio, r->low, r->high);
    return text;
}

enum { NAME_BYTES = 64, LEAST_NAME_WIDTH = 16 };

// Writes "glibc" or "glibc,MALLOC_ARENA_MAX=2".
static void row_name(const struct allocator *a, char text[NAME_BYTES])
{
    size_t n = printable_copy(text, NAME_BYTES, a->name, strlen(a->name));
    for (size_t i = 0; i < a->n_tunables && n + 1 < NAME_BYTES; i++) {
        text[n++] = ',';
        n += printable_copy(text + n, NAME_BYTES - n, a->tunables[i], strlen(a->tunables[i]));
    }
}

void replay_print_failed(const struct replay_session *s)
{
    // The last result failed first.
    for (size_t i = s->n_failed; i-- > 0;) {
        const struct replay_result *r = &s->results[s->n_results + i];
        char name[NAME_BYTES];
        size_t n = strlen(r->allocator.name);
        bool has_name = strncmp(r->failure, r->allocator.name, n) == 0;
        row_name(&r->allocator, name);
        cli_warn("%s%s%s", name, has_name ? "" : ": ", r->failure + (has_name ? n : 0));
    }
}

// Prints the predicted CPU time of the program with an allocator. Returns false if the CPU time is
// unknown.
static bool print_program_ratio(const struct replay_session *s, const struct program_time *p,
                                const struct replay_result *r)
{
    char name[NAME_BYTES];
    const char *missing = program_ratio_missing_reason(s, p, r);
    row_name(&r->allocator, name);
    if (missing) {
        printf("%-12s %s: the CPU time of the program is unknown: %s\n", "", name, missing);
        return false;
    }
    const struct measure_ratio ratio = program_interval(s, p, r);
    printf("%-12s %s: %.2f × the CPU time of the program (", "", name, ratio.ratio);
    if (program_calls_ns(s, &s->results[0], PROGRAM_ALL_RUNS) > 0)
        printf("calls %.2f ×, ", program_calls_ns(s, r, PROGRAM_ALL_RUNS) /
                                     program_calls_ns(s, &s->results[0], PROGRAM_ALL_RUNS));
    printf("load %+.1f ms)", (program_load_ns(s, r, PROGRAM_ALL_RUNS) -
                              program_load_ns(s, &s->results[0], PROGRAM_ALL_RUNS)) /
                                 1e6);
    if (measure_has_interval(&ratio))
        printf("; 95 %% interval %.2f to %.2f", ratio.low, ratio.high);
    putchar('\n');
    return true;
}

// Prints the predicted CPU time with each allocator, and the part of the CPU time that the
// predictions omit.
static void print_program_ratios(const struct replay_session *s)
{
    const struct program_time p = program_time(s);
    bool is_any = false;
    print_program(s);
    for (size_t i = 1; !p.missing_reason && i < s->n_results; i++)
        is_any |= print_program_ratio(s, &p, &s->results[i]);
    if (is_any)
        printf("%-12s not predicted: the other %.0f %% of the CPU time, which depends on the "
               "placement of the blocks%s\n",
               "", 100 * p.rest_share,
               s->results[0].n_real ? "" : " (--real measures the program)");
}

static int name_width(const struct replay_session *s)
{
    char name[NAME_BYTES];
    size_t width = LEAST_NAME_WIDTH;
    for (size_t i = 0; i < s->n_results; i++) {
        row_name(&s->results[i].allocator, name);
        if (strlen(name) > width)
            width = strlen(name);
    }
    return (int)width;
}

enum { FIGURE_WIDTH = 10, RATIO_WIDTH = 18 };

static const char *head_text(const struct figure_info *info, bool is_marked)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, "%s%s", is_marked && info->group == FIGURE_MEMORY ? FAR_MARK : "",
             info->label);
    return text;
}

static int column_width(const struct figure_info *info, bool is_marked)
{
    size_t width = strlen(head_text(info, is_marked));
    return width > FIGURE_WIDTH ? (int)width : FIGURE_WIDTH;
}

// Columns of a table that fit in the width of the terminal: figures [first, end). FIGURES is the
// latency of the most frequent call. If a name leaves no space for the widest column, the name is
// printed on a separate line.
struct band {
    const struct replay_session *session;
    size_t first, end;
    int name_width;
    bool is_marked;
};

enum { CELL_MAX = 1 + FIGURE_WIDTH + 2 + RATIO_WIDTH };

static void band_init(struct band *b, const struct replay_session *s, bool is_marked)
{
    unsigned columns = wrap_columns();
    *b = (struct band){.session = s, .name_width = name_width(s), .is_marked = is_marked};
    if (columns && (unsigned)b->name_width + CELL_MAX > columns)
        b->name_width = LEAST_NAME_WIDTH;
}

static bool is_column(const struct band *b, size_t figure)
{
    return figure_infos[figure].shown & FIGURE_IN_COLUMN &&
           !isnan(b->session->results[0].figures.values[figure]);
}

// Advances to the next band. Returns false after the last band.
static bool band_next(struct band *b)
{
    unsigned columns = wrap_columns();
    size_t used = (size_t)b->name_width;
    b->first = b->end;
    while (b->end <= FIGURES) {
        const struct figure_info *info = b->end < FIGURES ? &figure_infos[b->end] : NULL;
        size_t width = 1 + FIGURE_WIDTH;
        if (info && !is_column(b, b->end))
            width = 0;
        else if (info)
            width =
                1 + (size_t)column_width(info, b->is_marked) + (info->ratio ? 2 + RATIO_WIDTH : 0);
        if (columns && used > (size_t)b->name_width && used + width > columns)
            break;
        used += width;
        b->end++;
    }
    return used > (size_t)b->name_width;
}

static void print_name(const struct band *b, const char *name)
{
    if (strlen(name) > (size_t)b->name_width)
        printf("%s\n%*s", name, b->name_width, "");
    else
        printf("%-*s", b->name_width, name);
}

static void print_head(const struct replay_session *s, const struct band *b)
{
    bool is_marked = b->is_marked;
    printf("%s%-*s", cli_color(CLI_BOLD), b->name_width, "allocator");
    for (size_t i = b->first; i < b->end && i < FIGURES; i++) {
        if (!is_column(b, i))
            continue;
        printf(" %*s", column_width(&figure_infos[i], is_marked),
               head_text(&figure_infos[i], is_marked));
        if (figure_infos[i].ratio)
            printf("  %-*s", RATIO_WIDTH, "ratio [95 %]");
    }
    if (s->settings.latency && b->end > FIGURES)
        printf("   p99 %s", event_infos[main_kind(plan_facts(s->plan))].name);
    puts(cli_color(CLI_PLAIN));
}

static void print_row(const struct replay_session *s, size_t row, const struct band *b)
{
    const struct replay_result *r = &s->results[row];
    struct replay_call c =
        replay_run_call(&r->latency, &s->null.latency, main_kind(plan_facts(s->plan)));
    char name[NAME_BYTES];
    row_name(&r->allocator, name);
    print_name(b, name);
    for (size_t i = b->first; i < b->end && i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        if (!is_column(b, i))
            continue;
        printf(" %*s", column_width(info, b->is_marked),
               figure_text(info->unit, r->figures.values[i]));
        if (!info->ratio)
            continue;
        struct measure_ratio ratio = replay_session_ratio(s, r, i);
        enum cli_color color = CLI_PLAIN;
        if (measure_differs(&ratio, count_comparisons(s)))
            color = cli_color_of_change(ratio.ratio, info->better == FIGURE_MORE);
        printf("  %s%-*s%s", color ? cli_color(color) : "", RATIO_WIDTH,
               ratio_text(&ratio, row == 0, count_comparisons(s)),
               color ? cli_color(CLI_PLAIN) : "");
    }
    if (c.count && b->end > FIGURES)
        printf(" %10s", human_time(c.p99_ns));
    printf("\n");
}

static void print_stalls(const struct replay_session *s)
{
    double max = 0;
    for (size_t i = 0; i < s->n_results; i++)
        max = fmax(max, s->results[i].figures.stall_share);
    if (plan_facts(s->plan)->streamed)
        printf("streamed: threads stalled for the decoder for at most %.1f %% of their time%s\n",
               100 * max, limit_text(max));
}

static void print_refused(const struct replay_session *s)
{
    char name[NAME_BYTES], refused[160];
    for (size_t i = 0; i < s->n_results; i++) {
        const struct replay_result *r = &s->results[i];
        if (!refused_text(&r->runs[r->typical], refused))
            continue;
        row_name(&r->allocator, name);
        printf("%s refused %s\n", name, refused);
    }
}

static void print_rounding(const struct replay_session *s)
{
    char name[NAME_BYTES], rounding[160];
    for (size_t i = 0; i < s->n_results; i++) {
        const struct replay_result *r = &s->results[i];
        if (!rounding_text(s, r, rounding))
            return;
        row_name(&r->allocator, name);
        printf("%-12s %s %s\n", i ? "" : "rounding", name, rounding);
    }
}

static void print_process_rss(const struct replay_session *s)
{
    const char *missing = process_rss_missing_reason(s);
    if (missing)
        printf("%-12s its peak RSS is not predicted: %s\n", "process", missing);
    else
        printf("%-12s its peak RSS is predicted: the replayed heap and the memory outside it, as "
               "sampled in the recording\n%s",
               "process", process_rss_has_recording(s) ? recording_note : "");
}

// Prints how far the allocators are from the best known placement. If the search was not requested,
// prints nothing.
static void print_placement(const struct replay_session *s)
{
    const struct replay_best_placement best = replay_session_best_placement(s);
    const char *missing = s->placement_missing_reason;
    char name[NAME_BYTES];
    if (missing && s->settings.placement_events)
        printf("placement    not searched: %s\n", missing);
    if (missing)
        return;
    printf("placement    the best one found needs %s", human_size((uint64_t)best.bytes));
    if (best.result) {
        row_name(&best.result->allocator, name);
        printf(" (by %s)", name);
    }
    for (size_t i = 0; i < s->n_results; i++) {
        row_name(&s->results[i].allocator, name);
        printf("%s %s %s", i ? "," : ";", name,
               human_size((uint64_t)s->results[i].figures.peak_rss_bytes));
    }
    if ((double)s->placement.lower_bytes <= best.bytes)
        printf("; live bytes alone %s", human_size(s->placement.lower_bytes));
    printf(
        "\n"
        "             (found offline without moving blocks; an optimal placement may need less)\n");
}

void replay_print_table(const struct replay_session *s)
{
    const struct replay_result *recorded;
    const struct fidelity f = recorded_fidelity(s, &recorded);
    struct band b;
    band_init(&b, s, f.peak_is_far);
    while (band_next(&b)) {
        if (b.first)
            putchar('\n');
        print_head(s, &b);
        for (size_t i = 0; i < s->n_results; i++)
            print_row(s, i, &b);
    }
    print_refused(s);
    print_stalls(s);
    print_fidelity_line(&f, recorded->allocator.name);
    if (s->added.n_runs)
        printf("%s, the recorded allocator, was also replayed%s, to predict the program\n",
               cli_text(s->added.allocator.name), s->settings.trim_every ? " without trims" : "");
    printf("%llu run%s each; replay overhead %.1f ns per event\n",
           (unsigned long long)s->settings.runs, s->settings.runs == 1 ? "" : "s",
           s->results[0].figures.overhead_ns_per_event);
    print_program_ratios(s);
    print_process_rss(s);
    print_rounding(s);
    print_placement(s);
}

static const struct {
    enum figure_unit unit;
    // Figure of the replay that predicts this figure. A replay contains only the calls; if it
    // cannot predict this figure, the value is FIGURES.
    size_t replayed;
} real_figures[REAL_FIGURES] = {
    [REAL_WALL] = {FIGURE_NS, FIGURES},
    [REAL_CPU] = {FIGURE_NS, FIGURE_cpu_ns},
    [REAL_PEAK_RSS] = {FIGURE_BYTES, FIGURE_peak_rss_bytes},
    [REAL_PROCESS_RSS] = {FIGURE_BYTES, FIGURE_process_peak_rss_bytes},
};

static void print_real_row(const struct replay_session *s, const struct replay_result *r,
                           const struct band *b)
{
    char name[NAME_BYTES];
    row_name(&r->allocator, name);
    print_name(b, name);
    for (unsigned i = (unsigned)b->first; i < b->end; i++) {
        struct measure_ratio ratio = replay_real_ratio(s, r, i);
        printf(" %*s", FIGURE_WIDTH, figure_text(real_figures[i].unit, replay_real_median(r, i)));
        printf("  %-*s", RATIO_WIDTH, ratio_text(&ratio, r == s->results, count_comparisons(s)));
    }
    printf("\n");
}

static const char *difference_text(enum figure_unit unit, double v)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, "%c%s", v < 0 ? '-' : '+', figure_text(unit, fabs(v)));
    return text;
}

static const char *verdict_of(const struct measure_ratio *ratio, double real, double replayed)
{
    if ((measure_has_interval(ratio) && measure_is_same(ratio)) ||
        fabs(ratio->ratio - 1) < MEASURE_MIN_DIFFERENCE)
        return "no difference";
    return (real < 0) == (replayed < 0) ? "predicted" : "NOT predicted";
}

// Compares the ratio of the program's CPU time with its prediction. Returns false if there is no
// prediction.
static bool print_cpu_prediction(const struct replay_session *s, const struct replay_result *r)
{
    const struct program_time t = program_time(s);
    const struct measure_ratio predicted = program_interval(s, &t, r),
                               real = replay_real_ratio(s, r, REAL_CPU);
    int within = replay_real_cpu_is_within(s, r);
    if (isnan(predicted.ratio))
        return false;
    printf(" CPU time %.2f ×, predicted %.2f", real.ratio, predicted.ratio);
    if (within < 0)
        printf(": %s", verdict_of(&real, real.ratio - 1, predicted.ratio - 1));
    else
        printf(" [%.2f, %.2f]: %swithin the interval", predicted.low, predicted.high,
               within ? "" : "NOT ");
    return true;
}

// Compares two differences from the first allocator: in the program's runs, and in the replay.
static void print_prediction(const struct replay_session *s, const struct replay_result *r)
{
    const struct replay_result *first = s->results;
    char name[NAME_BYTES];
    row_name(&r->allocator, name);
    printf("%-*s", name_width(s), name);
    const char *before = "";
    for (unsigned i = 0; i < REAL_FIGURES; i++) {
        size_t figure = real_figures[i].replayed;
        if (figure == FIGURES || isnan(r->figures.values[figure]))
            continue;
        fputs(before, stdout);
        before = ";";
        if (i == REAL_CPU && print_cpu_prediction(s, r))
            continue;
        double real = replay_real_median(r, i) - replay_real_median(first, i);
        double replayed = r->figures.values[figure] - first->figures.values[figure];
        struct measure_ratio ratio = replay_real_ratio(s, r, i);
        printf(" %s %s, %s %s: %s", replay_real_infos[i].label,
               difference_text(real_figures[i].unit, real),
               i == REAL_PROCESS_RSS ? "predicted" : "replayed",
               difference_text(real_figures[i].unit, replayed), verdict_of(&ratio, real, replayed));
    }
    putchar('\n');
}

// Prints the times of the most frequent call in the program and in the replay.
static void print_real_calls(const struct replay_session *s)
{
    unsigned kind = main_kind(plan_facts(s->plan));
    cli_table_head("\n%-*s %11s %9s %9s %9s %9s", name_width(s), event_infos[kind].name, "count",
                   "p99", "replayed", "p99.9", "replayed");
    for (size_t i = 0; i < s->n_results; i++) {
        const struct replay_result *r = &s->results[i];
        struct replay_call c = replay_run_call(&r->latency, &s->null.latency, kind);
        char name[NAME_BYTES];
        row_name(&r->allocator, name);
        if (r->real_calls && r->real_calls[kind].count)
            printf("%-*s %11s %9s %9s %9s %9s\n", name_width(s), name,
                   human_number(r->real_calls[kind].count), human_time(r->real_calls[kind].p99_ns),
                   human_time(c.p99_ns), human_time(r->real_calls[kind].p999_ns),
                   human_time(c.p999_ns));
        else
            printf("%-*s the program reported no calls\n", name_width(s), name);
    }
}

void replay_print_real(const struct replay_session *s)
{
    struct band b;
    unsigned columns = wrap_columns();
    band_init(&b, s, false);
    unsigned fit = columns ? (columns - (unsigned)b.name_width) / CELL_MAX : REAL_FIGURES;
    for (b.first = 0; b.first < REAL_FIGURES; b.first = b.end) {
        b.end = b.first + (fit ? fit : 1);
        b.end = b.end < REAL_FIGURES ? b.end : REAL_FIGURES;
        printf("\n%-*s", b.name_width, "the program");
        for (size_t i = b.first; i < b.end; i++)
            printf(" %*s  %-*s", FIGURE_WIDTH, replay_real_infos[i].label, RATIO_WIDTH,
                   "ratio [95 %]");
        printf("\n");
        for (size_t i = 0; i < s->n_results; i++)
            print_real_row(s, &s->results[i], &b);
    }
    printf("%zu run%s each. Differences from %s:\n", s->results[0].n_real,
           s->results[0].n_real == 1 ? "" : "s", cli_text(s->results[0].allocator.name));
    for (size_t i = 1; i < s->n_results; i++)
        print_prediction(s, &s->results[i]);
    if (s->settings.latency)
        print_real_calls(s);
}
