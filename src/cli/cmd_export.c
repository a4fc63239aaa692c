#include "cli/command.h"
#include "cli/open_file.h"
#include "convert/walk.h"
#include "io/export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

extern const struct command cmd_export;

struct export_cli_options {
    const char *format;
    const char *output;
    uint64_t pid;
    bool force, stamps, list;
};

static const struct option options[] = {
    {'F', "format", OPTION_CHOICE, IO_EXPORT_CHOICES, NULL, "what to write; see above",
     offsetof(struct export_cli_options, format)},
    {'o', "output", OPTION_STRING, "FILE|-", NULL, "write to FILE, or to standard output as without this option",
     offsetof(struct export_cli_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists", offsetof(struct export_cli_options, force)},
    {'p', "pid", OPTION_NUMBER, "PID", "0", "of a trace, this process only", offsetof(struct export_cli_options, pid)},
    {0, "stamps", OPTION_FLAG, NULL, "true", "write when each call was, where FILE says it and the format holds it",
     offsetof(struct export_cli_options, stamps)},
    {0, "list", OPTION_FLAG, NULL, NULL, "print the names of the formats and exit",
     offsetof(struct export_cli_options, list)},
    {0},
};

struct job {
    const struct export_cli_options *options;
    struct export x;
    const struct trace_session *session;
};

static bool wants_process(void *context, const struct trace_process *p)
{
    const struct job *j = context;
    return !j->options->pid || j->options->pid == p->pid;
}

static int put_recorded(void *context, const struct walk_call *w)
{
    struct job *j = context;
    struct call c = {.ev = *w->event, .pid = w->process->pid, .tid = w->tid, .thread = w->thread};
    unsigned class = event_infos[c.ev.kind].class;
    if (!event_counts(c.ev.kind))
        return 0;
    c.ev.stamp = trace_stamp_ns(j->session, c.ev.stamp);
    c.failed = (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE) && !c.ev.result && c.ev.error;
    return export_put(&j->x, &c);
}

static int export_trace(struct job *j, struct trace_file *t, struct err *e)
{
    struct err cut;
    struct walk_options how = {.call = put_recorded, .wants = wants_process, .context = j};
    j->session = &t->reader.session;
    int rc = walk_run(&t->reader, &how, NULL, &cut, e);
    if (rc == 0 && cut.text[0])
        note("%s", cut.text);
    return rc;
}

static struct call call_of(const struct workload_header *h, uint32_t thread, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    uint64_t since = h->has_stamps && op->stamp > h->start_stamp ? op->stamp - h->start_stamp : 0;
    uint64_t place = op->slot == WORKLOAD_NO_SLOT ? 0 : op->slot + 1ull;
    struct call c = {
        .ev = {.stamp = clock_to_ns(since << h->stamp_shift, h->clock_hz),
               .size = op->size,
               .count = op->count,
               .align = op->align,
               .value = op->value,
               .text = op->text,
               .text_bytes = op->text_bytes,
               .kind = op->kind,
               .error = op->error},
        .pid = h->pid,
        .tid = thread,
        .thread = thread,
        .flags = op->flags,
        .failed = op->flags & WORKLOAD_FAILED,
        .waits = op->waits,
        .n_waits = op->n_waits,
    };
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        c.ev.ptr = place;
    if (class == HT_CLASS_ALLOC || (class == HT_CLASS_RESIZE && !(op->flags & (WORKLOAD_FAILED | WORKLOAD_FREED))))
        c.ev.result = place;
    return c;
}

static int export_workload(struct job *j, struct workload_reader *r, struct err *e)
{
    uint32_t thread;
    const struct workload_op *op;
    int rc;
    while ((rc = workload_next_op(r, &thread, &op, e)) > 0) {
        struct call c = call_of(workload_reader_header(r), thread, op);
        rc = export_put(&j->x, &c);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static void say(const char *text)
{
    note("%s", text);
}

static int export_to(struct job *j, struct open_file *f, struct output *out, struct err *e)
{
    j->x.facts = (struct export_facts){.slots = !f->is_trace};
    if (f->is_trace)
        j->x.facts.realtime_ns = f->trace.reader.session.realtime_ns;
    j->x.facts.has_stamps =
        j->options->stamps &&
        (f->is_trace ? !f->trace.reader.session.order_only : workload_reader_header(f->workload.reader)->has_stamps);
    j->x.name_dropped = say;
    int rc = export_open(&j->x, out, e);
    if (rc == 0)
        rc = f->is_trace ? export_trace(j, &f->trace, e) : export_workload(j, f->workload.reader, e);
    if (rc == 0)
        rc = export_finish(&j->x);
    if (rc == 0)
        export_tell_losses(&j->x, say);
    export_release(&j->x);
    return rc;
}

// A trace as it was recorded where the format holds addresses and is asked for that; else the workload made of it.
static int open_source(const struct job *j, struct open_file *f, const char *path, struct err *e)
{
    if (j->x.format->holds & FORMAT_HOLDS_ADDRESSES)
        return open_file(f, path, e);
    *f = (struct open_file){.trace.in.fd = -1};
    return open_workload_of(&f->workload, path, (uint32_t)j->options->pid, e);
}

static int export(struct job *j, const char *from, struct err *e)
{
    struct open_file f;
    struct output out = {.fd = -1};
    const char *to = j->options->output ? j->options->output : "-";
    int rc = open_source(j, &f, from, e);
    if (rc == 0)
        rc = output_open(&out, to, OUTPUT_ASIDE | (j->options->force ? OUTPUT_FORCE : 0), e);
    if (rc == 0) {
        rc = export_to(j, &f, &out, e);
        int closed = output_close(&out, rc == 0, e);
        rc = rc == 0 ? closed : rc;
    }
    close_file(&f);
    return rc;
}

static int list(void)
{
    for (const struct format *const *f = formats; *f; f++) {
        if ((*f)->put)
            puts((*f)->name);
    }
    return EXIT_DONE;
}

static int run(const void *fields, int argc, char **argv)
{
    struct job j = {.options = fields};
    struct err e = {0};
    if (j.options->list)
        return list();
    if (argc == 0)
        return usage_error(&cmd_export, "FILE is missing");
    if (!j.options->format)
        return usage_error(&cmd_export, "--format is missing: %s", IO_EXPORT_CHOICES);
    if (j.options->pid > UINT32_MAX)
        return usage_error(&cmd_export, "there is no process %llu", (unsigned long long)j.options->pid);
    j.x.format = format_find(j.options->format);
    if (export(&j, argv[0], &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    return EXIT_DONE;
}

const struct command cmd_export = {
    .name = "export",
    .operands = "FILE|-",
    .summary = "Write a trace or workload in another tool's format",
    .description =
        "Writes the calls of FILE so that the other tool reads them. A format that holds addresses is written from a "
        "raw "
        "trace as that was recorded, all processes of it if the format has several; for the others, the trace is "
        "converted first. What the format cannot hold is dropped or written as the nearest thing, and said on "
        "stderr." IO_EXPORT_HELP,
    .options = options,
    .options_bytes = sizeof(struct export_cli_options),
    .min_operands = 0,
    .max_operands = 1,
    .run = run,
};
