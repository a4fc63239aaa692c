#include "history.h"

#include "base/buf.h"

#define GROW(items, capacity, want) assert_int_equal(HT_GROW(items, capacity, want), 0)

// Checks that the slot of the op is live, or free if the op allocates, and updates the block of the
// slot. Returns the size that identifies the block, or 0 if the op has no slot.
static uint64_t check_slot(struct history *h, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    bool takes = class == HT_CLASS_ALLOC || op->flags & WORKLOAD_FROM_NULL;
    if (op->slot == WORKLOAD_NO_SLOT)
        return 0;
    while (op->slot >= h->n_blocks) {
        h->blocks = realloc(h->blocks, (h->n_blocks + 1) * sizeof *h->blocks);
        h->blocks[h->n_blocks++] = 0;
    }
    uint64_t *block = &h->blocks[op->slot];
    if (takes != (*block == 0))
        fail_msg("op %zu uses a slot that is %s", h->n_ops, takes ? "taken" : "free");
    if (takes)
        *block = op->kind == HT_PREEXISTING ? UINT64_MAX : op->size;
    uint64_t was = *block;
    if (class == HT_CLASS_FREE || op->flags & WORKLOAD_FREED)
        *block = 0;
    else if (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FAILED))
        *block = op->size;
    return was;
}

static void check_dependencies(const struct history *h, uint32_t thread,
                               const struct workload_op *op)
{
    for (uint32_t i = 0; i < op->n_dependencies; i++) {
        const struct workload_dependency *w = &op->dependencies[i];
        assert_int_not_equal(w->thread, thread);
        assert_true(w->op < h->next_op[w->thread]);
        for (size_t k = 0; k < h->n_ops; k++) {
            if (h->ops[k].thread == w->thread && h->ops[k].number == w->op)
                assert_true(h->ops[k].op.stamp < op->stamp);
        }
    }
}

static void take_op(struct history *h, uint32_t thread, const struct workload_op *op)
{
    assert_true(thread < 64);
    assert_true(op->n_dependencies <= 4);
    assert_true(op->stamp >= h->last_stamp[thread]);
    check_dependencies(h, thread, op);
    GROW(&h->ops, &h->ops_capacity, h->n_ops + 1);
    struct history_op *to = &h->ops[h->n_ops];
    *to = (struct history_op){.op = *op, .thread = thread, .number = h->next_op[thread]++};
    if (op->n_dependencies)
        memcpy(to->dependencies, op->dependencies, op->n_dependencies * sizeof *op->dependencies);
    to->op.dependencies = NULL;
    to->block = check_slot(h, op);
    h->last_stamp[thread] = op->stamp;
    h->n_ops++;
}

static int sink(void *context, const struct workload_thread_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        take_op(context, ops[i].thread, &ops[i].op);
    return 0;
}

void history_init(struct history *h)
{
    *h = (struct history){0};
    struct order_options options = {.window = 100000, .skid = 1000};
    struct order_sink to = {.context = h, .ops = sink};
    h->order = order_new(&options, &to);
    assert_non_null(h->order);
}

void history_release(struct history *h)
{
    order_free(h->order);
    for (unsigned t = 0; t < HISTORY_THREADS; t++) {
        for (unsigned l = 0; l < HISTORY_STREAMS; l++)
            free(h->streams[t][l].words);
    }
    free(h->ops);
    free(h->blocks);
}

static void put_word(struct history_stream *l, uint64_t word)
{
    GROW(&l->words, &l->capacity, l->n + 1);
    l->words[l->n++] = word;
}

static bool put_short(struct history_stream *l, const struct event *ev)
{
    const struct event_info *info = &event_infos[ev->kind];
    uint64_t address = info->stamp == HT_STAMP_BEFORE ? ev->ptr : ev->result,
             rel = codec_relative(address, l->state.base);
    if (info->form == HT_FORM_PLAIN) {
        put_word(l, codec_plain(ev->kind, ev->stamp, address));
        return true;
    }
    if (info->form != HT_FORM_SIZED || !address || ev->size >> CODEC_SIZE_BITS || ev->count > 1)
        return false;
    if (rel >> CODEC_REL_BITS) {
        l->state.base = address & ~0xfffull;
        put_word(l, codec_base_record(l->state.base));
        rel = codec_relative(address, l->state.base);
    }
    put_word(l, codec_sized(ev->kind, ev->stamp, ev->size, rel));
    return true;
}

void history_put_in(struct history *h, unsigned thread, unsigned stream, const struct event *ev)
{
    struct history_stream *l = &h->streams[thread][stream];
    if (codec_epoch(ev->stamp) != l->state.epoch) {
        l->state.epoch = codec_epoch(ev->stamp);
        put_word(l, codec_epoch_record(l->state.epoch));
    }
    for (unsigned i = 0; i < HT_NOTES; i++)
        if (ev->notes[i])
            put_word(l, codec_note((enum event_note)i, ev->notes[i]));
    if (put_short(l, ev))
        return;
    GROW(&l->words, &l->capacity, l->n + CODEC_MAX_LONG_WORDS);
    l->n += codec_put_long(l->words + l->n, ev);
}

void history_put(struct history *h, unsigned thread, const struct event *ev)
{
    history_put_in(h, thread, 0, ev);
}

void history_malloc(struct history *h, unsigned thread, uint64_t stamp, uint64_t size,
                    uint64_t address)
{
    history_put(
        h, thread,
        &(struct event){.kind = HT_MALLOC, .stamp = stamp, .size = size, .result = address});
}

void history_free(struct history *h, unsigned thread, uint64_t stamp, uint64_t address)
{
    history_put(h, thread, &(struct event){.kind = HT_FREE, .stamp = stamp, .ptr = address});
}

void history_realloc(struct history *h, unsigned thread, uint64_t begin, uint64_t end,
                     uint64_t from, uint64_t size, uint64_t to)
{
    if (from)
        history_put(h, thread,
                    &(struct event){.kind = HT_REALLOC_BEGIN, .stamp = begin, .ptr = from});
    history_put(h, thread,
                &(struct event){.kind = HT_REALLOC,
                                .stamp = end,
                                .ptr = to ? 0 : from,
                                .size = size,
                                .result = to,
                                .error = to || !size ? 0 : 12});
}

void history_feed(struct history *h, unsigned thread, unsigned stream)
{
    struct history_stream *l = &h->streams[thread][stream];
    if (l->fed == l->n)
        return;
    struct trace_segment s = {
        .thread = thread,
        .tid = 100 + thread,
        .stream = stream,
        .first_word = l->fed,
        .epoch0 = l->fed_state.epoch,
        .base0 = l->fed_state.base,
        .epoch_end = l->state.epoch,
        .base_end = l->state.base,
        .n_words = (uint32_t)(l->n - l->fed),
        .words = l->words + l->fed,
    };
    assert_int_equal(order_feed(h->order, &s), 0);
    l->fed = l->n;
    l->fed_state = l->state;
}

bool history_lose(struct history *h, unsigned thread)
{
    struct history_stream *l = &h->streams[thread][0];
    bool some = l->fed < l->n;
    l->fed = l->n;
    l->fed_state = l->state;
    return some;
}

void history_cut(struct history *h, unsigned thread, size_t words)
{
    struct history_stream *l = &h->streams[thread][0];
    struct codec_state state = l->fed_state;
    size_t at = l->fed, end = l->n - l->fed > words ? l->n - words : l->fed;
    while (at < end) {
        struct event ev;
        at += codec_get(&state, l->words + at, l->n - at, &ev);
    }
    l->n = at;
    l->state = state;
}

static void feed_all(struct history *h)
{
    for (unsigned t = 0; t < HISTORY_THREADS; t++) {
        for (unsigned l = 0; l < HISTORY_STREAMS; l++)
            history_feed(h, t, l);
    }
}

void history_watermark(struct history *h, uint64_t watermark)
{
    assert_int_equal(order_advance(h->order, watermark), 0);
}

void history_batch(struct history *h, uint64_t watermark)
{
    feed_all(h);
    assert_int_equal(order_advance(h->order, watermark), 0);
}

struct order_counts history_finish(struct history *h)
{
    feed_all(h);
    assert_int_equal(order_finish(h->order), 0);
    return order_counts(h->order);
}

bool history_before(const struct history *h, size_t a, size_t b)
{
    // An op of thread t happens before b if its number is less than below[t].
    uint64_t below[64] = {0};
    below[h->ops[b].thread] = h->ops[b].number + 1;
    for (size_t i = b + 1; i-- > 0;) {
        const struct history_op *o = &h->ops[i];
        if (o->number >= below[o->thread])
            continue;
        if (i == a)
            return true;
        for (uint32_t k = 0; k < o->op.n_dependencies; k++) {
            uint64_t *to = &below[o->dependencies[k].thread];
            *to = *to > o->dependencies[k].op + 1 ? *to : o->dependencies[k].op + 1;
        }
    }
    return false;
}

size_t history_find(const struct history *h, uint32_t thread, uint64_t n)
{
    for (size_t i = 0; i < h->n_ops; i++) {
        if (h->ops[i].thread == thread && h->ops[i].op.kind != HT_PREEXISTING && n-- == 0)
            return i;
    }
    fail_msg("thread %u has no such op", thread);
    return 0;
}
