// Adds many plain calls at a time. Most ops of a workload are plain calls. Has the same effect as
// add_op() in add.c, but keeps the variables in registers.
#include "base/buf.h"
#include "replay/plan/build.h"

// How the fast path adds ops of a kind. 0 means that add_op() must be used.
enum { ALLOCATES = 1, FREES, RESIZES };

static const uint8_t plain_calls[HT_KIND_LIMIT] = {
    [HT_MALLOC] = ALLOCATES,
    [HT_CALLOC] = ALLOCATES,
    [HT_NEW] = ALLOCATES,
    [HT_NEW_ARRAY] = ALLOCATES,
    [HT_NEW_NOTHROW] = ALLOCATES,
    [HT_NEW_ARRAY_NOTHROW] = ALLOCATES,
    [HT_FREE] = FREES,
    [HT_DELETE] = FREES,
    [HT_DELETE_ARRAY] = FREES,
    [HT_DELETE_SIZED] = FREES,
    [HT_DELETE_ARRAY_SIZED] = FREES,
    [HT_REALLOC] = RESIZES,
};

// Variables that change with every op.
struct adding {
    uint64_t *next; // next word
    uint64_t position, end;
    uint32_t fresh, n_free;
    int64_t live, peak;
    uint64_t to_peak, max_block_bytes;
    uint64_t bytes; // number of bytes allocated and freed
    size_t indexed, done;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// Returns how many of the workload's ops may be added before an op of the player must be inserted.
static size_t count_before_others(const struct plan *p, const struct plan_stream *s,
                                  uint32_t thread, size_t n)
{
    if (p->settings.snapshots || !s->span.ops || !p->facts.events)
        return 0;
    if (!p->facts.one_thread && s->section != p->coupling.number)
        return 0;
    if (p->facts.one_thread && (thread != p->current || thread >= p->n_threads))
        return 0;
    uint64_t most = min_u64(n, PLAN_SAMPLE_EVENTS - s->unsampled_events);
    if (p->settings.trim_every)
        most = p->facts.events < p->next_trim ? min_u64(most, p->next_trim - p->facts.events) : 0;
    if (p->settings.stats_every)
        most = p->facts.events < p->next_stats ? min_u64(most, p->next_stats - p->facts.events) : 0;
    return most;
}

static void end_adding(struct plan *p, struct plan_stream *s, const struct adding *a,
                       const struct workload_op *ops)
{
    if (!a->done)
        return;
    s->next = a->position;
    s->pool.fresh = a->fresh;
    s->pool.n = a->n_free;
    s->ops += a->done;
    s->indexed = a->indexed;
    s->counted_events += a->done;
    s->unsampled_events += a->done;
    p->coupling.calls += a->done;
    p->coupling.bytes += a->bytes;
    s->live_change = plan_wrapping_add(
        s->live_change, plan_wrapping_add(a->live, (int64_t)(0 - (uint64_t)p->live)));
    s->span.ops += a->done;
    s->span.last_stamp = ops[a->done - 1].stamp;
    s->span.last_event = p->facts.events + a->done - 1;
    if (s->span.last_stamp > p->last_stamp)
        p->last_stamp = s->span.last_stamp;
    p->facts.events += a->done;
    p->added += a->done;
    p->live = a->live;
    p->peak = a->peak;
    p->facts.ops_to_peak = a->to_peak;
    p->max_block_bytes = a->max_block_bytes;
}

// Returns an entry from the pool for a new block, or 0.
static inline uint64_t allocate_entry(const struct plan_stream *s, struct adding *a)
{
    if (a->n_free)
        return s->pool.free[--a->n_free];
    return a->fresh < s->pool.fresh_end ? a->fresh++ : 0;
}

// Sets the size of the slot's block.
static inline void resize_block(struct plan_slot *slot, uint64_t size, uint64_t op,
                                struct adding *a)
{
    a->live = plan_wrapping_add(a->live, (int64_t)(size - slot->size));
    a->bytes += size > slot->size ? size - slot->size : slot->size - size;
    slot->size = size;
    if (size > a->max_block_bytes)
        a->max_block_bytes = size;
    if (a->live > a->peak) {
        a->peak = a->live;
        a->to_peak = op;
    }
}

// Writes the call of `op`, which must have a slot. Returns false, without changes, if the call is
// not plain.
static inline bool add_call(const struct plan *p, struct plan_stream *s,
                            const struct workload_op *op, struct adding *a)
{
    struct plan_slot *slot = &p->slots[op->slot];
    uint64_t entry = slot->entry;
    switch (plain_calls[op->kind]) {
    case ALLOCATES:
        if (entry || op->flags || (op->kind == HT_CALLOC && op->count != 1) ||
            !(entry = allocate_entry(s, a)))
            return false;
        *slot = (struct plan_slot){.entry = (uint32_t)entry, .free_kind = plan_freed_by(op->kind)};
        resize_block(slot, op->size, p->added + a->done + 1, a);
        break;
    case FREES:
        if (!entry || op->flags || slot->size >> HT_BIG_SIZE_BITS ||
            a->n_free + 1 >= SLOT_TABLE_SURPLUS || a->n_free == s->pool.capacity)
            return false;
        a->live = plan_wrapping_add(a->live, (int64_t)(0 - slot->size));
        a->bytes += slot->size;
        s->pool.free[a->n_free++] = (uint32_t)entry;
        slot->entry = 0;
        break;
    case RESIZES:
        if (!entry || slot->size >> HT_BIG_SIZE_BITS || op->flags & ~WORKLOAD_MOVED)
            return false;
        a->next[1] = slot->size;
        resize_block(slot, op->size, p->added + a->done + 1, a);
        break;
    default:
        return false;
    }
    *a->next = plan_word((enum plan_op)op->kind, entry, op->size);
    return true;
}

size_t plan_add_plain(struct plan *p, struct plan_stream *s, uint32_t thread,
                      const struct workload_op *ops, size_t n)
{
    enum { AHEAD = 8 };
    size_t most = count_before_others(p, s, thread, n);
    uint64_t until =
        p->n_passed < p->n_recorded ? p->recorded[p->n_passed].sample.stamp : UINT64_MAX;
    until = p->next_step ? min_u64(until, p->next_step - 1) : 0;
    if (p->settings.ns_per_stamp > 0)
        until = s->pace_stamp ? min_u64(until, s->pace_stamp - 1) : 0;
    bool narrow = p->slot_table.limit <= 1u << PLAN_ENTRY_BITS;
    if (!most || !narrow || p->n_awaited != p->n_exited ||
        HT_GROW(&s->index, &s->index_capacity, s->indexed + most / PLAN_INDEX_OPS + 1) < 0)
        return 0;
    struct adding a = {
        .next = s->open ? plan_memory_at(s->memory, s->next) : NULL,
        .position = s->next,
        .end = s->end,
        .fresh = s->pool.fresh,
        .n_free = (uint32_t)s->pool.n,
        .live = p->live,
        .peak = p->peak,
        .to_peak = p->facts.ops_to_peak,
        .max_block_bytes = p->max_block_bytes,
        .indexed = s->indexed,
    };
    uint64_t since = s->ops - s->index_from;
    for (; a.done < most; a.done++) {
        const struct workload_op *op = &ops[a.done];
        if (a.done + AHEAD < n && op[AHEAD].slot < p->n_slots)
            __builtin_prefetch(&p->slots[op[AHEAD].slot], 1);
        if (op->stamp > until || op->n_dependencies || op->slot >= p->n_slots ||
            op->size >> HT_BIG_SIZE_BITS || a.end - a.position < PLAN_MAX_OP_WORDS ||
            plan_section_is_full(p, p->coupling.calls + a.done, p->coupling.bytes + a.bytes) ||
            !add_call(p, s, op, &a))
            break;
        p->facts.by_kind[op->kind]++;
        if ((since + a.done) % PLAN_INDEX_OPS == 0)
            s->index[a.indexed++] = a.position;
        unsigned words = 1 + plan_op_info(op->kind).words;
        a.position += words;
        a.next += words;
    }
    end_adding(p, s, &a, ops);
    return a.done;
}
