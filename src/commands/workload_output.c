#include "commands/workload_output.h"

#include <errno.h>

int workload_output_begin(struct workload_output *w, struct output *out, int level, const struct workload_header *h,
                          struct err *e)
{
    w->out = out;
    stats_init(&w->stats);
    w->writer = workload_writer_new(out, level);
    if (!w->writer)
        return err_set(e, -ENOMEM, "%s: out of memory", out->name);
    return workload_write_header(w->writer, h, e);
}

void workload_output_release(struct workload_output *w)
{
    if (!w->out)
        return;
    stats_release(&w->stats);
    workload_writer_free(w->writer);
    *w = (struct workload_output){0};
}

int workload_output_op(struct workload_output *w, uint32_t thread, const struct workload_op *op, struct err *e)
{
    if (stats_op(&w->stats, thread, op) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", w->out->name);
    return workload_write_op(w->writer, thread, op, e);
}

int workload_output_ops(struct workload_output *w, const struct workload_thread_op *ops, size_t n, struct err *e)
{
    if (stats_ops(&w->stats, ops, n) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", w->out->name);
    return workload_write_ops(w->writer, ops, n, e);
}

int workload_output_samples(struct workload_output *w, const struct workload_sample *s, size_t n, struct err *e)
{
    return n ? workload_write_samples(w->writer, s, n, e) : 0;
}

void workload_output_sites(struct workload_output *w, const struct workload_sites *s)
{
    workload_write_sites(w->writer, s);
}

struct workload_summary workload_output_summary(const struct workload_output *w)
{
    return stats_summary(&w->stats);
}

int workload_output_end(struct workload_output *w, const struct workload_summary *s, struct err *e)
{
    return workload_write_end(w->writer, s, e);
}
