// Frees whose stamps are too early. The CPU may read the counter while it still waits for the cache
// line through which another thread passed the block. A free by a thread that did not allocate the
// block can then appear to precede the free of the previous block at the address. This happens only
// if the earlier free, the next allocation and the transfer of the block all fall within the depth
// of the reordering. The stamps of the two frees are then closer than that depth, and these
// threads' other records at the address show which free came first.
#include "convert/order/order_fast.h"

enum { MAX_DEPTH = 64 };

// Iterates over a stream's records that name an address.
struct cursor {
    struct order *order;
    const struct merge_stream *stream;
    struct codec_state state;
    size_t at;
    struct event ev;
};

static struct cursor cursor_at(struct order *o, const struct merge_stream *s)
{
    return (struct cursor){.order = o, .stream = s, .state = s->state, .at = s->head};
}

static bool cursor_next(struct cursor *c, uint64_t address, uint64_t limit)
{
    while (c->at < c->stream->tail && order_afford(c->order, 1)) {
        unsigned words =
            codec_get(&c->state, c->stream->words + c->at, c->stream->tail - c->at, &c->ev);
        if (!words || (c->ev.kind && c->ev.stamp > limit))
            return false;
        c->at += words;
        if (c->ev.kind && (c->ev.ptr == address || c->ev.result == address))
            return true;
    }
    return false;
}

static bool is_release(const struct event *ev, uint64_t address)
{
    unsigned class = event_infos[ev->kind].class;
    return ev->ptr == address && (class == HT_CLASS_FREE || class == HT_CLASS_HALF);
}

// Returns true if the event allocates the address. A failed realloc counts, because its first half
// released the address.
static bool is_allocation(const struct event *ev, uint64_t address)
{
    unsigned class = event_infos[ev->kind].class;
    uint64_t taken = class == HT_CLASS_RESIZE && !ev->result && ev->error ? ev->ptr : ev->result;
    return taken == address && (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE);
}

// Stores in o->due all held streams, and the streams whose next record has a stamp up to the limit.
// Returns the number of streams, or 0 if the steps are exhausted.
static size_t due_streams(struct order *o, uint64_t limit)
{
    const struct merge *m = &o->merge;
    size_t stack[MAX_DEPTH], depth = 0, n = 0;
    if (m->n_heap)
        stack[depth++] = 0;
    while (depth && order_afford(o, 1)) {
        size_t i = stack[--depth];
        if (m->heap[i]->stamp > limit)
            continue;
        o->due[n++] = m->heap[i];
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < m->n_heap && depth < MAX_DEPTH;
             child++)
            stack[depth++] = child;
    }
    for (size_t i = 0; i < o->n_held; i++)
        o->due[n++] = o->held[i].stream;
    return order_afford(o, o->n_held) ? n : 0;
}

// Two frees of an address. `a` is the stamp of the current free, by `thread`; `b` is the stamp of
// the other free, by `other`.
struct pair {
    const struct order_thread *thread, *other;
    uint64_t a, b; // `b` is UINT64_MAX if there is no other free
    // for_b is the stamp of the first allocation whose block `b` can refer to if `a` came first.
    // for_a is the corresponding stamp for `a` if `b` came first. Both are UINT64_MAX if there is
    // no such allocation.
    uint64_t for_b, for_a;
};

// Finds another thread whose next record at the address is a free, not an allocation. If there are
// several such threads, chooses the free with the lowest stamp. This free refers to a block that is
// live now, or to a block that a third thread allocates.
static void find_other(struct order *o, struct pair *p, uint64_t address, uint64_t limit)
{
    size_t n = due_streams(o, limit);
    p->b = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        struct cursor c = cursor_at(o, o->due[i]);
        if (o->due[i]->user == p->thread || !cursor_next(&c, address, limit) ||
            !is_release(&c.ev, address) || c.ev.stamp >= p->b)
            continue;
        p->b = c.ev.stamp;
        p->other = o->due[i]->user;
    }
}

static void see_allocation(struct pair *p, bool can_be_b, bool can_be_a, uint64_t stamp,
                           uint64_t skid)
{
    if (can_be_b && stamp <= p->b + skid && stamp < p->for_b)
        p->for_b = stamp;
    if (can_be_a && stamp <= p->a + skid && stamp < p->for_a)
        p->for_a = stamp;
}

// Finds allocations in the stream. A free cannot refer to a block that the same thread allocates
// later.
static void see_allocations(struct order *o, struct pair *p, const struct merge_stream *s,
                            uint64_t address)
{
    uint64_t skid = o->options.skid;
    struct cursor c = cursor_at(o, s);
    bool given = false;
    while (cursor_next(&c, address, p->b + skid)) {
        given |= s->user == p->other && is_release(&c.ev, address);
        if (is_allocation(&c.ev, address))
            see_allocation(p, !given, s->user != p->thread, c.ev.stamp, skid);
    }
}

// Considers allocations that are already emitted: the duplicates of the address. Returns false if
// `other` allocated one of them, because the free by `other` then refers to that block.
static bool see_duplicates(const struct order *o, struct pair *p, uint64_t address)
{
    for (size_t i = 0; i < o->n_duplicates; i++) {
        const struct order_duplicate *d = &o->duplicates[i];
        if (d->address != address)
            continue;
        if (d->thread == p->other->number)
            return false;
        see_allocation(p, true, d->thread != p->thread->number, d->stamp, o->options.skid);
    }
    return true;
}

// Returns the smallest total error of the stamps if the true order is the first free (`give`), the
// next allocation (`take`), and then the second free.
static uint64_t too_early(uint64_t give, uint64_t take, uint64_t second_release)
{
    uint64_t taken = take > give ? take : give;
    return taken - take + (taken > second_release ? taken - second_release : 0);
}

static bool pair_overtakes(struct order *o, struct pair *p, uint64_t address)
{
    uint64_t skid = o->options.skid;
    find_other(o, p, address, p->a + skid);
    if (p->b == UINT64_MAX || !see_duplicates(o, p, address))
        return false;
    size_t n = due_streams(o, p->b + skid);
    for (size_t i = 0; i < n; i++)
        see_allocations(o, p, o->due[i], address);
    if (!o->steps)
        return false;
    if (p->for_a == UINT64_MAX || p->for_b == UINT64_MAX)
        return p->for_a != UINT64_MAX;
    uint64_t as_stamped = too_early(p->a, p->for_b, p->b);
    if (!as_stamped)
        return false;
    // Both orders are possible. Prefer the order with the smaller stamp error.
    order_count(&o->counts.ambiguous, 1, p->thread, p->a, address);
    return too_early(p->b, p->for_a, p->a) < as_stamped;
}

static uint64_t *coming_at(const struct order *o, uint64_t address)
{
    return &o->coming[table_hash(&o->table, address) >> 32 & (ORDER_COMING - 1)];
}

static inline void note_coming(const struct order *o, uint64_t stamp, uint64_t address)
{
    uint64_t *latest = coming_at(o, address);
    if (*latest <= stamp)
        *latest = stamp + (*latest == stamp);
}

// Reads ahead one-word records up to the limit and records their frees. Returns true if another
// kind of record follows. Keeps the state in registers, because each record is read ahead.
static bool see_words_ahead(const struct order *o, struct merge_stream *s, uint64_t limit)
{
    const uint32_t tags = order_plain_tags | order_allocate_tags;
    const uint64_t *words = s->words, epoch = s->ahead_state.epoch;
    const size_t tail = s->tail;
    size_t at = s->ahead;
    bool other = false;
    for (; at < tail; at++) {
        const uint64_t word = words[at], stamp = codec_stamp(epoch, word);
        const unsigned tag = codec_tag_of(word);
        other = !(tags >> tag & 1);
        if (other || stamp > limit)
            break;
        if (order_plain_tags >> tag & 1)
            note_coming(o, stamp, order_plain_address(word));
    }
    s->ahead = at;
    return other;
}

// Records the frees of the stream up to the limit, except frees that were already read ahead.
static void see_ahead(struct order *o, struct merge_stream *s, uint64_t limit)
{
    if (s->ahead < s->head) {
        s->ahead = s->head;
        s->ahead_state = s->state;
    }
    while (see_words_ahead(o, s, limit)) {
        struct event ev;
        unsigned words = codec_get(&s->ahead_state, s->words + s->ahead, s->tail - s->ahead, &ev);
        if (!words || ev.stamp > limit)
            return;
        if (ev.kind && is_release(&ev, ev.ptr))
            note_coming(o, ev.stamp, ev.ptr);
        s->ahead += words;
    }
}

// Returns false if no other free of the address has a stamp between `stamp` and `stamp` plus the
// skid. Each record is read ahead only once.
static bool may_be_freed_again(struct order *o, uint64_t stamp, uint64_t address)
{
    enum { SKIDS_AHEAD = 1 }; // how far to read beyond the limit, in skids
    uint64_t limit = stamp + o->options.skid, to = limit + SKIDS_AHEAD * o->options.skid;
    // Assume that held streams free the address, because their records precede the current record.
    if (o->n_held || to < stamp)
        return true;
    if (limit > o->seen_ahead) {
        size_t n = due_streams(o, to);
        for (size_t i = 0; i < n; i++)
            see_ahead(o, o->due[i], to);
        o->seen_ahead = o->steps ? to : 0;
    }
    return !o->steps || *coming_at(o, address) > stamp;
}

bool order_overtakes(struct order *o, const struct merge_stream *s, uint64_t stamp,
                     uint64_t address)
{
    struct pair p = {.thread = s->user, .a = stamp, .for_a = UINT64_MAX, .for_b = UINT64_MAX};
    bool later = may_be_freed_again(o, stamp, address) && pair_overtakes(o, &p, address);
    order_count(&o->counts.ambiguous, !o->steps, p.thread, stamp, address);
    return later;
}

bool order_releases_known(struct order *o, const struct merge_stream *s, size_t i,
                          const struct table_block *block)
{
    const struct order_thread *t = s->user;
    uint64_t stamp = codec_stamp(s->state.epoch, s->words[s->head + i]),
             op = block->last & ((1ull << TABLE_OP_BITS) - 1);
    if (!order_has_waited(t, (uint32_t)(block->last >> TABLE_OP_BITS), op) ||
        (o->open_threads > 1 && may_be_freed_again(o, stamp, block->address)))
        return false;
    o->counts.dependencies_needed++;
    return true;
}

// Returns true if a thread other than `by` allocates at the address up to the limit.
static bool is_allocated(struct order *o, uint32_t by, uint64_t address, uint64_t limit)
{
    size_t n = due_streams(o, limit);
    for (size_t i = 0; i < n; i++) {
        const struct order_thread *t = o->due[i]->user;
        struct cursor c = cursor_at(o, o->due[i]);
        while (t->number != by && cursor_next(&c, address, limit)) {
            if (is_allocation(&c.ev, address))
                return true;
        }
    }
    return false;
}

void order_count_ambiguity(struct order *o, const struct order_thread *t, uint64_t stamp,
                           uint64_t address)
{
    uint64_t skid = o->options.skid;
    for (size_t i = 0; i < ORDER_RECENT; i++) {
        const struct order_released *g = &o->released[i];
        if (g->address != address || g->thread == t->number || g->stamp + skid < stamp)
            continue;
        if (is_allocated(o, g->thread, address, g->stamp + skid) || !o->steps) {
            order_count(&o->counts.ambiguous, 1, t, stamp, address);
            return;
        }
    }
}
