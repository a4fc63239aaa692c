// Turns records into ops.
#include "base/buf.h"
#include "convert/order/order_fast.h"
#include "convert/order/order_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Called for the first segment of a stream. If the thread has no other stream yet, opens the
// thread.
static int begin_stream(struct order *o, struct merge_stream *s)
{
    struct order_thread *t = order_thread_get(o, s->thread);
    if (!t)
        return -ENOMEM;
    if (!t->fed) {
        t->recent = calloc(ORDER_RECENT, sizeof *t->recent);
        if (!t->recent)
            return -ENOMEM;
        t->fed = true;
        t->tid = s->tid;
        if (t->number != ORDER_NO_THREAD)
            o->tids[t->number] = t->tid;
        o->open_threads++;
    }
    if (o->open_threads > 1 && !o->coming)
        o->coming = calloc(ORDER_COMING, sizeof *o->coming);
    if ((o->open_threads > 1 && !o->coming) ||
        HT_GROW(&o->due, &o->due_capacity, o->merge.n_streams) < 0)
        return -ENOMEM;
    s->user = t;
    merge_put_back(&o->merge, s);
    return 0;
}

// Counts the segment's records that should have preceded ops that are already emitted. Such a
// record is late because its thread was preempted between reading the stamp and storing the record.
// Ops that depend on these records have later stamps and have not been emitted yet. The only
// consequence is therefore that these records are not in the order of their stamps.
static uint64_t count_late(const struct order *o, const struct trace_segment *s)
{
    struct codec_state state = {s->epoch0, s->base0};
    uint64_t late = 0;
    for (uint32_t i = 0; i < s->n_words;) {
        struct event ev;
        unsigned words = codec_get(&state, s->words + i, s->n_words - i, &ev);
        if (!words || (ev.kind && ev.stamp > o->passed))
            break;
        unsigned class = event_infos[ev.kind].class;
        late += class == HT_CLASS_ALLOC || class == HT_CLASS_FREE || class == HT_CLASS_RESIZE;
        i += words;
    }
    return late;
}

int order_feed(struct order *o, const struct trace_segment *segment)
{
    struct merge_stream *s;
    uint64_t lost = o->merge.lost_words;
    o->counts.late += count_late(o, segment);
    int rc = merge_feed(&o->merge, segment, &s);
    if (rc < 0)
        return rc;
    o->steps += (uint64_t)segment->n_words * ORDER_STEPS_PER_WORD;
    o->seen_ahead = 0;
    if (!s->user)
        rc = begin_stream(o, s);
    else if (!s->held)
        merge_put_back(&o->merge, s);
    if (rc == 0)
        order_count(&o->counts.lost, o->merge.lost_words - lost, s->user,
                    segment->epoch0 << CODEC_STAMP_BITS, 0);
    return rc;
}

static int thread_create(struct order *o, struct order_thread *t, struct workload_op *op)
{
    uint32_t trace_number = (uint32_t)op->value;
    struct order_thread *child = order_thread_get(o, trace_number);
    int rc = child ? order_thread_name(o, t) : -ENOMEM;
    if (rc == 0)
        rc = order_thread_name(o, child);
    if (rc < 0)
        return rc;
    op->value = child->number;
    if (child->next_op == 0 && child != t) {
        child->creator = t->number;
        child->creation = t->next_op;
    }
    rc = order_emit(o, t, op);
    if (rc == 0 && o->n_held)
        order_wake(o, ORDER_HOLD_START, trace_number);
    return rc;
}

static int thread_start(struct order *o, struct merge_stream *s, struct workload_op *op)
{
    struct order_thread *t = s->user;
    bool created = t->creator != ORDER_NO_THREAD;
    // If the start record names a creating thread, the creation was recorded, so wait for it.
    if (!created && t->next_op == 0 && op->value != ORDER_NO_THREAD && !s->forced &&
        o->open_threads > 1)
        return order_hold(o, s, ORDER_HOLD_START, op->stamp, s->thread);
    op->value = created ? t->creator : ORDER_NO_THREAD;
    return order_emit(o, t, op);
}

static int thread_end(struct order *o, struct order_thread *t, struct workload_op *op)
{
    uint64_t number = t->next_op;
    int rc = order_emit(o, t, op);
    if (!t->ended)
        o->open_threads--;
    t->ended = true;
    free(t->recent);
    t->recent = NULL;
    return rc < 0 ? rc : pool_hand_over(&t->pool, &o->shared, t->number, number);
}

static int apply_thread(struct order *o, struct merge_stream *s, struct workload_op *op)
{
    switch (op->kind) {
    case HT_THREAD_CREATE:
        return thread_create(o, s->user, op);
    case HT_THREAD_START:
        return thread_start(o, s, op);
    case HT_THREAD_END:
        return thread_end(o, s->user, op);
    }
    return order_emit(o, s->user, op);
}

// Handles records about the recording itself.
static int apply_meta(struct order *o, const struct order_thread *t, const struct workload_op *op,
                      uint64_t ptr)
{
    if (op->kind == HT_LOST) {
        order_count(&o->counts.lost, op->value, t, op->stamp, 0);
        return 0;
    }
    if (event_has_residency(op->kind))
        return order_note_residency(o, op, ptr);
    const struct site_table_record site = {op->kind,  ptr,      op->size,
                                           op->value, op->text, op->text_bytes};
    return event_defines_sites(op->kind) ? site_table_define(&o->sites, &site) : 0;
}

// Handles one decoded record. Slot, flags and dependencies of `op` are not set yet.
static inline int apply_record(struct order *o, struct merge_stream *s, struct workload_op *op,
                               uint64_t ptr, uint64_t result)
{
    struct order_thread *t = s->user;
    unsigned class = event_infos[op->kind].class;
    o->call.ptr = class == HT_CLASS_FREE || class == HT_CLASS_POOL ? ptr : 0;
    o->call.result =
        class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE || class == HT_CLASS_POOL ? result : 0;
    switch (class) {
    case HT_CLASS_ALLOC:
        if (__builtin_expect(op->kind == HT_PREEXISTING, 0))
            return order_listed(o, t, op, result);
        if (__builtin_expect(result != 0, 1))
            return order_allocate(o, t, op, result);
        op->flags = WORKLOAD_FAILED;
        return order_emit(o, t, op);
    case HT_CLASS_FREE:
        return ptr ? order_release(o, s, op, ptr) : order_emit(o, t, op);
    case HT_CLASS_HALF:
        return ptr ? order_resize_begin(o, s, op->stamp, ptr) : 0;
    case HT_CLASS_RESIZE:
        return order_resize_end(o, t, op, result);
    case HT_CLASS_THREAD:
        return apply_thread(o, s, op);
    case HT_CLASS_MAP:
        op->flags = op->error ? WORKLOAD_FAILED : 0;
        return order_emit(o, t, op);
    case HT_CLASS_MARK:
        return order_emit(o, t, op);
    case HT_CLASS_POOL:
        return order_pool(o, t, op, ptr, result);
    case HT_CLASS_META:
        return apply_meta(o, t, op, ptr);
    }
    return -EBADMSG;
}

static void note_usable(struct order *o, const struct event *ev)
{
    uint64_t usable = ev->notes[HT_NOTE_USABLE];
    enum event_class class = event_infos[ev->kind].class;
    if (class == HT_CLASS_FREE || class == HT_CLASS_HALF) {
        o->usable = usable;
        return;
    }
    o->counts.usable_bytes += usable;
    o->counts.usable_requested_bytes += event_requested(ev->kind, ev->size, ev->count);
}

static int apply_long(struct order *o, struct merge_stream *s, unsigned *words)
{
    struct event ev;
    *words = codec_get(&s->state, s->words + s->head, s->tail - s->head, &ev);
    if (!*words)
        return -EBADMSG;
    struct workload_op op = {
        .stamp = ev.stamp,
        .size = ev.size,
        .count = ev.count,
        .align = ev.align,
        .value = ev.value,
        .slot = WORKLOAD_NO_SLOT,
        .text = ev.text,
        .text_bytes = ev.text_bytes,
        .kind = ev.kind,
        .error = ev.error,
        .allocator = event_allocator(ev.notes),
    };
    if (ev.notes[HT_NOTE_SITE]) {
        op.value = site_table_number(&o->sites, ev.notes[HT_NOTE_SITE]);
        if (!op.value)
            return -ENOMEM;
    }
    if (ev.notes[HT_NOTE_USABLE])
        note_usable(o, &ev);
    memcpy(o->call.notes, ev.notes, sizeof o->call.notes);
    int rc = apply_record(o, s, &op, ev.ptr, ev.result);
    memset(o->call.notes, 0, sizeof o->call.notes);
    o->usable = 0;
    return rc;
}

// Handles one-word records, which are by far the most common.
static inline int apply_word(struct order *o, struct merge_stream *s, uint64_t word)
{
    unsigned tag = codec_tag_of(word);
    const struct event_info *info = &event_infos[tag];
    // Decode directly into the queue, because this is usually the next op to emit.
    struct workload_op *op = &o->out[o->n_out].op;
    *op = (struct workload_op){.stamp = s->stamp, .slot = WORKLOAD_NO_SLOT, .kind = (uint8_t)tag};
    if (info->form == HT_FORM_PLAIN)
        return apply_record(o, s, op, word >> CODEC_BODY_AT << CODEC_ADDRESS_SHIFT, 0);
    op->size = word >> CODEC_BODY_AT & codec_mask(CODEC_SIZE_BITS);
    op->count = tag == HT_CALLOC;
    uint64_t address = s->state.base + (word >> CODEC_REL_AT << CODEC_ADDRESS_SHIFT);
    return apply_record(o, s, op, address, address);
}

// Returns true for a one-word record that has no notes.
static inline bool is_word(uint64_t word)
{
    const uint32_t others = 1u << CODEC_TAG_LONG | UINT32_MAX << HT_FIRST_NOTE;
    return !(others >> codec_tag_of(word) & 1);
}

// Emits the stream's records up to stamp `bound`. Returns 0, ORDER_HELD, or a negative errno.
static int run_stream(struct order *o, struct merge_stream *s, uint64_t bound)
{
    const struct order_thread *t = s->user;
    if (t->held && !s->forced)
        return order_hold(o, s, ORDER_HOLD_THREAD, s->stamp, 0);
    o->disturbed = false;
    while (!o->disturbed) {
        int rc = order_is_calm(o, s) ? order_run_fast(o, s, bound) : ORDER_ODD;
        if (rc == ORDER_BEYOND)
            merge_sift_down(&o->merge, s);
        if (rc != ORDER_ODD)
            return rc < 0 ? rc : 0;
        if (!merge_peek(s) || s->stamp > bound)
            break;
        uint64_t word = s->words[s->head];
        unsigned words = 1;
        rc = is_word(word) ? apply_word(o, s, word) : apply_long(o, s, &words);
        if (rc)
            return rc;
        s->head += words;
        s->forced = false;
    }
    merge_put_back(&o->merge, s);
    if (!t->ended || s->head != s->tail)
        return 0;
    // Flush first, because ops may refer to text in the stream's queue.
    int rc = order_flush(o);
    merge_forget(s);
    return rc;
}

// Handles all deadlines up to `now`.
static int expire(struct order *o, uint64_t now)
{
    while (o->next_deadline <= now && o->next_deadline != UINT64_MAX) {
        uint64_t deadline = o->next_deadline;
        size_t i = 0, k = 0;
        if (!order_afford(o, o->n_held))
            order_unhold_all(o);
        while (i < o->n_duplicates && o->duplicates[i].deadline != deadline)
            i++;
        while (k < o->n_held && o->held[k].deadline != deadline)
            k++;
        int rc = 0;
        if (i < o->n_duplicates)
            rc = order_duplicate_lost(o, i);
        else if (k < o->n_held)
            order_expire_held(o, k);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int order_advance(struct order *o, uint64_t limit)
{
    for (;;) {
        struct merge_stream *s = merge_top(&o->merge);
        bool due = s && s->stamp <= limit;
        uint64_t now = due ? s->stamp : limit, bound = merge_second(&o->merge);
        int rc = 0;
        bound = bound < limit ? bound : limit;
        // Handle one deadline at a time. Handle the streams that it releases before the next
        // deadline.
        if (o->next_deadline < now)
            rc = expire(o, o->next_deadline);
        else if (due)
            rc = run_stream(o, s, bound < o->next_deadline ? bound : o->next_deadline);
        else
            break;
        if (rc < 0)
            return rc;
    }
    o->passed = limit > o->passed ? limit : o->passed;
    return order_flush(o);
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
            order_expire_held(o, i);
        else
            order_unhold_all(o);
        rc = order_advance(o, limit);
    }
    return rc;
}

void order_cut_off(struct order *o)
{
    o->cut_off = true;
}

int order_finish(struct order *o)
{
    int rc = order_advance(o, UINT64_MAX);
    samples_residency_sort(&o->residency);
    if (rc == 0)
        rc = names_copy(&o->sites.all.names, &o->names, o->inherited_modules);
    return rc < 0 ? rc : site_table_resolve_all(&o->sites);
}
