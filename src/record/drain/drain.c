// Drains the chunks of all spools, one stream at a time.
#include "record/drain/drain_private.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_STREAMS = 1 << 17,  // two for each thread that can be live at once
    MAX_TRIES = 1 << 20,    // limit in case a program keeps changing the stack of free chunks
    MAX_COUNT_BITS = 48,    // bound for plausible counts and positions
    MAX_GAP_WORDS = 1 << 30 // bound for words lost in one gap
};
#define OVERWRITTEN "its spool was overwritten"
#define STUCK_NS    5000000000u // a longer wait means that the free list is corrupt

static size_t stream_place(const struct drain_spool *s, uint32_t thread, uint32_t stream)
{
    uint64_t key = (uint64_t)thread << 32 | stream;
    size_t mask = s->streams_capacity - 1, i = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (s->streams[i].used && (s->streams[i].thread != thread || s->streams[i].stream != stream))
        i = (i + 1) & mask;
    return i;
}

// Makes space for a stream and removes streams of ended threads. Returns 0, -E2BIG if there are
// more streams than a process can have, or -ENOMEM.
static int streams_grow(struct drain_spool *s)
{
    size_t live = 0, capacity = 64, old_capacity = s->streams_capacity;
    struct drain_stream *old = s->streams;
    for (size_t i = 0; i < old_capacity; i++)
        live += old[i].used && !old[i].over;
    if (live >= MAX_STREAMS)
        return -E2BIG;
    while (capacity < 4 * (live + 1))
        capacity *= 2;
    struct drain_stream *streams = calloc(capacity, sizeof *streams);
    if (!streams)
        return -ENOMEM;
    s->streams = streams;
    s->streams_capacity = capacity;
    s->streams_used = live;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].used && !old[i].over)
            streams[stream_place(s, old[i].thread, old[i].stream)] = old[i];
    }
    free(old);
    return 0;
}

// Returns the stream's state, or NULL with *rc set. A new stream starts at word `next`.
static struct drain_stream *stream_find(struct drain_spool *s, uint32_t thread, uint32_t stream,
                                        uint64_t next, int *rc)
{
    *rc = 2 * s->streams_used >= s->streams_capacity ? streams_grow(s) : 0;
    if (*rc < 0)
        return NULL;
    struct drain_stream *l = &s->streams[stream_place(s, thread, stream)];
    if (!l->used) {
        *l = (struct drain_stream){.thread = thread, .stream = stream, .next = next, .used = true};
        s->streams_used++;
    }
    l->over = false;
    return l;
}

// Stops draining a corrupt spool and makes its program stop writing.
static void spool_break(struct drain *c, struct drain_spool *s, const char *why)
{
    if (s->broken)
        return;
    s->broken = atomic_load(&s->guard.broken) ? "its spool was truncated" : why;
    s->dead = true;
    if (c->attached)
        return;
    atomic_store(&s->header->refused, 1);
    drain_wake_waiters(s->header, INT_MAX);
}

void drain_stop(struct drain *c)
{
    c->stopped = true;
    atomic_store(&c->session->recorder.owner, c->owner | SPOOL_RECORDER_STOPPED);
    for (size_t i = 0; i < c->n_spools; i++)
        drain_wake_waiters(c->spools[i]->header, INT_MAX);
}

static void chunk_free(struct drain_spool *s, uint32_t index)
{
    struct spool_chunk *chunk = &s->chunks[index];
    s->marks[index] = (struct drain_chunk){0};
    chunk->drained_words = 0;
    atomic_store_explicit(&chunk->state, SPOOL_CHUNK_FREE, memory_order_relaxed);
    uint64_t top = atomic_load(&s->header->free_top), next;
    unsigned tries = 0;
    do {
        chunk->next_free = (uint32_t)top;
        next = ((top >> 32) + 1) << 32 | (index + 1);
    } while (!atomic_compare_exchange_weak(&s->header->free_top, &top, next) &&
             ++tries < MAX_TRIES);
    // Wake only one thread: a free chunk serves one thread, and others would wait again.
    drain_wake_waiters(s->header, 1);
}

static int by_position(const void *a, const void *b)
{
    const struct drain_candidate *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->first_word < y->first_word ? -1 : x->first_word > y->first_word;
}

int64_t drain_scan(struct drain *c, struct drain_spool *s)
{
    uint32_t fresh = atomic_load_explicit(&s->header->fresh_chunks, memory_order_acquire);
    fresh = fresh < s->max_chunks ? fresh : s->max_chunks;
    // fresh_chunks never decreases, unless a mapping has failed.
    if (fresh < s->fresh_chunks)
        spool_break(c, s, OVERWRITTEN);
    s->fresh_chunks = fresh;
    if (drain_map_more(s, fresh) < 0) {
        // Later chunks are lost, their events are counted at the end, and the process stops
        // recording.
        s->unmapped = s->cut = true;
        s->max_chunks = s->fresh_chunks = fresh = s->mapped_chunks;
        atomic_store(&s->header->refused, 1);
        drain_wake_waiters(s->header, INT_MAX);
    }
    size_t known = s->marks_capacity, n = 0;
    if (HT_GROW(&s->marks, &s->marks_capacity, fresh) < 0 ||
        HT_GROW(&c->candidates, &c->candidates_capacity, fresh) < 0)
        return -ENOMEM;
    if (s->marks_capacity > known)
        memset(s->marks + known, 0, (s->marks_capacity - known) * sizeof *s->marks);
    for (uint32_t i = 0; i < fresh; i++) {
        struct spool_chunk *chunk = &s->chunks[i];
        // Load the state first. If it is DONE, `used` is final.
        uint32_t state = atomic_load_explicit(&chunk->state, memory_order_acquire);
        if (state != SPOOL_CHUNK_OWNED && state != SPOOL_CHUNK_DONE)
            continue;
        struct drain_candidate *k = &c->candidates[n++];
        *k = (struct drain_candidate){
            .index = i,
            .thread = __atomic_load_n(&chunk->thread, __ATOMIC_RELAXED),
            .stream = __atomic_load_n(&chunk->stream, __ATOMIC_RELAXED),
            .tid = __atomic_load_n(&chunk->tid, __ATOMIC_RELAXED),
            .used = spool_published(chunk),
            .done = state == SPOOL_CHUNK_DONE,
            .first_word = __atomic_load_n(&chunk->first_word, __ATOMIC_RELAXED),
            .epoch0 = __atomic_load_n(&chunk->epoch0, __ATOMIC_RELAXED),
            .base0 = __atomic_load_n(&chunk->base0, __ATOMIC_RELAXED),
        };
        if (k->used > SPOOL_CHUNK_WORDS || k->stream > 1 || k->first_word >> MAX_COUNT_BITS)
            spool_break(c, s, OVERWRITTEN);
        s->drain_done += state == SPOOL_CHUNK_DONE;
    }
    if (n > 1)
        qsort(c->candidates, n, sizeof *c->candidates, by_position);
    return (int64_t)n;
}

// Passes words [drained, used) to the sink. Frees a DONE chunk as soon as it has been copied.
static int drain_chunk(struct drain *c, struct drain_spool *s, struct drain_stream *l,
                       const struct drain_candidate *k, const struct drain_sink *sink,
                       struct err *e)
{
    struct drain_chunk *mark = &s->marks[k->index], at = *mark;
    uint32_t n = k->used - at.drained;
    if (at.drained == 0)
        at.state = (struct codec_state){k->epoch0, k->base0};
    uint32_t whole = at.broken ? 0 : n;
    uint64_t *copy = whole && sink->room ? sink->room(sink->ctx, whole, e) : c->copy;
    if (!copy)
        return -ENOMEM;
    struct trace_segment g = {.process = s->number,
                              .thread = k->thread,
                              .tid = k->tid,
                              .stream = k->stream,
                              .first_word = k->first_word + at.drained,
                              .epoch0 = at.state.epoch,
                              .base0 = at.state.base,
                              .epoch_end = at.state.epoch,
                              .base_end = at.state.base,
                              .n_words = whole,
                              .words = copy};
    memcpy(copy, s->chunks[k->index].words + at.drained, whole * sizeof *copy);
    if (k->done && !c->attached) {
        chunk_free(s, k->index);
        // A producer may already have reused the chunk, so do not change its mark.
        mark = &at;
    }
    s->words += n;
    s->drain_words += n;
    int rc = g.n_words ? drain_pass_recorded(s, l, &g, sink, e) : 0;
    if (g.n_words < n) {
        s->lost_words += n - g.n_words;
        mark->broken = true;
    }
    mark->drained = k->used;
    mark->state = (struct codec_state){g.epoch_end, g.base_end};
    return rc;
}

// Returns true if the words at `place` can be drained. If earlier words are missing, they may have
// been published after the scan passed their chunk, so the stream waits for the next batch. The
// next batch scans every earlier chunk, so words that are still missing then are lost.
static bool is_due(struct drain_spool *s, struct drain_stream *l, uint64_t place)
{
    uint64_t missing = place > l->next ? place - l->next : 0;
    l->waits = missing && !s->dead && !(l->waits && l->deferred == place);
    l->deferred = place;
    s->lost_words += l->waits ? 0 : missing;
    return !l->waits;
}

int drain_pass_chunk(struct drain *c, struct drain_spool *s, const struct drain_candidate *k,
                     const struct drain_sink *sink, struct err *e)
{
    uint32_t drained = s->marks[k->index].drained;
    if (k->used < drained || (k->used == drained && !k->done && !s->dead))
        return 0;
    int rc;
    struct drain_stream *l = stream_find(s, k->thread, k->stream, k->first_word, &rc);
    if (rc == -ENOMEM)
        return err_no_memory(e, NULL);
    if (rc < 0 || k->first_word + drained > l->next + MAX_GAP_WORDS) {
        spool_break(c, s, OVERWRITTEN);
        return 0;
    }
    if (!is_due(s, l, k->first_word + drained))
        return 1;
    rc = drain_chunk(c, s, l, k, sink, e);
    // Never decrease `next`: the scan may have seen a full chunk and its successor before the owner
    // set DONE.
    if (k->first_word + k->used > l->next)
        l->next = k->first_word + k->used;
    l->over = k->done && k->used < SPOOL_CHUNK_WORDS - CODEC_MAX_RECORD_WORDS - 2;
    return rc;
}

// Returns true if threads have waited longer than STUCK_NS although nothing can be drained. In that
// case, the free list or the chunk states have been overwritten.
static bool is_stuck(struct drain_spool *s)
{
    if (s->drain_done || s->drain_words || !atomic_load(&s->header->waiters) ||
        (uint32_t)atomic_load(&s->header->free_top)) {
        s->stuck_ns = 0;
        return false;
    }
    uint64_t now = clock_monotonic_ns();
    s->stuck_ns = s->stuck_ns ? s->stuck_ns : now;
    return now - s->stuck_ns > STUCK_NS;
}

static void check_spool(struct drain *c, struct drain_spool *s)
{
    const struct spool_header *h = s->header;
    if (__atomic_load_n(&h->magic, __ATOMIC_RELAXED) != SPOOL_MAGIC ||
        __atomic_load_n(&h->pid, __ATOMIC_RELAXED) != s->pid ||
        spool_unrecorded(h) >> MAX_COUNT_BITS || atomic_load(&h->wait_ns) >> MAX_COUNT_BITS ||
        is_stuck(s) || atomic_load(&s->guard.broken))
        spool_break(c, s, OVERWRITTEN);
}

static void read_requests(struct drain_spool *s)
{
    struct spool_control *k = &s->header->control;
    for (unsigned what = 0; what < SPOOL_REQUESTS; what++) {
        uint32_t asked = atomic_load_explicit(&k->asked[what], memory_order_acquire);
        if (what != SPOOL_RESET || atomic_load(&k->reset_proof) == asked * SPOOL_RESET_STEP)
            s->asked[what] = asked;
    }
}

static int drain_spool(struct drain *c, struct drain_spool *s, const struct drain_sink *sink,
                       struct err *e)
{
    if (s->broken)
        return 0;
    read_requests(s);
    int64_t n = drain_scan(c, s);
    int rc = n < 0 ? (int)n : drain_read_changes(s);
    if (rc == -EBADMSG)
        spool_break(c, s, OVERWRITTEN);
    else if (rc < 0)
        return err_no_memory(e, NULL);
    rc = 0;
    for (int64_t i = 0; i < n && rc == 0 && !s->broken; i++) {
        const struct drain_candidate *k = &c->candidates[i];
        rc = drain_pass_chunk(c, s, k, sink, e);
        if (rc <= 0)
            continue;
        rc = 0;
        c->streams_waiting++;
        while (i + 1 < n && c->candidates[i + 1].thread == k->thread &&
               c->candidates[i + 1].stream == k->stream)
            i++;
    }
    check_spool(c, s);
    return rc;
}

// Makes the process read the counter at its next event, so that the stamps of all records written
// after this drain are later than the present. Measures the time between such requests.
static void request_reading(const struct drain *c, struct drain_spool *s)
{
    enum clock_kind clock = (enum clock_kind)c->kept.clock_kind;
    uint64_t before = clock_ticks(clock);
    atomic_fetch_add(&s->header->readings.sequence, SPOOL_READ_STEP);
    drain_count_early(s, clock_ticks(clock));
    s->requested_ticks = before;
}

void drain_count_early(struct drain_spool *s, uint64_t now)
{
    uint64_t since = now > s->requested_ticks ? now - s->requested_ticks : 0;
    s->early_ticks = since > s->early_ticks ? since : s->early_ticks;
}

int drain_drain(struct drain *c, const struct drain_sink *sink, struct err *e)
{
    c->chunks_done = c->streams_waiting = 0;
    int rc = 0;
    for (size_t i = 0; i < c->n_spools; i++)
        request_reading(c, c->spools[i]);
    for (size_t i = 0; i < c->n_spools && rc == 0; i++) {
        struct drain_spool *s = c->spools[i];
        s->drain_words = s->drain_done = 0;
        rc = drain_spool(c, s, sink, e);
        atomic_store_explicit(&s->header->control.events, s->events, memory_order_relaxed);
        drain_forget_changes(s, c->streams_waiting == 0);
        c->chunks_done += s->drain_done;
    }
    return rc;
}
