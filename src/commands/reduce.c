#include "reduce/reduce.h"
#include "base/clock.h"
#include "cli/command.h"
#include "commands/replay_options.h"
#include "convert/open.h"
#include "print/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

extern const struct command cmd_reduce;

struct reduce_options {
    const char *output, *command, *allocator;
    struct option_list keep;
    uint64_t budget_seconds, runs, jobs, floor_bytes, timeout_seconds;
    bool force;
};

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", "-", "write the reduced workload to FILE or to standard output",
     offsetof(struct reduce_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "overwrite FILE if it exists", offsetof(struct reduce_options, force)},
    {'k', "keep", OPTION_LIST, "CONDITION", NULL, "what replays must still show; several have to hold together",
     offsetof(struct reduce_options, keep)},
    {0, "keep-cmd", OPTION_STRING, "COMMAND", NULL,
     "keep what makes this shell command exit with 0; %f is the path of the workload",
     offsetof(struct reduce_options, command)},
    {'a', "allocator", OPTION_STRING, "ALLOCATOR", NULL,
     "the allocator of conditions that name none [the allocator in LD_PRELOAD, or glibc]",
     offsetof(struct reduce_options, allocator)},
    {'b', "budget", OPTION_NUMBER, "SECONDS", "600", "stop after SECONDS with the smallest workload found so far",
     offsetof(struct reduce_options, budget_seconds), .min = 1, .max = REPLAY_MAX_TIMEOUT_SECONDS},
    {'r', "runs", OPTION_NUMBER, "N", NULL, "a candidate must show it in N of N replays [3, or 6 for times]",
     offsetof(struct reduce_options, runs), .min = 1, .max = 100},
    {'j', "jobs", OPTION_NUMBER, "N", NULL, "judge N candidates at the same time [the number of CPUs, or 1 for times]",
     offsetof(struct reduce_options, jobs), .min = 1, .max = CANDIDATES_MAX},
    {0, "floor", OPTION_SIZE, "SIZE", "1M",
     "in comparisons with >, a quotient of bytes needs a dividend of SIZE, or of half of the input's if that is less",
     offsetof(struct reduce_options, floor_bytes)},
    {0, "timeout", OPTION_NUMBER, "SECONDS", "60",
     "stop a replay when no thread has made progress for SECONDS, and COMMAND after SECONDS; 0: never",
     offsetof(struct reduce_options, timeout_seconds), .max = REPLAY_MAX_TIMEOUT_SECONDS},
    {0},
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static unsigned needs_of(const struct judge *j)
{
    unsigned needs = 0;
    for (size_t i = 0; i < j->n_conditions; i++)
        needs |= j->conditions[i].needs;
    return needs;
}

static unsigned count_cpus(void)
{
    cpu_set_t cpus;
    int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return n < 1 ? 1 : n > CANDIDATES_MAX ? CANDIDATES_MAX : (unsigned)n;
}

static void report(const struct reduce *r, const char *name)
{
    const struct reduce_blocks *b = &r->blocks, *from = &r->input;
    note("%s: %" PRIu64 " of %" PRIu64 " events (%.2g %%), %" PRIu64 " preexisting blocks, %" PRIu64
         " threads; %" PRIu64 " candidates%s",
         name, b->events, from->events, 100.0 * (double)b->events / (double)(from->events ? from->events : 1),
         b->ops - b->events, b->threads, r->judged, r->stopped ? "; stopped before the smallest was found" : "");
    if (r->is_confirmed && r->is_shown)
        note("%s: shows it in %d of %d replays", name, REDUCE_CONFIRMATIONS, REDUCE_CONFIRMATIONS);
}

static int search_and_write(struct reduce *r, const struct workload_file *w, const struct reduce_options *o,
                            struct err *e)
{
    struct output out;
    int rc = output_open(&out, o->output, OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0), e);
    if (rc < 0)
        return rc;
    rc = reduce_begin(r, w, e);
    if (rc == 0)
        rc = reduce_search(r, e);
    if (rc == 0)
        rc = reduce_write(r, &out, e);
    int closed = output_close(&out, rc == 0, e);
    rc = rc < 0 ? rc : closed;
    if (rc == 0)
        report(r, out.name);
    return rc;
}

static int reduce(const char *path, const struct reduce_options *o, struct judge *j, struct err *e)
{
    struct workload_file w;
    struct reduce r;
    bool times = needs_of(j) & (CONDITION_NEEDS_TIME | CONDITION_NEEDS_LATENCY);
    const struct reduce_settings how = {
        .runs = o->runs ? (unsigned)o->runs
                : times ? 6
                        : 3,
        .jobs = o->jobs ? (unsigned)o->jobs
                : times ? 1
                        : count_cpus(),
        .floor_bytes = o->floor_bytes,
        .end_ns = o->budget_seconds ? clock_monotonic_ns() + o->budget_seconds * 1000000000u : 0,
        .quiet = cli_common.quiet,
        .interrupted = &interrupted,
    };
    reduce_init(&r, &how, j);
    int rc = convert_open(&w, path, &(struct convert_open_options){.twice = true, .watch = watch_conversion()}, e);
    if (rc == 0)
        rc = search_and_write(&r, &w, o, e);
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
        if (rc < 0)
            die(EXIT_FAILED, "%s", e.text);
        j->n_conditions++;
    }
    return EXIT_DONE;
}

static int run(const void *fields, int argc, char **argv)
{
    const struct reduce_options *o = fields;
    char player[PATH_MAX], null_library[PATH_MAX];
    static struct judge j;
    struct err e = {0};
    (void)argc;
    if (!o->keep.n && !o->command)
        return usage_error(&cmd_reduce, "--keep CONDITION or --keep-cmd COMMAND is needed");
    if (o->keep.n > CONDITION_MAX)
        return usage_error(&cmd_reduce, "--keep can be given %d times", CONDITION_MAX);
    int code = parse_conditions(&j, o);
    if (code != EXIT_DONE)
        return code;
    replay_prepare(player, null_library);
    j.player = player;
    j.null_library = null_library;
    j.command = o->command;
    j.timeout_ns = o->timeout_seconds * 1000000000u;
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    int rc = reduce(argv[0], o, &j, &e);
    for (size_t i = 0; i < j.n_conditions; i++)
        condition_release(&j.conditions[i]);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : strerror(-rc));
    return EXIT_DONE;
}

const struct command cmd_reduce = {
    .name = "reduce",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Find a small workload that still shows a problem",
    .description =
        "Leaves out as much of a workload as it can while replays still show what --keep or --keep-cmd describe, and writes the rest as a new workload. All calls of a block stay or go together, dependencies between threads stay valid. It cuts off spans of events at the end and blocks that are freed early, then every other block, the blocks of each thread, call site and size class, and then runs of blocks down to single ones. Candidates are judged at the same time, each by several replays, and the first replay that does not show it ends a candidate.\n\n"
        "A CONDITION is [ALLOCATOR: ]A > B (or >=, <, <=), where A and B are made of numbers (with B, KiB, MiB, GiB, ns, us, ms or s), of figures as `replay --json` names them, with or without _bytes and _ns, and of + - * / and parentheses: 'glibc: peak_rss/peak_live > 2'. The time of a call is KIND.QUANTILE, with mean, p50, p99, p999 or max: 'glibc: malloc.p999 > 50us'; a quantile needs the calls that it speaks of: p999 at least 1,000. Or it is [ALLOCATOR: ]verify, crash or hang: `replay --verify` finds a violation of the kind that it finds in the input; the allocator ends the replay by the signal of the input's; the replay makes no progress for --timeout.\n\n"
        "A condition that does not hold for the input is refused with what was measured. An allocator's fixed costs make any quotient of a few calls large: --floor keeps the part from becoming that small. Conditions on times are judged by 6 replays, which is a 97 % interval of their median, one candidate at a time. Since figures differ from run to run, a candidate must keep a margin between both sides, of 10 % for times and 1 % for memory, or half of the input's margin if that is less: the result then shows the condition again and again.\n\n"
        "In the end the result is replayed 10 times. If one of them does not show it, the search goes on from the last part of which all did, with more replays for each candidate. SIGINT, SIGTERM and --budget end the search: the smallest part so far is written, and the exit status is 0.",
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct reduce_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
