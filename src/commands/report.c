#include "analysis/symbols/symbols.h"
#include "base/fio.h"
#include "cli/command.h"
#include "commands/parts.h"
#include "report/diff.h"
#include "report/page/page.h"
#include "report/text/figures.h"
#include "report/text/pooled.h"
#include "report/text/watch.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct report_options {
    const char *output;
    bool force, diff, open, pool, across_machines;
};

#define AT(member) offsetof(struct report_options, member)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "REPORT", NULL,
     "write the report to this file, or to standard output for - [FILE.html]", AT(output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace REPORT if it exists", AT(force)},
    {0, "open", OPTION_FLAG, NULL, NULL, "open the HTML report in the browser with xdg-open",
     AT(open)},
    {'d', "diff", OPTION_FLAG, NULL, NULL,
     "compare two files side by side, as a table and, with -o or --open, as an HTML report",
     AT(diff)},
    {0, "pool", OPTION_FLAG, NULL, NULL,
     "print the ratios of allocators from all runs in JSON files of one workload on one machine",
     AT(pool)},
    {0, "across-machines", OPTION_FLAG, NULL, NULL,
     "with --pool, also combine runs on different machines", AT(across_machines)},
    {0},
};

static const struct command_mode modes[] = {
    {.option = "pool", .accepts = "across-machines"},
    {.option = "diff", .accepts = "output|open"},
    {.accepts = "output|open"},
};

static void print_row(const struct diff_row *r)
{
    char change[32] = "";
    enum cli_color color = CLI_PLAIN;
    if (r->a > 0 && r->b > 0)
        snprintf(change, sizeof change, "%.3g x", r->b / r->a);
    // A change that is printed as "1 x" has no colour.
    if (*change && strcmp(change, "1 x") != 0 && r->better != FIGURE_NEITHER)
        color = cli_color_of_change(r->b / r->a, r->better == FIGURE_MORE);
    printf("%s %16s %16s %s%10s%s\n", cli_cell(r->label, 34), figures_text(r->unit, r->a),
           figures_text(r->unit, r->b), color ? cli_color(color) : "", change,
           color ? cli_color(CLI_PLAIN) : "");
}

static void print_rows(const struct document *d, char **names)
{
    const char *of = "";
    printf("a: %s\nb: %s\n", cli_text(names[0]), cli_text(names[1]));
    cli_table_head("\n%-34s %16s %16s %10s", "", "a", "b", "b / a");
    for (size_t i = 0; i < d->n_rows; i++) {
        const struct diff_row *r = &d->rows[i];
        if (strcmp(r->of, of) != 0)
            printf("%s%s\n", i ? "\n" : "", cli_text(r->of));
        of = r->of;
        print_row(r);
    }
}

// Prints the changed call sites of two recordings. Prints nothing for JSON results.
static void print_sites(const struct document *d, char **names)
{
    enum { TOP = 20 };
    struct sites_diff sites = {0};
    struct sites_diff_side totals[2];
    struct err e = {0};
    for (size_t i = 0; i < d->n_items; i++) {
        if (d->items[i].result || d->items[i].file)
            return;
    }
    die_on_error(sites_diff_files(&sites, totals, names, watch_begin("report"), &e), EXIT_FAILED,
                 &e);
    if (totals[0].found && totals[1].found)
        command_print_sites(&sites, TOP);
    sites_diff_release(&sites);
}

static void compare_sides(struct document *d, char **names, bool print)
{
    int rc = diff_rows(d);
    if (rc == -ENOENT)
        die(EXIT_FAILED,
            "%s and %s cannot be compared: both must be workloads or traces, or both results of "
            "the same allocators",
            names[0], names[1]);
    if (rc < 0)
        die(EXIT_FAILED, "out of memory");
    if (print) {
        print_rows(d, names);
        print_sites(d, names);
    }
    cli_flush();
}

// Returns a name such as "run.html" for "logs/run.ht", or NULL. The caller must free the name.
static char *default_name(const char *file)
{
    static const char *const suffixes[] = {".ht", ".htw", ".hta", ".json"};
    const char *base = basename(file);
    size_t n = strlen(base);
    char *name = NULL;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t cut = strlen(suffixes[i]);
        if (n > cut && strcmp(base + n - cut, suffixes[i]) == 0)
            n -= cut;
    }
    if (strcmp(file, "-") == 0)
        return strdup("heaptape.html");
    return asprintf(&name, "%.*s.html", (int)n, base) < 0 ? NULL : name;
}

static void open_page(const char *path)
{
    char *const words[] = {"xdg-open", (char *)path, NULL};
    pid_t pid;
    int status = -1, rc = posix_spawnp(&pid, words[0], NULL, NULL, words, environ);
    if (rc == 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return;
    if (rc)
        note("%s cannot be opened: xdg-open: %s", path, strerror(rc));
    else
        note("%s cannot be opened: xdg-open failed", path);
}

static int run_report(const void *fields, char **argv)
{
    const struct report_options *o = fields;
    struct document d = {.mode = o->diff ? "diff" : "report", .watch = watch_begin("report")};
    struct err e = {0};
    if (o->diff && cli_common.n_operands != 2)
        return usage_error(&cmd_report, "--diff requires exactly two files");
    bool wanted = o->output || (!o->diff && !o->pool) || o->open,
         to_stdout = o->output && strcmp(o->output, "-") == 0;
    if (o->open && to_stdout)
        return usage_error(&cmd_report, "--open requires a file, not standard output");
    char *named = wanted && !o->output ? default_name(argv[0]) : NULL;
    const char *output = named ? named : o->output;
    if (wanted && !output)
        die(EXIT_FAILED, "out of memory");
    if (wanted)
        die_on_error(output_check_aside(output, o->force, NULL, &e), EXIT_FAILED, &e);
    for (int i = 0; i < cli_common.n_operands; i++) {
        die_on_error(document_add_file(&d, argv[i], o->diff ? i : 0, &e), EXIT_FAILED, &e);
    }
    if (o->pool && pooled_print(&d, o->across_machines, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (o->pool)
        puts("The runs of different files did not alternate, so the ratios include changes of\n"
             "the machine's load.");
    if (o->diff)
        compare_sides(&d, argv, !to_stdout);
    if (wanted && page_save(&d, output, o->force, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    symbols_note_refused(note_text);
    if (named)
        note("wrote %s", output);
    if (o->open)
        open_page(output);
    free(named);
    document_release(&d);
    return EXIT_DONE;
}

const struct command cmd_report = {
    .name = "report",
    .operands = "FILE...",
    .summary = "Write an HTML report of heap usage and allocator results",
    .examples =
        {
            {"Show how a program uses its heap", "heaptape report --open program.ht"},
            {"Show how a program uses its heap, and compare four allocators on it",
             "heaptape compare --json -a glibc -a jemalloc -a tcmalloc -a mimalloc \\\n"
             "    program.htw >program.json\n"
             "heaptape report -o program.html program.htw program.json"},
            {"Compare two versions of a program",
             "heaptape report --diff -o change.html before.htw after.htw"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct report_options),
    .modes = {modes},
    .min_operands = 1,
    .max_operands = 1000,
    .run = run_report,
};
