// Writes streams of records: chunks, epochs, bases and long records.
#include "capture/producer/producer_private.h"

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
    // Pairs with the recorder's acquire, which precedes its reads of the members above.
    atomic_store_explicit(&chunk->state, SPOOL_CHUNK_OWNED, memory_order_release);
    stream->chunk = chunk;
    stream->pos = stream->read_at = chunk->words;
}

uint64_t producer_usual_ticks(void)
{
#if defined(__aarch64__)
    uint64_t hz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return (hz >> 17) + 1;
#else
    return 1 << 14;
#endif
}

enum { MAX_UNCOUNTED = 1024 };

// Counts the words since the last reading. Their events have the ticks of that reading.
static void count_unread(struct producer_stream *stream, bool early)
{
    struct spool_readings *r = stream->readings;
    ptrdiff_t words = stream->pos - stream->read_at - 1;
    if (words <= 0)
        return;
    stream->unread += (uint64_t)words;
    if (early)
        atomic_fetch_add_explicit(&r->early_words, (uint64_t)words, memory_order_relaxed);
    // The counters are shared by all threads of the process, so do not write to them at every
    // reading.
    if (!early && stream->unread < MAX_UNCOUNTED &&
        atomic_load_explicit(&r->unread_words, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&r->unread_words, stream->unread, memory_order_relaxed);
    stream->unread = 0;
}

// Returns the new mask, given the ticks since the last reading. If these ticks are less than a
// quarter of the usual ticks, doubles the number of words between readings. If they are at least
// half of the usual ticks, halves the number. Ordinary variation therefore does not make events
// early.
static uint32_t next_mask(uint32_t mask, uint64_t ticks)
{
    uint64_t usual = producer_usual_ticks();
    if (ticks >= usual)
        return PRODUCER_EACH_WORD;
    if (ticks < usual / 4)
        return (2 * mask + 1) & PRODUCER_MAX_READING_MASK;
    return ticks >= usual / 2 ? mask / 2 | PRODUCER_EACH_WORD : mask;
}

// Reads the counter. If there are other threads (`threads`), reads the counter after all earlier
// loads, so that the reading follows another thread's last event at the address.
static uint64_t read_now(bool threads)
{
    return threads ? clock_counter_ordered() : clock_counter();
}

// Stores the sequence and the section before it reads the counter. If a signal handler then records
// an event, the kernel switches the thread out, or a reading is requested, the next event reads the
// counter again.
uint64_t producer_read_counter(struct producer_stream *stream)
{
    if (!stream->readings)
        return read_now(producer_tls.owner);
    uint32_t sequence = atomic_load_explicit(&stream->readings->sequence, memory_order_relaxed);
    stream->sequence = sequence;
    producer_compiler_fence();
    *producer_section_word() = (uint64_t)(uintptr_t)&producer_section;
    uint64_t ticks = read_now(sequence & SPOOL_THREADS), since = ticks - stream->ticks;
    count_unread(stream, since >= producer_usual_ticks());
    stream->mask = next_mask(stream->mask, since);
    if (sequence & SPOOL_READ_ALL) {
        stream->readings = NULL;
        stream->mask = PRODUCER_PIECE_MASK;
    }
    stream->read_at = stream->pos;
    stream->ticks = ticks;
    producer_set_owner(producer_tls.thread, sequence);
    return ticks;
}

uint64_t producer_read_for(struct producer_stream *stream, uint64_t address, uint64_t size)
{
    uint64_t ticks = producer_read_counter(stream);
    producer_own(address, size);
    return ticks;
}

uint64_t producer_ticks(struct producer_stream *stream, uint64_t address, uint64_t size)
{
    uint32_t owner = producer_tls.owner;
    bool due = !stream->readings || !((uintptr_t)stream->pos & stream->mask) ||
               producer_is_disturbed(stream) ||
               (owner && address && producer_is_foreign(address, owner));
    return due ? producer_read_for(stream, address, size) : stream->ticks;
}

static uint64_t stamp_now(const struct producer_process *p)
{
    return clock_ticks(p->clock) >> CODEC_STAMP_SHIFT;
}

// If the event must be ordered against other threads' events at an address, makes the thread the
// owner of the address.
static void own_address(const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    if (class == HT_CLASS_FREE || class == HT_CLASS_HALF)
        producer_own(ev->ptr, PRODUCER_FREES);
    else if (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE)
        producer_own(ev->result, event_requested(ev->kind, ev->size, ev->count));
}

static uint64_t event_stamp(struct producer_process *p, struct producer_stream *stream,
                            const struct event *ev)
{
    uint64_t ticks =
        p->clock == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns() : producer_read_counter(stream);
    own_address(ev);
    // Later events of other threads must have later stamps than a mark. If another thread frees the
    // block of a residency record, the stamp of the free must be later, too.
    bool is_edge = event_has_residency(ev->kind) || event_infos[ev->kind].class == HT_CLASS_MARK;
    if (is_edge && producer_tls.owner)
        producer_request_readings(p->header);
    return ticks >> CODEC_STAMP_SHIFT;
}

// Writes a record. The stream must have space for the record and its prefix.
static void put_record(struct producer_stream *stream, const struct event *ev, uint64_t stamp)
{
    stream->last_stamp = stamp;
    uint64_t *end = codec_put(&stream->state, stream->pos, stamp, ev);
    if (stream->fast_epoch != PRODUCER_NO_EPOCH)
        stream->fast_epoch = stream->state.epoch;
    producer_publish(stream, end);
}

// Returns true if the event, when lost, counts as a lost call. If a call has two records, only one
// of them counts.
static bool is_call(const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    return class != HT_CLASS_HALF && class != HT_CLASS_THREAD && class != HT_CLASS_META;
}

void producer_count_unrecorded(const struct producer_process *p, const struct event *ev)
{
    struct spool_count *counts = p->unrecorded;
    if (!counts || !is_call(ev))
        return;
    atomic_fetch_add_explicit(&counts[producer_tls.thread->number & (p->counts - 1)].calls, 1,
                              memory_order_relaxed);
}

// Makes space for the record of `ev`. If necessary, opens a new chunk and records how long that
// took. Returns false if there is no space.
static bool make_room(const struct producer_writer *w, const struct event *ev)
{
    uint64_t waited_ns = 0;
    struct producer_stream *stream = w->stream;
    size_t words = codec_long_words(ev) + CODEC_MAX_PREFIX_WORDS;
    if (words_left(stream) >= words &&
        producer_chunk_populate(w->p, stream->chunk, (uintptr_t)(stream->pos + words)))
        return true;
    if (stream->chunk && stream->readings)
        count_unread(stream, clock_counter() - stream->ticks >= producer_usual_ticks());
    producer_stream_close(w->p, stream);
    struct spool_chunk *chunk = producer_chunk_acquire(w->p, &waited_ns);
    if (!chunk) {
        stream->lost += is_call(ev);
        producer_count_unrecorded(w->p, ev);
        return false;
    }
    stream_open(w->t, stream, chunk);
    if (waited_ns)
        put_record(stream, &(struct event){.kind = HT_WAITED, .value = waited_ns}, stamp_now(w->p));
    if (stream->lost)
        put_record(stream, &(struct event){.kind = HT_LOST, .value = stream->lost},
                   stamp_now(w->p));
    stream->lost = 0;
    return true;
}

void producer_stream_put(const struct producer_writer *w, const struct event *ev)
{
    if (make_room(w, ev))
        put_record(w->stream, ev, event_stamp(w->p, w->stream, ev));
}

void producer_stream_end(const struct producer_writer *w)
{
    const struct event end = {.kind = HT_THREAD_END,
                              .text = w->t->name,
                              .text_bytes = (uint32_t)strnlen(w->t->name, sizeof w->t->name)};
    uint64_t stamp = w->stream->last_stamp;
    if (make_room(w, &end))
        put_record(w->stream, &end, stamp > w->stream->last_stamp ? stamp : w->stream->last_stamp);
}

void producer_stream_force_slow(struct producer_process *p, struct producer_stream *stream)
{
    stream->fast_epoch = PRODUCER_NO_EPOCH;
    stream->last_stamp = stamp_now(p);
}

uint64_t producer_noted_ticks(struct producer_stream *stream, uint64_t address, uint64_t size)
{
    bool due = !((uintptr_t)(stream->pos + 1) & stream->mask);
    return due ? producer_read_for(stream, address, size) : producer_ticks(stream, address, size);
}

bool producer_put_rebased(unsigned kind, uint64_t count, uint64_t size, uint64_t address,
                          unsigned allocator)
{
    struct producer_stream *stream = producer_begin(0, false);
    if (!stream)
        return false;
    uint64_t *w = stream->pos, ticks = allocator
                                           ? producer_noted_ticks(stream, address, count * size)
                                           : producer_ticks(stream, address, count * size);
    uint64_t odd =
        (codec_epoch_of_ticks(ticks) ^ stream->fast_epoch) | producer_odd_block(count, size);
    bool done = !odd && producer_has_room(w, 4) && codec_put_base(&stream->state, &w, address);
    if (done) {
        if (allocator)
            *w++ = codec_note(HT_NOTE_ALLOCATOR, allocator);
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
