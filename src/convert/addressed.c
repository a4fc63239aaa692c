#include "convert/addressed.h"

#include "base/buf.h"
#include "convert/order/order_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    // Limit on held ops, which take about 200 bytes each. Beyond the limit, the free is inserted
    // for which the oldest held op is waiting.
    MAX_HELD = 1 << 20,
    NONE = 0xffffffff,
};

// Flag in `live`: the block existed before the recording.
#define EARLIER (1ull << 33)

// An op that is held or has just arrived.
struct op {
    struct addressed_call call;
    uint64_t arrival;
    uint32_t slot;
    bool added, skipped; // added: see order_call; skipped: already emitted
    uint32_t n_dependencies;
    struct workload_dependency dependencies[ORDER_MAX_DEPENDENCIES];
};

// An entry in the queue of an address: a held op that will allocate the address. Queues are in
// order of arrival.
struct addressed_ticket {
    uint64_t arrival;
    uint32_t thread, next;
};

struct addressed_wait {
    uint64_t arrival;
    uint32_t thread;
};

// `next` links threads into lists: threads that wait for the same thread, and threads to retry.
struct addressed_thread {
    struct op *ops; // held ops, starting at ops[first]
    size_t first, n, capacity;
    uint64_t done;    // number of emitted ops
    uint64_t address; // address that the first held op waits for, or 0
    uint32_t waiters; // first thread that waits for an op of this thread, or NONE
    uint32_t next;
};

static struct addressed_thread *thread_get(struct addressed *a, uint32_t number)
{
    if (HT_EXTEND(&a->threads, &a->n_threads, &a->capacity, number + 1ull) < 0)
        return NULL;
    struct addressed_thread **t = &a->threads[number];
    if (!*t && (*t = calloc(1, sizeof **t)))
        (*t)->waiters = (*t)->next = NONE;
    return *t;
}

void addressed_release(struct addressed *a)
{
    for (size_t i = 0; i < a->n_threads; i++) {
        struct addressed_thread *t = a->threads[i];
        for (size_t k = 0; t && k < t->n; k++)
            free((char *)t->ops[t->first + k].call.ev.text);
        free(t ? t->ops : NULL);
        free(t);
    }
    free(a->threads);
    map_release(&a->live);
    map_release(&a->queues);
    free(a->tickets);
    free(a->waits);
    *a = (struct addressed){.put = a->put, .context = a->context};
}

static struct op make_op(const struct workload_op *from, const struct order_call *c)
{
    unsigned class = event_infos[from->kind].class;
    struct op op = {
        .call = {.ev = {.stamp = from->stamp,
                        .ptr = c->ptr,
                        .size = from->size,
                        .count = from->count,
                        .align = from->align,
                        .result = c->result,
                        .value = from->value,
                        .text = from->text,
                        .text_bytes = from->text_bytes,
                        .kind = from->kind,
                        .error = from->error},
                 .thread = c->thread,
                 .tid = c->tid,
                 .failed = from->flags & WORKLOAD_FAILED && class != HT_CLASS_MAP},
        .slot = from->slot,
        .added = c->added,
        .n_dependencies = from->n_dependencies,
    };
    memcpy(op.call.ev.notes, c->notes, sizeof c->notes);
    if (from->n_dependencies)
        memcpy(op.dependencies, from->dependencies, from->n_dependencies * sizeof *op.dependencies);
    return op;
}

// Returns the address that the op frees, or 0.
static uint64_t freed_address(const struct op *op)
{
    return op->call.failed || event_infos[op->call.ev.kind].class == HT_CLASS_POOL
               ? 0
               : op->call.ev.ptr;
}

static uint64_t allocated_address(const struct op *op)
{
    unsigned class = event_infos[op->call.ev.kind].class;
    return class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE ? op->call.ev.result : 0;
}

static bool is_block(const struct op *op)
{
    unsigned class = event_infos[op->call.ev.kind].class;
    return class == HT_CLASS_ALLOC || class == HT_CLASS_FREE || class == HT_CLASS_RESIZE;
}

// Returns the address that must be free before the op can be emitted, or 0 if the op needs no
// address.
static uint64_t wanted_address(const struct op *op)
{
    uint64_t address = op->skipped ? 0 : allocated_address(op);
    return address == freed_address(op) ? 0 : address;
}

// Returns the address's first ticket, or NULL.
static const struct addressed_ticket *first_ticket(const struct addressed *a, uint64_t address)
{
    uint64_t queue = a->held ? map_get(&a->queues, address) : 0;
    return queue ? &a->tickets[(uint32_t)queue - 1] : NULL;
}

static int add_ticket(struct addressed *a, uint64_t address, uint32_t thread, uint64_t arrival)
{
    uint32_t at = a->free_ticket;
    if (at)
        a->free_ticket = a->tickets[at - 1].next;
    else if (HT_GROW(&a->tickets, &a->tickets_capacity, a->n_tickets + 1) < 0)
        return -ENOMEM;
    else
        at = (uint32_t)++a->n_tickets;
    a->tickets[at - 1] = (struct addressed_ticket){.arrival = arrival, .thread = thread};
    uint64_t queue = map_get(&a->queues, address);
    if (queue)
        a->tickets[(queue >> 32) - 1].next = at;
    return map_put(&a->queues, address, (uint64_t)at << 32 | (queue ? (uint32_t)queue : at));
}

// Removes the address's first ticket.
static int remove_ticket(struct addressed *a, uint64_t address)
{
    uint64_t queue = map_get(&a->queues, address);
    uint32_t at = (uint32_t)queue, next = a->tickets[at - 1].next;
    a->tickets[at - 1].next = a->free_ticket;
    a->free_ticket = at;
    if (next)
        return map_put(&a->queues, address, (queue >> 32) << 32 | next);
    map_remove(&a->queues, address);
    return 0;
}

// Returns 1 if the op can be emitted, 0 if its thread was queued for a retry, or -ENOMEM.
static int is_due(struct addressed *a, uint32_t number, const struct op *op)
{
    for (uint32_t i = 0; i < op->n_dependencies; i++) {
        const struct workload_dependency *d = &op->dependencies[i];
        struct addressed_thread *before = d->thread == number ? NULL : thread_get(a, d->thread);
        if (d->thread != number && !before)
            return -ENOMEM;
        if (!before || before->done > d->op)
            continue;
        a->threads[number]->next = before->waiters;
        before->waiters = number;
        return 0;
    }
    uint64_t address = wanted_address(op);
    const struct addressed_ticket *first = address ? first_ticket(a, address) : NULL;
    if (!address || ((!first || first->arrival == op->arrival) && !map_get(&a->live, address)))
        return 1;
    a->threads[number]->address = address;
    return 0;
}

// Prepends the threads of `chain` to `to`.
static void chain_join(struct addressed *a, uint32_t *to, uint32_t chain)
{
    while (chain != NONE) {
        uint32_t next = a->threads[chain]->next;
        a->threads[chain]->next = *to;
        *to = chain;
        chain = next;
    }
}

// Marks the address as free. If the first op in the address's queue is waiting for the address,
// schedules the thread of this op.
static void address_freed(struct addressed *a, uint64_t address, uint32_t *ready)
{
    map_remove(&a->live, address);
    const struct addressed_ticket *first = first_ticket(a, address);
    struct addressed_thread *t = first ? a->threads[first->thread] : NULL;
    if (!t || t->address != address || t->ops[t->first].arrival != first->arrival)
        return;
    t->address = 0;
    t->next = *ready;
    *ready = first->thread;
}

// If the address that the op frees no longer belongs to the op's block, drops the free, and turns a
// realloc into a malloc. Returns 1 if nothing of the op remains, else 0.
static int drop_lost(const struct addressed *a, struct op *op)
{
    uint64_t block = op->call.ev.ptr ? map_get(&a->live, op->call.ev.ptr) : 0;
    op->call.earlier = block & EARLIER;
    if (!op->call.ev.ptr || (uint32_t)(block - 1) == op->slot)
        return 0;
    op->call.ev.ptr = 0;
    return !op->call.ev.result;
}

// Emits the allocation of a block inherited by a fork child.
static int emit_inherited(struct addressed *a, struct op *op)
{
    struct event *ev = &op->call.ev;
    ev->kind = ev->align ? HT_MEMALIGN : HT_MALLOC;
    ev->result = ev->ptr;
    ev->ptr = ev->value = 0;
    return map_put(&a->live, ev->result, op->slot + 1ull) < 0 ? -ENOMEM
                                                              : a->put(a->context, &op->call);
}

static int emit_block(struct addressed *a, struct op *op, uint32_t *ready)
{
    if (op->added && op->call.ev.kind == HT_PREEXISTING && (uint8_t)op->call.ev.value)
        return emit_inherited(a, op);
    if (op->added && op->call.ev.kind == HT_PREEXISTING) {
        uint64_t block = map_get(&a->live, op->call.ev.ptr),
                 flag = block ? block & EARLIER : EARLIER;
        return map_put(&a->live, op->call.ev.ptr, flag | (op->slot + 1ull));
    }
    if (drop_lost(a, op))
        return 0;
    op->call.added = op->added;
    a->broken += op->added;
    uint64_t gone = freed_address(op), come = allocated_address(op);
    if (gone)
        address_freed(a, gone, ready);
    if (come && map_put(&a->live, come, op->slot + 1ull) < 0)
        return -ENOMEM;
    return a->put(a->context, &op->call);
}

// Emits the thread's next op.
static int emit_op(struct addressed *a, struct addressed_thread *t, struct op *op, uint32_t *ready)
{
    int rc = op->skipped    ? 0
             : is_block(op) ? emit_block(a, op, ready)
                            : a->put(a->context, &op->call);
    t->done++;
    chain_join(a, ready, t->waiters);
    t->waiters = NONE;
    return rc;
}

// Returns true if the op is still held. A thread's ops are emitted in order, so compares with the
// thread's first held op.
static bool still_waits(const struct addressed *a, const struct addressed_wait *w)
{
    const struct addressed_thread *t = a->threads[w->thread];
    return t->n && t->ops[t->first].arrival <= w->arrival;
}

// Appends to `waits`. If stale entries outnumber the held ops, drops the stale entries first.
static int note_wait(struct addressed *a, uint32_t number, uint64_t arrival)
{
    enum { FEW = 1024 };
    if (a->first_wait + a->n_waits == a->waits_capacity && a->n_waits > 2 * a->held + FEW) {
        size_t kept = 0;
        for (size_t i = 0; i < a->n_waits; i++) {
            if (still_waits(a, &a->waits[a->first_wait + i]))
                a->waits[kept++] = a->waits[a->first_wait + i];
        }
        a->n_waits = kept;
        a->first_wait = 0;
    }
    if (a->first_wait > a->n_waits && a->first_wait + a->n_waits == a->waits_capacity) {
        memmove(a->waits, a->waits + a->first_wait, a->n_waits * sizeof *a->waits);
        a->first_wait = 0;
    }
    if (HT_GROW(&a->waits, &a->waits_capacity, a->first_wait + a->n_waits + 1) < 0)
        return -ENOMEM;
    a->waits[a->first_wait + a->n_waits++] = (struct addressed_wait){arrival, number};
    return 0;
}

static int hold_op(struct addressed *a, uint32_t number, struct op *op)
{
    struct addressed_thread *t = a->threads[number];
    if (t->first > t->n && t->first + t->n == t->capacity) {
        memmove(t->ops, t->ops + t->first, t->n * sizeof *t->ops);
        t->first = 0;
    }
    if (HT_GROW(&t->ops, &t->capacity, t->first + t->n + 1) < 0)
        return -ENOMEM;
    char *text = op->call.ev.text_bytes ? malloc(op->call.ev.text_bytes) : NULL;
    if (op->call.ev.text_bytes && !text)
        return -ENOMEM;
    if (text)
        memcpy(text, op->call.ev.text, op->call.ev.text_bytes);
    op->call.ev.text = text;
    t->ops[t->first + t->n++] = *op;
    a->held++;
    if (note_wait(a, number, op->arrival) < 0)
        return -ENOMEM;
    return wanted_address(op) ? add_ticket(a, wanted_address(op), number, op->arrival) : 0;
}

// Emits the held ops of a thread until an op has to wait.
static int emit_held(struct addressed *a, uint32_t number, uint32_t *ready)
{
    struct addressed_thread *t = a->threads[number];
    int rc = 1;
    while (t->n && (rc = is_due(a, number, &t->ops[t->first])) > 0) {
        struct op op = t->ops[t->first++];
        rc = wanted_address(&op) ? remove_ticket(a, wanted_address(&op)) : 0;
        t->n--;
        a->held--;
        rc = rc < 0 ? rc : emit_op(a, t, &op, ready);
        free((char *)op.call.ev.text);
        if (rc < 0)
            return rc;
    }
    if (t->n)
        return rc;
    free(t->ops);
    t->ops = NULL;
    t->first = t->capacity = 0;
    return 0;
}

static int emit_ready(struct addressed *a, uint32_t ready)
{
    while (ready != NONE) {
        uint32_t number = ready;
        ready = a->threads[number]->next;
        a->threads[number]->next = NONE;
        int rc = emit_held(a, number, &ready);
        if (rc < 0)
            return rc;
    }
    return 0;
}

// Returns the thread of the oldest held op, or NONE. Dependencies and tickets always refer to ops
// that arrived earlier, so the oldest op can wait only for an address.
static uint32_t oldest_thread(struct addressed *a)
{
    for (; a->n_waits; a->first_wait++, a->n_waits--) {
        const struct addressed_wait *w = &a->waits[a->first_wait];
        if (still_waits(a, w))
            return w->thread;
    }
    return NONE;
}

// Inserts the free that the oldest held op is waiting for.
static int add_free(struct addressed *a)
{
    uint32_t ready = NONE, number = oldest_thread(a);
    if (number == NONE || !a->threads[number]->address)
        return -EBADMSG;
    const struct addressed_thread *t = a->threads[number];
    const struct addressed_call *waits = &t->ops[t->first].call;
    uint64_t address = t->address;
    const struct addressed_call c = {
        .ev = {.kind = HT_FREE, .stamp = waits->ev.stamp, .ptr = address},
        .thread = waits->thread,
        .tid = waits->tid,
        .earlier = map_get(&a->live, address) & EARLIER,
        .added = true};
    a->broken++;
    address_freed(a, address, &ready);
    int rc = a->put(a->context, &c);
    return rc < 0 ? rc : emit_ready(a, ready);
}

// Emits an inserted free immediately, before the held ops of its thread. One of these ops is an
// allocation that waits for the free.
static int emit_lost_free(struct addressed *a, struct op *op, uint32_t *ready)
{
    if ((uint32_t)(map_get(&a->live, op->call.ev.ptr) - 1) != op->slot)
        return 0;
    op->skipped = true;
    return emit_block(a, op, ready);
}

static int add_op(struct addressed *a, uint32_t number, struct op *op)
{
    uint32_t ready = NONE;
    struct addressed_thread *t = thread_get(a, number);
    if (!t)
        return -ENOMEM;
    op->arrival = a->arrived++;
    int rc = t->n && op->added && op->call.ev.kind == HT_FREE ? emit_lost_free(a, op, &ready) : 0;
    bool first = !t->n;
    if (rc == 0)
        rc = first ? is_due(a, number, op) : 0;
    if (rc > 0)
        rc = emit_op(a, t, op, &ready);
    else if (rc == 0)
        rc = hold_op(a, number, op);
    if (rc == 0 && ready != NONE)
        rc = emit_ready(a, ready);
    return rc == 0 && a->held > MAX_HELD ? add_free(a) : rc;
}

int addressed_add(void *context, const struct workload_thread_op *ops,
                  const struct order_call *calls, size_t n)
{
    const struct addressed *a = context;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        map_prefetch(&a->live, calls[i].ptr ? calls[i].ptr : calls[i].result);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct op op = make_op(&ops[i].op, &calls[i]);
        rc = add_op(context, ops[i].thread, &op);
    }
    return rc;
}

int addressed_finish(struct addressed *a)
{
    int rc = 0;
    while (rc == 0 && a->held)
        rc = add_free(a);
    return rc;
}
