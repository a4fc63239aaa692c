#include "record/aggregate/stat.h"
#include "analysis/symbols/shorten.h"
#include "analysis/symbols/stack.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/wrap.h"
#include "commands/parts.h"
#include "report/findings.h"
#include "report/json/sites_json.h"
#include "report/json/stat_json.h"
#include "report/profile.h"
#include "report/text/balance.h"
#include "report/text/figures.h"
#include "report/text/stat.h"
#include "report/text/watch.h"
#include "report/wrapper_use.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum stat_by { STAT_BY_NOTHING = -1, STAT_BY_SITE, STAT_BY_POOL };
enum stat_format {
    STAT_TEXT,
    STAT_JSON,
    STAT_FOLDED,
    STAT_PPROF,
    STAT_SPEEDSCOPE,
    STAT_FIREFOX,
    STAT_JEPROF
};

struct stat_options {
    bool json, brief, rss, verbose, wrappers;
    enum stat_by by;
    enum stat_format format;
    enum profile_weight weight; // -1 if not given
    uint64_t top;
    const char *from, *to, *at;
    const char *debug_dirs;
};

#define AT(member) offsetof(struct stat_options, member)

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object for each FILE", AT(json)},
    {0, "brief", OPTION_FLAG, NULL, NULL, "print only the totals", AT(brief)},
    {'v', "verbose", OPTION_FLAG, NULL, NULL,
     "print all tables: requests, sizes, lifetimes, threads", AT(verbose)},
    {0, "by", OPTION_CHOICE, "site|pool", NULL,
     "print a table by call site, of malloc (site) or of the program's own pools (pool)", AT(by)},
    {0, "format", OPTION_CHOICE, "text|json|folded|pprof|speedscope|firefox|jeprof", "text",
     "with --by: print text, JSON, or a profile for another viewer", AT(format)},
    {0, "weight", OPTION_CHOICE, "peak|end|bytes|allocs|growth|span", NULL,
     "with --by: sort by this [peak, or span with --from or --to]", AT(weight)},
    {0, "from", OPTION_STRING, "POINT", NULL,
     "with --by: count only blocks allocated from POINT on (default: the start)", AT(from)},
    {0, "to", OPTION_STRING, "POINT", NULL,
     "with --by: count only blocks live at POINT (default: the end)", AT(to)},
    {0, "rss", OPTION_FLAG, NULL, NULL, "print the composition of resident memory (RSS) of a trace",
     AT(rss)},
    {0, "at", OPTION_STRING, "peak|end|POINT", "peak",
     "with --rss: at the highest RSS, at the end, or at POINT", AT(at)},
    {0, "top", OPTION_NUMBER, "N", "20", "with --by: print this many call sites as text, 0 for all",
     AT(top)},
    {0, "wrappers", OPTION_FLAG, NULL, NULL,
     "list the program's allocation wrappers, which call sites omit", AT(wrappers)},
    {0, "debug-dir", OPTION_STRING, "DIR[:DIR...]", NULL,
     "search DIR first for executables and debug files", AT(debug_dirs)},
    {0},
};

static const struct command_mode modes[] = {
    {.option = "rss", .accepts = "at"},
    {.option = "wrappers", .accepts = "by|format|weight|top"},
    {.option = "by", .accepts = "format|weight|top"},
    {.option = "brief"},
    {.accepts = "verbose"},
};

static const struct command_mode outputs[] = {{.option = "json"}, {.accepts = "format"}};

static void print_count(const char *what, uint64_t n)
{
    printf("%-22s %15s\n", what, human_number(n));
}

static void print_share(const char *what, uint64_t n, uint64_t of)
{
    printf("  %-20s %15s  %5.1f %%\n", what, human_number(n),
           of ? 100.0 * (double)n / (double)of : 0);
}

// Prints the start of the command line. A NUL terminates each argument.
static void print_command(const struct file_stat_process *p)
{
    enum { COMMAND_BYTES = 60 };
    char command[COMMAND_BYTES + sizeof "..."];
    printable_words(command, COMMAND_BYTES, p->argv, p->argv_bytes);
    printf(" %s\n", cli_text(command));
}

static const char *text_of_file(const char *text)
{
    return cli_text(text ? text : "");
}

static void print_recording(const struct trace_session *s)
{
    printf("%-22s %15s %s\n", "recorded by", "heaptape", text_of_file(s->heaptape));
    printf("%-22s %s, %s, %u CPUs\n", "recorded on", text_of_file(s->kernel), text_of_file(s->cpu),
           s->cpus);
    if (s->dumped)
        printf("%-22s %s\n", "dumped because", cli_text(s->dumped));
    printf("%-22s %15s at %.3f MHz\n", "clock", clock_kind_name(s->clock),
           (double)s->clock_hz / 1e6);
}

static void print_balance_line(const char *line)
{
    static bool printed;
    if (!printed)
        cli_table_head("\nmissing from the recording");
    printed = true;
    puts(line);
}

static void print_balance(const struct file_stat *s)
{
    struct trace_losses losses;
    balance_of_file(&losses, s);
    balance_print(&losses, &s->unrecorded,
                  &(struct balance_how){.print = print_balance_line, .most = SIZE_MAX});
}

static void print_processes(const struct file_stat *s)
{
    cli_table_head("\n%10s %8s %15s %12s %12s  %s", "pid", "threads", "events", "start live",
                   "peak live", "command");
    for (size_t i = 0; i < s->n_processes; i++) {
        const struct file_stat_process *p = &s->processes[i];
        printf("%10u %8" PRIu64 " %15s %12s %12s ", p->pid, p->summary.threads,
               human_number(p->summary.events), human_size(p->summary.preexisting_bytes),
               human_size(p->summary.peak_live_bytes));
        print_command(p);
    }
}

// Prints the growth per period. Bin i contains the live bytes after i periods.
static void print_growth(const struct file_stat *s)
{
    const struct file_stat_periods *p = &s->periods;
    if (p->n < 2)
        return;
    if (s->n_processes > 1)
        printf("\nlive bytes of process %u:", s->processes[s->of_usage].pid);
    cli_table_head("\n%15s %15s %15s", "time", "live", "growth");
    for (size_t i = 1; i < p->n; i++) {
        uint64_t now = p->live_bytes[i], before = p->live_bytes[i - 1];
        const char *grown = human_size(now > before ? now - before : before - now);
        printf("%15s %15s %*s%s\n", human_time((double)(i * p->period_ns)), human_size(now),
               15 - (int)strlen(grown),
               now > before   ? "+"
               : now < before ? "-"
                              : "",
               grown);
    }
}

static void print_text(const struct file_stat *s, const union stat_figures *f)
{
    const struct workload_summary *t = &s->total;
    printf("%s: %s%s\n\n", cli_text(s->name), file_stat_kind_name(s),
           s->under_way ? ", recording in progress" : "");
    figures_print(f, STAT_FIGURE_events);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (t->by_kind[kind] && event_infos[kind].name)
            print_share(event_infos[kind].name, t->by_kind[kind], t->events);
    }
    figures_print(f, STAT_FIGURE_threads);
    print_count("processes", s->n_processes + s->others);
    figures_print(f, STAT_FIGURE_other_processes);
    if (s->unrecorded.by)
        print_count("  not recorded", s->unrecorded.processes);
    for (unsigned i = STAT_FIGURE_other_processes + 1; i < STAT_FIGURES; i++)
        figures_print(f, i);
    if (s->summary_only)
        printf("%-22s %15s  (omit --brief to compare)\n", "compared with events", "no");
    if (s->kind != FILE_STAT_WORKLOAD)
        print_recording(&s->session);
    print_processes(s);
    print_balance(s);
    if (s->kind == FILE_STAT_AGGREGATE)
        print_growth(s);
    stat_print_usage(s);
    stat_print_coverage(&s->coverage);
}

// Prints a shortened name, because names of C++ templates are long. Profiles contain the whole
// name.
static void print_name(const char *name, size_t max)
{
    char shorter[SHORTEN_BYTES];
    fputs(shorten_name(name, max, shorter), stdout);
}

static void print_place(const struct symbol *s)
{
    if (s->file[0])
        printf(" (%s:%d)", basename(s->file), s->line);
    else if (*symbols_file(s))
        printf(" (%s)", basename(s->module));
}

// Returns true if stacks are printed below the figures of their call site.
static bool is_narrow(void)
{
    enum { BOTH_COLUMNS = 120 };
    unsigned columns = wrap_columns();
    return columns && columns < BOTH_COLUMNS;
}

// Prints a function of a stack. `via` is the function that `s` called to reach the allocator, or
// NULL. Functions of libraries are dimmed.
static void print_frame(const struct symbol *s, bool first, size_t repeats, const char *via)
{
    enum { NAME_BYTES = 100, VIA_BYTES = 60 };
    bool narrow = is_narrow();
    printf(first && !narrow ? "%*s" : "\n%*s", narrow ? 4 : first ? 2 : 54, "");
    fputs(s->library ? cli_color(CLI_DIM) : "", stdout);
    print_name(s->function, NAME_BYTES);
    print_place(s);
    if (repeats > 1)
        printf(" ×%zu", repeats);
    fputs(s->library ? cli_color(CLI_PLAIN) : "", stdout);
    if (via) {
        fputs(" via ", stdout);
        print_name(via, VIA_BYTES);
    }
}

// Prints a stack from its shown function outwards, including the function that the shown function
// called. Prints recursive calls as one row.
static void print_stack(const struct file_stat *s, uint32_t number)
{
    struct stack stack = {0};
    if (stack_read(&stack, s->symbols, number) < 0)
        die(EXIT_FAILED, "%s: out of memory", s->name);
    for (size_t i = stack.shown, period, repeats; i < stack.n; i += period * repeats) {
        repeats = stack_repeats(stack.functions + i, stack.n - i, &period);
        for (size_t k = i; k < i + period; k++) {
            bool first = k == stack.shown;
            print_frame(&stack.functions[k], first, repeats,
                        first && k > 0 ? stack.functions[k - 1].function : NULL);
        }
    }
    stack_release(&stack);
}

static void print_range(const char *of, const struct estimate *e, uint64_t sample_bytes)
{
    struct estimate_range r = estimate_bytes(e, sample_bytes);
    printf("%s %s to %s", of, human_size(r.low), human_size(r.high));
}

// Prints a call site. Growth and span are printed only if they are the sort key, before the other
// columns.
static void print_site(const struct file_stat *s, uint32_t number, enum profile_weight weight)
{
    const struct by_site_totals *t = &s->by_site.sites[number];
    const struct workload_site *site = symbols_site(s->symbols, number);
    if (weight == PROFILE_GROWTH)
        printf("%13s%13s", human_size(t->growth_bytes), human_number(t->freed_blocks));
    if (weight == PROFILE_SPAN)
        printf("%13s%13s", human_size(t->span_bytes), human_number(t->span_blocks));
    printf("%13s%13s%12s%14s", human_size(t->peak_bytes), human_size(t->live_bytes),
           human_size(t->bytes), human_number(t->calls));
    print_stack(s, number);
    puts(site->n ? "" : is_narrow() ? "\n    (unknown)" : "  (unknown)");
    if (s->stack_sample_bytes) {
        print_range("  95 % intervals: live at peak", &t->peak, s->stack_sample_bytes);
        print_range(", live at end", &t->live, s->stack_sample_bytes);
        print_range(", allocated", &t->allocated, s->stack_sample_bytes);
        puts("");
    }
}

// Prints the blocks that were allocated in the span and are live at the end of the span, by thread
// and by size.
static void print_span(const struct by_site_span *span)
{
    cli_table_head("\n%15s %15s %12s", "thread", "bytes in span", "blocks");
    for (size_t i = 0; i < span->n_threads; i++) {
        if (span->threads[i].blocks)
            printf("%15zu %15s %12s\n", i, human_size(span->threads[i].bytes),
                   human_number(span->threads[i].blocks));
    }
    cli_table_head("\n%15s %15s %12s", "size", "bytes in span", "blocks");
    for (unsigned i = 0; i < USAGE_CLASSES; i++) {
        bool last = i == USAGE_CLASSES - 1;
        if (span->sizes[i].blocks)
            printf("%2s %12s %15s %12s\n",
                   last ? "" : "<=", last ? "larger" : human_size(8ull << i),
                   human_size(span->sizes[i].bytes), human_number(span->sizes[i].blocks));
    }
}

static void print_sites(const struct file_stat *s, const uint32_t *order, size_t n,
                        const struct stat_options *o)
{
    uint64_t top = o->top;
    size_t shown = top && top < n ? (size_t)top : n;
    if (s->stack_sample_bytes)
        printf("estimates: the stack of one allocation per %s allocated was recorded\n",
               human_size(s->stack_sample_bytes));
    cli_table_head("%s%13s%13s%12s%14s  %s",
                   o->weight == PROFILE_GROWTH ? "steady growth blocks freed"
                   : o->weight == PROFILE_SPAN ? "bytes in span       blocks"
                                               : "",
                   "live at peak", "live at end", "allocated", "allocations",
                   is_narrow() ? "" : "call site");
    for (size_t i = 0; i < shown; i++)
        print_site(s, order[i], o->weight);
    if (shown < n)
        printf("... %s (--top 0 prints all)\n",
               human_items(n - shown, "more call site", "more call sites"));
    if (s->by_site.span.wanted)
        print_span(&s->by_site.span);
}

static int print_profile(const struct file_stat *s, const struct stat_options *o)
{
    struct buf b = {0};
    const struct profile_json_of of = {s->name, &s->by_site, s->symbols, o->weight};
    if (o->format == STAT_JEPROF)
        return profile_jeprof(stdout, &of);
    if (o->format == STAT_SPEEDSCOPE || o->format == STAT_FIREFOX)
        return profile_json(&(struct json){.to = stdout},
                            o->format == STAT_FIREFOX ? PROFILE_FIREFOX : PROFILE_SPEEDSCOPE, &of);
    int rc = o->format == STAT_FOLDED ? profile_folded(&b, &s->by_site, s->symbols, o->weight)
                                      : profile_pprof(&b, &s->by_site, s->symbols, s->duration_ns);
    if (rc == 0 && b.size)
        fwrite(b.data, 1, b.size, stdout);
    buf_release(&b);
    return rc;
}

static int print_wrappers(const struct file_stat *s)
{
    size_t n = 0;
    struct wrapper_use *all = wrapper_use_new(&s->by_site, s->symbols, &n);
    if (all)
        wrapper_use_print(all, n);
    free(all);
    return all ? 0 : -1;
}

static void print_by_site(const struct file_stat *s, const struct stat_options *o)
{
    const char *missing = NULL;
    size_t n = 0;
    int rc = 0;
    if (o->by == STAT_BY_POOL && !s->total.by_kind[HT_POOL_ALLOC])
        die(EXIT_FAILED,
            "%s: no pool blocks were recorded (the program must call heaptape_pool_alloc)",
            s->name);
    if (!s->symbols && s->cut.text[0])
        die(EXIT_FAILED, "%s: the call sites are lost: the end of the file is cut off", s->name);
    if (!s->symbols)
        die(EXIT_FAILED, "%s: no call sites were recorded (use 'heaptape record --stacks')",
            s->name);
    if (s->n_processes > 1)
        note("call sites of process %u (%s), one of %zu processes", s->processes[s->of_usage].pid,
             s->processes[s->of_usage].argv_bytes ? s->processes[s->of_usage].argv
                                                  : "unknown program",
             s->n_processes);
    if (o->from && !s->by_site.span.begun)
        die(EXIT_FAILED, "%s: --from %s: the recording ends before this point", s->name, o->from);
    if (o->to && strncmp(o->to, "mark:", 5) == 0 && !s->by_site.span.over)
        die(EXIT_FAILED, "%s: --to %s: no such mark after the start of the span", s->name, o->to);
    uint32_t *order = profile_order(&s->by_site, o->weight, &n);
    if (o->json || o->format == STAT_JSON)
        stat_json_sites(&(struct json){.to = stdout}, s, order, n);
    else if (o->format == STAT_TEXT && o->wrappers)
        rc = print_wrappers(s);
    else if (o->format == STAT_TEXT)
        print_sites(s, order, n, o), stat_print_coverage(&s->coverage);
    else
        rc = print_profile(s, o);
    free(order);
    if (!order || rc < 0)
        die(EXIT_FAILED, "%s: out of memory", s->name);
    uint64_t unresolved = symbols_missing(s->symbols, &missing);
    if (missing)
        note("%" PRIu64 " addresses could not be resolved: %s (and possibly other files) is "
             "missing or differs from the recorded file (try --debug-dir)",
             unresolved, missing);
}

static void print_file(const struct file_stat *s, const struct stat_options *o)
{
    struct findings found = {.n = 0};
    union stat_figures f;
    stat_figures_of_file(&f, s);
    bool is_short = !o->brief && !o->verbose && !o->json && o->by == STAT_BY_NOTHING;
    bool counted = s->sums || (s->kind == FILE_STAT_AGGREGATE && !o->brief);
    if (counted)
        findings_of_file(&found, s);
    if (o->by != STAT_BY_NOTHING)
        print_by_site(s, o);
    else if (o->json)
        stat_json(&(struct json){.to = stdout, .pretty = true}, s, &f, counted ? &found : NULL);
    else if (!is_short)
        print_text(s, &f), findings_print(&found);
    else if (stat_print_overview(s, &found) < 0)
        die(EXIT_FAILED, "%s: out of memory", s->name);
}

static int print_rss(const struct stat_options *o, const char *path)
{
    struct rss_options how = {.at = RSS_AT_POINT};
    struct file f;
    struct rss r = {0};
    struct err e = {0};
    if (strcmp(o->at, "peak") == 0)
        how.at = RSS_AT_PEAK;
    else if (strcmp(o->at, "end") == 0)
        how.at = RSS_AT_END;
    else if (command_parse_point(o->at, &how.point) < 0)
        return usage_error(
            &cmd_stat,
            "--at: '%s' is not peak, end, an event number, a time such as 1.5s, or mark:TEXT",
            o->at);
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD | FILE_TRACE_TWICE, &e);
    if (rc == 0 && f.kind == FILE_WORKLOAD)
        die(EXIT_FAILED, "%s: a workload has no addresses; --rss requires the trace", path);
    if (rc == 0)
        rc = rss_read(&r, &f.trace, &how, watch_begin("stat"), &e);
    die_on_error(rc, EXIT_FAILED, &e);
    if (r.n_processes > 1)
        note("resident memory of process %u (%s), one of %zu processes", r.pid,
             r.exe ? r.exe : "unknown program", r.n_processes);
    if (o->json)
        rss_json(&(struct json){.to = stdout, .pretty = true}, &r);
    else
        stat_print_rss(&r);
    rss_release(&r);
    file_close(&f);
    return EXIT_DONE;
}

// Parses --from and --to and checks the options that depend on them. Returns 0 or EXIT_USAGE.
static int check_options(const struct stat_options *o, int files, struct file_stat_points *span)
{
    bool has_span = o->from || o->to;
    if (command_parse_part(&cmd_stat, o->from, o->to, &span->from, &span->to))
        return EXIT_USAGE;
    if (o->by != STAT_BY_SITE && has_span)
        return usage_error(&cmd_stat, "--from and --to require --by site");
    if (o->weight == PROFILE_SPAN && !has_span)
        return usage_error(&cmd_stat, "--weight span requires --from or --to");
    if (o->rss && files > 1)
        return usage_error(&cmd_stat, "--rss accepts only one FILE");
    if (o->wrappers && (int)o->format > STAT_JSON)
        return usage_error(&cmd_stat, "--wrappers has no profile: --format must be text or json");
    if (!o->rss && files > 1 && (int)o->format > STAT_JSON)
        return usage_error(&cmd_stat, "a profile accepts only one FILE");
    return 0;
}

static int run_stat(const void *fields, char **argv)
{
    struct stat_options given = *(const struct stat_options *)fields, *o = &given;
    struct file_stat_points span;
    bool has_span = o->from || o->to;
    if (check_options(o, cli_common.n_operands, &span))
        return EXIT_USAGE;
    if (o->wrappers && o->by == STAT_BY_NOTHING)
        o->by = STAT_BY_SITE;
    if ((int)o->weight < 0)
        o->weight = has_span ? PROFILE_SPAN : PROFILE_PEAK;
    symbols_debug_dirs(o->debug_dirs);
    bool text = !o->json && o->format == STAT_TEXT;
    if (text)
        wrap_lines();
    if (o->rss)
        return print_rss(o, argv[0]);
    enum file_stat_part part = o->by == STAT_BY_SITE   ? FILE_STAT_SITES
                               : o->by == STAT_BY_POOL ? FILE_STAT_POOLS
                               : o->brief              ? FILE_STAT_BRIEF
                                                       : FILE_STAT_ALL;
    for (int i = 0; i < cli_common.n_operands; i++) {
        struct file_stat s;
        struct err e = {0};
        const struct file_stat_settings how = {part, has_span ? &span : NULL, watch_begin("stat")};
        die_on_error(aggregate_file_stat(&s, argv[i], &how, &e), EXIT_FAILED, &e);
        if (text && argv[1] && o->by != STAT_BY_NOTHING)
            printf("%s:\n", cli_text(s.name));
        print_file(&s, o);
        if (i + 1 < cli_common.n_operands)
            putchar('\n');
        file_stat_release(&s);
    }
    symbols_debug_dirs(NULL);
    symbols_note_refused(note_text);
    return EXIT_DONE;
}

const struct command cmd_stat = {
    .name = "stat",
    .operands = "FILE|-...",
    .summary = "Print heap usage statistics of a trace, workload or aggregate",
    .words_title = "Points",
    .words = command_points,
    .examples =
        {
            {"Print one screen: the verdict, the peak, the largest call paths",
             "heaptape stat program.ht"},
            {"List the call sites that own the most memory at the peak",
             "heaptape stat --by site program.ht"},
            {"Draw a flame graph of the memory that was never freed",
             "heaptape stat --by site --format folded --weight end program.ht |\n"
             "    flamegraph.pl >end.svg"},
        },
    .options = options,
    .options_bytes = sizeof(struct stat_options),
    .modes = {modes, outputs},
    .min_operands = 1,
    .max_operands = 1000,
    .run = run_stat,
};
