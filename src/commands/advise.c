#include "experiments/advise/advise.h"
#include "base/clock.h"
#include "commands/replay_options.h"
#include "convert/open.h"
#include "replay/fidelity.h"
#include "report/text/watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct advise_options {
    const char *allocator;
    uint64_t budget_ns;
    enum advise_figure rank;
    double speed;
    uint64_t idle_ns, timeout_ns;
    bool real, json;
};

#define AT(member) offsetof(struct advise_options, member)

static const struct option options[] = {
    {'a', "allocator", OPTION_STRING, "ALLOCATOR", NULL,
     "compare with this allocator: a name or path, then tunables [the recorded one, or glibc]",
     AT(allocator)},
    {'b', "budget", OPTION_SECONDS, "SECONDS", "60", "limit the run time to about SECONDS",
     AT(budget_ns), .min = 1, .max = REPLAY_MAX_TIMEOUT_NS},
    {0, "rank", OPTION_CHOICE, "cpu|peak|mean|end|idle", "mean",
     "sort the list by CPU time, peak RSS, mean RSS, RSS at the end, or RSS after --idle",
     AT(rank)},
    {0, "speed", OPTION_PARSED, "max|recorded|xN", "max",
     "replay at full speed, at the recorded pace, or N times as fast as recorded", AT(speed),
     .parse = replay_parse_speed},
    {0, "idle", OPTION_SECONDS, "SECONDS", NULL,
     "measure memory again SECONDS after everything was freed", AT(idle_ns),
     .max = REPLAY_MAX_IDLE_NS},
    {0, "timeout", OPTION_SECONDS, "SECONDS", "60",
     "stop a replay when no thread has made progress for SECONDS; 0: never", AT(timeout_ns),
     .max = REPLAY_MAX_TIMEOUT_NS},
    {0, "real", OPTION_FLAG, NULL, NULL,
     "also run PROGRAM, or the recorded command line, with the best settings", AT(real)},
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", AT(json)},
    {0},
};

// Returns the name of the recorded allocator if it is in the table and installed, else "glibc".
static const char *recorded_name(const struct replay_session *s)
{
    for (const struct allocator_info *i = allocator_infos; s->recorded_allocator && i->name; i++) {
        char *library;
        bool is_it =
            allocator_find(i, &library) == 0 && library && fidelity_is_recorded(s, library);
        free(library);
        if (is_it)
            return i->name;
    }
    const char *file = s->recorded_allocator ? strrchr(s->recorded_allocator, '/') : NULL;
    if (file && strncmp(file, "/libc", 5) != 0)
        note("%s: the recorded allocator %s is not installed here: comparing with glibc (use -a "
             "for another one)",
             s->workload, s->recorded_allocator);
    return "glibc";
}

static int read_workload(struct advise *a, struct replay_settings *how,
                         const struct advise_options *o, const char *path, struct err *e)
{
    const struct convert_open_options with = {.twice = true, .watch = watch_conversion()};
    struct workload_file w = {.in.fd = -1};
    struct workload_summary summary;
    int rc = convert_open(&w, path, &with, e);
    if (rc == 0 && workload_read_summary(w.reader, &summary, NULL) == 0)
        how->trim_every = a->trim_interval = advise_trim_interval(summary.events);
    replay_session_init(a->session, how);
    if (rc == 0)
        rc = replay_session_read(a->session, path, &w, e);
    if (rc == 0)
        rc = replay_session_add(a->session, o->allocator ? o->allocator : recorded_name(a->session),
                                e);
    if (rc == 0)
        replay_note_unread(&a->session->results[0].allocator, NULL);
    workload_file_close(&w);
    return rc;
}

static int run_program(struct advise *a, char *const given[], struct err *e)
{
    char **program = replay_choose_program(a->session, given);
    int rc = advise_run_program(a, program, e);
    free(program);
    return rc;
}

static void print_advice(const struct advise *a, const struct advise_options *o)
{
    struct json j = {.to = stdout};
    if (o->json)
        advise_json(&j, a, o->rank);
    else
        advise_print(a, o->rank);
}

static int run_advise(const void *fields, char **argv)
{
    const struct advise_options *o = fields;
    uint64_t start_ns = clock_monotonic_ns();
    char player[PATH_MAX], null_library[PATH_MAX];
    struct replay_settings how = {
        .player = player,
        .null_library = null_library,
        .runs = 1,
        .touch = RESULTS_TOUCH_PAGE,
        .speed = o->speed,
        .idle_ns = o->idle_ns,
        .timeout_ns = o->timeout_ns,
        .quiet = cli_common.quiet,
    };
    struct replay_session session;
    struct advise a = {.session = &session, .budget_ns = o->budget_ns};
    struct err e = {0};
    if (argv[1] && !o->real)
        return usage_error(&cmd_advise, "unexpected operand '%s'; PROGRAM requires --real",
                           argv[1]);
    if (o->rank == ADVISE_IDLE && !o->idle_ns)
        return usage_error(&cmd_advise, "--rank idle requires --idle SECONDS");
    replay_prepare(player, null_library);
    int rc = read_workload(&a, &how, o, argv[0], &e) ?: advise_run(&a, start_ns, &e);
    if (rc == 0 && o->real)
        rc = run_program(&a, argv + 1, &e);
    if (rc == 0)
        print_advice(&a, o);
    advise_release(&a);
    replay_session_release(&session);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : strerror(-rc));
    return EXIT_DONE;
}

const struct command cmd_advise = {
    .name = "advise",
    .operands = "WORKLOAD|TRACE|- [-- PROGRAM [ARG...]]",
    .summary = "Find the best allocator and settings by replaying a workload",
    .examples =
        {
            {"Find better settings in a minute", "heaptape advise program.ht"},
            {"Find settings for a service that keeps memory, in two minutes",
             "heaptape advise --budget 120 --rank end service.htw"},
            {"Also measure the program itself with the best settings",
             "heaptape advise --real program.htw -- ./program input"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct advise_options),
    .min_operands = 1,
    .max_operands = UINT_MAX,
    .run = run_advise,
};
