#include "experiments/reduce/reduce.h"
#include "base/clock.h"
#include "cli/command.h"
#include "commands/replay_options.h"
#include "convert/open.h"
#include "report/text/watch.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct reduce_options {
    const char *output, *command, *allocator;
    struct option_list keep;
    uint64_t budget_ns, runs, jobs, floor_bytes, timeout_ns;
    bool force;
};

#define AT(member) offsetof(struct reduce_options, member)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", "-",
     "write the reduced workload to FILE or to standard output", AT(output)},
    OPTION_FORCE(struct reduce_options),
    {'k', "keep", OPTION_LIST, "CONDITION", NULL, "require that replays still show this", AT(keep)},
    {0, "keep-cmd", OPTION_STRING, "COMMAND", NULL,
     "require that this shell command exits with 0; %f is the path of the workload", AT(command)},
    {'a', "allocator", OPTION_STRING, "ALLOCATOR", NULL,
     "use this allocator for conditions that name no allocator [the allocator in LD_PRELOAD, or "
     "glibc]",
     AT(allocator)},
    {'b', "budget", OPTION_SECONDS, "SECONDS", "600",
     "stop after SECONDS with the smallest workload found so far", AT(budget_ns), .min = 1,
     .max = REPLAY_MAX_TIMEOUT_NS},
    {'r', "runs", OPTION_NUMBER, "N", NULL,
     "require the problem in N of N replays of a candidate [3, or 6 for times]", AT(runs), .min = 1,
     .max = 100},
    {'j', "jobs", OPTION_NUMBER, "N", NULL,
     "test N candidates at the same time [the number of CPUs, or 1 for times]", AT(jobs), .min = 1,
     .max = CANDIDATES_MAX},
    {0, "floor", OPTION_SIZE, "SIZE", "1M", "set the minimum dividend of a quotient of bytes",
     AT(floor_bytes)},
    {0, "timeout", OPTION_SECONDS, "SECONDS", "60",
     "stop a replay without progress, or COMMAND, after SECONDS; 0: never", AT(timeout_ns),
     .max = REPLAY_MAX_TIMEOUT_NS},
    {0},
};

static volatile sig_atomic_t interrupted;

static void stop_reducing(int number)
{
    (void)number;
    interrupted = 1;
}

static unsigned count_cpus(void)
{
    cpu_set_t cpus;
    int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return n < 1 ? 1 : n > CANDIDATES_MAX ? CANDIDATES_MAX : (unsigned)n;
}

static void report_reduced(const struct reduce *r, const char *name)
{
    const struct reduce_blocks *b = &r->blocks, *from = &r->input;
    note("%s: %s of %s (%.2g %%), %s, %s; %s%s", name, human_number(b->events),
         human_items(from->events, "event", "events"),
         100.0 * (double)b->events / (double)(from->events ? from->events : 1),
         human_items(b->ops - b->events, "preexisting block", "preexisting blocks"),
         human_items(b->threads, "thread", "threads"),
         human_items(r->judged, "candidate", "candidates"),
         r->stopped ? "; stopped before the smallest was found" : "");
    if (r->is_confirmed && r->is_shown)
        note("%s: the problem occurs in %d of %d replays", name, REDUCE_CONFIRMATIONS,
             REDUCE_CONFIRMATIONS);
}

static int search_and_write(struct reduce *r, const struct workload_file *w,
                            const struct reduce_options *o, struct err *e)
{
    struct output out;
    int rc = output_open(&out, o->output, OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0), e);
    if (rc < 0)
        return rc;
    rc = reduce_begin(r, w, e) ?: reduce_search(r, e) ?: reduce_write(r, &out, e);
    rc = output_finish(&out, rc, e);
    if (rc == 0)
        report_reduced(r, out.name);
    return rc;
}

static int reduce_file(const char *path, const struct reduce_options *o, struct judge *j,
                       struct err *e)
{
    struct workload_file w;
    struct reduce r;
    bool times = false;
    for (size_t i = 0; i < j->n_conditions; i++)
        times |= (j->conditions[i].needs & (CONDITION_NEEDS_TIME | CONDITION_NEEDS_LATENCY)) != 0;
    const struct reduce_settings how = {
        .runs = o->runs ? (unsigned)o->runs
                : times ? 6
                        : 3,
        .jobs = o->jobs ? (unsigned)o->jobs
                : times ? 1
                        : count_cpus(),
        .floor_bytes = o->floor_bytes,
        .end_ns = o->budget_ns ? clock_monotonic_ns() + o->budget_ns : 0,
        .quiet = cli_common.quiet,
        .interrupted = &interrupted,
    };
    reduce_init(&r, &how, j);
    int rc =
        convert_open(&w, path,
                     &(struct convert_open_options){.twice = true, .watch = watch_conversion()}, e)
            ?: search_and_write(&r, &w, o, e);
    reduce_release(&r);
    workload_file_close(&w);
    return rc;
}

static int parse_conditions(struct judge *j, const struct reduce_options *o)
{
    const char *allocator = o->allocator ? o->allocator : allocator_preloaded() ?: "glibc";
    for (size_t i = 0; i < o->keep.n; i++) {
        struct err e = {0};
        int rc = condition_parse(&j->conditions[i], o->keep.items[i], allocator, &e);
        if (rc == -EINVAL)
            return usage_error(&cmd_reduce, "%s", e.text);
        die_on_error(rc, EXIT_FAILED, &e);
        j->n_conditions++;
    }
    return EXIT_DONE;
}

static int run_reduce(const void *fields, char **argv)
{
    const struct reduce_options *o = fields;
    char player[PATH_MAX], null_library[PATH_MAX];
    static struct judge j;
    struct err e = {0};
    if (!o->keep.n && !o->command)
        return usage_error(&cmd_reduce, "--keep CONDITION or --keep-cmd COMMAND is required");
    if (o->command && !o->command[strspn(o->command, " \t\n")])
        return usage_error(&cmd_reduce, "--keep-cmd: the command is empty");
    if (o->keep.n > CONDITION_MAX)
        return usage_error(&cmd_reduce, "--keep can be given at most %d times", CONDITION_MAX);
    int code = parse_conditions(&j, o);
    if (code != EXIT_DONE)
        return code;
    replay_prepare(player, null_library);
    j.player = player;
    j.null_library = null_library;
    j.command = o->command;
    j.timeout_ns = o->timeout_ns;
    signal(SIGINT, stop_reducing);
    signal(SIGTERM, stop_reducing);
    int rc = reduce_file(argv[0], o, &j, &e);
    for (size_t i = 0; i < j.n_conditions; i++)
        condition_release(&j.conditions[i]);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : strerror(-rc));
    return EXIT_DONE;
}

static const struct command_word words[] = {
    {"glibc: peak_rss/peak_live > 2", "figures of 'replay --json' and numbers"},
    {"malloc.p999 > 50us", "the time of a call: mean, p50, p99, p999 or max"},
    {"verify, crash, hang", "the replay fails in the same way as with the input"},
    {0},
};

const struct command cmd_reduce = {
    .name = "reduce",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Find a small workload that still shows a problem",
    .words_title = "Conditions",
    .words = words,
    .examples =
        {
            {"Find a small workload whose RSS on glibc is more than twice its live bytes",
             "heaptape reduce --keep 'glibc: peak_rss/peak_live > 2' \\\n"
             "    -o small.htw service.htw"},
            {"Find the calls that make an allocator violate the malloc contract",
             "heaptape reduce --keep './libnew.so: verify' -o small.htw service.htw"},
            {"Reduce by a script, for at most two minutes",
             "heaptape reduce --budget 120 --keep-cmd './is_slow %f' -o small.htw \\\n"
             "    service.htw"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct reduce_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_reduce,
};
