// Writes records on the slow path: streams, epochs, bases, long records.
#include "capture/producer/producer_private.h"

#include <errno.h>
#include <stddef.h>

const struct producer_thread producer_no_thread;

_Thread_local struct producer_tls producer_tls = {
    .thread = (struct producer_thread *)&producer_no_thread};

_Atomic uint32_t producer_releases[PRODUCER_RELEASES];

// Code ranges of objects whose nested calls are not events: the allocator, the C++ operators, and
// heaptape itself, which is the apparent caller of a real function that ends in a tail call.
enum object { OBJECT_ALLOCATOR, OBJECT_OPERATOR, OBJECT_RUNTIME, OBJECT_OWN, OBJECTS };
static struct {
    uintptr_t start, end;
} objects[OBJECTS];

void producer_set_object(enum producer_busy what, uintptr_t start, uintptr_t end)
{
    enum object object = what == PRODUCER_IN_ALLOCATOR  ? OBJECT_ALLOCATOR
                         : what == PRODUCER_IN_OPERATOR ? OBJECT_OPERATOR
                         : what == PRODUCER_IN_RUNTIME  ? OBJECT_RUNTIME
                                                        : OBJECT_OWN;
    objects[object].start = start;
    objects[object].end = end;
}

static size_t (*usable_size)(unsigned kind, void *block);

void producer_set_usable(size_t (*usable)(unsigned kind, void *block))
{
    usable_size = usable;
}

static size_t (*named_usable_size)(void *block);

void producer_set_named_usable(size_t (*usable)(void *block))
{
    named_usable_size = usable;
}

static bool object_has_code(enum object object, const void *address)
{
    return (uintptr_t)address >= objects[object].start && (uintptr_t)address < objects[object].end;
}

bool producer_is_allocator(const void *address)
{
    return object_has_code(OBJECT_ALLOCATOR, address);
}

bool producer_wants_maps(void)
{
    uint32_t was = producer_enter(PRODUCER_WRITING);
    const struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    bool off = p && atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_OFF;
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
    return (busy & PRODUCER_MUTED) || object_has_code(OBJECT_OWN, caller) ||
           ((busy & PRODUCER_IN_ALLOCATOR) && object_has_code(OBJECT_ALLOCATOR, caller)) ||
           ((busy & PRODUCER_IN_OPERATOR) &&
            (object_has_code(OBJECT_OPERATOR, caller) || object_has_code(OBJECT_RUNTIME, caller)));
}

static size_t words_left(const struct producer_stream *stream)
{
    uintptr_t used_bytes = (uintptr_t)stream->pos & (SPOOL_CHUNK_BYTES - 1);
    return used_bytes ? (SPOOL_CHUNK_BYTES - used_bytes) / 8 : 0;
}

void producer_stream_close(struct producer_process *p, struct producer_stream *stream)
{
    struct spool_chunk *chunk = stream->chunk;
    if (!chunk)
        return;
    stream->first_word += spool_published(chunk);
    stream->pos = NULL;
    stream->chunk = NULL;
    producer_chunk_done(p, chunk);
}

static void stream_open(struct producer_thread *t, struct producer_stream *stream,
                        struct spool_chunk *chunk)
{
    chunk->start = (uint32_t)(uintptr_t)chunk->words;
    atomic_store_explicit(&chunk->published, chunk->start, memory_order_relaxed);
    chunk->thread = t->number;
    chunk->tid = t->tid;
    chunk->stream = (uint32_t)(stream - t->streams);
    chunk->first_word = stream->first_word;
    chunk->epoch0 = stream->state.epoch;
    chunk->base0 = stream->state.base;
    // Pairs with the recorder's acquire: it reads the fields above after the state.
    atomic_store_explicit(&chunk->state, SPOOL_CHUNK_OWNED, memory_order_release);
    stream->chunk = chunk;
    stream->pos = chunk->words;
}

static uint64_t stamp_now(const struct producer_process *p)
{
    return clock_ticks(p->clock) >> CODEC_STAMP_SHIFT;
}

// Always with the fence: these events are slow anyway.
static uint64_t stamp_release(const struct producer_process *p, uint64_t address)
{
    uint64_t ticks =
        p->clock == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns() : clock_counter_ordered();
    atomic_store_explicit(producer_release_at(address),
                          producer_release_word(ticks, producer_tls.releaser),
                          memory_order_relaxed);
    return ticks >> CODEC_STAMP_SHIFT;
}

static uint64_t event_stamp(const struct producer_process *p, const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    bool is_release = (class == HT_CLASS_FREE || class == HT_CLASS_HALF) && ev->ptr;
    return is_release && producer_tls.releaser ? stamp_release(p, ev->ptr) : stamp_now(p);
}

// The stream must have space for the record and its prefix.
static void put_record(struct producer_stream *stream, const struct event *ev, uint64_t stamp)
{
    stream->last_stamp = stamp;
    uint64_t *end = codec_put(&stream->state, stream->pos, stamp, ev);
    if (stream->fast_epoch != PRODUCER_NO_EPOCH)
        stream->fast_epoch = stream->state.epoch;
    producer_publish(stream, end);
}

// Returns true for calls that are counted if they are lost. A call may consist of two records.
static bool is_call(const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    return class != HT_CLASS_HALF && class != HT_CLASS_THREAD && class != HT_CLASS_META;
}

static void count_unrecorded(const struct producer_process *p, const struct event *ev)
{
    struct spool_count *counts = p->unrecorded;
    if (!counts || !is_call(ev))
        return;
    atomic_fetch_add_explicit(&counts[producer_tls.thread->number & (p->counts - 1)].calls, 1,
                              memory_order_relaxed);
}

// Makes space for the record of `ev`. If a new chunk is needed, opens one and records the time that
// this took. Returns false if there is no space.
static bool make_room(struct producer_process *p, struct producer_thread *t,
                      struct producer_stream *stream, const struct event *ev)
{
    uint64_t waited_ns = 0;
    size_t words = codec_long_words(ev) + CODEC_MAX_PREFIX_WORDS;
    if (words_left(stream) >= words &&
        producer_chunk_populate(p, stream->chunk, (uintptr_t)(stream->pos + words)))
        return true;
    producer_stream_close(p, stream);
    struct spool_chunk *chunk = producer_chunk_acquire(p, &waited_ns);
    if (!chunk) {
        stream->lost += is_call(ev);
        count_unrecorded(p, ev);
        return false;
    }
    stream_open(t, stream, chunk);
    if (waited_ns)
        put_record(stream, &(struct event){.kind = HT_WAITED, .value = waited_ns}, stamp_now(p));
    if (stream->lost)
        put_record(stream, &(struct event){.kind = HT_LOST, .value = stream->lost}, stamp_now(p));
    stream->lost = 0;
    producer_thread_reap(p);
    return true;
}

void producer_stream_put(struct producer_process *p, struct producer_thread *t,
                         struct producer_stream *stream, const struct event *ev)
{
    if (make_room(p, t, stream, ev))
        put_record(stream, ev, event_stamp(p, ev));
}

void producer_stream_end(struct producer_process *p, struct producer_thread *t,
                         struct producer_stream *stream)
{
    const struct event end = {.kind = HT_THREAD_END,
                              .text = t->name,
                              .text_bytes = (uint32_t)strnlen(t->name, sizeof t->name)};
    uint64_t stamp = stream->last_stamp;
    if (make_room(p, t, stream, &end))
        put_record(stream, &end, stamp > stream->last_stamp ? stamp : stream->last_stamp);
}

void producer_stream_force_slow(struct producer_process *p, struct producer_stream *stream)
{
    stream->fast_epoch = PRODUCER_NO_EPOCH;
    stream->last_stamp = stamp_now(p);
}

// While recording is paused, all events of a thread take the slow path and end here. A realloc is
// recorded as a whole or not at all, so a change of state takes effect neither between its halves,
// nor inside a real function, nor during the writing of stream 0.
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

// Returns true if the program may free blocks whose allocation is not in the trace: from its
// parent, from a pause, or from before the recording.
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
    if (producer_tls.busy & PRODUCER_NAMED)
        return block && named_usable_size
                   ? named_usable_size((void *)block) & codec_mask(CODEC_NOTE_BITS)
                   : 0;
    return block && usable_size ? usable_size(ev->kind, (void *)block) & codec_mask(CODEC_NOTE_BITS)
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

static void put_event(struct producer_process *p, struct producer_thread *t,
                      struct producer_stream *stream, const struct event *ev, const void *caller)
{
    struct event noted = *ev;
    if (producer_depth && (allocates(ev) || ev->kind == HT_POOL_ALLOC) && has_stack(ev))
        noted.notes[HT_NOTE_SITE] =
            producer_site_find(p, t, stream, caller, __builtin_frame_address(0));
    if ((p->flags & SPOOL_USABLE) || producer_inherited.attached)
        noted.notes[HT_NOTE_USABLE] = note_usable(p, ev);
    producer_stream_put(p, t, stream, &noted);
}

// Threads whose indices differ by a multiple of UINT16_MAX have no fence against each other.
static uint32_t releaser_number(const struct producer_process *p, const struct producer_thread *t)
{
    bool alone = atomic_load_explicit(&p->fresh_threads, memory_order_relaxed) < 2;
    return alone ? 0 : 1 + t->index % UINT16_MAX;
}

static void record_event(const struct event *ev, const void *caller, uint32_t busy)
{
    struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    bool off = p && atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_OFF;
    bool none = off || producer_unlikely(producer_tls.thread->forbidden);
    struct producer_thread *t = none ? NULL : producer_thread_ready(p);
    p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    if (!t) {
        if (p)
            count_unrecorded(p, ev);
        return;
    }
    producer_tls.releaser = releaser_number(p, t);
    bool interrupting = busy & PRODUCER_WRITING, timed = producer_cost_is_due(t);
    uint64_t begin = timed ? clock_ticks(p->clock) : 0;
    struct producer_stream *stream = &t->streams[interrupting];
    bool muted = is_muted(p, t, ev, busy);
    // Rare enough for system calls. They also keep a second handler from interrupting stream 1.
    uint64_t mask = interrupting ? producer_signals_block() : 0;
    if (p->measures)
        producer_residency_before(p, t, stream, ev, !muted);
    // Before put_event, because the block of `ev` has no used pages yet.
    if (p->measures && !muted && !interrupting)
        producer_residency_follow(p, t, stream);
    if (!muted)
        put_event(p, t, stream, ev, caller);
    if (p->measures && !muted)
        producer_residency_after(p, t, ev);
    if (interrupting)
        producer_signals_restore(mask);
    if (timed)
        producer_cost_add(p->header, clock_ticks(p->clock) - begin);
}

bool producer_put_rebased(unsigned kind, uint64_t count, uint64_t size, uint64_t address,
                          bool is_release)
{
    struct producer_stream *stream = producer_begin(0);
    if (!stream)
        return false;
    uint64_t *w = stream->pos,
             ticks = is_release ? producer_release_ticks(address) : clock_counter();
    uint64_t odd =
        (codec_epoch_of_ticks(ticks) ^ stream->fast_epoch) | producer_odd_block(count, size);
    bool done = !odd && producer_has_room(w, 3) && codec_put_base(&stream->state, &w, address);
    if (done) {
        if (count != 1)
            *w++ = codec_note(HT_NOTE_COUNT, count);
        *w++ = codec_sized(kind, ticks >> CODEC_STAMP_SHIFT, size,
                           codec_relative(address, stream->state.base));
        producer_publish(stream, w);
    }
    producer_compiler_fence();
    producer_tls.busy = 0;
    return done;
}

int producer_record_preexisting(const struct spool_block *blocks, size_t n)
{
    struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    bool off = p && atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_OFF;
    struct producer_thread *t = off ? NULL : producer_thread_ready(p);
    uint32_t busy = producer_tls.busy;
    p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    if (!t || busy & PRODUCER_WRITING ||
        atomic_load_explicit(&p->header->control.state, memory_order_acquire) != SPOOL_RECORDING)
        return EAGAIN;
    producer_tls.busy = busy | PRODUCER_WRITING;
    for (size_t i = 0; i < n; i++) {
        const struct event ev = {
            .kind = HT_PREEXISTING, .size = blocks[i].size, .result = blocks[i].address};
        producer_stream_put(p, t, &t->streams[0], &ev);
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
