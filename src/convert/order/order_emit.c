// Threads, dependencies, and the ops that are passed to the sink.
#include "base/buf.h"
#include "convert/order/order_private.h"

#include <errno.h>
#include <stdlib.h>

struct order_thread *order_thread_get(struct order *o, uint32_t trace_number)
{
    uint64_t at = map_get(&o->by_number, trace_number + 1ull);
    if (at)
        return o->threads[at - 1];
    if (HT_GROW(&o->threads, &o->threads_capacity, o->n_threads + 1) < 0 ||
        map_put(&o->by_number, trace_number + 1ull, o->n_threads + 1) < 0)
        return NULL;
    struct order_thread *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->number = t->creator = ORDER_NO_THREAD;
    t->trace_number = trace_number;
    t->index = (uint32_t)o->n_threads;
    o->threads[o->n_threads++] = t;
    return t;
}

int order_thread_number(struct order *o, struct order_thread *t)
{
    if (o->n_numbered == TABLE_MAX_THREADS)
        return -EOVERFLOW;
    if (HT_GROW(&o->numbered, &o->numbered_capacity, o->n_numbered + 1) < 0 ||
        HT_GROW(&o->tids, &o->tids_capacity, o->n_numbered + 1) < 0)
        return -ENOMEM;
    t->number = (uint32_t)o->n_numbered;
    o->tids[o->n_numbered] = t->tid;
    o->numbered[o->n_numbered++] = t->index;
    return 0;
}

int order_depend(struct order *o, struct order_thread *t, uint32_t thread, uint64_t op)
{
    o->counts.dependencies_needed++;
    if (order_has_waited(t, thread, op))
        return 0;
    if (map_put(&t->waited, thread + 1ull, op + 1) < 0)
        return -ENOMEM;
    o->counts.dependencies++;
    o->dependencies[o->n_dependencies++] = (struct workload_dependency){thread, op};
    return 0;
}

// Makes the first op of a thread depend on the thread's creation.
static int emit_first(struct order *o, struct order_thread *t)
{
    return t->creator == ORDER_NO_THREAD ? 0 : order_depend(o, t, t->creator, t->creation);
}

// Returns the stamp of an emitted op. If that stamp is no longer stored, returns the oldest stored
// stamp of the thread.
static uint64_t stamp_of(const struct order_thread *t, uint64_t op)
{
    if (!t->recent)
        return t->last_stamp;
    uint64_t oldest = t->next_op > ORDER_RECENT ? t->next_op - ORDER_RECENT : 0;
    return t->recent[(op > oldest ? op : oldest) % ORDER_RECENT];
}

// Raises the op's stamp above the stamps of its dependencies and attaches them to the op.
static void stamp_after_dependencies(struct order *o, struct workload_op *op)
{
    for (uint32_t i = 0; i < o->n_dependencies; i++) {
        uint64_t before =
            stamp_of(order_numbered(o, o->dependencies[i].thread), o->dependencies[i].op);
        if (op->stamp <= before)
            op->stamp = before + 1;
    }
    struct workload_dependency *to = o->out_dependencies + o->n_out_dependencies;
    memcpy(to, o->dependencies, o->n_dependencies * sizeof *to);
    op->dependencies = to;
    op->n_dependencies = o->n_dependencies;
    o->n_out_dependencies += o->n_dependencies;
    o->n_dependencies = 0;
}

int order_flush(struct order *o)
{
    size_t n = o->n_out;
    o->n_out = o->n_out_dependencies = 0;
    if (__builtin_expect(o->calls != NULL, 0))
        return n ? o->sink.calls(o->sink.context, o->out, o->calls, n) : 0;
    return n ? o->sink.ops(o->sink.context, o->out, n) : 0;
}

// Sets the number, stamp and dependencies of the op.
static inline int complete_op(struct order *o, struct order_thread *t, struct workload_op *op)
{
    if (__builtin_expect(t->next_op == 0, 0)) {
        int rc = order_thread_name(o, t);
        if (rc == 0)
            rc = emit_first(o, t);
        if (rc < 0)
            return rc;
    }
    if (op->stamp < t->last_stamp)
        op->stamp = t->last_stamp;
    if (o->n_dependencies)
        stamp_after_dependencies(o, op);
    if (t->recent)
        t->recent[t->next_op % ORDER_RECENT] = op->stamp;
    t->last_stamp = op->stamp;
    t->next_op++;
    return 0;
}

int order_emit(struct order *o, struct order_thread *t, struct workload_op *op)
{
    int rc = complete_op(o, t, op);
    if (rc < 0)
        return rc;
    if (__builtin_expect(o->calls != NULL, 0)) {
        o->call.thread = t->trace_number;
        o->call.tid = t->tid;
        o->calls[o->n_out] = o->call;
    }
    struct workload_thread_op *to = &o->out[o->n_out++];
    to->thread = t->number;
    if (op != &to->op)
        to->op = *op;
    return __builtin_expect(o->n_out == ORDER_BATCH, 0) ? order_flush(o) : 0;
}

int order_emit_apart(struct order *o, struct order_thread *t, const struct workload_op *op,
                     uint64_t address)
{
    struct workload_thread_op one = {.op = *op};
    int rc = order_flush(o);
    if (rc == 0)
        rc = complete_op(o, t, &one.op);
    o->n_out_dependencies = 0;
    one.thread = t->number;
    const struct order_call call = {
        .ptr = address, .thread = t->trace_number, .tid = t->tid, .added = true};
    if (rc < 0)
        return rc;
    return o->calls ? o->sink.calls(o->sink.context, &one, &call, 1)
                    : o->sink.ops(o->sink.context, &one, 1);
}
