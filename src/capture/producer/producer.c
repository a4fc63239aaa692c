// Records events on the slow path.
#include "capture/producer/producer_private.h"

#include <errno.h>

static struct {
    uintptr_t start, end;
} objects[PRODUCER_OBJECTS];

void producer_set_object(enum producer_object object, uintptr_t start, uintptr_t end)
{
    objects[object].start = start;
    objects[object].end = end;
}

size_t (*producer_usable)(unsigned kind, void *block);
size_t (*producer_named_usable)(void *block);

static bool object_has_code(enum producer_object object, const void *address)
{
    return (uintptr_t)address >= objects[object].start && (uintptr_t)address < objects[object].end;
}

bool producer_is_allocator(const void *address)
{
    return object_has_code(PRODUCER_OBJECT_ALLOCATOR, address);
}

bool producer_wants_maps(void)
{
    uint32_t was = producer_enter(PRODUCER_WRITING);
    const struct producer_process *p = producer_current();
    bool off = producer_has_state(p, PRODUCER_OFF);
    producer_leave(was);
    if (off)
        return false;
    if (!producer_inherited.session.magic)
        producer_start();
    return producer_inherited.session.flags & SPOOL_MAPS;
}

static bool is_nested(uint32_t busy, const void *caller)
{
    if (!(busy & (PRODUCER_IN_ALLOCATOR | PRODUCER_IN_OPERATOR | PRODUCER_MUTED)))
        return false;
    return (busy & PRODUCER_MUTED) || object_has_code(PRODUCER_OBJECT_OWN, caller) ||
           ((busy & PRODUCER_IN_ALLOCATOR) && object_has_code(PRODUCER_OBJECT_ALLOCATOR, caller)) ||
           ((busy & PRODUCER_IN_OPERATOR) && (object_has_code(PRODUCER_OBJECT_OPERATOR, caller) ||
                                              object_has_code(PRODUCER_OBJECT_RUNTIME, caller)));
}

// While recording is paused, every event uses the slow path and is discarded here. A realloc is
// recorded completely or not at all. Therefore a state change does not take effect between the
// halves of a realloc, inside a real function, or while stream 0 is being written.
static bool is_muted(const struct producer_process *p, struct producer_thread *t,
                     const struct event *ev, uint32_t busy)
{
    enum event_class class = event_infos[ev->kind].class;
    bool paused =
        atomic_load_explicit(&p->header->control.state, memory_order_acquire) != SPOOL_RECORDING;
    bool between = (busy & (PRODUCER_IN_ALLOCATOR | PRODUCER_WRITING)) ||
                   (class == HT_CLASS_RESIZE && ev->ptr);
    if (paused != t->muted && !between) {
        struct producer_stream *stream = &t->streams[0];
        bool slow = paused || t->ending || p->slow;
        stream->fast_epoch = slow ? PRODUCER_NO_EPOCH : stream->state.epoch;
        t->muted = paused;
    }
    return t->muted && class != HT_CLASS_THREAD;
}

static bool allocates(const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    return ev->result && (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE);
}

// Returns true if the program may free blocks whose allocation is not in the trace. Such blocks
// were inherited from a parent, allocated during a pause, or allocated before the recording.
static bool has_unseen_blocks(const struct spool_header *h)
{
    return producer_inherited.attached || h->parent_spool_pid ||
           h->control.first_state != SPOOL_RECORDING ||
           atomic_load_explicit(&h->control.changes_made, memory_order_relaxed) ||
           atomic_load_explicit(&h->control.asked[SPOOL_RESET], memory_order_relaxed);
}

static uint64_t note_usable(const struct producer_process *p, const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    uint64_t block = allocates(ev) && (p->flags & SPOOL_USABLE) ? ev->result : 0;
    if ((class == HT_CLASS_FREE || class == HT_CLASS_HALF) && has_unseen_blocks(p->header))
        block = ev->ptr;
    if (producer_tls.busy & PRODUCER_UNSIZED)
        return 0;
    if (producer_tls.busy & PRODUCER_NAMED)
        return block && producer_named_usable
                   ? producer_named_usable((void *)block) & codec_mask(CODEC_NOTE_BITS)
                   : 0;
    return block && producer_usable
               ? producer_usable(ev->kind, (void *)block) & codec_mask(CODEC_NOTE_BITS)
               : 0;
}

static bool has_stack(const struct event *ev)
{
    uint64_t size = event_requested(ev->kind, ev->size, ev->count);
    if (producer_tls.decided != PRODUCER_UNDECIDED)
        return producer_tls.decided == PRODUCER_WITH_STACK;
    producer_tls.stack_left = (int64_t)((uint64_t)producer_tls.stack_left - size);
    return producer_tls.stack_left < 0 && producer_site_choose(size);
}

static void put_event(const struct producer_writer *w, const struct event *ev, const void *caller)
{
    struct event noted = *ev;
    if (producer_depth && (allocates(ev) || ev->kind == HT_POOL_ALLOC) && has_stack(ev))
        noted.notes[HT_NOTE_SITE] = producer_site_find(w, caller, __builtin_frame_address(0));
    if ((w->p->flags & SPOOL_USABLE) || producer_inherited.attached)
        noted.notes[HT_NOTE_USABLE] = note_usable(w->p, ev);
    producer_stream_put(w, &noted);
}

// Updates the set of freed addresses. `recorded` is true if the event was recorded.
static void update_freed(const struct spool_header *h, const struct event *ev, bool recorded)
{
    enum event_class class = event_infos[ev->kind].class;
    if (recorded && (class == HT_CLASS_FREE || class == HT_CLASS_HALF))
        producer_freed_add(h, ev->ptr);
    if (!recorded && allocates(ev))
        producer_freed_remove(h, ev->result);
}

// Returns the process of a thread that has become ready. `p` was loaded earlier, and is NULL if the
// process did not exist yet. Prefers `p`, because a later load may return the state that replaces
// the process when heaptape detaches.
static struct producer_process *process_of(struct producer_process *p)
{
    return p ? p : producer_current();
}

// Returns true if the C library frees NULL at the exit of a thread whose calls are no longer
// recorded. Nothing is missing without this event.
static bool is_final_null(const struct event *ev)
{
    return !ev->ptr && event_infos[ev->kind].class == HT_CLASS_FREE &&
           producer_thread_has_finished();
}

static void record_event(const struct event *ev, const void *caller, uint32_t busy)
{
    struct producer_process *p = producer_current();
    // Load this before the state. If an attached recording begins meanwhile, this call came before
    // it and is not missing.
    bool counts = !p || atomic_load_explicit(&p->unrecorded, memory_order_acquire);
    bool off = producer_has_state(p, PRODUCER_OFF);
    bool none = off || producer_unlikely(producer_tls.thread->forbidden);
    struct producer_thread *t = none ? NULL : producer_thread_ready(p);
    p = process_of(p);
    if (!t) {
        if (p && counts && !is_final_null(ev))
            producer_count_unrecorded(p, ev);
        if (p && p->header)
            update_freed(p->header, ev, false);
        return;
    }
    producer_set_owner(t,
                       atomic_load_explicit(&p->header->readings.sequence, memory_order_relaxed));
    bool interrupting = busy & PRODUCER_WRITING, timed = producer_cost_is_due(t);
    uint64_t begin = timed ? clock_ticks(p->clock) : 0;
    const struct producer_writer w = {p, t, &t->streams[interrupting]};
    const struct spool_chunk *chunk = w.stream->chunk;
    bool muted = is_muted(p, t, ev, busy);
    // Interruptions are rare, so the cost of the system calls does not matter. Blocking signals
    // also prevents a second handler from interrupting stream 1.
    uint64_t mask = interrupting ? producer_signals_block() : 0;
    // Later events of stream 0 must have later stamps than this event of stream 1.
    if (interrupting)
        producer_request_reading(&t->streams[0]);
    if (p->measures)
        producer_residency_before(&w, ev, !muted);
    // Do this before put_event, while the block of `ev` has no used pages yet.
    if (p->measures && !muted && !interrupting)
        producer_residency_follow(&w);
    if (!muted)
        put_event(&w, ev, caller);
    // If there is no chunk, the event was lost.
    update_freed(p->header, ev, !muted && w.stream->chunk);
    if (p->measures && !muted)
        producer_residency_after(&w, ev);
    if (w.stream->chunk != chunk)
        producer_thread_reap(p);
    if (interrupting)
        producer_signals_restore(mask);
    if (timed)
        producer_cost_add(p->header, clock_ticks(p->clock) - begin);
}

int heaptape_list(const struct spool_block *blocks, size_t n)
{
    struct producer_process *p = producer_current();
    struct producer_thread *t =
        producer_has_state(p, PRODUCER_OFF) ? NULL : producer_thread_ready(p);
    uint32_t busy = producer_tls.busy;
    p = producer_current();
    if (!t || busy & PRODUCER_WRITING ||
        atomic_load_explicit(&p->header->control.state, memory_order_acquire) != SPOOL_RECORDING)
        return EAGAIN;
    producer_tls.busy = busy | PRODUCER_WRITING;
    for (size_t i = 0; i < n; i++) {
        const struct event ev = {
            .kind = HT_PREEXISTING, .size = blocks[i].size, .result = blocks[i].address};
        producer_stream_put(&(struct producer_writer){p, t, &t->streams[0]}, &ev);
    }
    producer_tls.busy = busy;
    return 0;
}

void producer_record(const struct event *ev, const void *caller)
{
    uint32_t busy = producer_tls.busy;
    if (is_nested(busy, caller)) {
        producer_tls.decided = PRODUCER_UNDECIDED;
        return;
    }
    producer_tls.busy =
        busy | PRODUCER_WRITING | (busy & PRODUCER_WRITING ? PRODUCER_INTERRUPTING : 0);
    producer_compiler_fence();
    int saved_errno = errno;
    record_event(ev, caller, busy);
    producer_tls.decided = PRODUCER_UNDECIDED;
    errno = saved_errno;
    producer_compiler_fence();
    producer_tls.busy = busy;
}

struct producer_thread *producer_thread_create(void *(*start)(void *), void *arg)
{
    const struct producer_thread *self = NULL;
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_current();
    if (!producer_has_state(p, PRODUCER_OFF))
        self = producer_thread_ready(p);
    p = process_of(p);
    if (self)
        producer_thread_reap(p);
    struct producer_thread *t = self ? producer_thread_alloc(p) : NULL;
    struct event ev = {.kind = HT_THREAD_CREATE};
    if (t) {
        t->parent = self->number;
        t->start = start;
        t->arg = arg;
        ev.value = t->number;
    }
    producer_leave(was);
    // From here on, the state stays mapped, because heaptape_clear fails while a created thread has
    // not started.
    if (t)
        producer_record(&ev, NULL);
    return t;
}
