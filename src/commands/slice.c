#include "workload/slice.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/span.h"
#include "commands/parts.h"
#include "convert/open.h"
#include "report/text/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct slice_cli_options {
    const char *output, *from, *to, *threads;
    uint64_t level;
    bool force, rebase;
};

#define AT(member) offsetof(struct slice_cli_options, member)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", "-", "write the part to FILE or to standard output",
     AT(output)},
    OPTION_FORCE(struct slice_cli_options),
    {0, "from", OPTION_STRING, "POINT", NULL, "begin at POINT (default: the start of the workload)",
     AT(from)},
    {0, "to", OPTION_STRING, "POINT", NULL, "end before POINT (default: the end of the workload)",
     AT(to)},
    {'t', "threads", OPTION_STRING, "LIST", NULL,
     "keep only these threads: numbers and ranges, for example 0,3-5", AT(threads)},
    {0, "rebase", OPTION_FLAG, NULL, NULL,
     "shift timestamps so that the part begins at the start time of the workload", AT(rebase)},
    OPTION_LEVEL(struct slice_cli_options),
    {0},
};

enum { MAX_RANGES = 1024 };

struct threads {
    struct slice_range ranges[MAX_RANGES];
    size_t n;
};

// Parses a list such as "0,3-5". Returns false if the text is not a list.
static bool parse_threads(struct threads *t, const char *text)
{
    while (t->n < MAX_RANGES) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-') {
            if (end[1] < '0' || end[1] > '9')
                return false;
            last = strtoul(end + 1, &end, 10);
        }
        if (last < first || last >= UINT32_MAX)
            return false;
        t->ranges[t->n++] = (struct slice_range){(uint32_t)first, (uint32_t)last};
        if (!*end)
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

int command_parse_point(const char *text, struct slice_point *p)
{
    *p = (struct slice_point){SLICE_AT_EDGE, 0, NULL};
    if (!text)
        return 0;
    if (strncmp(text, "mark:", 5) == 0) {
        *p = (struct slice_point){SLICE_AT_MARK, 0, text + 5};
        return 0;
    }
    p->at = SLICE_AT_EVENT;
    if (options_parse_number(text, &p->number) == 0)
        return 0;
    p->at = SLICE_AT_TIME;
    return span_parse(text, &p->number) < 0 ? -EINVAL : 0;
}

int command_parse_part(const struct command *c, const char *from, const char *to,
                       struct slice_point *first, struct slice_point *last)
{
    bool bad_from = command_parse_point(from, first) < 0;
    if (bad_from || command_parse_point(to, last) < 0)
        return usage_error(c,
                           "--%s: '%s' is not an event number, a time such as 1.5s, or mark:TEXT",
                           bad_from ? "from" : "to", bad_from ? from : to);
    if (first->at == last->at && first->number > last->number)
        return usage_error(c, "--from: '%s' is after --to: '%s'", from, to);
    return 0;
}

static int write_slice(const char *path, const struct slice_cli_options *o,
                       struct slice_file_options *how, struct err *e)
{
    struct workload_file in;
    struct output out = {.fd = -1};
    struct slice_counts c;
    struct progress progress;
    int rc =
        convert_open(&in, path, &(struct convert_open_options){.watch = watch_conversion()}, e);
    if (rc == 0)
        rc = output_open(&out, o->output, OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0), e);
    if (rc == 0) {
        progress_init(&progress, "slice", "B", in.in.size_bytes, cli_common.quiet);
        how->progress = &progress;
        rc = slice_file(&in, &out, how, &c, e);
        rc = output_finish(&out, rc, e);
    }
    if (rc == 0)
        note("%s: %s, %s, %s freed outside the part", out.name,
             human_items(c.events, "event", "events"),
             human_items(c.preexisting, "preexisting block", "preexisting blocks"),
             human_items(c.left, "block", "blocks"));
    workload_file_close(&in);
    return rc;
}

static int run_slice(const void *fields, char **argv)
{
    const struct slice_cli_options *o = fields;
    static struct threads threads;
    struct slice_file_options how = {.level = (int)o->level, .part.rebase = o->rebase};
    struct err e = {0};
    if (command_parse_part(&cmd_slice, o->from, o->to, &how.part.from, &how.part.to))
        return EXIT_USAGE;
    if (o->threads && !parse_threads(&threads, o->threads))
        return usage_error(&cmd_slice, "--threads: '%s' is not a list of threads such as 0,3-5",
                           o->threads);
    how.part.threads = o->threads ? threads.ranges : NULL;
    how.part.n_threads = threads.n;
    die_on_error(write_slice(argv[0], o, &how, &e), EXIT_FAILED, &e);
    return EXIT_DONE;
}

const struct command_word command_points[] = {
    {"1200", "an event by its number in the order of 'dump'"},
    {"1.5s, 20ms, 300us", "a time since the start of the program"},
    {"mark:warm", "the first mark with this text"},
    {0},
};

const struct command cmd_slice = {
    .name = "slice",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Extract part of a workload",
    .words_title = "Points",
    .words = command_points,
    .examples =
        {
            {"Extract a second and a half",
             "heaptape slice --from 1.5s --to 3s -o middle.htw redis.htw"},
            {"Replay from a mark of the program on",
             "heaptape slice --from mark:warm redis.htw | heaptape replay -a jemalloc -"},
            {"Extract four threads", "heaptape slice --threads 0,3-5 -o some.htw redis.htw"},
        },
    .options = options,
    .options_bytes = sizeof(struct slice_cli_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_slice,
};
