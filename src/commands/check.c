#include "base/progress.h"
#include "cli/command.h"
#include "trace/reader.h"
#include "trace/salvage.h"
#include "workload/reader.h"

#include <stdio.h>

extern const struct command cmd_check;

struct check_options {
    const char *output;
    bool salvage;
    bool force;
};

static const struct option options[] = {
    {0, "salvage", OPTION_FLAG, NULL, NULL, "copy what is intact of a damaged trace to the file that -o names",
     offsetof(struct check_options, salvage)},
    {'o', "output", OPTION_STRING, "FILE|-", NULL, "where to", offsetof(struct check_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists", offsetof(struct check_options, force)},
    {0},
};

// What a file was found to hold.
struct totals {
    uint64_t frames, events, bytes;
    bool whole; // it ends where its writer ended it
    struct progress progress;
};

static int check_trace(struct input *in, struct totals *t, struct err *e)
{
    struct trace_reader r;
    struct trace_item item;
    int rc = trace_reader_open(&r, in, e);
    if (rc < 0)
        return rc;
    while ((rc = trace_next(&r, &item, e)) > 0) {
        t->events = item.type == TRACE_END ? item.events : t->events;
        progress_update(&t->progress, item.offset);
    }
    t->frames = r.frames.next_sequence;
    t->whole = r.saw_end;
    trace_reader_close(&r);
    return rc;
}

static int check_workload(struct input *in, struct totals *t, struct err *e)
{
    struct workload_reader *r;
    const struct workload_run *runs;
    size_t n;
    int rc = workload_reader_open(&r, in, e);
    if (rc < 0)
        return rc;
    while ((rc = workload_next_runs(r, &runs, &n, e)) > 0) {
        t->frames++;
        progress_update(&t->progress, in->offset);
    }
    const struct workload_summary *s = workload_reader_summary(r);
    t->whole = s;
    t->events = s ? s->events : 0;
    workload_reader_close(r);
    return rc;
}

static void print_salvaged(const char *name, const struct trace_salvaged *s)
{
    char events[32], bytes[32];
    note("%s: kept %llu frames with %s events; lost %llu frames, %s", name, (unsigned long long)s->frames,
         human_count(events, s->events), (unsigned long long)s->lost_frames, human_bytes(bytes, s->lost_bytes));
    if (s->session_lost)
        note("%s: the session frame is lost: what the times mean is not known", name);
    if (s->unknown_processes)
        note("%s: of %u processes nothing is known but their events", name, s->unknown_processes);
    if (s->end_lost)
        note("%s: its end is lost: more frames may have been there", name);
}

static int salvage(const struct check_options *o, const char *name)
{
    struct input in;
    struct output out;
    struct err e = {0}, ignored;
    struct trace_salvaged s;
    if (input_open(&in, name, &e) < 0 || input_make_seekable(&in, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (output_open(&out, o->output, OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0), &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    int rc = trace_salvage(&in, &out, &s, &e);
    if (rc == 0)
        rc = output_close(&out, true, &e);
    else
        output_close(&out, false, &ignored);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text);
    print_salvaged(in.name, &s);
    input_close(&in);
    return EXIT_DONE;
}

static int run_check(const void *fields, int argc, char **argv)
{
    const struct check_options *o = fields;
    struct input in;
    struct err e = {0};
    struct totals t = {0};
    const uint8_t *head;
    char events[32], bytes[32];
    (void)argc;
    if (o->salvage != (o->output != NULL))
        return usage_error(&cmd_check, "--salvage wants -o FILE, and -o wants --salvage");
    if (o->salvage)
        return salvage(o, argv[0]);
    if (input_open(&in, argv[0], &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    ssize_t n = input_peek(&in, 4, &head, &e);
    if (n < 0)
        die(EXIT_FAILED, "%s", e.text);
    bool workload = frame_magic_at(head, (size_t)n, FRAME_MAGIC_WORKLOAD);
    if (!workload && !frame_magic_at(head, (size_t)n, FRAME_MAGIC_TRACE))
        die(EXIT_FAILED, "%s: is no trace and no workload, at byte 0", in.name);
    progress_init(&t.progress, "check", "B", in.size_bytes, cli_common.quiet);
    int rc = workload ? check_workload(&in, &t, &e) : check_trace(&in, &t, &e);
    progress_clear(&t.progress);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (!t.whole)
        die(EXIT_FAILED, "%s: was cut off after a whole frame, at byte %llu", in.name, (unsigned long long)in.offset);
    if (!cli_common.quiet)
        printf("%s: good: a %s of %s events in %llu frames, %s\n", in.name, workload ? "workload" : "trace",
               human_count(events, t.events), (unsigned long long)t.frames, human_bytes(bytes, in.offset));
    input_close(&in);
    return EXIT_DONE;
}

const struct command cmd_check = {
    .name = "check",
    .operands = "FILE|-",
    .summary = "Verify every frame of a trace or workload",
    .description =
        "Reads FILE to its end and verifies checksums, the order of frames and every record in them. Exits "
        "with 1 and names the first byte offset where something is wrong when FILE is damaged or was cut off.\n\n"
        "With --salvage, all that is intact of a damaged or cut-off trace is written to another one, and what is lost "
        "is told on standard error.",
    .options = options,
    .options_bytes = sizeof(struct check_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_check,
};
