#include "report/text/stat.h"

#include "analysis/symbols/stack.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/words.h"
#include "cli/wrap.h"
#include "report/findings.h"
#include "report/profile.h"
#include "report/text/figures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINES = 40,
    PATHS = 5,
    MAX_SITES = 200, // number of call sites that are searched for different paths
    PATH_COLUMNS = WORDS_COLUMNS - 28,
    COMMAND_BYTES = 60,
    TITLE_BYTES = 400,
};

// Call sites with the same path.
struct path {
    char text[STACK_PATH_BYTES];
    uint64_t peak_bytes, live_bytes;
};

struct paths {
    struct path items[MAX_SITES];
    size_t n;
};

// Removes the outermost functions until the path fits in a line.
static void cut_path(char text[STACK_PATH_BYTES])
{
    static const char between[] = " < ";
    while (words_columns(text) > PATH_COLUMNS) {
        char *last = NULL;
        for (char *at = text; (at = strstr(at, between)); at++)
            last = at;
        if (!last)
            break;
        *last = 0;
    }
    while (words_columns(text) > PATH_COLUMNS)
        text[printable_cut(text, strlen(text) - 1)] = 0;
}

static void add_path(struct paths *to, const struct path *p)
{
    size_t at = 0;
    while (at < to->n && strcmp(to->items[at].text, p->text) != 0)
        at++;
    if (at == to->n) {
        to->items[to->n++] = *p;
        return;
    }
    to->items[at].peak_bytes += p->peak_bytes;
    to->items[at].live_bytes += p->live_bytes;
}

static int by_peak(const void *a, const void *b)
{
    const struct path *p = a, *q = b;
    return p->peak_bytes != q->peak_bytes
               ? (p->peak_bytes < q->peak_bytes ? 1 : -1)
               : (p->live_bytes < q->live_bytes) - (p->live_bytes > q->live_bytes);
}

// Finds the paths with the most bytes at the peak. Sums the call sites of a path first: several
// small call sites may be the largest path.
static int find_paths(struct paths *to, const struct file_stat *s)
{
    size_t n = 0;
    to->n = 0;
    if (!s->symbols)
        return 0;
    uint32_t *order = profile_order(&s->by_site, PROFILE_PEAK, &n);
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < n && i < MAX_SITES; i++) {
        const struct by_site_totals *t = &s->by_site.sites[order[i]];
        struct path p = {.peak_bytes = t->peak_bytes, .live_bytes = t->live_bytes};
        if (!p.peak_bytes && !p.live_bytes)
            continue;
        stack_path(s->symbols, order[i], p.text);
        if (!p.text[0])
            strcpy(p.text,
                   !order[i] && !t->calls ? "(allocated before the recording)" : "(unknown)");
        cut_path(p.text);
        add_path(to, &p);
    }
    free(order);
    qsort(to->items, to->n, sizeof *to->items, by_peak);
    to->n = to->n < PATHS ? to->n : PATHS;
    return 0;
}

// Prints the name of the file and of the process that the figures describe. Returns the number of
// lines.
static unsigned print_title(const struct file_stat *s)
{
    char title[TITLE_BYTES], command[COMMAND_BYTES + sizeof "..."], many[64] = "";
    const struct file_stat_process *p = &s->processes[s->of_usage];
    unsigned lines = 1;
    printable_words(command, COMMAND_BYTES, p->argv, p->argv_bytes);
    if (s->n_processes + s->others > 1)
        snprintf(many, sizeof many, ", one of %s",
                 human_items(s->n_processes + s->others, "process", "processes"));
    snprintf(title, sizeof title, "%.200s: %s%s of process %u (%s)%s", s->name,
             file_stat_kind_name(s), s->under_way ? ", recording in progress," : "", p->pid,
             *command ? command : "unknown program", many);
    words_print(stdout, title, 0, 0, &lines);
    putchar('\n');
    return lines;
}

static void print_bytes(const char *what, uint64_t bytes, uint64_t blocks)
{
    printf("%-22s %15s  in %s\n", what, human_size(bytes), human_items(blocks, "block", "blocks"));
}

static uint64_t find_peak_rss(const struct file_stat *s)
{
    uint64_t most = s->processes[s->of_usage].summary.peak_rss_bytes;
    for (size_t i = 0; i < s->n_samples; i++)
        most = s->samples[i].rss_bytes > most ? s->samples[i].rss_bytes : most;
    return most;
}

// Prints the highest known RSS, which includes the memory of heaptape in the process.
static void print_peak_rss(const struct file_stat *s)
{
    uint64_t rss = find_peak_rss(s), own = s->processes[s->of_usage].summary.recording_rss_bytes;
    if (rss && own)
        printf("%-22s %15s  with %s of heaptape's own\n", "peak RSS", human_size(rss),
               human_size(own));
    else if (rss)
        printf("%-22s %15s  with heaptape's own, of unknown size\n", "peak RSS", human_size(rss));
}

static void print_figures(const struct file_stat *s)
{
    static const unsigned shown[] = {STAT_FIGURE_requested_bytes, STAT_FIGURE_events,
                                     STAT_FIGURE_threads, STAT_FIGURE_duration_ns};
    const struct workload_summary *p = &s->processes[s->of_usage].summary;
    union stat_figures f;
    stat_figures_of_file(&f, s);
    // The figures of the file are sums over all processes, but the title names one.
    f.requested_bytes = p->requested_bytes;
    f.events = p->events;
    f.threads = p->threads;
    if (s->sums)
        print_bytes("peak live", s->usage.peak.bytes, s->usage.peak.blocks);
    else
        printf("%-22s %15s\n", "peak live", human_size(p->peak_live_bytes));
    if (s->sums && s->usage.ns_per_stamp > 0)
        printf("%-22s %15s  after the start of the process\n", "  time of the peak",
               human_time((double)s->usage.peak.stamp * s->usage.ns_per_stamp));
    print_peak_rss(s);
    print_bytes("live at end", p->live_at_end_bytes, p->live_at_end_blocks);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        figures_print(&f, shown[i]);
}

static void print_paths(const struct paths *paths, size_t n)
{
    cli_table_head("\n%13s%13s  %s", "live at peak", "live at end", "call path");
    for (size_t i = 0; i < n; i++) {
        const struct path *p = &paths->items[i];
        printf("%13s%13s  %s\n", human_size(p->peak_bytes), human_size(p->live_bytes),
               cli_text(p->text));
    }
}

// Prints the findings that fit in `max` lines. Always prints the first finding, which is the
// verdict. Returns the number of lines.
static unsigned print_findings(const struct findings *found, unsigned max)
{
    size_t n = 0;
    unsigned lines = 0;
    for (; n < found->n; n++) {
        unsigned last = n + 1 < found->n, next = findings_lines(found, n);
        if (n && lines + next + last > max)
            break;
        lines += next;
    }
    findings_print_some(found, n);
    if (n == found->n)
        return lines;
    printf("... %s\n", human_items(found->n - n, "more finding", "more findings"));
    return lines + 1;
}

int stat_print_overview(const struct file_stat *s, const struct findings *found)
{
    enum { FIGURE_LINES = 8, BLANK_LINES = 4, HEAD_LINES = 1, NEXT_LINES = 1 };
    struct paths paths;
    if (!s->n_processes) {
        printf("%s: %s without events\n", cli_text(s->name), file_stat_kind_name(s));
        return 0;
    }
    if (find_paths(&paths, s) < 0)
        return -ENOMEM;
    unsigned lines = print_title(s) + FIGURE_LINES + BLANK_LINES + HEAD_LINES + NEXT_LINES;
    putchar('\n');
    lines += print_findings(found, MAX_LINES - lines - (unsigned)paths.n);
    putchar('\n');
    print_figures(s);
    size_t left = lines < MAX_LINES ? MAX_LINES - lines : 0;
    if (paths.n && left)
        print_paths(&paths, paths.n < left ? paths.n : left);
    wrap_keep_line();
    printf("\nAll tables: heaptape stat --verbose %s\n", cli_text(s->name));
    return 0;
}
