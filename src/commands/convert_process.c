#include "commands/convert_process.h"

#include "cli/command.h"

#include <errno.h>
#include <stdlib.h>

int convert_process_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct convert_process *c = context;
    return workload_output_ops(&c->to, ops, n, c->e);
}

int convert_process_samples(void *context, const struct trace_sample *samples, size_t n)
{
    struct convert_process *c = context;
    struct workload_sample *to = malloc(n * sizeof *to);
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        to[i] = (struct workload_sample){samples[i].stamp, samples[i].rss_bytes, samples[i].anon_bytes};
    int rc = workload_output_samples(&c->to, to, n, c->e);
    free(to);
    return rc;
}

static int check_strict(const struct convert_process *c, const struct workload_summary *s)
{
    unsigned long long ambiguous = s->order_ambiguous, unmatched = s->unmatched_frees, lost = s->lost_records;
    if (!c->options->strict || !(ambiguous || unmatched || lost))
        return 0;
    return err_set(
        c->e, -EBADMSG,
        "%s: --strict: the order of %llu events is ambiguous, %llu frees have no recorded allocation, %llu words are lost",
        c->trace, ambiguous, unmatched, lost);
}

int convert_process_done(void *context, const struct order_counts *counts, const struct workload_sites *sites)
{
    struct convert_process *c = context;
    struct workload_summary *s = &c->summary;
    *s = workload_output_summary(&c->to);
    order_summarise(counts, s);
    s->recorded_from = c->process->recorded_from;
    s->recorded_to = c->process->recorded_to;
    int rc = check_strict(c, s);
    workload_output_sites(&c->to, sites);
    return rc < 0 ? rc : workload_output_end(&c->to, s, c->e);
}

int convert_process_begin(struct convert_process *c, struct output *out, const struct trace_session *session,
                          const struct trace_process *p)
{
    struct workload_header h = {
        .clock_hz = session->clock_hz,
        .stamp_shift = session->stamp_shift,
        .has_stamps = !c->options->no_stamps && !session->order_only,
        .start_stamp = p->start_stamp,
        .pid = p->pid,
        .exe = p->exe,
        .allocator = p->allocator,
        .argv = p->argv,
        .argv_bytes = p->argv_bytes,
    };
    c->process = p;
    return workload_output_begin(&c->to, out, c->options->level, &h, c->e);
}

void convert_process_release(struct convert_process *c)
{
    workload_output_release(&c->to);
}

void convert_process_tell(const char *what, const struct trace_process *p)
{
    note("%s process %u, %s", what, p->pid, p->argv_bytes ? p->argv : p->exe ? p->exe : "unknown program");
}
