#include "convert/order/order.h"

#include "base/buf.h"
#include "base/pages.h"
#include "convert/order/order_private.h"

#include <errno.h>
#include <stdlib.h>

struct order *order_new(const struct order_options *options, const struct order_sink *sink)
{
    struct order *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->options = *options;
    o->sink = *sink;
    o->merge.keeps = options->keep_words;
    o->next_deadline = UINT64_MAX;
    o->steps = ORDER_FIRST_STEPS;
    o->run.limit = 8;
    pool_shared_init(&o->shared);
    o->calls = sink->calls ? calloc(ORDER_BATCH, sizeof *o->calls) : NULL;
    if ((sink->calls && !o->calls) || table_grow(&o->table, NULL) < 0) {
        free(o->calls);
        free(o);
        return NULL;
    }
    return o;
}

void order_free(struct order *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_threads; i++) {
        pool_release(&o->threads[i]->pool);
        map_release(&o->threads[i]->waited);
        free(o->threads[i]->recent);
        free(o->threads[i]);
    }
    free(o->threads);
    free(o->numbered);
    free(o->tids);
    free(o->calls);
    pages_array_free(o->slots, o->slots_capacity, sizeof *o->slots);
    free(o->held);
    free(o->coming);
    free(o->due);
    site_table_release(&o->sites);
    names_release(&o->names);
    samples_residency_release(&o->residency);
    map_release(&o->failed_resizes);
    order_pools_release(&o->pools);
    merge_release(&o->merge);
    map_release(&o->by_number);
    table_release(&o->table);
    pool_shared_release(&o->shared);
    free(o);
}

struct order_counts order_counts(const struct order *o)
{
    struct order_counts c = o->counts;
    c.lost += o->merge.lost_words;
    c.slots = o->n_slots;
    c.threads = o->n_numbered;
    c.residency = &o->residency;
    c.tids = o->tids;
    return c;
}

int order_names(struct order *o, const uint8_t *at, size_t n)
{
    uint32_t process;
    return names_get(at, n, &o->names, &process);
}

const struct workload_sites *order_sites(const struct order *o)
{
    return &o->sites.all;
}

int order_sites_so_far(const struct order *o, struct workload_sites *sites)
{
    int rc = workload_sites_copy_all(sites, &o->sites.all);
    if (rc == 0)
        rc = site_table_resolve_whole(&o->sites, sites);
    return rc < 0 ? rc : names_copy(&sites->names, &o->names, o->inherited_modules);
}

void order_summarise(const struct order_counts *counts, struct workload_summary *s)
{
    s->order_repaired = counts->repaired + counts->late;
    s->order_ambiguous = counts->ambiguous;
    s->unmatched_frees = counts->unmatched;
    s->dependencies = counts->dependencies;
    s->dependencies_needed = counts->dependencies_needed;
    s->lost_records = counts->lost;
    s->usable_bytes = counts->usable_bytes;
    s->usable_requested_bytes = counts->usable_requested_bytes;
}

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
    if (map_get(&t->waited, thread + 1ull) > op)
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

void order_deadline(struct order *o)
{
    uint64_t d = UINT64_MAX;
    for (size_t i = 0; i < o->n_held; i++)
        d = o->held[i].deadline < d ? o->held[i].deadline : d;
    for (size_t i = 0; i < o->n_duplicates; i++)
        d = o->duplicates[i].deadline < d ? o->duplicates[i].deadline : d;
    o->next_deadline = d;
    o->disturbed = true;
}

// Returns the time for which a stream waits. If the library recorded the usable size of a freed
// block, the block's allocation may be missing from the trace, but it is never late. If an
// allocation is found later, it belongs to another block, so the stream waits for a shorter time.
static uint64_t hold_limit(const struct order *o, enum order_hold why)
{
    enum { SKIDS = 16 };
    bool perhaps_before = why == ORDER_HOLD_RELEASE && o->usable && o->options.skid;
    return perhaps_before && SKIDS * o->options.skid < o->options.window ? SKIDS * o->options.skid
                                                                         : o->options.window;
}

int order_hold(struct order *o, struct merge_stream *s, enum order_hold why, uint64_t stamp,
               uint64_t address)
{
    if (!order_afford(o, o->n_held)) {
        s->forced = true;
        o->counts.ambiguous++;
        merge_put_back(&o->merge, s);
        return ORDER_HELD;
    }
    if (HT_GROW(&o->held, &o->held_capacity, o->n_held + 1) < 0)
        return -ENOMEM;
    uint64_t deadline = why == ORDER_HOLD_THREAD ? UINT64_MAX : stamp + hold_limit(o, why);
    struct order_thread *t = s->user;
    o->held[o->n_held++] =
        (struct order_held){s, t, why, address, deadline < stamp ? UINT64_MAX - 1 : deadline};
    if (why != ORDER_HOLD_THREAD)
        t->held++;
    s->held = true;
    merge_put_aside(&o->merge, s);
    order_deadline(o);
    return ORDER_HELD;
}

// Puts one held stream back into the heap.
static void put_back(struct order *o, size_t i)
{
    struct merge_stream *s = o->held[i].stream;
    o->held[i] = o->held[--o->n_held];
    s->held = false;
    merge_put_back(&o->merge, s);
}

// Puts a held stream back into the heap, together with the thread's other streams unless another
// hold remains.
static void unhold(struct order *o, size_t i)
{
    struct order_held h = o->held[i];
    put_back(o, i);
    if (h.why == ORDER_HOLD_THREAD || --h.thread->held)
        return;
    for (size_t k = 0; k < o->n_held;) {
        if (o->held[k].thread == h.thread)
            put_back(o, k);
        else
            k++;
    }
}

// Releases all held streams.
static void unhold_all(struct order *o)
{
    while (o->n_held) {
        struct order_held *h = &o->held[o->n_held - 1];
        h->thread->held = 0;
        h->stream->forced = true;
        o->counts.ambiguous++;
        put_back(o, o->n_held - 1);
    }
    order_deadline(o);
}

void order_wake(struct order *o, enum order_hold why, uint64_t address)
{
    // Release only the stream with the lowest stamp. Its records determine whether other streams
    // are released.
    if (!order_afford(o, o->n_held)) {
        unhold_all(o);
        return;
    }
    size_t best = o->n_held;
    for (size_t i = 0; i < o->n_held; i++) {
        if (o->held[i].why != why || o->held[i].address != address)
            continue;
        if (best == o->n_held || o->held[i].deadline < o->held[best].deadline)
            best = i;
    }
    if (best == o->n_held)
        return;
    unhold(o, best);
    o->counts.repaired++;
    order_deadline(o);
}

// Releases a stream whose awaited record did not arrive. The stream's next record is then processed
// without the awaited record.
static void expire_held(struct order *o, size_t i)
{
    o->held[i].stream->forced = true;
    unhold(o, i);
    order_deadline(o);
}

int order_expire(struct order *o, uint64_t now)
{
    while (o->next_deadline <= now && o->next_deadline != UINT64_MAX) {
        uint64_t deadline = o->next_deadline;
        size_t i = 0, k = 0;
        if (!order_afford(o, o->n_held))
            unhold_all(o);
        while (i < o->n_duplicates && o->duplicates[i].deadline != deadline)
            i++;
        while (k < o->n_held && o->held[k].deadline != deadline)
            k++;
        int rc = 0;
        if (i < o->n_duplicates)
            rc = order_duplicate_lost(o, i);
        else if (k < o->n_held)
            expire_held(o, k);
        if (rc < 0)
            return rc;
    }
    return 0;
}

// Finds a stream whose stamp is at most `stamp` and that is held because of its own next record,
// not because of another stream of its thread. Returns the index in o->held, or n_held if no stream
// is found.
static size_t held_up_to(const struct order *o, uint64_t stamp)
{
    size_t i = 0;
    while (i < o->n_held &&
           (o->held[i].why == ORDER_HOLD_THREAD || o->held[i].stream->stamp > stamp))
        i++;
    return i;
}

int order_settle(struct order *o, uint64_t stamp)
{
    uint64_t limit = stamp + o->options.skid < stamp ? UINT64_MAX : stamp + o->options.skid;
    int rc = order_advance(o, limit);
    for (size_t i; rc == 0 && (i = held_up_to(o, stamp)) < o->n_held;) {
        if (order_afford(o, o->n_held))
            expire_held(o, i);
        else
            unhold_all(o);
        rc = order_advance(o, limit);
    }
    return rc;
}
