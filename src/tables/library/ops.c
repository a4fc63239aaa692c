// Ops of a workload.
#include "analysis/by_site.h"
#include "tables/library/library.h"

#include <errno.h>

static uint64_t op_ns(const struct workload_header *h, uint64_t stamp)
{
    uint64_t since = stamp > h->start_stamp ? stamp - h->start_stamp : 0;
    return h->has_stamps ? clock_to_ns(since << h->stamp_shift, h->clock_hz) : HEAPTAPE_NONE64;
}

static int start_ops(heaptape_trace *t, struct err *e)
{
    if (t->use == LIBRARY_OPS)
        return 0;
    if (t->use != LIBRARY_UNUSED)
        return err_set(e, -EBUSY, "%s: is already being read by another function: rewind it first",
                       t->path);
    int rc = library_open(t, e);
    if (rc < 0)
        return rc;
    if (t->file.kind != FILE_WORKLOAD)
        return err_set(e, -EPROTO, "%s: is a trace, expected a workload (try 'heaptape convert')",
                       t->path);
    t->use = LIBRARY_OPS;
    return 0;
}

static int fill_dependencies(heaptape_trace *t, const struct workload_op *op)
{
    if (HT_GROW(&t->dependencies, &t->dependencies_capacity, op->n_dependencies) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < op->n_dependencies; i++)
        t->dependencies[i] = (heaptape_dependency){.op = op->dependencies[i].op,
                                                   .thread = op->dependencies[i].thread};
    return 0;
}

static int fill_op(heaptape_trace *t, uint32_t thread, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    bool has_site = class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE;
    if (HT_EXTEND(&t->op_numbers, &t->n_threads, &t->threads_capacity, thread + 1ull) < 0 ||
        fill_dependencies(t, op) < 0)
        return -ENOMEM;
    t->text.size = 0;
    if (op->text_bytes &&
        (buf_put(&t->text, op->text, op->text_bytes) < 0 || buf_put_u8(&t->text, 0) < 0))
        return -ENOMEM;
    t->op = (heaptape_op){
        .time_ns = op_ns(workload_reader_header(t->file.workload.reader), op->stamp),
        .op = t->op_numbers[thread]++,
        .count = op->count,
        .align = op->align,
        .value = has_site ? 0 : op->value,
        .dependencies = op->n_dependencies ? t->dependencies : NULL,
        .text = op->text_bytes ? (const char *)t->text.data : NULL,
        .n_dependencies = op->n_dependencies,
        .thread = thread,
        .slot = op->slot,
        .site = has_site ? by_site_of(op) : 0,
        .operation = op->kind,
        .flags = op->flags,
        .error = op->error,
    };
    if (!tables_op_size(op, &t->op.size))
        t->op.size = 0;
    return 0;
}

int heaptape_trace_next_op(heaptape_trace *t, const heaptape_op **to)
{
    const struct workload_op *op;
    uint32_t thread;
    int rc = start_ops(t, library_begin(t));
    if (rc < 0)
        return rc;
    if (t->over) {
        t->e = t->failure;
        return t->failed;
    }
    rc = workload_next_op(t->file.workload.reader, &thread, &op, &t->e);
    if (rc > 0) {
        *to = &t->op;
        rc = fill_op(t, thread, op);
        if (rc == 0)
            return 1;
        err_no_memory(&t->e, t->path);
    }
    t->over = true;
    t->failed = rc;
    t->failure = t->e;
    return rc;
}
