// Writing records the slow way: lanes, epochs, bases, long records.
#include "spool/producer_private.h"

#include <errno.h>
#include <stddef.h>

enum { LOWEST_BASE = 4096 }; // below it there are no blocks; and base 0 would bring NULL into the window

const struct producer_thread producer_no_thread;

_Thread_local struct producer_tls producer_tls = {.thread = (struct producer_thread *)&producer_no_thread};

// Code of the objects whose nested calls are no events: of the allocator, and of the C++ operators.
static struct {
    uintptr_t start, end;
} objects[2];

void producer_set_object(enum producer_busy what, uintptr_t start, uintptr_t end)
{
    objects[what == PRODUCER_IN_OPERATOR].start = start;
    objects[what == PRODUCER_IN_OPERATOR].end = end;
}

static bool is_nested(uint32_t busy, const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    return (busy & PRODUCER_MUTED) || (busy & PRODUCER_IN_ALLOCATOR && at >= objects[0].start && at < objects[0].end) ||
           (busy & PRODUCER_IN_OPERATOR && at >= objects[1].start && at < objects[1].end);
}

static size_t words_left(const struct producer_lane *lane)
{
    uintptr_t used_bytes = (uintptr_t)lane->pos & (SPOOL_CHUNK_BYTES - 1);
    return used_bytes ? (SPOOL_CHUNK_BYTES - used_bytes) / 8 : 0;
}

void producer_lane_close(struct producer_lane *lane)
{
    struct spool_chunk *chunk = lane->chunk;
    if (!chunk)
        return;
    lane->first_word += atomic_load_explicit(&chunk->used_words, memory_order_relaxed);
    lane->pos = NULL;
    lane->chunk = NULL;
    producer_chunk_done(chunk);
}

static void lane_open(struct producer_thread *t, struct producer_lane *lane, struct spool_chunk *chunk)
{
    atomic_store_explicit(&chunk->used_words, 0, memory_order_relaxed);
    chunk->thread = t->number;
    chunk->tid = t->tid;
    chunk->lane = (uint32_t)(lane - t->lanes);
    chunk->first_word = lane->first_word;
    chunk->epoch0 = lane->epoch;
    chunk->base0 = lane->base;
    // Pairs with the recorder's acquire: it reads the fields above after the state.
    atomic_store_explicit(&chunk->state, SPOOL_CHUNK_OWNED, memory_order_release);
    lane->chunk = chunk;
    lane->pos = chunk->words;
}

// Stamps, and writes an EPOCH record when the stamp needs one. Returns the stamp.
static uint64_t put_stamp(struct producer_process *p, struct producer_lane *lane)
{
    uint64_t stamp = clock_ticks(p->clock) >> CODEC_STAMP_SHIFT;
    if (codec_epoch(stamp) != lane->epoch) {
        lane->epoch = codec_epoch(stamp);
        lane->fast_epoch = p->clock == CLOCK_KIND_MONOTONIC ? PRODUCER_NO_EPOCH : lane->epoch;
        *lane->pos++ = codec_epoch_record(lane->epoch);
    }
    return stamp;
}

// Centres the window of 4 GiB on the address: heaps grow both ways from where they are first seen.
static void put_base(struct producer_lane *lane, uint64_t address)
{
    const uint64_t half = 1ull << (CODEC_REL_BITS + CODEC_ADDRESS_SHIFT - 1);
    lane->base = address > half + LOWEST_BASE ? (address - half) & ~7ull : LOWEST_BASE;
    *lane->pos++ = codec_base_record(lane->base);
}

static bool fits_sized(const struct event *ev, uint64_t address)
{
    return event_infos[ev->kind].form == HT_FORM_SIZED && !ev->error && ev->size >> CODEC_SIZE_BITS == 0 &&
           address >= LOWEST_BASE && codec_relative(address, 0) >> CODEC_PTR_BITS == 0 &&
           (ev->kind != HT_CALLOC || ev->count == 1);
}

static bool fits_plain(const struct event *ev)
{
    return event_infos[ev->kind].form == HT_FORM_PLAIN && codec_relative(ev->ptr, 0) >> CODEC_PTR_BITS == 0;
}

// There is room for the record, an EPOCH and a BASE.
static void put_record(struct producer_process *p, struct producer_lane *lane, const struct event *ev)
{
    uint64_t stamp = put_stamp(p, lane);
    uint64_t address = event_infos[ev->kind].class == HT_CLASS_FREE ? ev->ptr : ev->result;
    if (fits_plain(ev)) {
        *lane->pos++ = codec_plain(ev->kind, stamp, ev->ptr);
    } else if (fits_sized(ev, address)) {
        if (codec_relative(address, lane->base) >> CODEC_REL_BITS)
            put_base(lane, address);
        *lane->pos++ = codec_sized(ev->kind, stamp, ev->size, codec_relative(address, lane->base));
    } else {
        struct event stamped = *ev;
        stamped.stamp = stamp;
        lane->pos += codec_put_long(lane->pos, &stamped);
    }
    producer_publish(lane->pos - 1);
}

static void put_number(struct producer_process *p, struct producer_lane *lane, enum event_kind kind, uint64_t value)
{
    const struct event ev = {.kind = kind, .value = value};
    put_record(p, lane, &ev);
}

void producer_lane_put(struct producer_process *p, struct producer_thread *t, struct producer_lane *lane,
                       const struct event *ev)
{
    const size_t extra = 2; // an EPOCH and a BASE
    if (words_left(lane) < codec_long_words(ev) + extra) {
        uint64_t waited_ns = 0;
        producer_lane_close(lane);
        struct spool_chunk *chunk = producer_chunk_take(p, &waited_ns);
        if (!chunk) {
            lane->lost++;
            atomic_fetch_add_explicit(&p->header->lost_words, 1, memory_order_relaxed);
            return;
        }
        lane_open(t, lane, chunk);
        if (waited_ns)
            put_number(p, lane, HT_WAITED, waited_ns);
        if (lane->lost)
            put_number(p, lane, HT_LOST, lane->lost);
        lane->lost = 0;
    }
    put_record(p, lane, ev);
}

static void record(const struct event *ev, uint32_t busy)
{
    struct producer_process *p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    if (p && atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_OFF)
        return;
    struct producer_thread *t = producer_thread_ready(p);
    if (!t)
        return;
    p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    bool interrupting = busy & PRODUCER_WRITING;
    if (!interrupting && !producer_tls.ended) {
        producer_lane_put(p, t, &t->lanes[0], ev);
        return;
    }
    // Rare enough for system calls, which keep a second handler from interrupting lane 1, too.
    uint64_t mask = producer_signals_block();
    producer_lane_put(p, t, &t->lanes[interrupting], ev);
    if (producer_tls.ended && !interrupting)
        producer_thread_end(p, t);
    producer_signals_restore(mask);
}

void producer_record(const struct event *ev, const void *caller)
{
    uint32_t busy = producer_tls.busy;
    if (is_nested(busy, caller))
        return;
    producer_tls.busy = busy | PRODUCER_WRITING | (busy & PRODUCER_WRITING ? PRODUCER_INTERRUPTING : 0);
    producer_compiler_fence();
    int saved_errno = errno;
    record(ev, busy);
    errno = saved_errno;
    producer_compiler_fence();
    producer_tls.busy = busy;
}
