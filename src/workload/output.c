#include "workload/output.h"

#include <errno.h>

int workload_output_begin(struct workload_output *w, struct output *out, int level, const struct workload_header *h,
                          struct err *e)
{
    w->out = out;
    summary_init(&w->counter);
    w->writer = workload_writer_new(out, level);
    if (!w->writer)
        return err_set(e, -ENOMEM, "%s: out of memory", out->name);
    return workload_write_header(w->writer, h, e);
}

void workload_output_release(struct workload_output *w)
{
    if (!w->out)
        return;
    summary_release(&w->counter);
    workload_writer_free(w->writer);
    *w = (struct workload_output){0};
}

int workload_output_op(struct workload_output *w, uint32_t thread, const struct workload_op *op, struct err *e)
{
    if (summary_op(&w->counter, thread, op) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", w->out->name);
    return workload_write_op(w->writer, thread, op, e);
}

int workload_output_ops(struct workload_output *w, const struct workload_thread_op *ops, size_t n, struct err *e)
{
    if (summary_ops(&w->counter, ops, n) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", w->out->name);
    return workload_write_ops(w->writer, ops, n, e);
}

struct workload_summary workload_output_summary(const struct workload_output *w)
{
    return summary_result(&w->counter);
}
