#include "analysis/symbols/shorten.h"
#include "cli/command.h"
#include "commands/parts.h"
#include "report/gate.h"
#include "report/text/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct diff_options {
    struct option_list fail_on;
    const char *junit, *markdown;
    uint64_t top;
    bool json;
};

#define AT(member) offsetof(struct diff_options, member)

static const struct option options[] = {
    {0, "fail-on", OPTION_LIST, "LIMIT", NULL, "exit with status 1 if B exceeds LIMIT (see below)",
     AT(fail_on)},
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", AT(json)},
    {0, "junit", OPTION_STRING, "FILE", NULL,
     "write the limits as test cases in JUnit's XML to FILE", AT(junit)},
    {0, "markdown", OPTION_STRING, "FILE", NULL,
     "append the limits and figures as Markdown tables to FILE", AT(markdown)},
    {0, "top", OPTION_NUMBER, "N", "20", "print this many call sites, 0 for all", AT(top)},
    {0},
};

struct diff_result {
    char **names;
    struct sites_diff_side totals[2];
    struct sites_diff sites;
    struct gate *gates;
    size_t n_gates, n_failed;
};

static const char *number_text(uint64_t v, bool is_bytes)
{
    return is_bytes ? human_size(v) : human_number(v);
}

static const char *value_text(uint64_t v, enum gate_metric metric)
{
    return number_text(v, gate_metrics[metric].is_bytes);
}

// Returns a difference, such as "+1.2 MiB", "-3" or "+0 B".
static const char *by_text(uint64_t a, uint64_t b, bool is_bytes)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, "%s%s", b < a ? "-" : "+",
             number_text(a < b ? b - a : a - b, is_bytes));
    return text;
}

static void print_change(int width, uint64_t a, uint64_t b, bool is_bytes)
{
    enum cli_color color = a == b ? CLI_PLAIN : a < b ? CLI_WORSE : CLI_BETTER;
    printf("%s%*s%s", color ? cli_color(color) : "", width, by_text(a, b, is_bytes),
           color ? cli_color(CLI_PLAIN) : "");
}

static void print_site(const struct sites_diff_row *r)
{
    enum { NAME_BYTES = 100 };
    const struct sites_diff_side *a = &r->sides[0], *b = &r->sides[1];
    int line = b->found ? b->line : a->line;
    char name[SHORTEN_BYTES];
    print_change(13, a->peak_bytes, b->peak_bytes, true);
    print_change(13, a->end_bytes, b->end_bytes, true);
    print_change(12, a->bytes, b->bytes, true);
    print_change(14, a->calls, b->calls, false);
    printf("  %s", shorten_name(r->function, NAME_BYTES, name));
    if (line)
        printf(" (%s:%d)", r->file, line);
    else if (*r->file && r->named)
        printf(" (%s)", r->file);
    puts(!a->found ? ", only in b" : !b->found ? ", only in a" : "");
}

void command_print_sites(const struct sites_diff *d, uint64_t top)
{
    uint64_t changed = 0;
    // Without stacks, a table of call sites would repeat the totals.
    if (d->n == 1 && strcmp(d->rows[0].function, "(unknown)") == 0)
        return;
    for (size_t i = 0; i < d->n; i++) {
        if (!sites_diff_changed(&d->rows[i]))
            continue;
        if (!changed++)
            cli_table_head("\n%13s%13s%12s%14s  %s", "live at peak", "live at end", "allocated",
                           "allocations", "call site (b - a)");
        if (!top || changed <= top)
            print_site(&d->rows[i]);
    }
    if (top && changed > top)
        printf("... %llu more call sites changed\n", (unsigned long long)(changed - top));
}

// Returns a change, such as "+1.2 KiB, +5.0 %".
static const char *change_text(uint64_t a, uint64_t b, enum gate_metric metric)
{
    const char *by = by_text(a, b, gate_metrics[metric].is_bytes);
    char *text = human_buffer();
    if (!a)
        return by;
    snprintf(text, HUMAN_BYTES, "%s, %+.2f %%", by, 100 * ((double)b - (double)a) / (double)a);
    return text;
}

static void print_text(const struct diff_result *r, uint64_t top)
{
    printf("a: %s\nb: %s\n", cli_text(r->names[0]), cli_text(r->names[1]));
    cli_table_head("\n%-16s %16s %16s  %s", "", "a", "b", "change");
    for (unsigned i = 0; i < GATE_METRIC_COUNT; i++) {
        uint64_t x = gate_value(&r->totals[0], i), y = gate_value(&r->totals[1], i);
        printf("%-16s %16s %16s  %s\n", gate_metrics[i].label, value_text(x, i), value_text(y, i),
               change_text(x, y, i));
    }
    command_print_sites(&r->sites, top);
    for (size_t i = 0; i < r->n_gates; i++) {
        const struct gate *g = &r->gates[i];
        printf("%s%s%s%s  %s: %s, then %s (%s)\n", i ? "" : "\n",
               cli_color(g->failed ? CLI_WORSE : CLI_BETTER), g->failed ? "FAILED" : "ok    ",
               cli_color(CLI_PLAIN), cli_text(g->text), value_text(g->a, g->metric),
               value_text(g->b, g->metric), change_text(g->a, g->b, g->metric));
    }
}

static void print_json(const struct diff_result *r)
{
    struct json j = {.to = stdout};
    json_begin_document(&j);
    json_put_string(&j, "a", r->names[0]);
    json_put_string(&j, "b", r->names[1]);
    json_put_array(&j, "totals");
    for (unsigned i = 0; i < GATE_METRIC_COUNT; i++) {
        json_begin_object(&j);
        json_put_string(&j, "metric", gate_metrics[i].name);
        json_put_u64(&j, "a", gate_value(&r->totals[0], i));
        json_put_u64(&j, "b", gate_value(&r->totals[1], i));
        json_end_object(&j);
    }
    json_end_array(&j);
    json_put_array(&j, "limits");
    for (size_t i = 0; i < r->n_gates; i++) {
        json_begin_object(&j);
        json_put_string(&j, "limit", r->gates[i].text);
        json_put_string(&j, "metric", gate_metrics[r->gates[i].metric].name);
        json_put_u64(&j, "a", r->gates[i].a);
        json_put_u64(&j, "b", r->gates[i].b);
        json_put_bool(&j, "failed", r->gates[i].failed);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_put_bool(&j, "failed", r->n_failed > 0);
    sites_diff_json(&j, &r->sites);
    json_end_object(&j);
    puts("");
}

// Prints text. Replaces each character in `special` with its entry in `stands_for`. Replaces
// control characters, which XML does not allow, with spaces.
static void put_escaped(FILE *to, const char *text, const char *special,
                        const char *const stands_for[])
{
    for (; *text; text++) {
        const char *at = strchr(special, *text);
        if (at)
            fputs(stands_for[at - special], to);
        else
            putc((unsigned char)*text < ' ' ? ' ' : *text, to);
    }
}

static void put_xml(FILE *to, const char *text)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    put_escaped(to, text, "&<>\"", entities);
}

static void put_markdown(FILE *to, const char *text)
{
    static const char *const escaped[] = {"\\|", "\\`", "\\*", "\\_", "&lt;", "\\\\"};
    put_escaped(to, text, "|`*_<\\", escaped);
}

static void write_junit(FILE *to, const struct diff_result *r)
{
    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"heaptape diff\" tests=\"%zu\" failures=\"%zu\">\n",
            r->n_gates, r->n_failed);
    for (size_t i = 0; i < r->n_gates; i++) {
        const struct gate *g = &r->gates[i];
        fputs("  <testcase classname=\"heaptape\" name=\"", to);
        put_xml(to, g->text);
        fputs(g->failed ? "\">\n    <failure message=\"" : "\"/>\n", to);
        if (g->failed)
            fprintf(to, "%s, then %s (%s)\"/>\n  </testcase>\n", value_text(g->a, g->metric),
                    value_text(g->b, g->metric), change_text(g->a, g->b, g->metric));
    }
    fputs("</testsuite>\n", to);
}

static void write_markdown(FILE *to, const struct diff_result *r)
{
    if (r->n_gates)
        fputs("| limit | a | b | change | |\n|---|---|---|---|---|\n", to);
    for (size_t i = 0; i < r->n_gates; i++) {
        const struct gate *g = &r->gates[i];
        fputs("| ", to);
        put_markdown(to, g->text);
        fprintf(to, " | %s | %s | %s | %s |\n", value_text(g->a, g->metric),
                value_text(g->b, g->metric), change_text(g->a, g->b, g->metric),
                g->failed ? "**failed**" : "ok");
    }
    fputs("\n| | a | b | change |\n|---|---|---|---|\n", to);
    for (unsigned i = 0; i < GATE_METRIC_COUNT; i++) {
        uint64_t x = gate_value(&r->totals[0], i), y = gate_value(&r->totals[1], i);
        fprintf(to, "| %s | %s | %s | %s |\n", gate_metrics[i].label, value_text(x, i),
                value_text(y, i), change_text(x, y, i));
    }
}

static void write_file(const char *path, const char *mode,
                       void (*put)(FILE *to, const struct diff_result *r),
                       const struct diff_result *r)
{
    FILE *to = path ? fopen(path, mode) : NULL;
    if (!path)
        return;
    if (!to)
        die(EXIT_FAILED, "%s: %s", path, strerror(errno));
    put(to, r);
    bool bad = ferror(to);
    if (fclose(to) != 0 || bad)
        die(EXIT_FAILED, "%s: cannot write", path);
}

static void count_site(void *context, unsigned side, const struct stack *stack,
                       const struct sites_diff_side *totals)
{
    struct diff_result *r = context;
    for (size_t i = 0; i < r->n_gates; i++)
        gate_count(&r->gates[i], side, stack, totals);
}

static void check_gates(struct diff_result *r)
{
    for (size_t i = 0; i < r->n_gates; i++) {
        struct gate *g = &r->gates[i];
        for (unsigned side = 0; g->has_sites && side < 2; side++) {
            if (!r->totals[side].found)
                die(EXIT_FAILED,
                    "%s: --fail-on %s needs call sites (use 'heaptape record --stacks')",
                    r->names[side], g->text);
        }
        gate_check(g, r->totals);
        r->n_failed += g->failed;
    }
}

static void release_result(struct diff_result *r)
{
    for (size_t i = 0; i < r->n_gates; i++)
        gate_release(&r->gates[i]);
    free(r->gates);
    sites_diff_release(&r->sites);
}

static int run_diff(const void *fields, char **argv)
{
    const struct diff_options *o = fields;
    struct diff_result r = {.names = argv, .gates = calloc(o->fail_on.n + 1, sizeof *r.gates)};
    struct err e = {0};
    if (!r.gates)
        die(EXIT_FAILED, "out of memory");
    for (; r.n_gates < o->fail_on.n; r.n_gates++) {
        if (gate_parse(&r.gates[r.n_gates], o->fail_on.items[r.n_gates], &e) < 0) {
            release_result(&r);
            return usage_error(&cmd_diff, "%s", e.text);
        }
    }
    r.sites.context = &r;
    if (r.n_gates)
        r.sites.count = count_site;
    die_on_error(sites_diff_files(&r.sites, r.totals, argv, watch_begin("diff"), &e), EXIT_FAILED,
                 &e);
    check_gates(&r);
    if (o->json)
        print_json(&r);
    else
        print_text(&r, o->top);
    write_file(o->junit, "w", write_junit, &r);
    write_file(o->markdown, "a", write_markdown, &r);
    release_result(&r);
    return r.n_failed ? EXIT_FAILED : EXIT_DONE;
}

static const struct command_word words[] = {
    {"peak_live>+5%", "bytes live at the peak, 5 % above A"},
    {"end_live>64MiB", "bytes live at the end"},
    {"bytes>+1MiB", "allocated bytes, 1 MiB above A"},
    {"calls>+2%", "allocations and reallocs"},
    {"site:parse.*:bytes>0", "allocated bytes of functions that match a regular expression"},
    {0},
};

const struct command cmd_diff = {
    .name = "diff",
    .operands = "A B",
    .summary = "Compare the heap usage of two recordings and fail if it grew",
    .words_title = "Limits",
    .words = words,
    .examples =
        {
            {"Print the differences", "heaptape diff before.ht after.ht"},
            {"Fail if a change allocates 2 % more often, or keeps 5 % more at its peak",
             "heaptape diff before.ht after.ht --fail-on 'calls>+2%' \\\n"
             "    --fail-on 'peak_live>+5%'"},
            {"Limit one parser and write the result for a CI service",
             "heaptape diff before.ht after.ht --junit memory.xml \\\n"
             "    --fail-on 'site:parse.*:bytes>+1MiB'"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct diff_options),
    .min_operands = 2,
    .max_operands = 2,
    .run = run_diff,
};
