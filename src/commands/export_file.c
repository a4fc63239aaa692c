#include "commands/export_file.h"

#include "base/buf.h"
#include "base/progress.h"
#include "cli/command.h"
#include "commands/export_call.h"
#include "commands/export_output.h"
#include "commands/watch.h"
#include "convert/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ALL_PROCESSES = 0xffffffff,
    WINDOW_EVENTS = 1 << 12, // of what was imported without times: its stamps count events
};

struct job {
    const struct export_file_options *options;
    struct export_facts facts;
    const struct trace_session *session;
    uint32_t process;               // the only one that is wanted, by its number, or ALL_PROCESSES
    bool left_out;                  // there were others
    struct export_output **outputs; // one, or by number of the process; NULL: not opened, or closed again
    size_t n, capacity;
    struct export lost; // what the outputs could not hold
    struct err *e;
    const struct input *in;
    struct progress progress;
    uint32_t calls; // since the start, modulo 2^32
};

// Not over what the export itself writes to a terminal.
static void progress_begin(struct job *j, const struct input *in)
{
    const struct export_file_options *o = j->options;
    bool on_terminal = o->output && strcmp(o->output, "-") == 0 && isatty(STDOUT_FILENO);
    j->in = in;
    progress_init(&j->progress, "export", "B", in->size_bytes, cli_common.quiet || o->live || on_terminal);
}

static int put_call(struct job *j, size_t at, const struct export_call *c)
{
    enum { CALLS_A_LOOK = 4096 };
    if (++j->calls % CALLS_A_LOOK == 0)
        progress_update(&j->progress, j->in->offset);
    return export_put(&j->outputs[at]->x, c);
}

static int no_memory(struct job *j)
{
    return err_set(j->e, -ENOMEM, "out of memory");
}

// Opens the output, which is the `at`-th.
static int open_output(struct job *j, size_t at, uint32_t pid)
{
    if (HT_GROW(&j->outputs, &j->capacity, at + 1) < 0)
        return no_memory(j);
    while (j->n <= at)
        j->outputs[j->n++] = NULL;
    j->outputs[at] = calloc(1, sizeof(struct export_output));
    return j->outputs[at] ? export_output_open(j->outputs[at], j->options, &j->facts, pid, j->e) : no_memory(j);
}

static int close_output(struct job *j, size_t at, bool commit)
{
    if (at >= j->n || !j->outputs[at])
        return 0;
    int rc = export_output_close(j->outputs[at], j->options, commit, &j->lost, j->e);
    free(j->outputs[at]);
    j->outputs[at] = NULL;
    return rc;
}

static bool wants_process(void *context, const struct trace_process *p)
{
    struct job *j = context;
    if (j->process == ALL_PROCESSES)
        return !j->options->pid || j->options->pid == p->pid;
    j->left_out |= p->number != j->process;
    return p->number == j->process;
}

static int put_recorded(void *context, const struct walk_call *w)
{
    struct job *j = context;
    unsigned kind = w->event->kind;
    if (!event_counts(kind) && kind != HT_STACK && kind != HT_MODULE)
        return 0;
    size_t at = export_output_is_per_process(j->options) ? w->process->number : 0;
    int rc = at < j->n && j->outputs[at] ? 0 : open_output(j, at, w->process->pid);
    if (rc < 0)
        return rc;
    struct export_call c = export_call_from_walk(j->session, w);
    return put_call(j, at, &c);
}

// What there is goes out before more is waited for.
static int flush_all(void *context)
{
    struct job *j = context;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < j->n; i++)
        rc = j->outputs[i] ? export_buffer_flush(&j->outputs[i]->x.out) : 0;
    return rc;
}

static int process_ended(void *context, const struct trace_process *p)
{
    struct job *j = context;
    return export_output_is_per_process(j->options) ? close_output(j, p->number, true) : 0;
}

// Which processes the format and the options let in.
static int choose_processes(struct job *j, struct trace_file *t)
{
    size_t of;
    j->process = ALL_PROCESSES;
    if (j->options->format->holds & FORMAT_HOLDS_PIDS || export_output_is_per_process(j->options))
        return 0;
    if (!j->options->live)
        return trace_file_choose(t, j->options->pid, &j->process, &of, j->e);
    j->process = 0; // the program itself
    return 0;
}

static void tell_counts(const struct job *j, const struct walk_counts *counts)
{
    if (counts->broken)
        note("%llu addresses were allocated again without a free in between; frees were added",
             (unsigned long long)counts->broken);
    if (j->left_out)
        note(
            "%s holds one process: the others were not exported (choose one with --pid, or write one file per process with %%p in the name of the output)",
            j->options->format->name);
}

static int export_trace(struct job *j, struct trace_file *t)
{
    struct err cut;
    struct walk_counts counts;
    struct walk_options how = {
        .call = put_recorded,
        .wants = wants_process,
        .pause = j->options->live ? flush_all : NULL,
        .ended = process_ended,
        .context = j,
    };
    int rc = choose_processes(j, t);
    j->session = &t->reader.session;
    if (j->options->format->holds & FORMAT_ALTERNATES)
        how.alternate_ns = j->session->order_only ? WINDOW_EVENTS : CONVERT_WINDOW_NS;
    j->facts.realtime_ns = j->session->realtime_ns;
    j->facts.has_stamps = j->options->stamps && !j->session->order_only;
    // An output for all is made even if nothing comes.
    if (rc == 0 && !export_output_is_per_process(j->options))
        rc = open_output(j, 0, 0);
    if (rc == 0)
        rc = walk_run(&t->reader, &how, &counts, &cut, j->e);
    if (rc == 0 && cut.text[0])
        note("%s", cut.text);
    if (rc == 0)
        tell_counts(j, &counts);
    return rc;
}

static int export_workload(struct job *j, struct workload_reader *r)
{
    uint32_t thread;
    const struct workload_op *op;
    const struct workload_header *h = workload_reader_header(r);
    j->facts.slots = true;
    j->facts.has_stamps = j->options->stamps && h->has_stamps;
    int rc = open_output(j, 0, h->pid);
    while (rc == 0 && (rc = workload_next_op(r, &thread, &op, j->e)) > 0) {
        struct export_call c = export_call_from_op(h, thread, op);
        rc = put_call(j, 0, &c);
    }
    return rc;
}

// A trace as it was recorded where the format holds addresses; else the workload made of it.
static int open_source(const struct job *j, struct file *f, const char *from)
{
    const struct export_file_options *o = j->options;
    if (o->format->holds & FORMAT_HOLDS_ADDRESSES) {
        bool twice = !o->live && !(o->format->holds & FORMAT_HOLDS_PIDS);
        return file_open(f, from, FILE_TRACE | FILE_WORKLOAD | (twice ? FILE_TWICE : 0), j->e);
    }
    *f = (struct file){.kind = FILE_WORKLOAD, .trace.in.fd = -1, .json.fd = -1};
    return convert_open(&f->workload, from, &(struct convert_open_options){.pid = o->pid, .watch = watch_conversion()},
                        j->e);
}

static void say(const char *text)
{
    note("%s", text);
}

int export_file(const char *from, const struct export_file_options *o, struct err *e)
{
    struct job j = {.options = o, .e = e};
    struct file f;
    int rc = open_source(&j, &f, from);
    if (rc == 0)
        progress_begin(&j, file_input(&f));
    if (rc == 0)
        rc = f.kind == FILE_TRACE ? export_trace(&j, &f.trace) : export_workload(&j, f.workload.reader);
    progress_clear(&j.progress);
    for (size_t i = 0; i < j.n; i++) {
        int closed = close_output(&j, i, rc == 0);
        rc = rc == 0 ? closed : rc;
    }
    if (rc == 0 && j.lost.format)
        export_tell_losses(&j.lost, say);
    if (o->opened && o->opened->fd >= 0)
        output_close(o->opened, false, NULL);
    free(j.outputs);
    file_close(&f);
    return rc;
}
