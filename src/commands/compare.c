#include "base/fio.h"
#include "commands/replay_options.h"
#include "replay/json.h"
#include "replay/real.h"
#include "report/page/page.h"
#include "report/text/replay.h"
#include "report/text/watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Maximum number of events for which placements are searched by default. The search takes 1 µs per
// block.
enum { PLACEMENT_EVENTS = 4000000 };

#define AT(member) offsetof(struct replay_options, member)

static const struct option options[] = {
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "compare this allocator: a name or a path, then tunables after commas; ratios are to the "
     "first one",
     AT(allocators)},
    {0, "sweep", OPTION_LIST, "VARIABLE=VALUE,VALUE...", NULL,
     "repeat each allocator with each value of a tunable; several --sweep give all combinations",
     AT(sweeps)},
    {'o', "output", OPTION_STRING, "FILE", NULL,
     "write an HTML report of the results and the workload's heap usage", AT(page)},
    OPTION_FORCE(struct replay_options),
    {0, "real", OPTION_FLAG, NULL, NULL,
     "also run PROGRAM, or the recorded command line, on each allocator", AT(real)},
    {0, "placement", OPTION_CHOICE, "auto|always|never", "auto",
     "search the best placement of the blocks; auto: if the workload has at most 4 million calls",
     AT(placement)},
    REPLAY_OPTIONS("5"),
    {0},
};

// Runs the program itself, if --real is given. After an error, only the replays have results.
static int run_real(struct replay_session *s, const struct replay_options *o, struct err *e)
{
    if (!o->real)
        return 0;
    struct replay_result **all = calloc(s->n_results, sizeof *all);
    for (size_t i = 0; all && i < s->n_results; i++)
        all[i] = &s->results[i];
    char **argv = replay_choose_program(s, o->program);
    fflush(stdout);
    int rc = all ? replay_real_run(all, s->n_results, s->settings.runs, argv, true, e)
                 : err_no_memory(e, NULL);
    replay_session_drop_failed(s);
    for (size_t i = 0; all && i < s->n_results; i++)
        all[i] = &s->results[i];
    if (rc == 0 && s->settings.latency) {
        char times[PATH_MAX];
        replay_find_own("libheaptape-times.so", times);
        rc = replay_real_time_calls(all, s->n_results, times, argv, e);
    }
    free(argv);
    free(all);
    for (size_t i = 0; rc < 0 && i < s->n_results; i++)
        s->results[i].n_real = 0;
    return rc;
}

static void print_results(const struct replay_session *s, bool json)
{
    struct json j = {.to = stdout};
    if (json)
        replay_json_compare(&j, s);
    else {
        replay_print_workload(s);
        replay_print_table(s);
        if (s->results[0].n_real)
            replay_print_real(s);
    }
}

static int add_results(struct document *d, const struct replay_session *s, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    struct json j = {.to = to};
    if (to)
        replay_json_compare(&j, s);
    int rc = to && fclose(to) == 0 ? document_add(d, s->workload, 0, text, n, e)
                                   : err_no_memory(e, s->workload);
    free(text);
    return rc;
}

// Writes the HTML report. If the workload comes from standard input, which cannot be read twice,
// the report contains only the results.
static void write_page(const struct replay_session *s, const struct replay_options *o)
{
    struct document d = {.mode = "report", .watch = watch_begin("report")};
    struct err e = {0};
    int rc = 0;
    if (strcmp(s->workload, "-") != 0)
        rc = document_add_file(&d, s->workload, 0, &e);
    rc = rc ?: add_results(&d, s, &e) ?: page_save(&d, o->page, o->force, &e);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : "out of memory");
    document_release(&d);
}

static void print_comparison(struct replay_session *s, const struct replay_options *o)
{
    struct err e = {0};
    int rc = run_real(s, o, &e);
    print_results(s, o->json);
    fflush(stdout);
    if (o->page)
        write_page(s, o);
    if (rc < 0)
        replay_print_failed(s);
    die_on_error(rc, EXIT_FAILED, &e);
}

static int run_compare(const void *fields, char **argv)
{
    struct replay_options with = *(const struct replay_options *)fields;
    const struct replay_options *o = &with;
    struct err e = {0};
    if (argv[1] && !o->real)
        return usage_error(&cmd_compare, "unexpected operand '%s'; PROGRAM requires --real",
                           argv[1]);
    static const uint64_t placement_events[] = {PLACEMENT_EVENTS, UINT64_MAX, 0};
    with.placement_events = placement_events[o->placement];
    with.program = argv + 1;
    with.add_recorded = true;
    with.keep_going = true;
    if (o->page && strcmp(o->page, "-") == 0)
        return usage_error(&cmd_compare,
                           "-o -: standard output already has the results; use the name of a file");
    if (o->allocators.n < 2 && !o->sweeps.n)
        return usage_error(&cmd_compare,
                           "at least two allocators (-a) or a tunable (--sweep) are required");
    // Check this before the replays, which take a long time.
    if (o->page)
        die_on_error(output_check_aside(o->page, o->force, NULL, &e), EXIT_FAILED, &e);
    return replay_options_run(&cmd_compare, o, argv[0], print_comparison);
}

const struct command cmd_compare = {
    .name = "compare",
    .operands = "WORKLOAD|TRACE|- [-- PROGRAM [ARG...]]",
    .summary = "Replay a workload on several allocators and compare them",
    .examples =
        {
            {"Compare three allocators and write a report",
             "heaptape compare -a glibc -a jemalloc -a mimalloc --runs 9 \\\n"
             "    -o program.html program.htw"},
            {"Compare three values of a setting",
             "heaptape compare --sweep MALLOC_ARENA_MAX=1,2,4 -a glibc program.htw"},
            {"Compare the predictions with the program itself",
             "heaptape compare --real -a glibc -a jemalloc program.htw -- ./program input"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct replay_options),
    .min_operands = 1,
    .max_operands = UINT_MAX,
    .run = run_compare,
};
