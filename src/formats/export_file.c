#include "formats/export_file.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "convert/addressed.h"
#include "convert/convert.h"
#include "convert/open.h"
#include "convert/peaks.h"
#include "convert/walk.h"
#include "formats/export_outputs.h"
#include "trace/codec.h"
#include "workload/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ALL_PROCESSES = 0xffffffff,
    WINDOW_EVENTS = 1 << 12, // for traces without times, where stamps count events
};

struct export_job;

// A process whose calls the converter orders, so that allocations and frees of an address
// alternate.
struct export_process {
    struct addressed calls; // context of the process's sinks
    struct export_job *job;
    uint32_t number, pid;
    bool glibc;                    // see export_call
    struct export_call *calls_due; // only used if several processes share an output
    size_t n, at, capacity;
    uint64_t due_ns; // maximum of the times of calls_due[at] and all calls before it
};

struct export_job {
    const struct export_settings *settings;
    struct export_outputs outputs;
    const struct trace_session *session;
    uint32_t process; // number of the only process to export, or ALL_PROCESSES
    bool left_out;    // processes other than `process` were omitted
    struct trace_forks forks;
    struct err *e;
    const struct input *in;
    uint32_t calls;   // calls since the start, modulo 2^32
    struct export *x; // export of the last call, or NULL; `of` is the process of that call
    uint32_t of;
    struct export_process **processes; // by number
    size_t n_processes, processes_capacity;
    uint64_t added; // number of frees that were added
    int failed;     // error returned by put_due
};

void export_call_from_walk(const struct trace_session *s, const struct walk_call *w,
                           struct export_call *c)
{
    *c = (struct export_call){
        .ev = *w->event, .pid = w->process->pid, .tid = w->tid, .thread = w->thread};
    unsigned class = event_infos[c->ev.kind].class;
    c->ev.stamp = trace_stamp_ns(s, c->ev.stamp);
    c->failed =
        (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE) && !c->ev.result && c->ev.error;
}

// Fills in *c instead of returning a struct. The caller would read a returned struct with loads
// wider than the stores that wrote it, which prevents store forwarding.
void export_call_from_op(const struct workload_header *h, uint32_t thread,
                         const struct workload_op *op, struct export_call *c)
{
    unsigned class = event_infos[op->kind].class;
    uint64_t since = h->has_stamps && op->stamp > h->start_stamp ? op->stamp - h->start_stamp : 0;
    uint64_t block = op->slot == WORKLOAD_NO_SLOT ? 0 : op->slot + 1ull;
    *c = (struct export_call){
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
        c->ev.notes[HT_NOTE_SITE] = op->value;
    c->ev.notes[HT_NOTE_ALLOCATOR] = op->allocator;
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        c->ev.ptr = block;
    if (class == HT_CLASS_ALLOC ||
        (class == HT_CLASS_RESIZE && !(op->flags & (WORKLOAD_FAILED | WORKLOAD_FREED))))
        c->ev.result = block;
}

static int put_call(struct export_job *j, uint32_t process, const struct export_call *c)
{
    enum { CALLS_PER_UPDATE = 4096 };
    const struct convert_watch *watch = j->settings->watch;
    if (++j->calls % CALLS_PER_UPDATE == 0 && watch)
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
    bool holds = kind == HT_RESIDENCY && j->settings->format->export.holds & FORMAT_HOLDS_RESIDENCY;
    if (!event_counts(kind) && !event_defines_sites(kind) && !holds)
        return 0;
    struct export_call c;
    export_call_from_walk(j->session, w, &c);
    return put_call(j, w->process->number, &c);
}

static int put_addressed(void *context, const struct addressed_call *a)
{
    struct export_process *p = context;
    if (!event_counts(a->ev.kind))
        return 0;
    struct export_call c = {
        .ev = a->ev,
        .pid = p->pid,
        .tid = a->tid,
        .thread = a->thread,
        .failed = a->failed,
        .earlier = a->earlier,
        .glibc = p->glibc || a->ev.notes[HT_NOTE_PATH],
        .added = a->added,
    };
    c.ev.stamp = trace_stamp_ns(p->job->session, a->ev.stamp);
    if (p->job->failed || p->job->process != ALL_PROCESSES ||
        export_outputs_are_many(p->job->settings))
        return p->job->failed ? p->job->failed : put_call(p->job, p->number, &c);
    c.ev.text = NULL; // formats that store addresses do not store text
    c.ev.text_bytes = 0;
    return HT_APPEND(&p->calls_due, &p->n, &p->capacity, c);
}

// Returns the process with the earliest due call, or NULL.
static struct export_process *first_due(struct export_job *j)
{
    struct export_process *first = NULL;
    for (size_t i = 0; i < j->n_processes; i++) {
        struct export_process *p = j->processes[i];
        if (p->at == p->n)
            continue;
        uint64_t ns = p->calls_due[p->at].ev.stamp;
        p->due_ns = ns > p->due_ns ? ns : p->due_ns;
        first = !first || p->due_ns < first->due_ns ? p : first;
    }
    return first;
}

// Writes all calls that are due, in order of time.
static int put_due(struct export_job *j)
{
    struct export_process *p;
    while (!j->failed && (p = first_due(j))) {
        j->failed = put_call(j, p->number, &p->calls_due[p->at++]);
        if (p->at == p->n)
            p->at = p->n = 0;
    }
    return j->failed;
}

// Flushes the output before the walk blocks.
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

// Finds the blocks that forked processes inherit. An output with a single process needs these
// blocks. An output with all processes does not, because it contains the events of the parent.
static int find_forks(struct export_job *j, struct trace_file *t)
{
    if (j->settings->live || j->settings->format->export.holds & FORMAT_HOLDS_PIDS)
        return 0;
    int rc = trace_forks_find(&j->forks, t, j->e);
    if (j->process != ALL_PROCESSES)
        trace_forks_keep(&j->forks, j->process);
    return rc;
}

// Sets j->process according to the format and the options.
static int choose_processes(struct export_job *j, struct trace_file *t)
{
    struct progress *progress = j->settings->watch ? j->settings->watch->progress : NULL;
    struct peaks peaks;
    j->process = ALL_PROCESSES;
    if (j->settings->format->export.holds & FORMAT_HOLDS_PIDS ||
        export_outputs_are_many(j->settings))
        return 0;
    j->process = 0; // process 0 is the program itself
    if (j->settings->live)
        return 0;
    int rc = peaks_choose(&peaks, t, j->settings->pid, progress, j->e);
    j->process = peaks.chosen;
    peaks_release(&peaks);
    return rc;
}

static int finish_process(void *context, const struct order_counts *counts,
                          const struct workload_sites *sites)
{
    struct export_process *p = context;
    struct export_job *j = p->job;
    (void)counts;
    (void)sites;
    int rc = addressed_finish(&p->calls);
    j->added += p->calls.broken;
    addressed_release(&p->calls);
    j->x = NULL;
    return rc < 0 ? rc : export_outputs_end(&j->outputs, p->number);
}

static int choose_process(void *context, const struct trace_process *from,
                          struct convert_sink *sink)
{
    struct export_job *j = context;
    if (!wants_process(j, from))
        return 0;
    struct export_process *p =
        HT_GROW(&j->processes, &j->processes_capacity, j->n_processes + 1) < 0
            ? NULL
            : calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    j->processes[j->n_processes++] = p;
    *p = (struct export_process){.calls = {.put = put_addressed, .context = p},
                                 .job = j,
                                 .number = from->number,
                                 .pid = from->pid,
                                 .glibc = trace_is_glibc(from->allocator)};
    *sink = (struct convert_sink){.ops = {.context = p, .calls = addressed_add},
                                  .done = finish_process};
    return 1;
}

static void release_processes(struct export_job *j)
{
    for (size_t i = 0; i < j->n_processes; i++) {
        addressed_release(&j->processes[i]->calls);
        free(j->processes[i]->calls_due);
        free(j->processes[i]);
    }
    free(j->processes);
}

// Called after each frame. Stores a write error in j->failed; the next event of the trace returns
// it.
static void put_all_due(void *context, uint64_t offset)
{
    struct export_job *j = context;
    (void)offset;
    if (put_due(j) == 0 && j->settings->live)
        (void)export_outputs_flush(&j->outputs);
}

// Exports in the converter's order, for formats with FORMAT_ALTERNATES.
static int export_converted(struct export_job *j, struct trace_reader *r, struct err *cut)
{
    const struct convert_options how = {
        .window_ns = j->session->order_only ? WINDOW_EVENTS : 0,
        .choose = choose_process,
        .forks = &j->forks,
        .progress = put_all_due,
        .context = j,
    };
    struct convert_result result;
    int rc = convert_run(r, &how, &result, j->e);
    *cut = result.cut;
    rc = rc == 0 ? put_due(j) : rc;
    release_processes(j);
    return rc;
}

// Exports in timestamp order.
static int export_walked(struct export_job *j, struct trace_reader *r, struct err *cut)
{
    const struct walk_options how = {
        .call = put_recorded,
        .wants = wants_process,
        .pause = j->settings->live ? pause_export : NULL,
        .ended = end_process,
        .context = j,
    };
    return walk_run(r, &how, cut, j->e);
}

static void note_counts(const struct export_job *j)
{
    const struct convert_watch *watch = j->settings->watch;
    if (!watch || !watch->note)
        return;
    if (j->added)
        err_note(watch->note,
                 "%llu addresses were allocated twice without a free; frees were added",
                 (unsigned long long)j->added);
    if (j->left_out)
        err_note(watch->note,
                 "%s holds one process: other processes were not written (%swrite one file per "
                 "process%s)",
                 j->settings->format->name, j->settings->live ? "" : "choose one with --pid, or ",
                 j->settings->live ? ": name it with -o" : " with %p in the name of the output");
}

static int export_trace(struct export_job *j, struct trace_file *t)
{
    struct err cut;
    struct export *x;
    bool alternates = j->settings->format->export.holds & FORMAT_ALTERNATES;
    int rc = choose_processes(j, t);
    j->session = &t->reader.session;
    j->outputs.facts.realtime_ns = j->session->realtime_ns;
    j->outputs.facts.has_stamps = j->settings->stamps && !j->session->order_only;
    // Create a shared output even if there are no events.
    if (rc == 0 && !export_outputs_are_many(j->settings))
        rc = export_outputs_get(&j->outputs, 0, 0, &x);
    if (rc == 0 && alternates)
        rc = find_forks(j, t);
    if (rc == 0)
        rc = (alternates ? export_converted : export_walked)(j, &t->reader, &cut);
    trace_forks_release(&j->forks);
    if (rc == 0 && cut.text[0] && j->settings->watch && j->settings->watch->warn)
        j->settings->watch->warn(cut.text);
    if (rc == 0)
        note_counts(j);
    return rc;
}

static int put_modules(struct export_job *j, struct export_call *c, uint32_t process,
                       const struct workload_sites *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_modules; i++) {
        const struct workload_module *m = &s->modules[i];
        char *text;
        int n = asprintf(&text, "%s %s", m->build_id, m->path);
        if (n < 0)
            return -ENOMEM;
        c->ev = (struct event){
            .kind = HT_MODULE, .ptr = m->start, .size = m->bytes, .value = m->offset};
        c->ev.text = text;
        c->ev.text_bytes = n < CODEC_MAX_TEXT_BYTES ? (uint32_t)n : CODEC_MAX_TEXT_BYTES;
        rc = put_call(j, process, c);
        free(text);
    }
    return rc;
}

static int put_stacks(struct export_job *j, struct export_call *c, uint32_t process,
                      const struct workload_sites *s)
{
    uint8_t codes[CODEC_MAX_TEXT_BYTES];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_sites; i++) {
        const struct workload_site *site = &s->sites[i];
        uint32_t n = site->n < sizeof codes / 8 ? site->n : sizeof codes / 8;
        for (uint32_t f = 0; f < n; f++)
            put_u64(codes + (size_t)f * 8, s->frames[site->first + f].address);
        c->ev = (struct event){
            .kind = HT_STACK, .value = i + 1, .text = (const char *)codes, .text_bytes = n * 8};
        rc = n ? put_call(j, process, c) : 0;
    }
    return rc;
}

// If the format stores call sites, writes modules and stacks before the ops that refer to them.
static int put_sites(struct export_job *j, struct workload_reader *r, uint32_t process)
{
    struct workload_sites sites;
    struct err none = {0};
    struct export_call c = {.pid = workload_reader_header(r)->pid};
    if (!(j->settings->format->export.notes & 1u << HT_NOTE_SITE))
        return 0;
    int rc = workload_read_sites(r, &sites, &none);
    if (rc == -ESPIPE && j->settings->watch && j->settings->watch->note)
        j->settings->watch->note("call stacks are not written: they are at the end of the "
                                 "workload, and a pipe cannot seek");
    // Ignore the error: truncated and damaged files are reported when the ops are read.
    rc = rc < 0 ? 0 : put_modules(j, &c, process, &sites);
    rc = rc < 0 ? rc : put_stacks(j, &c, process, &sites);
    workload_sites_release(&sites);
    return rc;
}

// Exports the workload of one process. Its output has the number `process`.
static int export_workload(struct export_job *j, struct workload_reader *r, uint32_t process)
{
    uint32_t thread;
    struct export *x;
    const struct workload_op *op;
    struct export_call c;
    const struct workload_header *h = workload_reader_header(r);
    j->outputs.facts.slots = true;
    j->outputs.facts.has_stamps = j->settings->stamps && h->has_stamps;
    int rc = export_outputs_get(&j->outputs, process, h->pid, &x);
    if (rc == 0 && x->format->export.profile) {
        x->progress = j->settings->watch ? j->settings->watch->progress : NULL;
        x->in = j->in;
        return x->format->export.profile(x, r);
    }
    rc = rc < 0 ? rc : put_sites(j, r, process);
    while (rc == 0 && (rc = workload_next_op(r, &thread, &op, j->e)) > 0) {
        export_call_from_op(h, thread, op, &c);
        rc = put_call(j, process, &c);
    }
    return rc;
}

static int export_process_workload(void *context, const struct trace_process *p, struct input *in,
                                   struct err *e)
{
    struct export_job *j = context;
    struct workload_file w;
    bool many = export_outputs_are_many(j->settings);
    // A single output contains the program itself, which is process 0.
    if (!many && p->number) {
        j->left_out = true;
        input_close(in);
        return 0;
    }
    int rc = workload_file_adopt(&w, in, e) ?: export_workload(j, w.reader, p->number);
    j->x = NULL;
    workload_file_close(&w);
    return rc < 0 ? rc : export_outputs_end(&j->outputs, p->number);
}

// For formats that number blocks, converts each process to a workload before the export.
static int export_workloads(struct export_job *j, struct trace_file *t)
{
    const struct convert_files files = {.read = export_process_workload, .context = j};
    const struct convert_settings how = {.level = 1,
                                         // The workload is read only once, so compress it fast.
                                         .watch = j->settings->watch};
    int rc = convert_each(t, &files, &how, j->e);
    if (rc == 0)
        note_counts(j);
    return rc;
}

// Opens a trace directly if the format stores addresses. Otherwise, converts the trace to a
// workload and opens the workload.
static int open_source(const struct export_settings *s, struct file *f, const char *from,
                       struct err *e)
{
    bool addresses = s->format->export.holds & FORMAT_HOLDS_ADDRESSES;
    bool profile = s->format->export.profile;
    if (addresses || s->live || (export_outputs_are_many(s) && !s->pid)) {
        bool twice = !s->live && !(s->format->export.holds & FORMAT_HOLDS_PIDS);
        unsigned copy = !twice ? 0 : profile ? FILE_TWICE : FILE_TRACE_TWICE;
        return file_open(f, from, FILE_TRACE | FILE_WORKLOAD | copy, e);
    }
    *f = (struct file){.kind = FILE_WORKLOAD, .trace.in.fd = -1, .json.fd = -1};
    const struct convert_open_options how = {.pid = s->pid, .twice = profile, .watch = s->watch};
    return convert_open(&f->workload, from, &how, e);
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
        bool addresses = s->format->export.holds & FORMAT_HOLDS_ADDRESSES;
        if (f.kind == FILE_WORKLOAD)
            rc = workload_reader_find_pid(f.workload.reader, s->pid, e);
        rc = rc < 0                    ? rc
             : f.kind == FILE_WORKLOAD ? export_workload(&j, f.workload.reader, 0)
             : addresses               ? export_trace(&j, &f.trace)
                                       : export_workloads(&j, &f.trace);
        if (rc == 0 && f.kind == FILE_TRACE)
            rc = trace_reader_find_pid(&f.trace.reader, s->pid, e);
    }
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
