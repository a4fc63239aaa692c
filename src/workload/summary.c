#include "workload/summary.h"

#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>

void summary_init(struct summary_counter *s)
{
    *s = (struct summary_counter){.first_stamp = UINT64_MAX};
}

void summary_release(struct summary_counter *s)
{
    pages_array_free(s->slots, s->capacity, sizeof *s->slots);
    summary_init(s);
}

static __attribute__((noinline)) int slot_meet(struct summary_counter *s, uint32_t slot)
{
    s->summary.slots = slot + 1ull;
    return HT_PAGES_GROW(&s->slots, &s->capacity, (slot + 1ull) << s->two_words);
}

static inline int allocate(struct summary_counter *s, uint32_t thread, uint32_t slot, uint64_t size)
{
    if (__builtin_expect(slot >= s->summary.slots, 0) && slot_meet(s, slot) < 0)
        return -ENOMEM;
    summary_allocate(s, thread, slot, size);
    return 0;
}

static inline void release(struct summary_counter *s, uint32_t thread, uint32_t slot)
{
    if (__builtin_expect(summary_known(s, slot), 1))
        summary_free(s, thread, slot);
    else
        s->contradicted = true;
}

static inline int use_slot(struct summary_counter *s, uint32_t thread, const struct workload_op *op)
{
    enum event_class class = event_infos[op->kind].class;
    if (class > HT_CLASS_RESIZE || op->slot == WORKLOAD_NO_SLOT)
        return 0;
    if (__builtin_expect(op->flags & WORKLOAD_FAILED, 0)) {
        s->contradicted |= !summary_known(s, op->slot) || !(*summary_slot(s, op->slot) & SUMMARY_HOLDS);
        return 0;
    }
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        release(s, thread, op->slot);
    if (class == HT_CLASS_FREE || op->flags & WORKLOAD_FREED)
        return 0;
    uint64_t size = event_requested(op->kind, op->size, op->count);
    *(op->kind == HT_PREEXISTING ? &s->preexisting_bytes : &s->summary.requested_bytes) += size;
    return allocate(s, thread, op->slot, size);
}

static inline int count(struct summary_counter *s, uint32_t thread, const struct workload_op *op)
{
    if (__builtin_expect(thread >= s->summary.threads, 0))
        s->summary.threads = thread + 1ull;
    s->summary.dependencies += op->n_dependencies;
    summary_see(s, op);
    return use_slot(s, thread, op);
}

int summary_op(struct summary_counter *s, uint32_t thread, const struct workload_op *op)
{
    return count(s, thread, op);
}

int summary_run(struct summary_counter *s, uint32_t thread, const struct workload_op *ops, size_t n, size_t readable)
{
    enum { AHEAD = 8 };
    int rc = 0;
    size_t i = 0;
    for (; i < n && rc == 0 && !s->contradicted; i++) {
        if (i + AHEAD < readable && summary_known(s, ops[i + AHEAD].slot))
            __builtin_prefetch(summary_slot(s, ops[i + AHEAD].slot), 1);
        rc = count(s, thread, &ops[i]);
    }
    return rc < 0 ? rc : (int)i;
}

struct workload_summary summary_result(const struct summary_counter *s)
{
    struct workload_summary sum = s->summary;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        sum.events += sum.by_kind[kind];
    sum.first_stamp = sum.events ? s->first_stamp : 0;
    // Not events of the program.
    sum.unmatched_frees = sum.by_kind[HT_PREEXISTING];
    sum.events -= sum.unmatched_frees;
    sum.by_kind[HT_PREEXISTING] = 0;
    sum.live_at_end_bytes = s->live_bytes;
    sum.live_at_end_blocks = s->live_blocks;
    return sum;
}

int summary_ops(struct summary_counter *s, const struct workload_thread_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (summary_known(s, ops[i].op.slot))
            __builtin_prefetch(summary_slot(s, ops[i].op.slot), 1);
    }
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = count(s, ops[i].thread, &ops[i].op);
    return rc;
}

void summary_add(struct workload_summary *to, const struct workload_summary *more)
{
    bool first = to->events == 0;
    if (first || (more->events && more->first_stamp < to->first_stamp))
        to->first_stamp = more->first_stamp;
    if (more->last_stamp > to->last_stamp)
        to->last_stamp = more->last_stamp;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        to->by_kind[kind] += more->by_kind[kind];
    to->events += more->events;
    to->threads += more->threads;
    to->slots += more->slots;
    to->requested_bytes += more->requested_bytes;
    to->peak_live_bytes += more->peak_live_bytes;
    to->live_at_end_bytes += more->live_at_end_bytes;
    to->live_at_end_blocks += more->live_at_end_blocks;
    to->remote_frees += more->remote_frees;
    to->unmatched_frees += more->unmatched_frees;
    to->order_repaired += more->order_repaired;
    to->order_ambiguous += more->order_ambiguous;
    to->dependencies += more->dependencies;
    to->dependencies_needed += more->dependencies_needed;
    to->lost_records += more->lost_records;
    to->usable_bytes += more->usable_bytes;
    to->usable_requested_bytes += more->usable_requested_bytes;
    to->cpu_ns += more->cpu_ns;
    to->recording_ns += more->recording_ns;
}
