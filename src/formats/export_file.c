#include "formats/export_file.h"

#include "convert/open.h"
#include "convert/walk.h"
#include "formats/export_outputs.h"
#include "workload/format.h"

#include <errno.h>
#include <stdio.h>

enum {
    ALL_PROCESSES = 0xffffffff,
    WINDOW_EVENTS = 1 << 12, // of what was imported without times: its stamps count events
};

struct export_job {
    const struct export_settings *settings;
    struct export_outputs outputs;
    const struct trace_session *session;
    uint32_t process; // the only one that is wanted, by its number, or ALL_PROCESSES
    bool left_out;    // there were others
    struct err *e;
    const struct input *in;
    uint32_t calls;   // since the start, modulo 2^32
    struct export *x; // of the last call, whose process is `of`; NULL: none
    uint32_t of;
};

static struct export_call call_from_walk(const struct trace_session *s, const struct walk_call *w)
{
    struct export_call c = {.ev = *w->event, .pid = w->process->pid, .tid = w->tid, .thread = w->thread};
    unsigned class = event_infos[c.ev.kind].class;
    c.ev.stamp = trace_stamp_ns(s, c.ev.stamp);
    c.failed = (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE) && !c.ev.result && c.ev.error;
    return c;
}

static struct export_call call_from_op(const struct workload_header *h, uint32_t thread, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    uint64_t since = h->has_stamps && op->stamp > h->start_stamp ? op->stamp - h->start_stamp : 0;
    uint64_t block = op->slot == WORKLOAD_NO_SLOT ? 0 : op->slot + 1ull;
    struct export_call c = {
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
        .dependencies = op->dependencies,
        .n_dependencies = op->n_dependencies,
    };
    if (format_has_site(op->kind))
        c.ev.notes[HT_NOTE_SITE] = op->value;
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        c.ev.ptr = block;
    if (class == HT_CLASS_ALLOC || (class == HT_CLASS_RESIZE && !(op->flags & (WORKLOAD_FAILED | WORKLOAD_FREED))))
        c.ev.result = block;
    return c;
}

static int put_call(struct export_job *j, uint32_t process, const struct export_call *c)
{
    enum { CALLS_PER_UPDATE = 4096 };
    const struct convert_watch *watch = j->settings->watch;
    if (++j->calls % CALLS_PER_UPDATE == 0 && watch && watch->progress)
        progress_update(watch->progress, j->in->offset);
    if (__builtin_expect(!j->x || j->of != process, 0)) {
        int rc = export_outputs_get(&j->outputs, process, c->pid, &j->x);
        if (rc < 0)
            return rc;
        j->of = process;
    }
    return export_put(j->x, c);
}

static bool wants_process(void *context, const struct trace_process *p)
{
    struct export_job *j = context;
    if (j->process == ALL_PROCESSES)
        return !j->settings->pid || j->settings->pid == p->pid;
    j->left_out |= p->number != j->process;
    return p->number == j->process;
}

static int put_recorded(void *context, const struct walk_call *w)
{
    struct export_job *j = context;
    unsigned kind = w->event->kind;
    if (!event_counts(kind) && kind != HT_STACK && kind != HT_MODULE)
        return 0;
    struct export_call c = call_from_walk(j->session, w);
    return put_call(j, w->process->number, &c);
}

// Buffered calls are written before the walk blocks for more.
static int pause_export(void *context)
{
    struct export_job *j = context;
    return export_outputs_flush(&j->outputs);
}

static int end_process(void *context, const struct trace_process *p)
{
    struct export_job *j = context;
    j->x = NULL;
    return export_outputs_end(&j->outputs, p->number);
}

// Which processes the format and the options let in.
static int choose_processes(struct export_job *j, struct trace_file *t)
{
    size_t of;
    j->process = ALL_PROCESSES;
    if (j->settings->format->export.holds & FORMAT_HOLDS_PIDS || export_outputs_are_many(j->settings))
        return 0;
    if (!j->settings->live)
        return trace_file_choose(t, j->settings->pid, &j->process, &of, j->e);
    j->process = 0; // the program itself
    return 0;
}

static void note_counts(const struct export_job *j, const struct walk_counts *counts)
{
    const struct convert_watch *watch = j->settings->watch;
    char text[240];
    if (!watch || !watch->note)
        return;
    if (counts->broken) {
        snprintf(text, sizeof text, "%llu addresses were allocated again without a free in between; frees were added",
                 (unsigned long long)counts->broken);
        watch->note(text);
    }
    if (j->left_out) {
        snprintf(
            text, sizeof text,
            "%s holds one process: the others were not exported (choose one with --pid, or write one file per process with %%p in the name of the output)",
            j->settings->format->name);
        watch->note(text);
    }
}

static int export_trace(struct export_job *j, struct trace_file *t)
{
    struct err cut;
    struct export *x;
    struct walk_counts counts;
    struct walk_options how = {
        .call = put_recorded,
        .wants = wants_process,
        .pause = j->settings->live ? pause_export : NULL,
        .ended = end_process,
        .context = j,
    };
    int rc = choose_processes(j, t);
    j->session = &t->reader.session;
    if (j->settings->format->export.holds & FORMAT_ALTERNATES)
        how.alternate_ns = j->session->order_only ? WINDOW_EVENTS : CONVERT_WINDOW_NS;
    j->outputs.facts.realtime_ns = j->session->realtime_ns;
    j->outputs.facts.has_stamps = j->settings->stamps && !j->session->order_only;
    // An output for all is made even if nothing comes.
    if (rc == 0 && !export_outputs_are_many(j->settings))
        rc = export_outputs_get(&j->outputs, 0, 0, &x);
    if (rc == 0)
        rc = walk_run(&t->reader, &how, &counts, &cut, j->e);
    if (rc == 0 && cut.text[0] && j->settings->watch && j->settings->watch->note)
        j->settings->watch->note(cut.text);
    if (rc == 0)
        note_counts(j, &counts);
    return rc;
}

static int export_workload(struct export_job *j, struct workload_reader *r)
{
    uint32_t thread;
    struct export *x;
    const struct workload_op *op;
    const struct workload_header *h = workload_reader_header(r);
    j->outputs.facts.slots = true;
    j->outputs.facts.has_stamps = j->settings->stamps && h->has_stamps;
    int rc = export_outputs_get(&j->outputs, 0, h->pid, &x);
    while (rc == 0 && (rc = workload_next_op(r, &thread, &op, j->e)) > 0) {
        struct export_call c = call_from_op(h, thread, op);
        rc = put_call(j, 0, &c);
    }
    return rc;
}

// A trace as it was recorded where the format holds addresses; else the workload made of it.
static int open_source(const struct export_settings *s, struct file *f, const char *from, struct err *e)
{
    if (s->format->export.holds & FORMAT_HOLDS_ADDRESSES) {
        bool twice = !s->live && !(s->format->export.holds & FORMAT_HOLDS_PIDS);
        return file_open(f, from, FILE_TRACE | FILE_WORKLOAD | (twice ? FILE_TWICE : 0), e);
    }
    *f = (struct file){.kind = FILE_WORKLOAD, .trace.in.fd = -1, .json.fd = -1};
    return convert_open(&f->workload, from, &(struct convert_open_options){.pid = s->pid, .watch = s->watch}, e);
}

int export_file(const char *from, const struct export_settings *s, struct err *e)
{
    struct export_job j = {.settings = s, .outputs = {.settings = s, .e = e}, .e = e};
    struct progress *progress = s->watch ? s->watch->progress : NULL;
    struct file f;
    int rc = open_source(s, &f, from, e);
    if (rc == 0) {
        j.in = file_input(&f);
        if (progress)
            progress->total = j.in->size_bytes;
        rc = f.kind == FILE_TRACE ? export_trace(&j, &f.trace) : export_workload(&j, f.workload.reader);
    }
    if (progress)
        progress_clear(progress);
    int closed = export_outputs_close(&j.outputs, rc == 0);
    rc = rc < 0 ? rc : closed;
    if (rc == 0 && j.outputs.lost.format && s->watch && s->watch->note)
        export_report_losses(&j.outputs.lost, s->watch->note);
    if (s->opened && s->opened->fd >= 0)
        output_close(s->opened, false, NULL);
    file_close(&f);
    return rc;
}
