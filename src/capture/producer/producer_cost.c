// Measures the cost of recording and the time spent in the real functions.
#include "capture/producer/producer_private.h"

// An event that takes 2^18 ticks (0.1 ms at 2.6 GHz) or more was interrupted or had to wait.
enum { INTERRUPTED_BITS = 18 };

void producer_cost_add(struct spool_header *h, uint64_t ticks)
{
    if (ticks >> INTERRUPTED_BITS)
        return;
    atomic_fetch_add_explicit(&h->slow_events, SPOOL_COST_EVENTS, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->slow_ticks, ticks * SPOOL_COST_EVENTS, memory_order_relaxed);
}

static uint64_t timing_ticks; // ticks measured for an empty call

// Uses the median: the CPU may reorder reads of the counter, so a single difference may be 0 or
// arbitrarily large.
static void measure_timing(enum clock_kind clock)
{
    enum { TRIES = 63 };
    uint64_t sorted[TRIES];
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t begin = clock_ticks(clock), ticks = clock_ticks(clock) - begin;
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] > ticks; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = ticks;
    }
    timing_ticks = sorted[TRIES / 2];
}

// Returns the number of ticks that SPOOL_FAST_EVENTS events take on the fast path.
static uint64_t measure_events(enum clock_kind clock, bool reads)
{
    enum { WORDS = 64, TRIES = 4 };
    static _Atomic uint64_t words[WORDS];
    static _Atomic uint32_t published;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t begin = clock_ticks(clock);
        for (uint64_t n = 0; n < SPOOL_FAST_EVENTS; n++) {
            uint64_t stamp = reads ? clock_ticks(clock) >> CODEC_STAMP_SHIFT : 0;
            atomic_store_explicit(&words[n % WORDS], codec_sized(HT_MALLOC, stamp, n, n),
                                  memory_order_relaxed);
            atomic_store_explicit(&published, (uint32_t)n, memory_order_release);
        }
        uint64_t ticks = clock_ticks(clock) - begin;
        least = ticks < least ? ticks : least;
    }
    return least;
}

void producer_cost_measure(struct spool_header *h, enum clock_kind clock)
{
    measure_timing(clock);
    h->fast_ticks = measure_events(clock, true);
    h->unread_ticks = measure_events(clock, false);
}

// A thread's first calls are timed more often, so that short programs also have enough timed calls.
enum { MIN_PERIOD = 8, MAX_PERIOD = 256, CALLS_A_PERIOD = 256 };

// Returns the mean number of calls per timed call.
static uint32_t timing_period(const struct producer_thread *t)
{
    uint32_t doubled = t->timed_calls / CALLS_A_PERIOD;
    return doubled < 5 ? MIN_PERIOD << doubled : MAX_PERIOD;
}
_Static_assert(MIN_PERIOD << 5 == MAX_PERIOD, "the period of a thread that has made many calls");

bool producer_call_choose(void)
{
    producer_tls.untimed = MIN_PERIOD;
    // Like the fast path, do nothing while the thread is busy: the counter may be disabled, or
    // heaptape itself may have made the call.
    if (producer_tls.busy)
        return false;
    uint32_t was = producer_enter(PRODUCER_WRITING);
    const struct producer_thread *t = producer_tls.thread;
    const struct producer_stream *stream = &t->streams[0];
    bool chosen = stream->fast_epoch != PRODUCER_NO_EPOCH && !producer_no_room(stream->pos);
    if (chosen) {
        // A program may call the allocator periodically, so the interval is random. It is uniformly
        // distributed from 1 to 2 * period - 1.
        uint64_t bits = (clock_counter() + t->timed_calls) * 0x9e3779b97f4a7c15u >> 32;
        producer_tls.untimed = (int32_t)(bits * (2 * timing_period(t) - 1) >> 32);
    }
    producer_leave(was);
    return chosen;
}

static void add_call(uint64_t ticks)
{
    struct producer_thread *t = producer_tls.thread;
    struct spool_header *h = producer_inherited.spool;
    uint64_t period = timing_period(t);
    // Ignore a call that was interrupted, or during which a signal handler forked or ended the
    // recording.
    if (!h || producer_no_room(t->streams[0].pos) || ticks >> INTERRUPTED_BITS)
        return;
    t->timed_calls++;
    atomic_fetch_add_explicit(&h->timed_calls, 1, memory_order_relaxed);
    // The difference may be negative for a short call. Only the sum matters.
    atomic_fetch_add_explicit(&h->call_min_ticks, (ticks - timing_ticks) * period,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&h->call_max_ticks, ticks * period, memory_order_relaxed);
}

void producer_call_add(uint64_t ticks)
{
    uint32_t was = producer_enter(PRODUCER_WRITING);
    add_call(ticks);
    producer_leave(was);
}
