#include "commands/stat_gather.h"

#include "base/buf.h"
#include "base/progress.h"
#include "cli/command.h"
#include "convert/convert.h"
#include "workload/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The statistics of one process while the trace is read.
struct counter {
    struct file_stat *file;
    size_t process; // in file
    struct summary_counter stats;
    struct usage usage;
    struct workload_sample *samples;
    size_t n_samples, samples_capacity;
    struct by_site by_site; // empty until an op has a call site
    struct workload_sites sites;
};

static void counter_free(struct counter *c)
{
    if (!c)
        return;
    summary_release(&c->stats);
    usage_release(&c->usage);
    by_site_release(&c->by_site);
    workload_sites_release(&c->sites);
    free(c->samples);
    free(c);
}

void file_stat_release(struct file_stat *s)
{
    for (size_t i = 0; i < s->n_processes; i++) {
        free(s->processes[i].argv);
        free(s->processes[i].exe);
        counter_free(s->processes[i].counter);
        trace_process_release(&s->processes[i].facts);
    }
    trace_session_release(&s->session);
    free(s->processes);
    free(s->sums);
    free(s->samples);
    usage_release(&s->usage);
    symbols_free(s->symbols);
    by_site_release(&s->by_site);
    workload_sites_release(&s->sites);
    *s = (struct file_stat){0};
}

static int add_process(struct file_stat *s, uint32_t pid, const char *argv, uint32_t argv_bytes, const char *exe)
{
    if (HT_GROW(&s->processes, &s->capacity, s->n_processes + 1) < 0)
        return -ENOMEM;
    struct process_stat *p = &s->processes[s->n_processes];
    *p = (struct process_stat){.pid = pid, .argv_bytes = argv_bytes};
    p->argv = malloc(argv_bytes + 1u);
    p->exe = exe ? strdup(exe) : NULL;
    s->n_processes++;
    if (!p->argv || (exe && !p->exe))
        return -ENOMEM;
    if (argv_bytes)
        memcpy(p->argv, argv, argv_bytes);
    p->argv[argv_bytes] = 0;
    return 0;
}

// Ops `stride` bytes apart. Nothing is done before the first one with a call site: hardly any file has them. To be called
// before the ops are in `usage`.
static int count_sites(struct by_site *b, const struct usage *usage, const struct workload_op *ops, size_t stride,
                       size_t n)
{
    const char *at = (const char *)ops, *end = at + n * stride;
    if (!b->n_sites) {
        while (at < end && !by_site_known((const struct workload_op *)at))
            at += stride;
        if (at == end)
            return 0;
        at = (const char *)ops;
        if (by_site_begin(b, usage) < 0)
            return -ENOMEM;
    }
    int rc = 0;
    for (; rc == 0 && at < end; at += stride)
        rc = by_site_op(b, (const struct workload_op *)at);
    return rc;
}

static int count_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct counter *c = context;
    int rc = summary_ops(&c->stats, ops, n);
    if (rc == 0 && c->file->sums)
        rc = count_sites(&c->by_site, &c->usage, &ops->op, sizeof *ops, n);
    return rc < 0 || !c->file->sums ? rc : usage_ops(&c->usage, ops, n);
}

static int count_samples(void *context, const struct trace_sample *samples, size_t n)
{
    struct counter *c = context;
    if (HT_GROW(&c->samples, &c->samples_capacity, c->n_samples + n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        c->samples[c->n_samples++] =
            (struct workload_sample){samples[i].stamp, samples[i].rss_bytes, samples[i].anon_bytes};
    return 0;
}

// Keeps the usage of the process with most events.
static void keep_usage(struct file_stat *s, struct counter *c)
{
    if (s->usage.events && s->usage.events >= c->usage.events)
        return;
    usage_release(&s->usage);
    free(s->samples);
    s->usage = c->usage;
    s->of_usage = c->process;
    s->samples = c->samples;
    s->n_samples = c->n_samples;
    c->usage = (struct usage){0};
    c->samples = NULL;
    by_site_release(&s->by_site);
    workload_sites_release(&s->sites);
    s->by_site = c->by_site;
    s->sites = c->sites;
    c->by_site = (struct by_site){0};
    c->sites = (struct workload_sites){0};
}

static int count_done(void *context, const struct order_counts *counts, const struct workload_sites *sites)
{
    struct counter *c = context;
    struct process_stat *p = &c->file->processes[c->process];
    struct workload_summary *s = &p->summary;
    *s = summary_result(&c->stats);
    order_summarise(counts, s);
    int rc = c->file->sums ? usage_finish(&c->usage) : 0;
    if (rc == 0 && c->by_site.n_sites)
        rc = workload_sites_copy_all(&c->sites, sites);
    if (rc == 0 && c->file->sums)
        keep_usage(c->file, c);
    p->counter = NULL;
    counter_free(c);
    return rc;
}

static double ns_per_stamp(unsigned shift, uint64_t hz)
{
    return hz ? (double)(1ull << shift) * 1e9 / (double)hz : 0;
}

static int count_process(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct file_stat *s = context;
    int rc = add_process(s, p->pid, p->argv, p->argv_bytes, p->exe);
    struct counter *c = rc < 0 ? NULL : calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    summary_init(&c->stats);
    usage_init(&c->usage, s->sums, p->start_stamp, s->ns_per_stamp);
    c->file = s;
    c->process = s->n_processes - 1;
    s->processes[c->process].counter = c;
    *sink = (struct convert_sink){.ops = {.context = c, .ops = count_ops}, .done = count_done};
    if (s->sums)
        sink->samples = count_samples;
    return 1;
}

static void show_progress(void *context, uint64_t offset)
{
    struct file_stat *s = context;
    progress_update(&s->progress, offset);
}

// Of the recording, or of the part of it in which its processes were recorded.
static uint64_t trace_duration_ns(const struct trace_reader *r, uint64_t end_stamp)
{
    uint64_t from = UINT64_MAX, to = 0;
    for (size_t i = 0; i < r->n_processes; i++) {
        const struct trace_process *p = r->processes[i];
        if (!p->recorded_to)
            return trace_stamp_ns(&r->session, end_stamp);
        from = p->recorded_from < from ? p->recorded_from : from;
        to = p->recorded_to > to ? p->recorded_to : to;
    }
    return to > from ? clock_to_ns((to - from) << r->session.stamp_shift, r->session.clock_hz) : 0;
}

static uint64_t workload_duration_ns(const struct workload_header *h, const struct workload_summary *s)
{
    uint64_t from = h->start_stamp && h->start_stamp < s->first_stamp ? h->start_stamp : s->first_stamp;
    uint64_t to = s->last_stamp;
    if (s->recorded_to) {
        from = s->recorded_from;
        to = s->recorded_to;
    }
    return h->has_stamps && to > from ? clock_to_ns((to - from) << h->stamp_shift, h->clock_hz) : 0;
}

// They outlive the reader.
static void keep_facts(struct file_stat *s, struct trace_reader *r)
{
    s->session = r->session;
    r->session = (struct trace_session){0};
    for (size_t i = 0; i < s->n_processes; i++) {
        s->processes[i].facts = *r->processes[i];
        *r->processes[i] = (struct trace_process){0};
    }
}

static int stat_trace(struct file_stat *s, struct trace_file *t, struct err *e)
{
    struct convert_result result;
    struct convert_options how = {.choose = count_process, .progress = show_progress, .context = s};
    s->in = &t->in;
    s->ns_per_stamp = ns_per_stamp(t->reader.session.stamp_shift, t->reader.session.clock_hz);
    int rc = convert_run(&t->reader, &how, &result, e);
    progress_clear(&s->progress);
    if (rc < 0)
        return rc;
    s->cut = result.cut;
    s->duration_ns = trace_duration_ns(&t->reader, result.end_stamp);
    // What the recorder itself says is lost includes processes without any event.
    for (size_t i = 0; i < s->n_processes; i++) {
        struct workload_summary *p = &s->processes[i].summary;
        uint64_t lost = t->reader.processes[i]->lost_records;
        p->lost_records = lost > p->lost_records ? lost : p->lost_records;
    }
    keep_facts(s, &t->reader);
    s->file_bytes = t->in.size_bytes ? t->in.size_bytes : t->in.offset;
    return 0;
}

static int count_all(struct file_stat *s, struct workload_reader *r, struct summary_counter *stats, struct err *e)
{
    uint32_t thread;
    const struct workload_op *ops;
    size_t n;
    int rc;
    while ((rc = workload_next_ops(r, &thread, &ops, &n, e)) > 0) {
        int failed = s->sums ? count_sites(&s->by_site, &s->usage, ops, sizeof *ops, n) : 0;
        if (s->sums && failed == 0)
            failed = usage_run(&s->usage, thread, ops, n);
        for (size_t i = 0; stats && failed == 0 && i < n; i++)
            failed = summary_op(stats, thread, &ops[i]);
        if (failed < 0)
            return err_set(e, failed, "%s: out of memory", s->name);
        show_progress(s, s->in->offset);
    }
    return rc;
}

static int keep_samples(struct file_stat *s, const struct workload_reader *r)
{
    const struct workload_sample *samples = workload_reader_samples(r, &s->n_samples);
    s->samples = malloc((s->n_samples + 1) * sizeof *samples);
    if (s->samples && s->n_samples)
        memcpy(s->samples, samples, s->n_samples * sizeof *samples);
    return s->samples ? 0 : -ENOMEM;
}

// Reads all ops, counting also what a summary says unless *sum has it already. Of a file that is cut off they are those
// that are there.
static int read_ops(struct file_stat *s, struct workload_reader *r, bool has_summary, struct workload_summary *sum,
                    struct err *e)
{
    struct summary_counter stats;
    const struct workload_header *h = workload_reader_header(r);
    summary_init(&stats);
    usage_init(&s->usage, s->sums, h->start_stamp, h->has_stamps ? ns_per_stamp(h->stamp_shift, h->clock_hz) : 0);
    int rc = count_all(s, r, has_summary ? NULL : &stats, e);
    progress_clear(&s->progress);
    if (!has_summary)
        *sum = rc == 0 ? *workload_reader_summary(r) : summary_result(&stats);
    summary_release(&stats);
    if (rc < 0 && rc != -ENODATA)
        return rc;
    if (rc == -ENODATA) {
        s->cut = *e;
        *e = (struct err){0};
    }
    rc = s->sums ? usage_finish(&s->usage) : 0;
    if (rc == 0 && s->by_site.n_sites)
        rc = workload_sites_copy_all(&s->sites, workload_reader_sites(r));
    return rc < 0 ? rc : keep_samples(s, r);
}

static int stat_workload(struct file_stat *s, struct workload_file *w, struct err *e)
{
    const struct workload_header *h = workload_reader_header(w->reader);
    int rc = add_process(s, h->pid, h->argv, h->argv_bytes, h->exe);
    if (rc < 0)
        return err_set(e, rc, "%s: out of memory", s->name);
    struct workload_summary *sum = &s->processes[0].summary;
    struct err ignored = {0};
    rc = workload_read_summary(w->reader, sum, &ignored);
    bool has_summary = rc == 0;
    s->in = &w->in;
    if (rc < 0 && rc != -ESPIPE && rc != -ENODATA)
        *e = ignored;
    else if (s->sums || !has_summary)
        rc = read_ops(s, w->reader, has_summary, sum, e);
    s->duration_ns = workload_duration_ns(h, sum);
    s->file_bytes = w->in.size_bytes ? w->in.size_bytes : w->in.offset;
    return rc;
}

// Names are looked for only when they are printed.
static int finish_sites(struct file_stat *s)
{
    by_site_finish(&s->by_site);
    if (s->by_site.n_sites && s->sites.n_sites)
        s->symbols = symbols_new(&s->sites);
    return s->symbols || !s->by_site.n_sites || !s->sites.n_sites ? 0 : -ENOMEM;
}

int file_stat(struct file_stat *s, const char *path, bool brief, struct err *e)
{
    struct file f;
    *s = (struct file_stat){.name = path};
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
    if (rc == 0 && !brief && !(s->sums = calloc(1, sizeof *s->sums)))
        rc = err_set(e, -ENOMEM, "%s: out of memory", path);
    s->is_trace = f.kind == FILE_TRACE;
    progress_init(&s->progress, "stat", "B", file_input(&f)->size_bytes, cli_common.quiet);
    if (rc == 0)
        rc = f.kind == FILE_TRACE ? stat_trace(s, &f.trace, e) : stat_workload(s, &f.workload, e);
    for (size_t i = 0; rc == 0 && i < s->n_processes; i++)
        summary_add(&s->total, &s->processes[i].summary);
    if (rc == 0 && finish_sites(s) < 0)
        rc = err_set(e, -ENOMEM, "%s: out of memory", path);
    file_close(&f);
    if (rc < 0)
        file_stat_release(s);
    return rc;
}
