// Reads a trace or workload once and emits the rows of the requested tables.
#include "convert/convert.h"
#include "convert/process.h"
#include "tables/scan_private.h"
#include "workload/file.h"

#include <errno.h>
#include <stdlib.h>

// Prefetch distance for the data of blocks, in ops.
enum { AHEAD = 16 };

// State of the scan of a trace.
struct trace_scan {
    const struct tables_scan *scan;
    const struct trace_session *session;
    struct tables_process **processes;
    size_t n, capacity;
    bool addresses; // the requested columns include columns that only traces have
};

static bool wants_rows(const struct tables_scan *s, enum tables_id table)
{
    return s->of[table].rows;
}

static uint32_t get_columns(const struct tables_scan *s, enum tables_id table)
{
    const struct tables_wanted *w = &s->of[table];
    return w->rows ? w->columns | tables_condition_columns(w) : 0;
}

static bool wants_ops(const struct tables_scan *s)
{
    return wants_rows(s, TABLES_TABLE_EVENTS) || wants_rows(s, TABLES_TABLE_BLOCKS);
}

static struct tables_process make_process(const struct tables_scan *s)
{
    bool freed = get_columns(s, TABLES_TABLE_EVENTS) >> TABLES_EVENT_FREED_BLOCK & 1;
    return (struct tables_process){.scan = s,
                                   .follows_blocks = freed || wants_rows(s, TABLES_TABLE_BLOCKS)};
}

static void show_progress(const struct tables_scan *s, uint64_t offset)
{
    if (s->watch)
        progress_update(s->watch->progress, offset);
}

static void note_cut(const struct tables_scan *s, const struct err *cut)
{
    if (cut->text[0] && s->cut)
        *s->cut = *cut;
    if (cut->text[0] && s->watch && s->watch->warn)
        s->watch->warn(cut->text);
}

static int put_sample(struct tables_process *p, uint64_t stamp, uint64_t rss_bytes,
                      uint64_t anon_bytes)
{
    struct tables_row row = {0};
    tables_row_set(&row, TABLES_SAMPLE_PROCESS, p->number);
    if (p->has_times)
        tables_row_set(&row, TABLES_SAMPLE_TIME, (uint64_t)tables_process_ns(p, stamp));
    tables_row_set(&row, TABLES_SAMPLE_RSS, rss_bytes);
    tables_row_set(&row, TABLES_SAMPLE_ANON, anon_bytes);
    return tables_put_checked(p->scan, TABLES_TABLE_SAMPLES, &row);
}

static int put_facts(const struct tables_process *p, const struct tables_facts *facts)
{
    return p->scan->facts ? p->scan->facts(p->scan->context, facts) : 0;
}

// Stores the process's arguments in p->text, separated by spaces.
static int put_command(struct tables_process *p, struct tables_row *row, const char *argv,
                       uint32_t bytes)
{
    p->text.size = 0;
    if (!bytes)
        return 0;
    if (buf_put(&p->text, argv, bytes) < 0)
        return -ENOMEM;
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (!p->text.data[i])
            p->text.data[i] = ' ';
    }
    if (buf_put_u8(&p->text, 0) < 0)
        return -ENOMEM;
    tables_row_set_text(row, TABLES_PROCESS_COMMAND, (const char *)p->text.data);
    return 0;
}

// Fills in the columns that both traces and workloads have, and emits the row.
static int put_process(struct tables_process *p, struct tables_row *row, const char *argv,
                       uint32_t argv_bytes)
{
    tables_row_set(row, TABLES_PROCESS_PROCESS, p->number);
    tables_row_set(row, TABLES_PROCESS_THREADS, p->threads);
    tables_row_set(row, TABLES_PROCESS_EVENTS, p->next_event - p->preexisting);
    tables_row_set(row, TABLES_PROCESS_LOST, p->lost);
    int rc = put_command(p, row, argv, argv_bytes);
    return rc < 0 ? rc : tables_put_checked(p->scan, TABLES_TABLE_PROCESSES, row);
}

static void set_early(struct tables_row *row, uint64_t events, uint64_t max_ns, uint64_t usual_ns)
{
    tables_row_set(row, TABLES_PROCESS_EARLY_EVENTS, events);
    tables_row_set(row, TABLES_PROCESS_EARLY_MAX, max_ns);
    tables_row_set(row, TABLES_PROCESS_EARLY_USUAL, usual_ns);
}

static int put_traced_process(struct tables_process *p)
{
    const struct trace_process *t = p->of;
    struct tables_row row = {0};
    p->lost = t->lost_records > p->lost ? t->lost_records : p->lost;
    tables_row_set(&row, TABLES_PROCESS_PID, t->pid);
    tables_row_set(&row, TABLES_PROCESS_PARENT_PID, t->ppid);
    if (t->forked_from)
        tables_row_set(&row, TABLES_PROCESS_FORKED_FROM, t->forked_from);
    tables_row_set_text(&row, TABLES_PROCESS_EXE, t->exe);
    tables_row_set_text(&row, TABLES_PROCESS_ALLOCATOR, t->allocator);
    if (p->has_times)
        tables_row_set(&row, TABLES_PROCESS_START_TIME,
                       (uint64_t)tables_process_ns(p, t->start_stamp));
    if (p->has_times && t->ended)
        tables_row_set(&row, TABLES_PROCESS_END_TIME, (uint64_t)tables_process_ns(p, t->end_stamp));
    if (t->has_exit_status)
        tables_row_set(&row, TABLES_PROCESS_EXIT_STATUS, t->exit_status);
    set_early(&row, t->early_events, clock_to_ns(t->early_max_ticks, p->clock_hz),
              clock_to_ns(t->early_usual_ticks, p->clock_hz));
    return put_process(p, &row, t->argv, t->argv_bytes);
}

// Emits the rows of several ops. `calls` contains the addresses and notes of each op, or is NULL.
static int put_calls(void *context, const struct workload_thread_op *ops,
                     const struct order_call *calls, size_t n)
{
    struct tables_process *p = context;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i + AHEAD < n)
            tables_process_prefetch(p, &ops[i + AHEAD].op);
        rc = tables_process_op(p, ops[i].thread, &ops[i].op, calls ? &calls[i] : NULL);
    }
    return rc;
}

static int put_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct tables_process *p = context;
    if (wants_ops(p->scan))
        return put_calls(p, ops, NULL, n);
    for (size_t i = 0; i < n; i++)
        p->preexisting += ops[i].op.kind == HT_PREEXISTING;
    p->next_event += n;
    return 0;
}

static int put_samples(void *context, const struct trace_sample *samples, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = put_sample(context, samples[i].stamp, samples[i].rss_bytes, samples[i].anon_bytes);
    return rc;
}

static int end_process(void *context, const struct order_counts *counts,
                       const struct workload_sites *sites)
{
    struct tables_process *p = context;
    p->threads = counts->threads;
    p->lost = counts->lost.n;
    int rc = tables_process_end(p);
    free(p->live);
    p->live = NULL;
    p->n_live = p->live_capacity = 0;
    const struct tables_facts facts = {p->number, p->of->exe, sites, counts->tids, counts->threads};
    rc = rc < 0 ? rc : put_facts(p, &facts);
    return rc < 0 ? rc : tables_process_sites(p, sites, p->of->exe);
}

static int choose_process(void *context, const struct trace_process *from,
                          struct convert_sink *sink)
{
    struct trace_scan *t = context;
    struct tables_process *p =
        HT_GROW(&t->processes, &t->capacity, t->n + 1) < 0 ? NULL : calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    t->processes[t->n++] = p;
    *p = make_process(t->scan);
    p->of = from;
    p->number = from->number;
    p->has_times = !t->session->order_only;
    p->start_stamp = t->session->start_stamp;
    p->clock_hz = t->session->clock_hz;
    p->stamp_shift = t->session->stamp_shift;
    *sink = (struct convert_sink){.ops = {.context = p, .ops = put_ops}, .done = end_process};
    if (t->addresses)
        sink->ops = (struct order_sink){.context = p, .calls = put_calls};
    if (wants_rows(t->scan, TABLES_TABLE_SAMPLES))
        sink->samples = put_samples;
    return 1;
}

static void show_trace_progress(void *context, uint64_t offset)
{
    struct trace_scan *t = context;
    show_progress(t->scan, offset);
}

static int scan_trace(const struct tables_scan *s, struct trace_file *f, struct err *e)
{
    const uint32_t event_addresses =
        1 << TABLES_EVENT_USABLE | 1 << TABLES_EVENT_ADDRESS | 1 << TABLES_EVENT_FREED_ADDRESS;
    const uint32_t block_addresses = 1 << TABLES_BLOCK_USABLE | 1 << TABLES_BLOCK_ADDRESS;
    struct trace_scan t = {.scan = s,
                           .addresses = get_columns(s, TABLES_TABLE_EVENTS) & event_addresses ||
                                        get_columns(s, TABLES_TABLE_BLOCKS) & block_addresses};
    struct convert_result result = {0};
    struct trace_forks forks = {0};
    // Read the tail first. It contains the clock rate measured over the whole recording, which is
    // needed to convert times.
    int rc = trace_file_read_tail(f, e);
    rc = rc < 0 ? rc : trace_forks_find(&forks, f, e);
    t.session = &f->reader.session;
    const struct convert_options how = {
        .choose = choose_process, .forks = &forks, .progress = show_trace_progress, .context = &t};
    if (rc == 0)
        rc = convert_run(&f->reader, &how, &result, e);
    trace_forks_release(&forks);
    for (size_t i = 0; i < t.n; i++) {
        if (rc == 0 && wants_rows(s, TABLES_TABLE_PROCESSES))
            rc = put_traced_process(t.processes[i]);
        tables_process_release(t.processes[i]);
        free(t.processes[i]);
    }
    free(t.processes);
    if (rc == 0)
        note_cut(s, &result.cut);
    return rc;
}

static int put_workload_process(struct tables_process *p, const struct workload_header *h,
                                const struct workload_summary *sum)
{
    struct tables_row row = {0};
    tables_row_set(&row, TABLES_PROCESS_PID, h->pid);
    if (h->forked_from)
        tables_row_set(&row, TABLES_PROCESS_FORKED_FROM, h->forked_from);
    tables_row_set_text(&row, TABLES_PROCESS_EXE, h->exe);
    tables_row_set_text(&row, TABLES_PROCESS_ALLOCATOR, h->allocator);
    if (p->has_times)
        tables_row_set(&row, TABLES_PROCESS_START_TIME, 0);
    set_early(&row, sum->early_events, sum->early_max_ns, sum->early_usual_ns);
    return put_process(p, &row, h->argv, h->argv_bytes);
}

// Emits the rows of the tables that do not depend on ops.
static int put_workload_rest(struct tables_process *p, const struct workload_header *h,
                             const struct workload_summary *sum,
                             const struct workload_sample *samples, size_t n,
                             const struct workload_sites *sites)
{
    const struct tables_facts facts = {p->number, h->exe, sites, NULL, sum->threads};
    int rc = put_facts(p, &facts);
    rc = rc < 0 ? rc : tables_process_sites(p, sites, h->exe);
    p->threads = sum->threads;
    p->lost = sum->lost_records;
    p->next_event = sum->events;
    p->preexisting = 0;
    if (rc == 0 && wants_rows(p->scan, TABLES_TABLE_PROCESSES))
        rc = put_workload_process(p, h, sum);
    for (size_t i = 0; rc == 0 && wants_rows(p->scan, TABLES_TABLE_SAMPLES) && i < n; i++)
        rc = put_sample(p, samples[i].stamp, samples[i].rss_bytes, samples[i].anon_bytes);
    return rc;
}

// Emits the rows that do not depend on ops. Reads them from the end of the file, using the index.
// Returns -ESPIPE if the index cannot be used, for example because the file is a pipe.
static int scan_workload_end(struct tables_process *p, struct workload_reader *r)
{
    struct err e = {0};
    struct workload_summary sum;
    struct workload_sites sites = {0};
    const struct workload_sample *samples;
    size_t n;
    if (workload_read_summary(r, &sum, &e) < 0 || workload_read_samples(r, &samples, &n, &e) < 0)
        return -ESPIPE;
    int rc = workload_read_sites(r, &sites, &e) < 0
                 ? -ESPIPE
                 : put_workload_rest(p, workload_reader_header(r), &sum, samples, n, &sites);
    workload_sites_release(&sites);
    return rc;
}

static int scan_workload_ops(struct tables_process *p, struct workload_file *f, struct err *cut,
                             struct err *e)
{
    const struct workload_op *ops;
    uint32_t thread;
    size_t n;
    int rc;
    bool wanted = wants_ops(p->scan);
    while ((rc = workload_next_ops(f->reader, &thread, &ops, &n, e)) > 0) {
        int failed = 0;
        for (size_t i = 0; wanted && failed == 0 && i < n; i++) {
            if (i + AHEAD < n)
                tables_process_prefetch(p, &ops[i + AHEAD]);
            failed = tables_process_op(p, thread, &ops[i], NULL);
        }
        if (failed < 0)
            return failed;
        show_progress(p->scan, f->in.offset);
    }
    // A truncated file is not an error: the rows before the truncation have been emitted.
    if (rc != -ENODATA)
        return rc;
    *cut = *e;
    *e = (struct err){0};
    return 0;
}

static int scan_workload(const struct tables_scan *s, struct workload_file *f, struct err *e)
{
    const struct workload_header *h = workload_reader_header(f->reader);
    struct tables_process p = make_process(s);
    struct err cut = {0};
    p.has_times = h->has_stamps;
    p.start_stamp = h->start_stamp;
    p.clock_hz = h->clock_hz;
    p.stamp_shift = h->stamp_shift;
    int rc = wants_ops(s) ? -ESPIPE : scan_workload_end(&p, f->reader);
    if (rc == -ESPIPE) {
        rc = scan_workload_ops(&p, f, &cut, e);
        rc = rc < 0 ? rc : tables_process_end(&p);
        size_t n;
        const struct workload_sample *samples = workload_reader_samples(f->reader, &n);
        const struct workload_summary *end = workload_reader_summary(f->reader);
        struct workload_summary sum = end ? *end : workload_reader_counted(f->reader);
        if (rc == 0)
            rc = put_workload_rest(&p, h, &sum, samples, n, workload_reader_sites(f->reader));
    }
    tables_process_release(&p);
    if (rc == 0)
        note_cut(s, &cut);
    return rc;
}

int tables_scan_file(struct file *f, const struct tables_scan *s, struct err *e)
{
    struct progress *progress = s->watch ? s->watch->progress : NULL;
    const struct input *in = file_input(f);
    if (progress)
        progress->total = in->size_bytes;
    int rc =
        f->kind == FILE_TRACE ? scan_trace(s, &f->trace, e) : scan_workload(s, &f->workload, e);
    progress_clear(progress);
    return rc == -ENOMEM ? err_no_memory(e, in->name) : rc;
}

int tables_scan(const char *path, const struct tables_scan *s, struct err *e)
{
    struct file f;
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD | FILE_TRACE_TWICE, e);
    rc = rc < 0 ? rc : tables_scan_file(&f, s, e);
    file_close(&f);
    return rc == -ENOMEM ? err_no_memory(e, path) : rc;
}

int tables_check(const char *path, struct err *e)
{
    struct file f;
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
    file_close(&f);
    return rc;
}
