#include "commands/replay_options.h"
#include "commands/replay_print.h"
#include "commands/watch.h"
#include "report/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct command cmd_compare;

static const struct option options[] = {
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "compare this allocator: a name or a path, then tunables after commas; ratios are to the first one",
     offsetof(struct replay_options, allocators)},
    {0, "sweep", OPTION_LIST, "VARIABLE=VALUE,VALUE...", NULL,
     "repeat each allocator with each value of a tunable; several --sweep give all combinations",
     offsetof(struct replay_options, sweeps)},
    {'o', "output", OPTION_STRING, "FILE", NULL,
     "write an HTML report to FILE, with the use of the heap by the workload", offsetof(struct replay_options, page)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists", offsetof(struct replay_options, force)},
    REPLAY_OPTIONS,
    {0},
};

static void print_ratio(struct json *j, const char *key, const struct measure_ratio *r)
{
    char interval_key[64];
    snprintf(interval_key, sizeof interval_key, "%s_ci95", key);
    json_put_double(j, key, r->ratio);
    json_key(j, interval_key);
    json_begin_array(j);
    json_double(j, r->low);
    json_double(j, r->high);
    json_end_array(j);
}

static void print_ratios(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    for (size_t i = 0; i < FIGURES; i++) {
        struct measure_ratio r;
        if (!figure_infos[i].ratio)
            continue;
        r = session_ratio(s, f, i);
        print_ratio(j, figure_infos[i].ratio, &r);
    }
}

static void print_object(struct json *j, const struct replay_session *s)
{
    json_begin_object(j);
    json_put_u64(j, "schema_version", 2);
    json_put_string(j, "workload", s->workload);
    replay_print_machine(j, &s->machine);
    json_key(j, "allocators");
    json_begin_array(j);
    for (size_t i = 0; i < s->n_figures; i++) {
        json_begin_object(j);
        replay_print_members(j, s, &s->figures[i]);
        print_ratios(j, s, &s->figures[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void print_results(const struct replay_session *s, bool json)
{
    struct json j = {.to = stdout};
    if (json)
        print_object(&j, s);
    else {
        replay_print_workload(s);
        replay_print_table(s);
    }
}

static int add_results(struct document *d, const struct replay_session *s, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    struct json j = {.to = to};
    if (to)
        print_object(&j, s);
    int rc = to && fclose(to) == 0 ? document_add(d, s->workload, 0, text, n, e)
                                   : err_set(e, -ENOMEM, "%s: out of memory", s->workload);
    free(text);
    return rc;
}

// Standard input cannot be read again: the report then has the results alone.
static void write_page(const struct replay_session *s, const struct replay_options *o)
{
    struct document d = {.mode = "report", .watch = watch_begin("report")};
    struct err e = {0};
    int rc = 0;
    if (strcmp(s->workload, "-") != 0)
        rc = document_add_file(&d, s->workload, 0, &e);
    if (rc == 0)
        rc = add_results(&d, s, &e);
    if (rc == 0)
        rc = page_save(&d, o->page, o->force, &e);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : "out of memory");
    document_release(&d);
}

static void print(const struct replay_session *s, const struct replay_options *o)
{
    print_results(s, o->json);
    fflush(stdout);
    if (o->page)
        write_page(s, o);
}

static int run(const void *fields, int argc, char **argv)
{
    const struct replay_options *o = fields;
    (void)argc;
    if (o->allocators.n < 2 && !o->sweeps.n)
        return usage_error(&cmd_compare, "give at least two allocators with -a, or a tunable with --sweep");
    // Found out before the work, not after.
    if (o->page && !o->force && page_exists(o->page))
        die(EXIT_FAILED, "%s: exists; use -f to replace it", o->page);
    return replay_run_all(&cmd_compare, o, argv[0], print);
}

const struct command cmd_compare = {
    .name = "compare",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Replay a workload on several allocators and compare them",
    .description = "Replays the workload on each allocator in turn and repeats that --runs times, so that disturbances "
                   "of the machine affect all allocators alike. Times and memory are medians. Each ratio to the first "
                   "allocator has a 95 % bootstrap interval; if the interval contains 1, the table shows \"no "
                   "difference\".\n\n"
                   "With --sweep, one allocator is enough [glibc], and ratios are to its first value: "
                   "--sweep MALLOC_ARENA_MAX=1,2,4.\n\n"
                   "If the input is a trace, its process with the most events is converted first.",
    .options = options,
    .options_bytes = sizeof(struct replay_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
