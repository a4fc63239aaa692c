#include "convert/process.h"

#include "base/buf.h"
#include "base/map.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int convert_process_begin(struct convert_process *c, struct output *out,
                          const struct trace_session *session, const struct trace_process *p)
{
    struct workload_header h = {
        .clock_hz = session->clock_hz,
        .stamp_shift = session->stamp_shift,
        .has_stamps = !c->settings->no_stamps && !session->order_only,
        .start_stamp = p->start_stamp,
        .pid = p->pid,
        .forked_from = p->forked_from,
        .exe = p->exe,
        .allocator = p->allocator,
        .allocator_build_id = p->allocator_build_id,
        .argv = p->argv,
        .argv_bytes = p->argv_bytes,
        .stack_sample_bytes = session->stack_sample_bytes,
    };
    c->process = p;
    c->session = session;
    return workload_output_begin(&c->to, out, c->settings->level, &h, c->e);
}

void convert_process_release(struct convert_process *c)
{
    workload_output_release(&c->to);
}

int convert_process_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct convert_process *c = context;
    return workload_output_ops(&c->to, ops, n, c->e);
}

int convert_process_simple(void *context, uint32_t thread, const struct workload_simple *ops,
                           size_t n)
{
    struct convert_process *c = context;
    return workload_output_simple(&c->to, thread, ops, n, c->e);
}

static int keep_samples(void *context, const struct trace_sample *samples, size_t n)
{
    struct convert_process *c = context;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct workload_sample one = {samples[i].stamp, samples[i].rss_bytes,
                                      samples[i].anon_bytes};
        rc = workload_write_samples(c->to.writer, &one, 1, c->e);
    }
    return rc;
}

// Appends ", N events (first: ADDRESS in thread TID at +SECONDS s)" if there are faults. The
// time is as in the output of `dump`. Returns the new end of the text.
static char *put_faults(char *to, const struct trace_session *session, const struct order_faults *f,
                        const char *events)
{
    unsigned long long ns =
        clock_to_ns((f->stamp > session->start_stamp ? f->stamp - session->start_stamp : 0)
                        << session->stamp_shift,
                    session->clock_hz);
    if (!f->n)
        return to;
    to += sprintf(to, ", %llu %s (first:", (unsigned long long)f->n, events);
    if (f->address)
        to += sprintf(to, " 0x%llx", (unsigned long long)f->address);
    to += sprintf(to, " in thread %u", f->tid);
    if (!session->order_only)
        to += sprintf(to, " at +%llu.%06llu s", ns / 1000000000, ns / 1000 % 1000000);
    return to + sprintf(to, ")");
}

static int check_strict(const struct convert_process *c, const struct order_counts *n)
{
    char text[sizeof c->e->text] = "", *end = text;
    end = put_faults(end, c->session, &n->ambiguous,
                     n->ambiguous.n == 1 ? "event has an ambiguous order"
                                         : "events have an ambiguous order");
    end = put_faults(end, c->session, &n->unmatched,
                     n->unmatched.n == 1 ? "free has no recorded allocation"
                                         : "frees have no recorded allocation");
    end = put_faults(end, c->session, &n->lost, n->lost.n == 1 ? "word is lost" : "words are lost");
    if (!c->settings->strict || end == text)
        return 0;
    return err_set(c->e, -EBADMSG, "%s: --strict: %s", c->source, text + strlen(", "));
}

int convert_process_done(void *context, const struct order_counts *counts,
                         const struct workload_sites *sites)
{
    struct convert_process *c = context;
    struct workload_summary *s = &c->summary;
    *s = workload_output_summary(&c->to);
    order_summarise(counts, s);
    s->recorded_from = c->process->recorded_from;
    s->recorded_to = c->process->recorded_to;
    // The CPU time outside the recorded part is unknown.
    s->cpu_ns = c->process->recorded_to ? 0 : c->process->cpu_ns;
    s->recording_ns = clock_to_ns(c->process->recording_ticks, c->session->clock_hz);
    s->calls_min_ns = s->cpu_ns ? clock_to_ns(c->process->call_min_ticks, c->session->clock_hz) : 0;
    s->calls_max_ns = s->cpu_ns ? clock_to_ns(c->process->call_max_ticks, c->session->clock_hz) : 0;
    s->recording_rss_bytes = trace_process_recording_rss(c->process);
    s->libraries = c->process->libraries;
    s->peak_rss_bytes = trace_process_peak_rss(c->process);
    s->early_events = c->process->early_events;
    s->early_max_ns = clock_to_ns(c->process->early_max_ticks, c->session->clock_hz);
    s->early_usual_ns = clock_to_ns(c->process->early_usual_ticks, c->session->clock_hz);
    workload_write_sites(c->to.writer, sites);
    workload_write_residency(c->to.writer, counts->residency);
    int rc = check_strict(c, counts);
    return rc < 0 ? rc : workload_write_end(c->to.writer, s, c->e);
}

// Conversion of one process to `out`, or of all processes to files.
struct conversion {
    struct trace_file *trace;
    const struct convert_settings *settings;
    uint32_t process;                  // set only if `out` is set
    struct output *out;                // NULL if all processes are converted (convert_each)
    const struct convert_files *files; // set only for convert_each
    struct map images;                 // maps a pid to the number of its images that have a file
    struct trace_forks forks;
    struct conversion_target **targets;
    size_t n_targets, capacity;
    struct err *e;
};

// A process image, whose file is opened at the first op.
struct conversion_target {
    struct conversion *job;
    const struct trace_process *process;
    char *path; // NULL before the first op
    bool complete;
    struct output file;
    struct convert_process of;
};

// Returns the name of the next file of the pid, or NULL when out of memory. The caller frees the
// name.
static char *make_path(struct conversion *j, uint32_t pid)
{
    const char *pattern = j->files->pattern, *at = strstr(pattern, "%p"), *ending = "";
    uint64_t image = map_get(&j->images, pid) + 1;
    size_t n = strlen(pattern);
    char number[32], *path;
    if (map_put(&j->images, pid, image) < 0)
        return NULL;
    if (image == 1)
        snprintf(number, sizeof number, "%u", pid);
    else
        snprintf(number, sizeof number, "%u-%llu", pid, (unsigned long long)image);
    if (at)
        return asprintf(&path, "%.*s%s%s", (int)(at - pattern), pattern, number, at + 2) < 0 ? NULL
                                                                                             : path;
    if (n > 4 && strcmp(pattern + n - 4, ".htw") == 0) {
        n -= 4;
        ending = ".htw";
    }
    return asprintf(&path, "%.*s.%s%s", (int)n, pattern, number, ending) < 0 ? NULL : path;
}

static int open_target(struct conversion_target *t)
{
    struct conversion *j = t->job;
    t->path = j->files->pattern ? make_path(j, t->process->pid) : strdup(j->trace->in.name);
    if (!t->path)
        return err_no_memory(j->e, j->trace->in.name);
    int rc = j->files->pattern ? output_open(&t->file, t->path, j->files->flags, j->e)
                               : output_open_unnamed(&t->file, j->e);
    return rc < 0 ? rc
                  : convert_process_begin(&t->of, &t->file, &j->trace->reader.session, t->process);
}

static int put_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct conversion_target *t = context;
    int rc = t->path || t->job->out ? 0 : open_target(t);
    return rc < 0 ? rc : convert_process_ops(&t->of, ops, n);
}

static int put_simple(void *context, uint32_t thread, const struct workload_simple *ops, size_t n)
{
    struct conversion_target *t = context;
    int rc = t->path || t->job->out ? 0 : open_target(t);
    return rc < 0 ? rc : convert_process_simple(&t->of, thread, ops, n);
}

// Writes the samples. If the file is not open yet, drops the samples that precede the first op.
static int put_samples(void *context, const struct trace_sample *samples, size_t n)
{
    struct conversion_target *t = context;
    return t->path || t->job->out ? keep_samples(&t->of, samples, n) : 0;
}

static int read_target(struct conversion_target *t)
{
    struct conversion *j = t->job;
    struct input in;
    int rc = input_from_output(&in, &t->file, j->trace->in.name, j->e);
    return rc < 0 ? rc : j->files->read(j->files->context, t->process, &in, j->e);
}

static int finish_target(void *context, const struct order_counts *counts,
                         const struct workload_sites *sites)
{
    struct conversion_target *t = context;
    if (t->job->out)
        return convert_process_done(&t->of, counts, sites);
    if (!t->path)
        return 0;
    int rc = convert_process_done(&t->of, counts, sites);
    uint64_t bytes = t->file.offset;
    convert_process_release(&t->of);
    if (!t->job->files->pattern)
        return rc < 0 ? rc : read_target(t);
    rc = output_finish(&t->file, rc, t->job->e);
    t->complete = rc == 0;
    if (rc == 0 && t->job->files->written)
        t->job->files->written(t->path, bytes, &t->of.summary);
    return rc;
}

static int choose_target(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct conversion *j = context;
    if (j->out && p->number != j->process)
        return 0;
    if (HT_GROW(&j->targets, &j->capacity, j->n_targets + 1) < 0)
        return -ENOMEM;
    struct conversion_target *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    *t = (struct conversion_target){
        .job = j,
        .process = p,
        .file.fd = -1,
        .of = {.settings = j->settings, .source = j->trace->in.name, .e = j->e}};
    j->targets[j->n_targets++] = t;
    *sink = (struct convert_sink){.ops = {.context = t, .ops = put_ops, .simple = put_simple},
                                  .samples = put_samples,
                                  .done = finish_target};
    int rc = j->out ? convert_process_begin(&t->of, j->out, &j->trace->reader.session, p) : 0;
    return rc < 0 ? rc : 1;
}

static void show_progress(void *context, uint64_t offset)
{
    const struct conversion *j = context;
    progress_update(j->settings->watch->progress, offset);
}

static __attribute__((format(printf, 2, 3))) void send_note(const struct conversion *j,
                                                            const char *format, ...)
{
    char text[sizeof(struct err) + 64];
    va_list args;
    if (!j->settings->watch || !j->settings->watch->note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    j->settings->watch->note(text);
}

// Frees the targets and closes any files that an error left open. Returns the number of files.
static size_t release_targets(struct conversion *j)
{
    size_t files = 0;
    for (size_t i = 0; i < j->n_targets; i++) {
        struct conversion_target *t = j->targets[i];
        files += t->path != NULL;
        if (t->file.fd >= 0)
            output_close(&t->file, false, NULL);
        convert_process_release(&t->of);
        free(t->path);
        free(t);
    }
    free(j->targets);
    map_release(&j->images);
    trace_forks_release(&j->forks);
    return files;
}

// Reports forks whose time was not recorded: forks made with clone(2), and all forks in old traces.
static void note_unseen_forks(const struct conversion *j)
{
    size_t unseen = 0;
    for (size_t i = 0; i < j->forks.n; i++)
        unseen += !j->forks.items[i].seen;
    if (unseen)
        send_note(j,
                  "the time of %zu of %zu forks was not recorded: their children are assumed to "
                  "inherit the blocks that were live in the parent at the child's first call",
                  unseen, j->forks.n);
}

static int run_conversion(struct conversion *j)
{
    struct progress *progress = j->settings->watch ? j->settings->watch->progress : NULL;
    struct convert_options how = {.window_ns = j->settings->window_ns,
                                  .no_early_frees = j->settings->no_early_frees,
                                  .only_allocator = j->settings->only_allocator,
                                  .choose = choose_target,
                                  .forks = &j->forks,
                                  .context = j};
    struct convert_result result;
    if (progress) {
        progress->total = j->trace->in.size_bytes;
        how.progress = show_progress;
    }
    int rc = convert_run(&j->trace->reader, &how, &result, j->e);
    progress_clear(progress);
    if (rc == 0)
        note_unseen_forks(j);
    if (rc == 0 && result.cut_off && j->settings->watch && j->settings->watch->warn)
        err_note(j->settings->watch->warn, "%s; converted the events up to that point",
                 result.cut.text);
    return rc;
}

int convert_one(struct trace_file *t, struct output *out, const struct convert_settings *s,
                struct workload_summary *summary, struct err *e)
{
    struct conversion j = {.trace = t, .settings = s, .out = out, .e = e};
    struct peaks peaks;
    int rc = peaks_choose(&peaks, t, s->pid, s->watch ? s->watch->progress : NULL, e);
    j.process = peaks.chosen;
    if (rc == 0)
        rc = trace_forks_find(&j.forks, t, e);
    trace_forks_keep(&j.forks, j.process);
    if (rc == 0)
        rc = run_conversion(&j);
    // The counts at the end of the trace have not been verified.
    if (rc == 0 && !j.n_targets)
        rc = err_set(e, -EBADMSG,
                     "%s: the counts at the end name process %u, which is not in the trace",
                     t->in.name, j.process);
    if (rc == 0)
        *summary = j.targets[0]->of.summary;
    if (rc == 0 && s->only_allocator && !summary->peak_live_bytes && !summary->unmatched_frees)
        rc = err_set(e, -ENOENT, "%s: the process made no calls of the chosen allocator",
                     t->in.name);
    if (rc == 0 && peaks.n)
        peaks.items[0].peak_bytes = summary->peak_live_bytes - summary->preexisting_bytes;
    if (rc == 0 && peaks.n_all > 1 && s->watch && s->watch->chosen)
        s->watch->chosen(&t->reader, j.process, peaks.n_all, &peaks);
    release_targets(&j);
    peaks_release(&peaks);
    return rc;
}

int convert_each(struct trace_file *t, const struct convert_files *files,
                 const struct convert_settings *s, struct err *e)
{
    struct conversion j = {.trace = t, .settings = s, .files = files, .e = e};
    int rc = trace_file_read_tail(t, e);
    if (rc == 0)
        rc = trace_forks_find(&j.forks, t, e);
    if (rc == 0)
        rc = run_conversion(&j);
    size_t complete = 0;
    for (size_t i = 0; i < j.n_targets; i++)
        complete += j.targets[i]->complete;
    size_t n = release_targets(&j);
    if (rc < 0 && complete)
        send_note(&j, "wrote the workloads of %zu processes that ended before the error, no others",
                  complete);
    return rc == 0 && !n ? err_set(e, -ENOENT, "%s: the trace contains no events", t->in.name) : rc;
}
