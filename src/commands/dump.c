#include "cli/command.h"
#include "commands/dump_event.h"
#include "convert/walk.h"
#include "workload/file.h"
#include "workload/format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

extern const struct command cmd_dump;

enum dump_format { DUMP_TEXT, DUMP_JSON };

struct dump_options {
    enum dump_format format;
    uint64_t pid;
    struct option_list kinds;
};

static const struct option options[] = {
    {'F', "format", OPTION_CHOICE, "text|json", "text", "print lines of text, or one JSON object per line",
     offsetof(struct dump_options, format)},
    {'p', "pid", OPTION_NUMBER, "PID", NULL, "print only this process of a trace (default: all processes)",
     offsetof(struct dump_options, pid), .min = 1, .max = UINT32_MAX},
    {'k', "kind", OPTION_LIST, "KIND", NULL,
     "print only events of this kind, such as malloc or thread.start; may be repeated",
     offsetof(struct dump_options, kinds)},
    {0},
};

struct dump {
    const struct dump_options *options;
    const struct trace_session *session;
    bool kinds[HT_KIND_LIMIT];
    bool json;
};

// A reader that closes the pipe (head) ends the dump quietly.
static int check_output(void)
{
    return ferror(stdout) ? -EPIPE : 0;
}

static bool wants_process(void *context, const struct trace_process *p)
{
    const struct dump *d = context;
    return !d->options->pid || d->options->pid == p->pid;
}

static int dump_call(void *context, const struct walk_call *call)
{
    const struct dump *d = context;
    const struct event *ev = call->event;
    if (!d->kinds[ev->kind])
        return 0;
    struct dump_line line = {
        .pid = call->process->pid,
        .tid = call->tid,
        .thread = call->thread,
        .stamp_ns = trace_stamp_ns(d->session, ev->stamp),
        .kind = ev->kind,
        .error = ev->error,
        .size = ev->size,
        .count = ev->count,
        .align = ev->align,
        .value = ev->value,
        .text = ev->text,
        .text_bytes = ev->text_bytes,
        .ptr = ev->ptr,
        .result = ev->result,
        .notes = ev->notes,
    };
    (d->json ? dump_json : dump_text)(&line);
    return check_output();
}

static int dump_trace(struct dump *d, struct trace_file *t, struct err *e)
{
    struct err cut;
    struct walk_options how = {.call = dump_call, .wants = wants_process, .context = d};
    d->session = &t->reader.session;
    int rc = walk_run(&t->reader, &how, NULL, &cut, e);
    if (rc == 0 && cut.text[0])
        note("%s", cut.text);
    return rc;
}

static void dump_op(const struct dump *d, const struct workload_header *h, uint32_t thread,
                    const struct workload_op *op)
{
    uint64_t since = h->has_stamps && op->stamp > h->start_stamp ? op->stamp - h->start_stamp : 0;
    uint64_t notes[HT_NOTES] = {0};
    struct dump_line line = {
        .slots = true,
        .pid = h->pid,
        .tid = thread,
        .stamp_ns = clock_to_ns(since << h->stamp_shift, h->clock_hz),
        .kind = op->kind,
        .error = op->error,
        .failed = op->flags & WORKLOAD_FAILED,
        .size = op->size,
        .count = op->count,
        .align = op->align,
        .value = op->value,
        .text = op->text,
        .text_bytes = op->text_bytes,
        .ptr = DUMP_NO_SLOT,
        .result = DUMP_NO_SLOT,
        .dependencies = op->dependencies,
        .n_dependencies = op->n_dependencies,
    };
    if (format_has_site(op->kind)) {
        notes[HT_NOTE_SITE] = op->value;
        line.notes = notes;
    }
    unsigned class = event_infos[op->kind].class;
    uint64_t slot = op->slot == WORKLOAD_NO_SLOT ? DUMP_NO_SLOT : op->slot;
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        line.ptr = slot;
    if (class == HT_CLASS_ALLOC || (class == HT_CLASS_RESIZE && !(op->flags & (WORKLOAD_FAILED | WORKLOAD_FREED))))
        line.result = slot;
    (d->json ? dump_json : dump_text)(&line);
}

static int dump_workload(const struct dump *d, struct workload_reader *r, struct err *e)
{
    uint32_t thread;
    const struct workload_op *op;
    int rc;
    while ((rc = workload_next_op(r, &thread, &op, e)) > 0) {
        if (d->kinds[op->kind])
            dump_op(d, workload_reader_header(r), thread, op);
        rc = check_output();
        if (rc < 0)
            return rc;
    }
    return rc;
}

// Kinds that are not calls of the program are printed on request only.
static int choose_kinds(struct dump *d)
{
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        d->kinds[kind] = d->options->kinds.n == 0 && event_counts(kind);
    for (size_t i = 0; i < d->options->kinds.n; i++) {
        int kind = event_kind_by_name(d->options->kinds.items[i]);
        if (kind < 0)
            return usage_error(&cmd_dump, "unknown kind of event '%s'", d->options->kinds.items[i]);
        d->kinds[kind] = true;
    }
    return 0;
}

static int dump(struct dump *d, const char *path, struct err *e)
{
    struct file f;
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
    if (rc == 0)
        rc = f.kind == FILE_TRACE ? dump_trace(d, &f.trace, e) : dump_workload(d, f.workload.reader, e);
    file_close(&f);
    return rc;
}

static int run(const void *fields, int argc, char **argv)
{
    struct dump d = {.options = fields};
    struct err e = {0};
    (void)argc;
    d.json = d.options->format == DUMP_JSON;
    int usage = choose_kinds(&d);
    if (usage)
        return usage;
    int rc = dump(&d, argv[0], &e);
    if (rc == -EPIPE && ferror(stdout))
        return EXIT_FAILED;
    fflush(stdout);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (ferror(stdout))
        die(EXIT_FAILED, "(stdout): cannot write");
    return EXIT_DONE;
}

const struct command cmd_dump = {
    .name = "dump",
    .operands = "FILE|-",
    .summary = "Print the events of a trace or workload",
    .description =
        "Prints one line per call. The calls of a trace are printed as recorded, with addresses, for all "
        "processes and threads in the order of their timestamps. The calls of a workload are printed in an order "
        "in which they can be replayed, with slot numbers instead of addresses, thread numbers instead of thread "
        "IDs, and the calls of other threads that each call depends on.",
    .options = options,
    .options_bytes = sizeof(struct dump_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
