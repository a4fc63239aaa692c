#include "base/clock.h"
#include "commands/replay_options.h"
#include "formats/import_file.h"
#include "report/text/watch.h"

#include <stdio.h>

struct trace_run_options {
    struct option_list allocators;
    enum results_touch touch;
    uint64_t timeout_ns;
};

#define AT(member) offsetof(struct trace_run_options, member)

static const struct option options[] = {
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "replay on this allocator: a name or path, then tunables [the allocator in LD_PRELOAD, or "
     "glibc]",
     AT(allocators)},
    {0, "touch", OPTION_CHOICE, "page|none|all", "all",
     "write to each block: its first byte and each of its pages, nothing, or every byte as "
     "trace_run does",
     AT(touch)},
    {0, "timeout", OPTION_SECONDS, "SECONDS", "60",
     "stop when no thread has made progress for SECONDS; 0: never", AT(timeout_ns),
     .max = REPLAY_MAX_TIMEOUT_NS},
    {0},
};

// Returns a number with commas, like trace_run: 1,234,567.
static const char *format_commas(uint64_t v)
{
    return human_digits(v, ',');
}

// Number of calls in one of trace_run's four groups, and the cycles that the calls took.
struct sum {
    uint64_t calls;
    double cycles;
};

static struct sum sum_kinds(const struct replay_session *s, const uint8_t *kinds)
{
    struct sum sum = {0};
    double cycles_a_ns = (double)clock_hz(clock_best()) / 1e9;
    for (; *kinds; kinds++) {
        struct replay_call c = replay_run_call(&s->results[0].latency, &s->null.latency, *kinds);
        sum.calls += c.count;
        sum.cycles += c.mean_ns * (double)c.count * cycles_a_ns;
    }
    return sum;
}

// Prints a group. Prints a count of 0 as 1, like trace_run. Returns the sum of the cycles.
static double print_calls(const char *name, int width, struct sum sum)
{
    uint64_t n = sum.calls ? sum.calls : 1;
    printf("Avg %s time: %*s in %10s calls\n", name, width,
           format_commas((uint64_t)(sum.cycles / (double)n)), format_commas(n));
    return sum.cycles;
}

static void print_whole(const struct replay_session *s)
{
    const union figures *f = &s->results[0].figures;
    const struct plan_facts *facts = plan_facts(s->plan);
    uint64_t before = (uint64_t)f->baseline_rss_bytes >> 10;
    uint64_t after = (uint64_t)f->peak_rss_bytes >> 10;
    double hz = (double)clock_hz(clock_best());
    printf("%s cycles\n", format_commas((uint64_t)(f->wall_ns * hz / 1e9)));
    printf("%s usec wall time\n", format_commas((uint64_t)f->wall_ns / 1000));
    printf("%s usec across %llu thread%s\n", format_commas((uint64_t)f->user_ns / 1000),
           (unsigned long long)facts->threads, facts->threads == 1 ? "" : "s");
    printf("%s Kb Max RSS (%s -> %s)\n", format_commas(after > before ? after - before : 0),
           format_commas(before), format_commas(after));
    printf("%s Kb Max Ideal RSS\n\n", format_commas(facts->peak_live_bytes >> 10));
}

// Prints trace_run's summary with the same widths as trace_run.
static void print_summary(const struct replay_session *s)
{
    static const uint8_t mallocs[] = {HT_MALLOC,  HT_MEMALIGN,       HT_VALLOC,
                                      HT_PVALLOC, HT_POSIX_MEMALIGN, 0};
    printf("allocator %s (%s)\n", cli_text(s->results[0].allocator.name),
           cli_text(s->results[0].runs[0].library));
    printf("sizeof ticks_t is %zu\n", sizeof(uint64_t));
    print_whole(s);
    double cycles = print_calls("malloc", 6, sum_kinds(s, mallocs));
    cycles += print_calls("calloc", 6, sum_kinds(s, (const uint8_t[]){HT_CALLOC, 0}));
    cycles += print_calls("realloc", 5, sum_kinds(s, (const uint8_t[]){HT_REALLOC, 0}));
    cycles += print_calls("free", 8, sum_kinds(s, (const uint8_t[]){HT_FREE, 0}));
    printf("Total call time: %s cycles\n", format_commas((uint64_t)cycles));
}

// Converts the wl file to a workload in an unnamed file, which stays open in
// *out.
static int make_workload(const char *path, struct output *out, struct err *e)
{
    struct input in;
    struct workload_summary summary;
    const struct import_settings how = {.format = formats_find("wl"),
                                        .convert = {.level = 1, .watch = watch_notes()}};
    int rc = input_open(&in, path, e);
    if (rc < 0)
        return rc;
    rc = output_open_unnamed(out, e) ?: import_one(&in, out, &how, &summary, e);
    input_close(&in);
    return rc;
}

static int run_trace_run(const void *fields, char **argv)
{
    const struct trace_run_options *o = fields;
    struct output workload = {.fd = -1};
    struct replay_session session;
    struct err e = {0};
    char path[40];
    if (o->allocators.n > 1)
        return usage_error(&cmd_trace_run,
                           "only one allocator is allowed; use 'heaptape compare' for several");
    die_on_error(make_workload(argv[0], &workload, &e), EXIT_FAILED, &e);
    snprintf(path, sizeof path, "/proc/self/fd/%d", workload.fd);
    struct replay_settings how = {.runs = 1, .touch = o->touch, .latency = true};
    how.timeout_ns = o->timeout_ns;
    replay_workload(&session, &how, &o->allocators, &(struct option_list){0}, path);
    print_summary(&session);
    replay_session_release(&session);
    output_close(&workload, false, NULL);
    return EXIT_DONE;
}

const struct command cmd_trace_run = {
    .name = "trace_run",
    .operands = "FILE.wl|-",
    .summary = "Replay a glibc workload file and print the figures of trace_run",
    .examples =
        {
            {"Replay a workload on glibc's malloc and on jemalloc",
             "heaptape trace_run ls.wl\nheaptape trace_run -a jemalloc ls.wl"},
        },
    .options = options,
    .options_bytes = sizeof(struct trace_run_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_trace_run,
};
