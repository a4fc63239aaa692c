// Fast path for nearly all records: allocations at free addresses, and frees by the allocating
// thread. Each function either handles a record completely, or changes nothing. In the latter case,
// order_allocate and order_release handle the record.
#ifndef HEAPTAPE_CONVERT_ORDER_FAST_H
#define HEAPTAPE_CONVERT_ORDER_FAST_H

#include "convert/order/order_private.h"
#include "workload/encode.h"

// Mask of the one-word tags with this class and form.
#define ORDER_TAG(wire, class, form, want_class, want_form)                                        \
    | ((wire) < 32 && HT_CLASS_##class == (want_class) && HT_FORM_##form == (want_form)            \
           ? 1u << ((wire)&31)                                                                     \
           : 0)
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    ORDER_TAG(wire, class, form, HT_CLASS_ALLOC, HT_FORM_SIZED)
static const uint32_t order_allocate_tags = 0 HT_EVENT_TABLE(HT_X);
#undef HT_X
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    ORDER_TAG(wire, class, form, HT_CLASS_FREE, HT_FORM_PLAIN)
static const uint32_t order_release_tags = 0 HT_EVENT_TABLE(HT_X);
#undef HT_X
#undef ORDER_TAG

enum { ORDER_ODD = 0, ORDER_DONE = 1, ORDER_BEYOND = 2 };

static inline uint64_t order_sized_address(const struct merge_stream *s, uint64_t word)
{
    return s->state.base + (word >> CODEC_REL_AT << CODEC_ADDRESS_SHIFT);
}

static inline uint64_t order_plain_address(uint64_t word)
{
    return word >> CODEC_BODY_AT << CODEC_ADDRESS_SHIFT;
}

// Returns true if the thread has started and not exited, and no stream is held.
static inline bool order_is_calm(const struct order *o, const struct merge_stream *s)
{
    const struct order_thread *t = s->user;
    return !o->n_held && !o->n_duplicates && !o->cut_off && t->next_op && !s->forced && !t->ended;
}

// Writes the op directly to the sink's output. Returns false if that is not possible.
static inline __attribute__((always_inline)) bool order_write(const struct order *o,
                                                              const struct order_thread *t,
                                                              const struct workload_op *op,
                                                              bool allocates)
{
    struct workload_output *to = o->output;
    const struct encode_shape *shape = to ? encode_simple_shape(to->encode, t->number, op) : NULL;
    if (__builtin_expect(!shape, 0))
        return false;
    encode_simple(to->encode, t->number, shape,
                  allocates ? FORMAT_SLOT_ALLOCATED : FORMAT_SLOT_FREED, op);
    summary_see(&to->counter, op);
    if (allocates) {
        summary_request(&to->counter.summary.requested_bytes, op->size);
        summary_allocate(&to->counter, t->number, op->slot, op->size);
    } else {
        summary_free(&to->counter, t->number, op->slot);
    }
    return true;
}

// Emits an op that allocates or frees the block at `address`.
static inline __attribute__((always_inline)) int order_put_out(struct order *o,
                                                               struct order_thread *t,
                                                               struct workload_op op,
                                                               uint64_t address, bool allocates)
{
    if (op.stamp < t->last_stamp)
        op.stamp = t->last_stamp;
    t->recent[t->next_op % ORDER_RECENT] = op.stamp;
    t->last_stamp = op.stamp;
    t->next_op++;
    int rc = o->output && o->n_out ? order_flush(o) : 0;
    if (rc < 0 || order_write(o, t, &op, allocates))
        return rc < 0 ? rc : ORDER_DONE;
    if (__builtin_expect(o->calls != NULL, 0))
        o->calls[o->n_out] = (struct order_call){.ptr = allocates ? 0 : address,
                                                 .result = allocates ? address : 0,
                                                 .thread = t->trace_number,
                                                 .tid = t->tid};
    o->out[o->n_out] = (struct workload_thread_op){.thread = t->number, .op = op};
    if (__builtin_expect(++o->n_out == ORDER_BATCH, 0))
        rc = order_flush(o);
    return rc < 0 ? rc : ORDER_DONE;
}

static inline int order_allocate_fast(struct order *o, struct merge_stream *s, uint64_t word,
                                      uint64_t stamp)
{
    struct order_thread *t = s->user;
    unsigned tag = codec_tag_of(word);
    uint64_t address = order_sized_address(s, word), hash = table_hash(&o->table, address);
    struct table_bucket *b = &o->table.buckets[table_home(&o->table, hash)];
    unsigned empty = table_match(b, 0);
    if (__builtin_expect(table_match(b, table_tag(hash)) || b->passed || !empty || !t->pool.n ||
                             !address || o->table.n >= o->table.limit,
                         0))
        return ORDER_ODD;
    uint32_t slot = t->pool.slots[--t->pool.n];
    unsigned k = (unsigned)__builtin_ctz(empty);
    b->tags[k] = table_tag(hash);
    b->slots[k] = slot;
    o->table.n++;
    o->slots[slot] = (struct table_block){address, order_use(t)};
    struct workload_op op = {.stamp = stamp,
                             .size = word >> CODEC_BODY_AT & codec_mask(CODEC_SIZE_BITS),
                             .count = tag == HT_CALLOC,
                             .slot = slot,
                             .kind = (uint8_t)tag};
    return order_put_out(o, t, op, address, true);
}

static inline int order_release_fast(struct order *o, struct merge_stream *s, uint64_t word,
                                     uint64_t stamp)
{
    struct order_thread *t = s->user;
    uint64_t address = order_plain_address(word), hash = table_hash(&o->table, address);
    struct table_bucket *b = &o->table.buckets[table_home(&o->table, hash)];
    unsigned cells = table_match(b, table_tag(hash));
    if (__builtin_expect(!cells || t->pool.n >= t->pool.capacity || t->pool.n >= POOL_MAX_SLOTS, 0))
        return ORDER_ODD;
    unsigned k = (unsigned)__builtin_ctz(cells);
    uint32_t slot = b->slots[k];
    struct table_block *block = &o->slots[slot];
    if (__builtin_expect(block->address != address || block->last >> TABLE_OP_BITS != t->number, 0))
        return ORDER_ODD;
    b->tags[k] = 0;
    o->table.n--;
    block->address = 0;
    pool_put(&t->pool, slot, t->next_op);
    order_note_release(o, t, stamp, address);
    struct workload_op op = {.stamp = stamp, .slot = slot, .kind = (uint8_t)codec_tag_of(word)};
    return order_put_out(o, t, op, address, false);
}

// Prefetches the bucket of a record a few words ahead. For a free that is nearer, prefetches the
// slot in its bucket. Both are guesses: the base may change, and the block may be in a later
// bucket. Always inlined, because gcc 12 drops calls to functions without visible side effects.
static inline __attribute__((always_inline)) void order_look_ahead(const struct order *o,
                                                                   const struct merge_stream *s)
{
    enum { CELL_AHEAD = 32, SLOT_AHEAD = 16, NEAR_BUCKETS = 512 };
    if (o->table.n_buckets <= NEAR_BUCKETS || s->head + CELL_AHEAD >= s->tail)
        return;
    uint64_t word = s->words[s->head + CELL_AHEAD];
    bool give = order_release_tags >> codec_tag_of(word) & 1;
    table_prefetch(&o->table, give ? order_plain_address(word) : order_sized_address(s, word));
    word = s->words[s->head + SLOT_AHEAD];
    if (!(order_release_tags >> codec_tag_of(word) & 1))
        return;
    uint64_t hash = table_hash(&o->table, order_plain_address(word));
    const struct table_bucket *b = &o->table.buckets[table_home(&o->table, hash)];
    unsigned cells = table_match(b, table_tag(hash));
    if (!cells)
        return;
    uint32_t slot = b->slots[__builtin_ctz(cells)];
    __builtin_prefetch(&o->slots[slot], 1);
    if (o->output) {
        encode_prefetch(o->output->encode, slot);
        summary_prefetch(&o->output->counter, slot);
    }
}

// Emits the stream's records up to stamp `bound` while the fast path applies. Returns ORDER_BEYOND
// with s->stamp set if the next record is beyond `bound`, ORDER_ODD if the next record needs the
// slow path, or a negative errno.
static inline int order_run_fast(struct order *o, struct merge_stream *s, uint64_t bound)
{
    int rc = ORDER_DONE;
    for (; s->head < s->tail && rc == ORDER_DONE; s->head += rc == ORDER_DONE) {
        uint64_t word = s->words[s->head];
        uint64_t stamp = codec_stamp(s->state.epoch, word);
        bool allocates = order_allocate_tags >> codec_tag_of(word) & 1;
        if (!allocates && !(order_release_tags >> codec_tag_of(word) & 1))
            return ORDER_ODD;
        if (stamp > bound) {
            s->stamp = stamp;
            return ORDER_BEYOND;
        }
        order_look_ahead(o, s);
        rc = allocates ? order_allocate_fast(o, s, word, stamp)
                       : order_release_fast(o, s, word, stamp);
    }
    return rc < 0 ? rc : ORDER_ODD;
}

#endif
