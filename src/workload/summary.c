#include "workload/summary.h"

#include "base/pages.h"
#include "workload/format.h"

#include <errno.h>

void summary_init(struct summary_counter *s)
{
    *s = (struct summary_counter){.first_stamp = UINT64_MAX};
}

void summary_release(struct summary_counter *s)
{
    pages_array_free(s->slots, s->capacity, sizeof *s->slots);
    summary_init(s);
}

static __attribute__((noinline)) int add_slot(struct summary_counter *s, uint32_t slot)
{
    s->summary.slots = slot + 1ull;
    return HT_PAGES_GROW(&s->slots, &s->capacity, (slot + 1ull) << s->two_words);
}

// Adds requested bytes, saturating at UINT64_MAX.
static inline void request(uint64_t *sum, uint64_t size)
{
    *sum = *sum > UINT64_MAX - size ? UINT64_MAX : *sum + size;
}

static inline int count_allocation(struct summary_counter *s, uint32_t thread, uint32_t slot,
                                   uint64_t size)
{
    if (__builtin_expect(slot >= s->summary.slots, 0) && add_slot(s, slot) < 0)
        return -ENOMEM;
    uint64_t live = size < SUMMARY_SIZE_MASK ? size : SUMMARY_SIZE_MASK,
             *at = summary_slot(s, slot);
    s->contradicted |= *at >> 63;
    *at = ((uint64_t)thread << SUMMARY_SIZE_BITS | live) | SUMMARY_HOLDS;
    s->live_blocks++;
    s->live_bytes += live;
    if (s->live_bytes > s->summary.peak_live_bytes)
        s->summary.peak_live_bytes = s->live_bytes;
    return 0;
}

static inline void count_free(struct summary_counter *s, uint32_t thread, uint32_t slot)
{
    uint64_t *at = summary_known(s, slot) ? summary_slot(s, slot) : NULL, block = at ? *at : 0;
    if (__builtin_expect(!(block & SUMMARY_HOLDS), 0)) {
        s->contradicted = true;
        return;
    }
    *at = 0;
    s->live_blocks--;
    s->live_bytes -= block & SUMMARY_SIZE_MASK;
    s->summary.remote_frees += (block & ~SUMMARY_HOLDS) >> SUMMARY_SIZE_BITS !=
                               (thread & ((1u << SUMMARY_THREAD_BITS) - 1));
}

static void count_stamp(struct summary_counter *s, uint64_t stamp)
{
    s->first_stamp = stamp < s->first_stamp ? stamp : s->first_stamp;
    if (stamp > s->summary.last_stamp)
        s->summary.last_stamp = stamp;
}

static void count_preexisting(struct summary_counter *s, const struct workload_op *op,
                              uint64_t size)
{
    bool seen = (uint8_t)op->value; // true if the allocating call is known
    request(&s->preexisting_bytes, size);
    s->summary.preexisting_blocks += seen;
    request(&s->summary.preexisting_bytes, seen ? size : 0);
}

static inline int use_slot(struct summary_counter *s, uint32_t thread, const struct workload_op *op)
{
    uint64_t size;
    if (op->slot == WORKLOAD_NO_SLOT)
        return 0;
    if (__builtin_expect(op->flags & WORKLOAD_FAILED, 0)) {
        s->contradicted |=
            !summary_known(s, op->slot) || !(*summary_slot(s, op->slot) & SUMMARY_HOLDS);
        return 0;
    }
    switch (event_infos[op->kind].class) {
    case HT_CLASS_ALLOC:
        size = event_requested(op->kind, op->size, op->count);
        if (__builtin_expect(op->kind == HT_PREEXISTING, 0))
            count_preexisting(s, op, size);
        else
            request(&s->summary.requested_bytes, size);
        return count_allocation(s, thread, op->slot, size);
    case HT_CLASS_FREE:
        count_free(s, thread, op->slot);
        return 0;
    case HT_CLASS_RESIZE:
        if (!(op->flags & WORKLOAD_FROM_NULL))
            count_free(s, thread, op->slot);
        if (op->flags & WORKLOAD_FREED)
            return 0;
        size = event_requested(op->kind, op->size, op->count);
        request(&s->summary.requested_bytes, size);
        return count_allocation(s, thread, op->slot, size);
    }
    return 0;
}

int summary_simple(struct summary_counter *s, uint32_t thread, const struct workload_simple *ops,
                   size_t n)
{
    struct workload_summary *sum = &s->summary;
    const uint64_t holder = (uint64_t)thread << SUMMARY_SIZE_BITS | SUMMARY_HOLDS;
    uint64_t requested = 0, bytes = s->live_bytes, blocks = s->live_blocks,
             peak = sum->peak_live_bytes;
    for (size_t i = 0; i < n; i++) {
        const struct workload_simple *op = &ops[i];
        if (__builtin_expect(op->slot >= sum->slots, 0) && add_slot(s, op->slot) < 0)
            return -ENOMEM;
        uint64_t *at = summary_slot(s, op->slot), was = *at;
        *at = op->allocates ? holder | op->size : 0;
        requested += op->allocates ? op->size : 0;
        sum->remote_frees += !op->allocates && (was ^ holder) >> SUMMARY_SIZE_BITS;
        bytes += op->allocates ? op->size : -(was & SUMMARY_SIZE_MASK);
        blocks += op->allocates ? 1 : UINT64_MAX;
        peak = bytes > peak ? bytes : peak;
        sum->by_kind[op->kind]++;
    }
    s->live_bytes = bytes;
    s->live_blocks = blocks;
    sum->peak_live_bytes = peak;
    request(&sum->requested_bytes, requested);
    sum->threads = thread >= sum->threads ? thread + 1ull : sum->threads;
    count_stamp(s, ops[0].stamp);
    count_stamp(s, ops[n - 1].stamp);
    return 0;
}

static inline int count_op(struct summary_counter *s, uint32_t thread, const struct workload_op *op)
{
    struct workload_summary *sum = &s->summary;
    count_stamp(s, op->stamp);
    sum->by_kind[op->kind]++;
    if (__builtin_expect(thread >= sum->threads, 0))
        sum->threads = thread + 1ull;
    sum->dependencies += op->n_dependencies;
    return use_slot(s, thread, op);
}

int summary_op(struct summary_counter *s, uint32_t thread, const struct workload_op *op)
{
    return count_op(s, thread, op);
}

int summary_run(struct summary_counter *s, uint32_t thread, const struct workload_op *ops, size_t n,
                size_t readable)
{
    enum { AHEAD = 8 };
    int rc = 0;
    size_t i = 0;
    for (; i < n && rc == 0 && !s->contradicted; i++) {
        if (i + AHEAD < readable)
            summary_prefetch(s, ops[i + AHEAD].slot);
        rc = count_op(s, thread, &ops[i]);
    }
    return rc < 0 ? rc : (int)i;
}

struct workload_summary summary_result(const struct summary_counter *s)
{
    struct workload_summary sum = s->summary;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        sum.events += sum.by_kind[kind];
    sum.first_stamp = sum.events ? s->first_stamp : 0;
    // Preexisting blocks are not events of the program.
    sum.unmatched_frees = sum.by_kind[HT_PREEXISTING] - sum.preexisting_blocks;
    sum.events -= sum.by_kind[HT_PREEXISTING];
    sum.by_kind[HT_PREEXISTING] = 0;
    sum.live_at_end_bytes = s->live_bytes;
    sum.live_at_end_blocks = s->live_blocks;
    return sum;
}

int summary_ops(struct summary_counter *s, const struct workload_thread_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        summary_prefetch(s, ops[i].op.slot);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = count_op(s, ops[i].thread, &ops[i].op);
    return rc;
}

void summary_add_early(struct workload_summary *to, const struct workload_summary *more)
{
    to->early_events += more->early_events;
    to->early_max_ns =
        more->early_max_ns > to->early_max_ns ? more->early_max_ns : to->early_max_ns;
    to->early_usual_ns =
        more->early_usual_ns > to->early_usual_ns ? more->early_usual_ns : to->early_usual_ns;
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
#define MERGE_KEEP(member)
#define MERGE_ADD(member)        to->member += more->member;
#define HT_X(tag, member, merge) MERGE_##merge(member)
    FORMAT_SUMMARY_TABLE(HT_X)
#undef HT_X
    summary_add_early(to, more);
}
