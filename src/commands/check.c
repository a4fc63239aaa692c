#include "base/progress.h"
#include "cli/command.h"
#include "commands/check_documents.h"
#include "record/aggregate/stat.h"
#include "replay/plan/saved.h"
#include "report/text/balance.h"
#include "tables/verify.h"
#include "trace/reader.h"
#include "trace/salvage.h"
#include "workload/file.h"
#include "workload/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_options {
    const char *output;
    bool salvage;
    bool force;
};

static const struct option options[] = {
    {0, "salvage", OPTION_FLAG, NULL, NULL,
     "copy the intact frames of a damaged trace to the file given with -o",
     offsetof(struct check_options, salvage)},
    {'o', "output", OPTION_STRING, "FILE|-", NULL,
     "write the salvaged trace to FILE, or to standard output for '-'",
     offsetof(struct check_options, output)},
    OPTION_FORCE(struct check_options),
    {0},
};

struct totals {
    uint64_t frames, events;
    uint64_t processes;                 // processes of an aggregate
    bool complete;                      // the writer has closed the file
    struct trace_unrecorded unrecorded; // processes that the trace does not contain
    // The order proof was abandoned, because it would take too long for a file of this size.
    bool unproved;
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
    t->complete = r.saw_end;
    t->unrecorded = r.unrecorded;
    r.unrecorded = (struct trace_unrecorded){0};
    trace_reader_close(&r);
    return rc;
}

static int check_workload(struct input *in, struct totals *t, struct err *e)
{
    struct workload_reader *r;
    const struct workload_op *ops;
    uint32_t thread;
    size_t n;
    int rc = workload_reader_open(&r, in, e);
    if (rc < 0)
        return rc;
    workload_reader_prove_order(r);
    for (uint64_t at = in->offset; (rc = workload_next_ops(r, &thread, &ops, &n, e)) > 0;
         at = in->offset) {
        if (in->offset == at)
            continue;
        t->frames++;
        progress_update(&t->progress, in->offset);
    }
    t->unproved = !workload_reader_proved_order(r);
    const struct workload_summary *s = workload_reader_summary(r);
    t->complete = s;
    t->events = s ? s->events : 0;
    workload_reader_close(r);
    return rc;
}

// Maximum size of a document. The largest documents are lists of events.
enum { MAX_TEXT_BYTES = 256 << 20 };

static int check_aggregate(struct input *in, struct totals *t, struct err *e)
{
    struct file_stat s;
    uint8_t more;
    int rc = aggregate_input_stat(&s, in, e);
    if (rc < 0)
        return rc;
    t->events = s.total.events;
    t->processes = s.n_processes + s.others;
    t->unrecorded = s.unrecorded;
    s.unrecorded = (struct trace_unrecorded){0};
    if (s.under_way)
        note("%s: written before the recording ended", in->name);
    if (s.cut.text[0])
        error_text(s.cut.text);
    file_stat_release(&s);
    t->complete = true;
    uint64_t end = in->offset;
    ssize_t n = input_read(in, &more, 1, e);
    if (n > 0)
        err_set(e, -EBADMSG, "%s: data after the last frame, at byte %llu", in->name,
                (unsigned long long)end);
    return n > 0 ? -EBADMSG : (int)n;
}

static int check_text(struct input *in, bool page, struct check_documents_found *found,
                      struct err *e)
{
    struct buf b = {0};
    int rc = input_read_all(in, &b, MAX_TEXT_BYTES, e);
    if (rc == -EFBIG)
        err_set(e, rc, "%s: the document is larger than 256 MiB", in->name);
    if (rc == 0)
        rc = (page ? check_documents_page : check_documents_json)(in->name, (const char *)b.data,
                                                                  b.size, found, e);
    buf_release(&b);
    return rc;
}

static void print_intact(const char *name, const char *kind, const char *holds, uint64_t bytes)
{
    if (!cli_common.quiet)
        printf("%s: intact %s%s%s, %s\n", cli_text(name), kind, holds ? ": " : "",
               holds ? holds : "", human_size(bytes));
}

// Verifies a file without frames. Returns 1 if the file is valid, 0 if it has another format, or a
// negative errno.
static int check_other(struct input *in, struct err *e)
{
    const uint8_t *bytes;
    struct check_documents_found d;
    uint64_t rows = 0;
    ssize_t n = input_peek(in, 1024, &bytes, e);
    if (n < 0)
        return (int)n;
    bool page = check_documents_is_page(bytes, (size_t)n), csv = tables_is_csv(bytes, (size_t)n);
    bool parquet = n >= 4 && memcmp(bytes, "PAR1", 4) == 0;
    if (plan_is_saved(in->fd)) {
        int rc = plan_verify(in->name, in->fd, e);
        if (rc == 0)
            print_intact(in->name, "saved plan", NULL, in->size_bytes);
        return rc < 0 ? rc : 1;
    }
    if (csv || parquet) {
        int rc = parquet ? input_make_seekable(in, e) : 0;
        rc = rc < 0 ? rc : (parquet ? tables_verify_parquet : tables_verify_csv)(in, &rows, e);
        if (rc == 0)
            print_intact(in->name, parquet ? "table in Parquet" : "table in CSV",
                         human_items(rows, "row", "rows"),
                         in->size_bytes ? in->size_bytes : in->offset);
        return rc < 0 ? rc : 1;
    }
    if (!page && file_sniff(in, FILE_JSON, NULL) != FILE_JSON)
        return 0;
    int rc = check_text(in, page, &d, e);
    if (rc == 0)
        print_intact(in->name, d.kind,
                     d.lines ? human_items(d.lines, "line", "lines")
                     : page  ? "in HTML"
                             : NULL,
                     in->offset);
    return rc < 0 ? rc : 1;
}

static void print_salvaged(const char *name, const struct trace_salvaged *s)
{
    note("%s: kept %s with %s; lost %s (%s)", name, human_items(s->frames, "frame", "frames"),
         human_items(s->events, "event", "events"), human_items(s->lost_frames, "frame", "frames"),
         human_size(s->lost_bytes));
    if (s->session_lost)
        note("%s: the session frame is lost; the unit of its timestamps is unknown", name);
    if (s->unknown_processes)
        note("%s: the descriptions of %s are lost; their events are kept", name,
             human_items(s->unknown_processes, "process", "processes"));
    if (s->end_lost)
        note("%s: the end is missing; further frames may be lost", name);
}

static int salvage_file(const struct check_options *o, const char *name)
{
    struct input in;
    struct output out;
    struct err e = {0};
    struct trace_salvaged s;
    if (input_open(&in, name, &e) < 0 || input_make_seekable(&in, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    die_on_error(output_open(&out, o->output, OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0), &e),
                 EXIT_FAILED, &e);
    int rc = trace_salvage(&in, &out, &s, &e);
    die_on_error(output_finish(&out, rc, &e), EXIT_FAILED, &e);
    print_salvaged(in.name, &s);
    input_close(&in);
    return EXIT_DONE;
}

// Prints the processes that are missing from an intact trace.
static void print_unrecorded(const char *name, const struct trace_unrecorded *u)
{
    uint64_t printed = 0;
    for (size_t i = 0; i < u->n; i++) {
        char *line = balance_missed_line(&u->items[i]);
        note("%s: %s", name, line ? line : "out of memory");
        free(line);
        printed += 1 + u->items[i].forks;
    }
    if (u->processes > printed)
        note("%s: %s not recorded", name,
             human_items(u->processes - printed, "other process was", "other processes were"));
    if (u->processes && balance_limits(u))
        note("%s: %s", name, balance_limits(u));
}

// Verifies a trace, workload or aggregate. Dies if it is invalid.
static void check_framed(struct input *in)
{
    struct err e = {0};
    struct totals t = {0};
    char holds[160];
    int kind = file_sniff(in, FILE_TRACE | FILE_WORKLOAD | FILE_AGGREGATE, &e);
    die_on_error(kind, EXIT_FAILED, &e);
    progress_init(&t.progress, "check", "B", in->size_bytes, cli_common.quiet);
    int rc = kind == FILE_WORKLOAD    ? check_workload(in, &t, &e)
             : kind == FILE_AGGREGATE ? check_aggregate(in, &t, &e)
                                      : check_trace(in, &t, &e);
    progress_clear(&t.progress);
    die_on_error(rc, EXIT_FAILED, &e);
    if (!t.complete)
        die(EXIT_FAILED, "%s: cut off after a complete frame, at byte %llu", in->name,
            (unsigned long long)in->offset);
    if (t.unproved)
        note("%s: " WORKLOAD_UNPROVED, in->name);
    if (kind == FILE_AGGREGATE)
        snprintf(holds, sizeof holds, "%s of %s", human_items(t.events, "event", "events"),
                 human_items(t.processes, "process", "processes"));
    else
        snprintf(holds, sizeof holds, "%s in %s", human_items(t.events, "event", "events"),
                 human_items(t.frames, "frame", "frames"));
    print_intact(in->name,
                 kind == FILE_WORKLOAD    ? "workload"
                 : kind == FILE_AGGREGATE ? "aggregate"
                                          : "trace",
                 holds, in->offset);
    print_unrecorded(in->name, &t.unrecorded);
    trace_unrecorded_release(&t.unrecorded);
}

static int run_check(const void *fields, char **argv)
{
    const struct check_options *o = fields;
    struct input in;
    struct err e = {0};
    if (o->salvage != (o->output != NULL))
        return usage_error(&cmd_check, "--salvage and -o FILE require each other");
    if (o->salvage)
        return salvage_file(o, argv[0]);
    die_on_error(file_open_input(&in, argv[0], &e), EXIT_FAILED, &e);
    int other = check_other(&in, &e);
    die_on_error(other, EXIT_FAILED, &e);
    if (other > 0) {
        input_close(&in);
        return EXIT_DONE;
    }
    check_framed(&in);
    input_close(&in);
    return EXIT_DONE;
}

const struct command cmd_check = {
    .name = "check",
    .operands = "FILE|-",
    .summary = "Verify a file written by heaptape",
    .examples =
        {
            {"Verify a trace", "heaptape check program.ht"},
            {"Verify a workload that comes through a pipe",
             "ssh server cat program.htw | heaptape check -"},
            {"Recover the intact part of a damaged trace",
             "heaptape check --salvage -o good.ht bad.ht"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct check_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_check,
};
