#include "base/buf.h"
#include "plan/build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The op under work.
struct adding {
    struct plan *plan;
    struct plan_stream *stream;
    uint32_t thread, recorded; // recorded: of the op, where all are played in one
    const struct workload_op *op;
    struct err *e;
};

__attribute__((format(printf, 2, 3))) static int bad(const struct adding *a, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(a->e, -EBADMSG, "%s: op %llu of thread %u %s", a->plan->name, (unsigned long long)a->stream->ops,
                   a->thread, text);
}
static int need_stream(struct plan *p, uint64_t thread, struct plan_stream **s, struct err *e)
{
    if (thread >= PLAN_MAX_THREADS)
        return err_set(e, -EBADMSG, "%s: thread %llu: only %d threads can be replayed", p->name,
                       (unsigned long long)thread, PLAN_MAX_THREADS);
    if (HT_GROW(&p->streams, &p->streams_capacity, thread + 1) < 0)
        return plan_no_memory(e);
    while (p->n_streams <= thread)
        p->streams[p->n_streams++] = NULL;
    *s = p->streams[thread];
    if (*s)
        return 0;
    *s = p->streams[thread] = calloc(1, sizeof **p->streams);
    if (!*s)
        return plan_no_memory(e);
    (*s)->number = (uint32_t)thread;
    (*s)->memory = p->facts.fed ? &p->ring : &p->memory;
    return 0;
}
// The slot of the op; its room is made when it is new. A slot's number needs no block of its own in the file, so the
// table is held against the memory allowed.
static int need_slot(struct adding *a, struct slot **slot)
{
    struct plan *p = a->plan;
    uint64_t n = (uint64_t)a->op->slot + 1;
    if (n > p->n_slots) {
        if (n > p->memory_bytes / sizeof *p->slots)
            return bad(a,
                       "has slot %u: the table of slots does not fit into the memory allowed; give more with --memory",
                       a->op->slot);
        if (HT_GROW(&p->slots, &p->slots_capacity, n) < 0)
            return plan_no_memory(a->e);
        memset(p->slots + p->n_slots, 0, (n - p->n_slots) * sizeof *p->slots);
        p->n_slots = n;
    }
    *slot = &p->slots[a->op->slot];
    return 0;
}

static int held_slot(struct adding *a, struct slot **slot)
{
    int rc = need_slot(a, slot);
    if (rc == 0 && !(*slot)->place)
        return bad(a, "uses slot %u, which holds no block", a->op->slot);
    return rc;
}

static void count_live(struct adding *a, uint64_t change)
{
    struct plan *p = a->plan;
    a->stream->live_change = wrapping_add(a->stream->live_change, (int64_t)change);
    p->live = wrapping_add(p->live, (int64_t)change);
    if (p->live > p->peak) {
        p->peak = p->live;
        p->facts.ops_to_peak = p->added + 1;
    }
}

// For people who ask later whose a block is.
static int note_taking(struct adding *a)
{
    return a->plan->how.hold ? plan_note_taking(a->plan, a->recorded, a->op, a->e) : 0;
}

static int put_counted(struct adding *a, const struct call *c)
{
    a->stream->counted_events++;
    a->plan->facts.events++;
    a->plan->facts.by_kind[a->op->kind]++;
    return plan_put_call(a->plan, a->stream, c, a->e);
}

// An op that is there only so that op numbers stay those of the workload.
static int put_plain(struct adding *a, enum plan_op op)
{
    return plan_put_call(a->plan, a->stream, &(struct call){.op = op}, a->e);
}

static int put_skipped(struct adding *a)
{
    a->plan->facts.skipped++;
    return put_plain(a, PLAN_SKIPPED);
}

// How many there will be is known from the scan.
static int put_sample_of_fed(struct adding *a)
{
    struct plan *p = a->plan;
    bool look = p->scanned && p->n_samples % plan_sample_step(p->scanned) == 0;
    p->n_samples++;
    int rc = p->scanned ? 0 : plan_note_point(p, a->e);
    return rc < 0 ? rc : plan_put_count(p, a->stream, look ? PLAN_SAMPLE : PLAN_COUNT, a->e);
}

static int put_sample(struct adding *a)
{
    struct plan *p = a->plan;
    if (p->facts.fed)
        return put_sample_of_fed(a);
    int rc = plan_put_count(p, a->stream, PLAN_SAMPLE, a->e);
    if (rc < 0)
        return rc;
    if (HT_GROW(&p->samples, &p->samples_capacity, p->n_samples + 1) < 0)
        return plan_no_memory(a->e);
    p->samples[p->n_samples++] = a->stream->next - 2;
    return plan_note_point(p, a->e);
}

// Ops that come soon after a PACE have none of their own: the player's sleep is no more exact than that.
static int put_pace(struct adding *a)
{
    enum { PACE_STEP_NS = 20000 };
    struct plan *p = a->plan;
    if (a->op->kind == HT_PREEXISTING)
        return 0;
    double ns = a->op->stamp > p->first_stamp ? (double)(a->op->stamp - p->first_stamp) * p->how.ns_per_stamp : 0;
    if (ns >= (double)(1ull << 55))
        return bad(a, "is more than a year after the first one");
    if ((uint64_t)ns < a->stream->paced_ns + PACE_STEP_NS)
        return 0;
    return plan_put_pace(p, a->stream, (uint64_t)ns, a->e);
}

static int put_dependencies(struct adding *a)
{
    struct plan *p = a->plan;
    for (uint32_t i = 0; i < a->op->n_dependencies; i++) {
        const struct workload_dependency *w = &a->op->dependencies[i];
        struct plan_stream *other = w->thread < p->n_streams ? p->streams[w->thread] : NULL;
        if (!other || w->op >= other->ops)
            return bad(a, "waits for op %llu of thread %u, which has not come", (unsigned long long)w->op, w->thread);
        if (other == a->stream)
            continue;
        uint64_t position;
        plan_stream_publish(other, w->op, &position);
        int rc = plan_put_wait(p, a->stream, w->thread, position, a->e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

// A place for the slot's new block. May put a wait into the stream, so it comes before the op.
static int take_place(struct adding *a, struct slot *slot)
{
    struct place_batch *batch;
    if (places_take(&a->plan->places, &a->stream->places, &slot->place, &batch) < 0)
        return plan_no_memory(a->e);
    if (a->plan->places.limit > a->plan->memory_bytes / 8)
        return bad(
            a,
            "is one block too many: the table of blocks does not fit into the memory allowed; give more with --memory");
    int rc = 0;
    if (batch && batch->giver != a->thread)
        rc = plan_put_wait(a->plan, a->stream, batch->giver, batch->position, a->e);
    free(batch);
    return rc;
}

// Lets others have places that this thread has too many of, once its latest op is done.
static int share_places(struct adding *a)
{
    uint64_t position;
    plan_stream_publish(a->stream, a->stream->ops - 1, &position);
    return places_share(&a->plan->places, &a->stream->places, a->thread, position) < 0 ? plan_no_memory(a->e) : 0;
}

static int give_place(struct adding *a, struct slot *slot)
{
    int many = places_give(&a->stream->places, slot->place);
    slot->place = 0;
    if (many < 0)
        return plan_no_memory(a->e);
    return many ? share_places(a) : 0;
}

static uint64_t requested(const struct workload_op *op)
{
    return event_requested(op->kind, op->size, op->count);
}

// The call that takes a block, of a kind that is no realloc, or of a realloc of NULL.
static struct call taking_call(const struct workload_op *op, uint32_t place)
{
    struct call c = {.op = (enum plan_op)op->kind, .place = place, .size = op->size, .extra = {op->align}};
    if (op->kind == HT_CALLOC && op->count != 1) {
        c.op = PLAN_CALLOC_MANY;
        c.extra[0] = op->count;
    } else if (op->kind == HT_REALLOC) {
        c.op = PLAN_REALLOC_NEW;
    } else if (op->kind == HT_REALLOCARRAY) {
        c.op = PLAN_REALLOCARRAY_NEW;
        c.extra[0] = op->count;
    }
    return c;
}

// Which call can give up a block that `op` takes: C++ allocators may tell the families apart.
static void note_family(struct slot *slot, const struct workload_op *op)
{
    slot->given_up_by = HT_FREE;
    slot->align_log2 = op->align ? (uint8_t)__builtin_ctzll(op->align) : 0;
    if (op->kind == HT_NEW || op->kind == HT_NEW_NOTHROW)
        slot->given_up_by = HT_DELETE;
    else if (op->kind == HT_NEW_ARRAY || op->kind == HT_NEW_ARRAY_NOTHROW)
        slot->given_up_by = HT_DELETE_ARRAY;
    else if (op->kind == HT_NEW_ALIGNED || op->kind == HT_NEW_ALIGNED_NOTHROW)
        slot->given_up_by = HT_DELETE_ALIGNED;
    else if (op->kind == HT_NEW_ARRAY_ALIGNED || op->kind == HT_NEW_ARRAY_ALIGNED_NOTHROW)
        slot->given_up_by = HT_DELETE_ARRAY_ALIGNED;
}

static int add_taking(struct adding *a)
{
    struct slot *slot;
    if ((a->op->flags & WORKLOAD_FAILED) || a->op->slot == WORKLOAD_NO_SLOT)
        return put_skipped(a);
    int rc = need_slot(a, &slot);
    if (rc < 0)
        return rc;
    if (slot->place)
        return bad(a, "takes slot %u, which holds a block already", a->op->slot);
    rc = take_place(a, slot);
    if (rc < 0)
        return rc;
    slot->size = requested(a->op);
    note_family(slot, a->op);
    count_live(a, slot->size);
    struct call c = taking_call(a->op, slot->place);
    rc = note_taking(a);
    return rc < 0 ? rc : put_counted(a, &c);
}

static int add_giving(struct adding *a)
{
    const struct workload_op *op = a->op;
    struct slot *slot;
    struct call c = {.op = (enum plan_op)op->kind, .size = op->size, .extra = {op->align}};
    if (op->slot == WORKLOAD_NO_SLOT)
        return put_counted(a, &c);
    int rc = held_slot(a, &slot);
    if (rc < 0)
        return rc;
    c.place = slot->place;
    if (op->kind == HT_REALLOC || op->kind == HT_REALLOCARRAY)
        c.op = PLAN_REALLOC_FREE;
    count_live(a, 0 - slot->size);
    rc = put_counted(a, &c);
    return rc < 0 ? rc : give_place(a, slot);
}

static int add_resizing(struct adding *a)
{
    const struct workload_op *op = a->op;
    struct slot *slot;
    if (op->flags & WORKLOAD_FAILED)
        return put_skipped(a);
    if (op->flags & WORKLOAD_FROM_NULL)
        return add_taking(a);
    if (op->flags & WORKLOAD_FREED)
        return add_giving(a);
    if (op->slot == WORKLOAD_NO_SLOT)
        return put_skipped(a);
    int rc = held_slot(a, &slot);
    if (rc < 0)
        return rc;
    struct call c = {.op = (enum plan_op)op->kind, .place = slot->place, .size = op->size, .extra = {slot->size}};
    if (op->kind == HT_REALLOCARRAY) {
        c.extra[0] = op->count;
        c.extra[1] = slot->size;
    }
    count_live(a, requested(op) - slot->size);
    slot->size = requested(op);
    rc = note_taking(a);
    return rc < 0 ? rc : put_counted(a, &c);
}

// The call that makes a block which is given up by this one.
static unsigned preexisting_kind(const struct slot *slot)
{
    switch (slot->given_up_by) {
    case HT_DELETE:
        return HT_NEW;
    case HT_DELETE_ARRAY:
        return HT_NEW_ARRAY;
    case HT_DELETE_ALIGNED:
        return HT_NEW_ALIGNED;
    case HT_DELETE_ARRAY_ALIGNED:
        return HT_NEW_ARRAY_ALIGNED;
    }
    return slot->align_log2 ? HT_MEMALIGN : HT_MALLOC;
}

// The call that took it is known when it was recorded: of blocks that were live where a part of a workload begins.
static void note_preexisting_family(struct slot *slot, const struct workload_op *op)
{
    struct workload_op taken = {.align = op->align, .kind = (uint8_t)op->value};
    note_family(slot, &taken);
}

// A block from before the recording is made before the start, so it gets a place that no other block has had.
static int add_preexisting(struct adding *a)
{
    struct plan *p = a->plan;
    struct slot *slot;
    int rc = need_slot(a, &slot);
    if (rc < 0)
        return rc;
    if (slot->place)
        return bad(a, "takes slot %u, which holds a block already", a->op->slot);
    if (places_take_fresh(&p->places, &p->preexisting.places, &slot->place) < 0)
        return plan_no_memory(a->e);
    slot->size = a->op->flags & WORKLOAD_SIZE_UNKNOWN ? PLAN_UNKNOWN_SIZE : a->op->size;
    note_preexisting_family(slot, a->op);
    unsigned kind = preexisting_kind(slot);
    p->preexisting_by[kind] = true;
    p->preexisting_bytes += slot->size;
    p->preexisting.live_change = wrapping_add(p->preexisting.live_change, (int64_t)slot->size);
    p->facts.preexisting++;
    struct call c = {
        .op = PLAN_PREEXISTING, .place = slot->place, .size = slot->size, .extra = {1ull << slot->align_log2, kind}};
    rc = p->scanned ? 0 : plan_put_call(p, &p->preexisting, &c, a->e);
    if (rc == 0)
        rc = note_taking(a);
    return rc < 0 ? rc : put_plain(a, PLAN_SKIPPED);
}

static int add_birth(struct adding *a)
{
    const struct workload_op *op = a->op;
    struct plan_stream *child;
    // Thread 0 is the player's main thread, and who has acted already is there from the start.
    if (a->plan->facts.one_thread)
        return put_plain(a, PLAN_SKIPPED);
    if ((op->flags & WORKLOAD_FAILED) || op->value == 0 || op->value >= PLAN_MAX_THREADS)
        return put_skipped(a);
    int rc = need_stream(a->plan, op->value, &child, a->e);
    if (rc < 0)
        return rc;
    if (child->born || child->ops || child == a->stream)
        return put_skipped(a);
    child->born = true;
    return plan_put_call(a->plan, a->stream, &(struct call){.op = PLAN_THREAD_CREATE, .size = op->value}, a->e);
}

// A thread that is over leaves its places to the others.
static int add_end(struct adding *a)
{
    struct place_owner *o = &a->stream->places;
    int rc = put_plain(a, PLAN_THREAD_END);
    a->plan->current_over = true;
    if (a->plan->facts.one_thread)
        return rc;
    while (rc == 0 && o->fresh < o->fresh_end)
        rc = places_give(o, o->fresh++) < 0 ? plan_no_memory(a->e) : 0;
    while (rc == 0 && o->n)
        rc = share_places(a);
    return rc;
}

static int add_by_class(struct adding *a)
{
    switch ((enum event_class)event_infos[a->op->kind].class) {
    case HT_CLASS_ALLOC:
        return a->op->kind == HT_PREEXISTING ? add_preexisting(a) : add_taking(a);
    case HT_CLASS_FREE:
        return add_giving(a);
    case HT_CLASS_RESIZE:
        return add_resizing(a);
    case HT_CLASS_THREAD:
        if (a->op->kind == HT_THREAD_CREATE)
            return add_birth(a);
        return a->op->kind == HT_THREAD_END ? add_end(a) : put_plain(a, (enum plan_op)a->op->kind);
    case HT_CLASS_MARK:
        return put_plain(a, (enum plan_op)a->op->kind);
    case HT_CLASS_MAP:
    case HT_CLASS_META:
        return put_skipped(a);
    case HT_CLASS_NONE:
    case HT_CLASS_HALF:
        break;
    }
    return bad(a, "is of kind %u, which no workload has", a->op->kind);
}

// In one thread no op waits for another: all that it could wait for has come before.
static int put_switch(struct adding *a, uint32_t thread)
{
    struct plan *p = a->plan;
    if (thread >= PLAN_MAX_THREADS)
        return bad(a, "is of thread %u: only %d threads can be replayed", thread, PLAN_MAX_THREADS);
    if (thread >= p->n_threads)
        p->n_threads = thread + 1;
    if (thread == p->current || a->op->kind == HT_PREEXISTING)
        return 0;
    return plan_put_switch(p, a->stream, thread, a->e);
}

// What is due every so many calls.
static int put_periodic(struct adding *a)
{
    struct plan *p = a->plan;
    int rc = 0;
    bool marked = event_infos[a->op->kind].class == HT_CLASS_MARK;
    if (p->how.trim_every && p->facts.events >= p->next_trim) {
        p->next_trim += p->how.trim_every;
        rc = plan_put_trim(p, a->stream, a->e);
    }
    if (rc < 0 || !p->how.stats_every || (!marked && p->facts.events < p->next_stats))
        return rc;
    if (p->facts.stats >= PLAN_MAX_STATS)
        return err_set(a->e, -EINVAL, "%s: more than %d looks at statistics; look less often", p->name, PLAN_MAX_STATS);
    if (!marked)
        p->next_stats += p->how.stats_every;
    return plan_put_stats(p, a->stream, a->e);
}

int plan_add_op(struct plan *p, uint32_t thread, const struct workload_op *op, struct err *e)
{
    struct adding a = {.plan = p, .thread = p->facts.one_thread ? 0 : thread, .recorded = thread, .op = op, .e = e};
    int rc = need_stream(p, a.thread, &a.stream, e);
    if (rc == 0 && p->facts.one_thread)
        rc = put_switch(&a, thread);
    if (rc < 0)
        return rc;
    if (p->facts.events == 0 && !p->first_stamp && op->kind != HT_PREEXISTING)
        p->first_stamp = op->stamp;
    if (!p->scanned)
        plan_follow(p, &a.stream->span, op);
    rc = put_periodic(&a);
    if (rc == 0 && p->how.ns_per_stamp > 0)
        rc = put_pace(&a);
    if (rc == 0 && a.stream->counted_events >= PLAN_SAMPLE_EVENTS)
        rc = put_sample(&a);
    if (rc == 0 && op->n_dependencies && !p->facts.one_thread)
        rc = put_dependencies(&a);
    if (rc == 0 && p->how.hold)
        rc = plan_hold_before(p, a.stream, e);
    if (rc == 0)
        rc = add_by_class(&a);
    if (rc == 0 && p->how.hold)
        rc = plan_hold_after(p, a.stream, e);
    p->added++;
    return rc < 0 || !p->scanned ? rc : plan_stop_if_over(p, a.stream, e);
}

int plan_add_run(struct plan *p, const struct workload_run *run, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < run->n_ops; i++)
        rc = plan_add_op(p, run->thread, &run->ops[i], e);
    return rc;
}
