#include "cli/stat.h"

#include "base/buf.h"
#include "cli/open_file.h"
#include "convert/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The statistics of one process while the trace is read.
struct counter {
    struct file_stat *file;
    size_t process; // in file
    struct stats stats;
};

static void counter_free(struct counter *c)
{
    if (c)
        stats_release(&c->stats);
    free(c);
}

void file_stat_release(struct file_stat *s)
{
    for (size_t i = 0; i < s->n_processes; i++) {
        free(s->processes[i].argv);
        free(s->processes[i].exe);
        counter_free(s->processes[i].counter);
    }
    free(s->processes);
    *s = (struct file_stat){0};
}

static int add_process(struct file_stat *s, uint32_t pid, const char *argv, uint32_t argv_bytes, const char *exe)
{
    if (array_reserve((void **)&s->processes, &s->capacity, s->n_processes + 1, sizeof *s->processes) < 0)
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

static int count_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct counter *c = context;
    return stats_ops(&c->stats, ops, n);
}

static int count_done(void *context, const struct order_counts *counts)
{
    struct counter *c = context;
    struct process_stat *p = &c->file->processes[c->process];
    struct workload_summary *s = &p->summary;
    *s = stats_summary(&c->stats);
    order_summarise(counts, s);
    p->counter = NULL;
    counter_free(c);
    return 0;
}

static int count_process(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct file_stat *s = context;
    int rc = add_process(s, p->pid, p->argv, p->argv_bytes, p->exe);
    struct counter *c = rc < 0 ? NULL : calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    stats_init(&c->stats);
    c->file = s;
    c->process = s->n_processes - 1;
    s->processes[c->process].counter = c;
    *sink = (struct convert_sink){.ops = {.context = c, .ops = count_ops}, .done = count_done};
    return 1;
}

static int stat_trace(struct file_stat *s, struct trace_file *t, struct err *e)
{
    struct convert_result result;
    struct convert_options how = {.choose = count_process, .context = s};
    int rc = convert_run(&t->reader, &how, &result, e);
    if (rc < 0)
        return rc;
    s->cut = result.cut;
    s->duration_ns = trace_stamp_ns(&t->reader.session, result.end_stamp);
    // What the recorder itself says is lost includes processes without any event.
    for (size_t i = 0; i < s->n_processes; i++) {
        struct workload_summary *p = &s->processes[i].summary;
        uint64_t lost = t->reader.processes[i]->lost_records;
        p->lost_records = lost > p->lost_records ? lost : p->lost_records;
    }
    s->file_bytes = t->in.size_bytes ? t->in.size_bytes : t->in.offset;
    return 0;
}

// Reads all ops: of a pipe, and of a file without a summary, which are then those that are there.
static int read_ops(struct file_stat *s, struct workload_reader *r, struct workload_summary *to, struct err *e)
{
    struct stats stats;
    uint32_t thread;
    const struct workload_op *op;
    int rc;
    stats_init(&stats);
    while ((rc = workload_next_op(r, &thread, &op, e)) > 0) {
        if (stats_op(&stats, thread, op) < 0) {
            rc = err_set(e, -ENOMEM, "%s: out of memory", s->name);
            break;
        }
    }
    *to = rc == 0 ? *workload_reader_summary(r) : stats_summary(&stats);
    stats_release(&stats);
    if (rc != -ENODATA)
        return rc;
    s->cut = *e;
    *e = (struct err){0};
    return 0;
}

static int stat_workload(struct file_stat *s, struct open_workload *w, struct err *e)
{
    const struct workload_header *h = workload_reader_header(w->reader);
    int rc = add_process(s, h->pid, h->argv, h->argv_bytes, h->exe);
    if (rc < 0)
        return err_set(e, rc, "%s: out of memory", s->name);
    struct workload_summary *sum = &s->processes[0].summary;
    struct err ignored = {0};
    rc = workload_read_summary(w->reader, sum, &ignored);
    if (rc == -ESPIPE || rc == -ENODATA)
        rc = read_ops(s, w->reader, sum, e);
    else if (rc < 0)
        *e = ignored;
    uint64_t since = h->start_stamp && h->start_stamp < sum->first_stamp ? h->start_stamp : sum->first_stamp;
    if (h->has_stamps && sum->last_stamp > since)
        s->duration_ns = clock_to_ns((sum->last_stamp - since) << h->stamp_shift, h->clock_hz);
    s->file_bytes = w->in.size_bytes ? w->in.size_bytes : w->in.offset;
    return rc;
}

int file_stat(struct file_stat *s, const char *path, struct err *e)
{
    struct open_file f;
    *s = (struct file_stat){.name = path};
    int rc = open_file(&f, path, e);
    s->is_trace = f.is_trace;
    if (rc == 0)
        rc = f.is_trace ? stat_trace(s, &f.trace, e) : stat_workload(s, &f.workload, e);
    for (size_t i = 0; rc == 0 && i < s->n_processes; i++)
        stats_add(&s->total, &s->processes[i].summary);
    close_file(&f);
    if (rc < 0)
        file_stat_release(s);
    return rc;
}
