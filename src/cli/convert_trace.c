#include "cli/convert_trace.h"

#include "base/progress.h"
#include "cli/command.h"
#include "convert/convert.h"
#include "report/stats.h"
#include "workload/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct trace_file *trace;
    const struct convert_trace_options *options;
    uint32_t process;
    struct workload_writer *writer;
    struct stats stats;
    struct workload_summary summary;
    struct err *e;
    struct progress progress;
};

static int put_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct job *j = context;
    int rc = stats_ops(&j->stats, ops, n);
    return rc < 0 ? rc : workload_write_ops(j->writer, ops, n, j->e);
}

static int put_samples(void *context, const struct trace_sample *samples, size_t n)
{
    struct job *j = context;
    struct workload_sample *to = malloc(n * sizeof *to);
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        to[i] = (struct workload_sample){samples[i].stamp, samples[i].rss_bytes, samples[i].anon_bytes};
    int rc = workload_write_samples(j->writer, to, n, j->e);
    free(to);
    return rc;
}

static int check_strict(const struct job *j, const struct workload_summary *s)
{
    unsigned long long ambiguous = s->order_ambiguous, unmatched = s->unmatched_frees, lost = s->lost_records;
    if (!j->options->strict || !(ambiguous || unmatched || lost))
        return 0;
    return err_set(j->e, -EBADMSG, "%s: not exact: %llu ambiguous, %llu unmatched frees, %llu lost words",
                   j->trace->in.name, ambiguous, unmatched, lost);
}

static int finish(void *context, const struct order_counts *counts)
{
    struct job *j = context;
    struct workload_summary *s = &j->summary;
    *s = stats_summary(&j->stats);
    order_summarise(counts, s);
    int rc = check_strict(j, s);
    return rc < 0 ? rc : workload_write_end(j->writer, s, j->e);
}

static int write_header(struct job *j, const struct trace_process *p)
{
    const struct trace_session *session = &j->trace->reader.session;
    struct workload_header h = {
        .clock_hz = session->clock_hz,
        .stamp_shift = session->stamp_shift,
        .has_stamps = !j->options->no_stamps,
        .start_stamp = p->start_stamp,
        .pid = p->pid,
        .exe = p->exe,
        .allocator = p->allocator,
        .argv = p->argv,
        .argv_bytes = p->argv_bytes,
    };
    return workload_write_header(j->writer, &h, j->e);
}

static int choose(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct job *j = context;
    if (p->number != j->process)
        return 0;
    *sink = (struct convert_sink){.ops = {.context = j, .ops = put_ops}, .samples = put_samples, .done = finish};
    int rc = write_header(j, p);
    return rc < 0 ? rc : 1;
}

static void show_progress(void *context)
{
    struct job *j = context;
    progress_update(&j->progress, j->trace->in.offset);
}

static int choose_process(struct job *j)
{
    size_t of;
    int rc = trace_file_choose(j->trace, j->options->pid, &j->process, &of, j->e);
    return rc < 0 ? rc : of > 1;
}

static void tell_process(const struct trace_process *p)
{
    note("converting process %u, %s", p->pid, p->argv_bytes ? p->argv : p->exe ? p->exe : "of no known program");
}

int convert_trace(struct trace_file *t, struct output *out, const struct convert_trace_options *options,
                  struct workload_summary *summary, struct err *e)
{
    struct job j = {.trace = t, .options = options, .e = e};
    struct convert_options how = {
        .window_ns = options->window_ns, .choose = choose, .progress = show_progress, .context = &j};
    struct convert_result result;
    int several = choose_process(&j);
    if (several < 0)
        return several;
    stats_init(&j.stats);
    j.writer = workload_writer_new(out, options->level);
    if (!j.writer)
        return err_set(e, -ENOMEM, "%s: out of memory", out->name);
    progress_init(&j.progress, "convert", "B", t->in.size_bytes, cli_common.quiet);
    int rc = convert_run(&t->reader, &how, &result, e);
    progress_clear(&j.progress);
    if (rc == 0 && several)
        tell_process(t->reader.processes[j.process]);
    if (rc == 0 && result.cut_off)
        note("%s; converted up to there", result.cut.text);
    *summary = j.summary;
    stats_release(&j.stats);
    workload_writer_free(j.writer);
    return rc;
}
