// Fast path for nearly all records: allocations at free addresses, and frees that need no new
// dependency. Handles runs of such records of one stream, in steps that keep their state in
// registers. order_allocate and order_release handle all other records.
#pragma once

#include "convert/order/order_private.h"

// Mask of the one-word tags with this class and form.
#define ORDER_TAG(wire, class, form, want_class, want_form)                                        \
    | ((wire) < 32 && HT_CLASS_##class == (want_class) && HT_FORM_##form == (want_form)            \
           ? 1u << ((wire)&31)                                                                     \
           : 0)
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    ORDER_TAG(wire, class, form, HT_CLASS_ALLOC, HT_FORM_SIZED)                                    \
    ORDER_TAG(wire, class, form, HT_CLASS_RESIZE, HT_FORM_SIZED)
static const uint32_t order_allocate_tags = 0 HT_EVENT_TABLE(HT_X);
#undef HT_X
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    ORDER_TAG(wire, class, form, HT_CLASS_FREE, HT_FORM_PLAIN)
static const uint32_t order_plain_tags = 0 HT_EVENT_TABLE(HT_X);
#undef HT_X
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    ORDER_TAG(wire, class, form, HT_CLASS_FREE, HT_FORM_SIZED)
static const uint32_t order_sized_tags = order_allocate_tags HT_EVENT_TABLE(HT_X);
#undef HT_X
#undef ORDER_TAG

// ORDER_ODD: the next record needs the slow path. ORDER_BEYOND: the next record is beyond the
// bound.
enum { ORDER_ODD = 0, ORDER_BEYOND = 2 };

static inline uint64_t order_plain_address(uint64_t word)
{
    return word >> CODEC_BODY_AT << CODEC_ADDRESS_SHIFT;
}

// Returns the address in a one-word record. `base` is the base of its stream.
static inline uint64_t order_address(uint64_t word, uint64_t base)
{
    bool sized = order_sized_tags >> codec_tag_of(word) & 1;
    return sized ? base + (word >> CODEC_REL_AT << CODEC_ADDRESS_SHIFT) : order_plain_address(word);
}

// Returns true if the table of addresses and the slots do not fit in the L2 cache.
static inline bool order_has_many_blocks(const struct order *o)
{
    enum { NEAR_BUCKETS = 1 << 12 };
    return o->table.n_buckets > NEAR_BUCKETS;
}

// Returns true if the fast path may be used: the thread has started and not exited, no stream is
// held, and no address has two blocks.
static inline bool order_is_calm(const struct order *o, const struct merge_stream *s)
{
    const struct order_thread *t = s->user;
    return !o->n_held && !o->n_duplicates && !o->cut_off && t->next_op && !s->forced && !t->ended;
}

// Decodes the stream's next records into the run and prefetches their buckets. If there are many
// blocks, also prefetches the buckets of the next run. Stops before a record that the fast path
// cannot handle, or whose stamp is above `bound`. Sets *beyond to the stamp that is above `bound`,
// or to 0. Returns the number of records.
static inline size_t order_decode_run(struct order *o, const struct merge_stream *s, uint64_t bound,
                                      uint64_t *beyond)
{
    const struct order_thread *t = s->user;
    struct order_run *run = &o->run;
    const struct table table = o->table;
    const uint64_t *words = s->words + s->head, epoch = s->state.epoch, base = s->state.base;
    const size_t left = s->tail - s->head, n = left < run->limit ? left : run->limit;
    const size_t far = order_has_many_blocks(o) && left > ORDER_FAR ? left - ORDER_FAR : 0;
    // A realloc without a pending first half is an allocation.
    const uint32_t others = t->n_pending ? 1u << HT_REALLOC : 0,
                   tags = (order_plain_tags | order_sized_tags) & ~others;
    uint64_t last = t->last_stamp;
    *beyond = 0;
    for (size_t i = 0; i < n; i++) {
        if (i < far) // this word may be of any kind, but all addresses have a bucket
            __builtin_prefetch(
                table_place_of(&table, order_address(words[i + ORDER_FAR], base)).home, 1);
        uint64_t word = words[i], stamp = codec_stamp(epoch, word);
        unsigned tag = codec_tag_of(word);
        if (!(tags >> tag & 1))
            return i;
        if (stamp > bound) {
            *beyond = stamp;
            return i;
        }
        bool sized = order_sized_tags >> tag & 1;
        uint64_t address = order_address(word, base);
        last = stamp > last ? stamp : last;
        run->addresses[i] = address;
        run->places[i] = table_place_of(&table, address);
        __builtin_prefetch(run->places[i].home, 1);
        run->ops[i].stamp = last;
        run->ops[i].size = sized ? word >> CODEC_BODY_AT & codec_mask(CODEC_SIZE_BITS) : 0;
        run->ops[i].kind = (uint8_t)tag;
        run->ops[i].allocates = order_allocate_tags >> tag & 1;
    }
    return n;
}

// If there are many blocks, prefetches those that the first `n` ops of the run may free, and the
// slots that they reuse, unless the run frees these slots first. Always inlined, because gcc 12
// drops calls to functions without visible side effects.
static inline __attribute__((always_inline)) void
order_prefetch_run(const struct order *o, const struct order_thread *t, size_t n)
{
    const struct pool *pool = &t->pool;
    size_t depth = pool->n, lowest = depth;
    for (size_t i = 0; i < n && order_has_many_blocks(o); i++) {
        const struct table_place *at = &o->run.places[i];
        if (o->run.ops[i].allocates) {
            depth -= depth > 0;
            if (depth < lowest)
                __builtin_prefetch(&o->slots[pool->slots[lowest = depth]], 1);
            continue;
        }
        depth++;
        unsigned cells = table_match(at->home, at->tag);
        if (cells)
            __builtin_prefetch(&o->slots[at->home->slots[__builtin_ctz(cells)]], 1);
    }
}

// Returns true if a thread whose pool is empty gets a new slot, for which memory is reserved.
static inline bool order_has_new_slot(const struct order *o)
{
    return !o->shared.first && o->n_slots < o->slots_capacity && o->n_slots != WORKLOAD_NO_SLOT;
}

// Assigns slots to the first `n` ops of the run, up to the first op that needs the slow path.
// Returns the number of ops with slots.
static inline size_t order_bind_run(struct order *o, struct order_thread *t,
                                    const struct merge_stream *s, size_t n)
{
    struct table table = o->table;
    struct pool pool = t->pool;
    struct table_block *const slots = o->slots;
    const uint64_t use = order_use(t);
    const size_t room = pool.capacity < POOL_MAX_SLOTS ? pool.capacity : POOL_MAX_SLOTS;
    const bool alone = o->open_threads <= 1;
    size_t i = 0;
    for (; i < n; i++) {
        struct workload_simple *op = &o->run.ops[i];
        const struct table_place *at = &o->run.places[i];
        const uint64_t address = o->run.addresses[i];
        // Search only after the branch. Otherwise, the CPU also needs the bucket to discover that
        // it has mispredicted whether the op allocates.
        if (op->allocates) {
            const uint32_t *cell = table_seek(&table, slots, address, at->tag, at->home, ~0u);
            if (__builtin_expect(cell || !address || table.n >= table.limit ||
                                     (!pool.n && !order_has_new_slot(o)),
                                 0))
                break;
            op->slot = pool.n ? pool.slots[--pool.n] : (uint32_t)o->n_slots++;
            table_put_at(&table, at, op->slot);
            slots[op->slot] = (struct table_block){address, use + i};
            continue;
        }
        const uint32_t *cell = table_seek(&table, slots, address, at->tag, at->home, ~0u);
        if (__builtin_expect(!cell || pool.n >= room, 0))
            break;
        const bool remote = (slots[*cell].last ^ use) >> TABLE_OP_BITS;
        if (__builtin_expect(remote, 0) && !order_releases_known(o, s, i, &slots[*cell]))
            break;
        op->slot = *cell;
        table_remove_at(&table, at->home, cell);
        slots[op->slot].address = 0;
        pool_put(&pool, op->slot, t->next_op + i);
        if (!alone)
            order_note_release(o, t, codec_stamp(s->state.epoch, s->words[s->head + i]), address);
    }
    o->table = table;
    t->pool = pool;
    return i;
}

// Emits the first `n` ops of the run.
static inline int order_emit_run(struct order *o, struct order_thread *t, size_t n)
{
    const struct workload_simple *ops = o->run.ops;
    for (size_t i = n > ORDER_RECENT ? n - ORDER_RECENT : 0; i < n; i++)
        t->recent[(t->next_op + i) % ORDER_RECENT] = ops[i].stamp;
    t->last_stamp = ops[n - 1].stamp;
    t->next_op += n;
    int rc = 0;
    if (o->sink.simple) {
        rc = o->n_out ? order_flush(o) : 0;
        return rc < 0 ? rc : o->sink.simple(o->sink.context, t->number, ops, n);
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (o->calls)
            o->calls[o->n_out] =
                (struct order_call){.ptr = ops[i].allocates ? 0 : o->run.addresses[i],
                                    .result = ops[i].allocates ? o->run.addresses[i] : 0,
                                    .thread = t->trace_number,
                                    .tid = t->tid};
        o->out[o->n_out++] =
            (struct workload_thread_op){.thread = t->number, .op = workload_simple_op(&ops[i])};
        rc = o->n_out == ORDER_BATCH ? order_flush(o) : 0;
    }
    return rc;
}

// While the fast path applies, emits the stream's records up to stamp `bound`. Returns ORDER_BEYOND
// with s->stamp set, ORDER_ODD, or a negative errno.
static inline int order_run_fast(struct order *o, struct merge_stream *s, uint64_t bound)
{
    struct order_run *run = &o->run;
    for (;;) {
        uint64_t beyond;
        size_t n = order_decode_run(o, s, bound, &beyond);
        order_prefetch_run(o, s->user, n);
        size_t done = order_bind_run(o, s->user, s, n), full = run->limit;
        int rc = done ? order_emit_run(o, s->user, done) : 0;
        s->head += done;
        // Records that are decoded but not emitted will be decoded again.
        run->limit = done < n && 2 * done + 8 < ORDER_RUN ? 2 * done + 8 : ORDER_RUN;
        if (rc < 0 || done < n || (done < full && !beyond))
            return rc < 0 ? rc : ORDER_ODD;
        if (beyond) {
            // Set only here, because order_bind_run searches the heap, whose first stamp must not
            // be higher than the others.
            s->stamp = beyond;
            return ORDER_BEYOND;
        }
    }
}
