#include "workload/slice.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/span.h"
#include "commands/watch.h"
#include "convert/open.h"
#include "workload/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct command cmd_slice;

struct slice_cli_options {
    const char *output, *from, *to, *threads;
    uint64_t level;
    bool force, rebase;
};

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", "-", "write the part to FILE or to standard output",
     offsetof(struct slice_cli_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "overwrite FILE if it exists", offsetof(struct slice_cli_options, force)},
    {0, "from", OPTION_STRING, "POINT", NULL, "begin at POINT (default: the start of the workload)",
     offsetof(struct slice_cli_options, from)},
    {0, "to", OPTION_STRING, "POINT", NULL, "end before POINT (default: the end of the workload)",
     offsetof(struct slice_cli_options, to)},
    {'t', "threads", OPTION_STRING, "LIST", NULL, "keep only these threads: numbers and ranges, for example 0,3-5",
     offsetof(struct slice_cli_options, threads)},
    {0, "rebase", OPTION_FLAG, NULL, NULL, "shift timestamps so that the part begins at the start time of the workload",
     offsetof(struct slice_cli_options, rebase)},
    {'l', "level", OPTION_NUMBER, "N", "3", "zstd compression level", offsetof(struct slice_cli_options, level),
     .min = 1, .max = 19},
    {0},
};

enum { MAX_RANGES = 1024 };

struct slicing {
    const struct slice_cli_options *options;
    struct slice_range ranges[MAX_RANGES];
    size_t n_ranges;
    struct workload_file in;
    struct output out;
    struct workload_output to;
    struct workload_summary source; // of the whole workload
    struct slice_options how;
    struct slice *slice;
    struct progress progress;
    struct err *e;
};

// "0,3-5". False when it is no such list.
static bool parse_threads(struct slicing *j, const char *text)
{
    while (j->n_ranges < MAX_RANGES) {
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
        j->ranges[j->n_ranges++] = (struct slice_range){(uint32_t)first, (uint32_t)last};
        if (!*end)
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

// "1200" (an event), "1.5s" (a time, whose stamp needs the header), "mark:TEXT". 0 or -EINVAL.
static int parse_point(const char *text, struct slice_point *p)
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
    p->at = SLICE_AT_STAMP;
    return span_parse(text, &p->number) < 0 ? -EINVAL : 0;
}

// Times count from the program's start, as `dump` shows them.
static int resolve_point(struct slice_point *p, const struct workload_header *h, const char *name, struct err *e)
{
    if (p->at != SLICE_AT_STAMP)
        return 0;
    if (!h->has_stamps)
        return err_set(e, -EINVAL, "%s: the workload has no timestamps and cannot be sliced by time", name);
    unsigned __int128 ticks = (unsigned __int128)p->number * h->clock_hz / 1000000000u >> h->stamp_shift;
    p->number = ticks > UINT64_MAX - h->start_stamp ? UINT64_MAX : h->start_stamp + (uint64_t)ticks;
    return 0;
}

static int put_op(void *context, uint32_t thread, const struct workload_op *op)
{
    struct slicing *j = context;
    return workload_output_op(&j->to, thread, op, j->e);
}

static int bad_op(struct slicing *j, const struct workload_op *op, uint64_t number, int rc)
{
    if (rc == -EBADMSG)
        return err_set(j->e, rc, "%s: op %llu violates the rules of the workload format for slot %u", j->in.in.name,
                       (unsigned long long)number, op->slot);
    return rc == -ENOMEM ? err_set(j->e, rc, "%s: out of memory", j->in.in.name) : rc;
}

// Reads until the part is over. A pipe is read to its end, where the summary stands.
static int read_ops(struct slicing *j)
{
    bool seekable = j->in.in.size_bytes, over = false;
    const struct workload_op *op;
    uint32_t thread;
    int rc = 0;
    for (uint64_t number = 0; (rc = workload_next_op(j->in.reader, &thread, &op, j->e)) > 0; number++) {
        if (number % 65536 == 0)
            progress_update(&j->progress, j->in.in.offset);
        if (over)
            continue;
        rc = slice_op(j->slice, thread, op);
        if (rc < 0)
            return bad_op(j, op, number, rc);
        over = rc > 0;
        if (over && seekable)
            break;
    }
    return rc < 0 ? rc : 0;
}

static int put_samples(struct slicing *j, const struct slice_counts *c)
{
    const struct workload_sample *s;
    size_t n = 0;
    int rc = 0;
    if (j->in.in.size_bytes)
        rc = workload_read_samples(j->in.reader, &s, &n, j->e);
    else
        s = workload_reader_samples(j->in.reader, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (s[i].stamp < c->first_stamp || s[i].stamp > c->last_stamp)
            continue;
        struct workload_sample one = s[i];
        one.stamp += j->how.rebase ? j->how.rebase_to - c->first_stamp : 0;
        rc = workload_write_samples(j->to.writer, &one, 1, j->e);
    }
    return rc;
}

static int end(struct slicing *j, const struct workload_summary *s)
{
    struct workload_sites read = {0};
    int rc = j->in.in.size_bytes ? workload_read_sites(j->in.reader, &read, j->e) : 0;
    workload_write_sites(j->to.writer, j->in.in.size_bytes ? &read : workload_reader_sites(j->in.reader));
    if (rc == 0)
        rc = workload_write_end(j->to.writer, s, j->e);
    workload_sites_release(&read);
    return rc;
}

static int finish(struct slicing *j)
{
    int rc = slice_finish(j->slice);
    struct slice_counts c = slice_counts(j->slice);
    if (rc == 0 && c.events == 0)
        return err_set(j->e, -ENODATA, "%s: the part contains no events", j->in.in.name);
    if (rc == 0)
        rc = put_samples(j, &c);
    if (rc < 0)
        return rc;
    if (workload_reader_summary(j->in.reader))
        j->source = *workload_reader_summary(j->in.reader);
    struct workload_summary s = workload_output_summary(&j->to);
    // Where in the source they happened is not recorded: so they are upper bounds here.
    s.order_repaired = j->source.order_repaired;
    s.order_ambiguous = j->source.order_ambiguous;
    s.lost_records = j->source.lost_records;
    s.dependencies_needed = c.dependencies_needed;
    rc = end(j, &s);
    if (rc == 0)
        note("%s: %llu events, %llu preexisting blocks, %llu blocks freed outside the part", j->out.name,
             (unsigned long long)c.events, (unsigned long long)c.preexisting, (unsigned long long)c.left);
    return rc;
}

static int prepare(struct slicing *j)
{
    const struct workload_header *h = workload_reader_header(j->in.reader);
    struct slice_sink sink = {j, put_op};
    int rc = resolve_point(&j->how.from, h, j->in.in.name, j->e);
    if (rc == 0)
        rc = resolve_point(&j->how.to, h, j->in.in.name, j->e);
    if (rc == 0 && j->in.in.size_bytes)
        rc = workload_read_summary(j->in.reader, &j->source, j->e);
    if (rc < 0)
        return rc;
    j->how.has_stamps = h->has_stamps;
    j->how.rebase = j->options->rebase && h->has_stamps;
    j->how.rebase_to = h->start_stamp;
    j->how.threads = j->n_ranges ? j->ranges : NULL;
    j->how.n_threads = j->n_ranges;
    j->slice = slice_new(&j->how, &sink);
    return j->slice ? 0 : err_set(j->e, -ENOMEM, "%s: out of memory", j->in.in.name);
}

static int slice(struct slicing *j, const char *path)
{
    int rc = convert_open(&j->in, path, &(struct convert_open_options){.watch = watch_conversion()}, j->e);
    if (rc == 0)
        rc = prepare(j);
    if (rc == 0)
        rc = output_open(&j->out, j->options->output, OUTPUT_ASIDE | (j->options->force ? OUTPUT_FORCE : 0), j->e);
    if (rc == 0) {
        progress_init(&j->progress, "slice", "B", j->in.in.size_bytes, cli_common.quiet);
        rc = workload_output_begin(&j->to, &j->out, (int)j->options->level, workload_reader_header(j->in.reader), j->e);
        rc = rc < 0 ? rc : read_ops(j);
        progress_clear(&j->progress);
        rc = rc < 0 ? rc : finish(j);
        int closed = output_close(&j->out, rc == 0, j->e);
        rc = rc < 0 ? rc : closed;
    }
    workload_output_release(&j->to);
    slice_free(j->slice);
    workload_file_close(&j->in);
    return rc;
}

static int run(const void *fields, int argc, char **argv)
{
    const struct slice_cli_options *o = fields;
    struct err e = {0};
    static struct slicing j;
    (void)argc;
    j = (struct slicing){.options = o, .out.fd = -1, .e = &e};
    if (o->level < 1 || o->level > 19)
        return usage_error(&cmd_slice, "--level: %llu is not a zstd level from 1 to 19", (unsigned long long)o->level);
    if (parse_point(o->from, &j.how.from) < 0)
        return usage_error(&cmd_slice, "--from: '%s' is not an event number, a time such as 1.5s, or mark:TEXT",
                           o->from);
    if (parse_point(o->to, &j.how.to) < 0)
        return usage_error(&cmd_slice, "--to: '%s' is not an event number, a time such as 1.5s, or mark:TEXT", o->to);
    if (o->threads && !parse_threads(&j, o->threads))
        return usage_error(&cmd_slice, "--threads: '%s' is not a list of threads such as 0,3-5", o->threads);
    if (slice(&j, argv[0]) < 0)
        die(EXIT_FAILED, "%s", e.text);
    return EXIT_DONE;
}

const struct command cmd_slice = {
    .name = "slice",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Extract part of a workload",
    .description =
        "Writes part of a workload as a new workload. Blocks that are live where the part begins become preexisting blocks with their sizes and alignments. Threads and slots are renumbered. Dependencies between ops of the part are kept, those on ops outside are dropped. Timestamps are kept, so that `dump` shows the same times as for the whole workload; --rebase shifts them to the start.\n\n"
        "A POINT is the number of an event in the order of `dump` (1200), a time since the start of the program (1.5s, 20ms, 300us), or the first mark with a text (mark:warm). The part begins at the event at --from and ends before the event at --to, in the order of the workload. --to mark:TEXT means the first such mark after the start of the part.\n\n"
        "With --threads only the ops of these threads are kept. A block that they use and that another thread allocated becomes a preexisting block; a block that another thread frees stays live.\n\n"
        "The counts of repaired and ambiguous events and of lost words are those of the whole workload: upper bounds for the part. Memory use depends on the number of live blocks.",
    .options = options,
    .options_bytes = sizeof(struct slice_cli_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
