// Tests that the time of a conversion grows linearly with the length of the trace, even if each
// search for the meaning of contradictory stamps has to scan all queued records. The number of
// words in the trace limits the total number of search steps.
#include "convert/addressed.h"
#include "convert/order/order.h"
#include "trace/codec.h"

#include "unit.h"

#include <stdlib.h>

enum {
    // CPU time limit of each case. A case takes 0.1 to 2 s with the bound on search steps, up to
    // 3 s under ASan, and at least 28 s without the bound.
    CPU_SECONDS = 15
};

static clock_t end;

static int start_clock(void **state)
{
    (void)state;
    clock_t limit = unit_cpu_limit(CPU_SECONDS);
    end = clock() + limit;
    return 0;
}

static int check_clock(void **state)
{
    (void)state;
    assert_true(clock() < end);
    return 0;
}

struct stream {
    struct codec_state state;
    uint64_t words[1 << 18];
    uint32_t n;
};

static int count_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    *(size_t *)context += n;
    (void)ops;
    return 0;
}

static struct order *order_begin(size_t *n_ops)
{
    struct order_options options = {.window = 100000, .skid = 1000};
    struct order_sink to = {.context = n_ops, .ops = count_ops};
    *n_ops = 0;
    struct order *o = order_new(&options, &to);
    assert_non_null(o);
    return o;
}

static void put(struct stream *s, uint8_t kind, uint64_t stamp, uint64_t address)
{
    struct event ev = {.kind = kind, .size = 16, .count = 1, .ptr = address, .result = address};
    assert_true(s->n + CODEC_MAX_PREFIX_WORDS + 1 < sizeof s->words / sizeof *s->words);
    s->n = (uint32_t)(codec_put(&s->state, s->words + s->n, stamp, &ev) - s->words);
}

static void feed(struct order *o, uint32_t thread, struct stream *s)
{
    struct trace_segment segment = {.thread = thread, .n_words = s->n, .words = s->words};
    assert_int_equal(order_feed(o, &segment), 0);
    *s = (struct stream){0};
}

static struct order_counts finish(struct order *o)
{
    assert_int_equal(order_finish(o), 0);
    struct order_counts c = order_counts(o);
    order_free(o);
    return c;
}

// Each free by thread 1 could precede a free of thread 2, which has 100,000 other records at nearly
// the same time.
static void frees_among_records_of_a_moment(void **state)
{
    enum { N = 100000 };
    struct stream *s = calloc(1, sizeof *s);
    size_t n_ops;
    struct order *o = order_begin(&n_ops);
    for (uint64_t i = 1; i <= N; i++)
        put(s, HT_MALLOC, 100, i << 8);
    feed(o, 0, s);
    for (uint64_t i = 1; i <= N; i++)
        put(s, HT_FREE, 3000, i << 8);
    feed(o, 1, s);
    for (uint64_t i = 1; i <= N; i++)
        put(s, HT_MALLOC, 3500, (N + i) << 8);
    feed(o, 2, s);
    struct order_counts c = finish(o);
    assert_int_equal(n_ops, 3 * N);
    assert_int_equal(c.unmatched.n, 0);
    assert_true(c.ambiguous.n > 0);
    free(s);
    (void)state;
}

// 30,000 threads free an address whose allocation is missing. Each of 250,000 allocations could be
// the missing allocation.
static void many_threads_wait(void **state)
{
    enum { THREADS = 120000, N = 250000 };
    struct stream *s = calloc(1, sizeof *s);
    size_t n_ops;
    struct order *o = order_begin(&n_ops);
    for (uint32_t t = 1; t <= THREADS; t++) {
        put(s, HT_FREE, 100, (uint64_t)t << 8);
        feed(o, t, s);
    }
    for (uint64_t i = 1; i <= N; i++)
        put(s, HT_MALLOC, 200, (THREADS + i) << 8);
    feed(o, 0, s);
    struct order_counts c = finish(o);
    // Each unknown block adds one op.
    assert_int_equal(n_ops, 2 * THREADS + N);
    assert_int_equal(c.unmatched.n, THREADS);
    free(s);
    (void)state;
}

// The addresses of the live blocks collide in a table with the usual multiplier, so that each
// insertion would probe all earlier addresses.
static void addresses_chosen_to_collide(void **state)
{
    enum { ADDRESSES = 250000, CHOSEN_BITS = 13 };
    struct stream *s = calloc(1, sizeof *s);
    size_t n_ops;
    struct order *o = order_begin(&n_ops);
    for (uint64_t a = 16, n = 0; n < ADDRESSES; a += 16) {
        if (a * 0x9e3779b97f4a7c15u >> (64 - CHOSEN_BITS))
            continue;
        put(s, HT_MALLOC, 100 + n++, a);
        if (s->n < (1 << 18) - 64)
            continue;
        feed(o, 0, s);
    }
    feed(o, 0, s);
    finish(o);
    assert_int_equal(n_ops, ADDRESSES);
    free(s);
    (void)state;
}

struct freed {
    uint8_t kinds[4096]; // kind of the call that allocated the block in each slot
    uint8_t by_first;    // kind of the call that allocated the block freed by the second thread
};

static int see_freed(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct freed *f = context;
    for (size_t i = 0; i < n; i++) {
        if (ops[i].op.kind != HT_FREE)
            f->kinds[ops[i].op.slot] = ops[i].op.kind;
        else if (ops[i].thread == 1)
            f->by_first = f->kinds[ops[i].op.slot];
    }
    return 0;
}

// Thread 1 frees a block at an address that the last thread allocates again, with a stamp that is
// too early. 1,000 threads have records at that time, and only the last of them decides the order.
static void no_stream_is_left_out(void **state)
{
    enum { THREADS = 1000 };
    const uint64_t p = 1 << 20;
    struct stream *s = calloc(1, sizeof *s);
    struct freed freed = {.by_first = 0};
    struct order_options options = {.window = 100000, .skid = 1000};
    struct order *o =
        order_new(&options, &(struct order_sink){.context = &freed, .ops = see_freed});
    assert_non_null(o);
    put(s, HT_MALLOC, 100, p);
    feed(o, 0, s);
    put(s, HT_MALLOC, 150, p + (1 << 10));
    put(s, HT_FREE, 3000, p);
    feed(o, 1, s);
    for (uint32_t t = 2; t < THREADS; t++) {
        put(s, HT_MALLOC, 3010, p + ((uint64_t)t << 10));
        feed(o, t, s);
    }
    put(s, HT_FREE, 3050, p);
    put(s, HT_CALLOC, 3100, p);
    feed(o, THREADS, s);
    struct order_counts c = finish(o);
    assert_int_equal(freed.by_first, HT_CALLOC);
    assert_int_equal(c.ambiguous.n + c.unmatched.n, 0);
    free(s);
    (void)state;
}

static int count_calls(void *context, const struct addressed_call *c)
{
    ++*(size_t *)context;
    (void)c;
    return 0;
}

// Each of 60,000 threads waits for an address that is never freed. The converter adds a free for
// each.
static void many_threads_wait_for_addresses(void **state)
{
    enum { THREADS = 60000 };
    size_t n_calls = 0;
    struct addressed a = {.put = count_calls, .context = &n_calls};
    for (uint32_t t = 0; t <= THREADS; t++) {
        for (uint64_t i = 0; i <= (t == 0 ? THREADS : 0); i++) {
            uint64_t address = (t ? t : i + 1) << 8;
            uint32_t slot = t ? THREADS + 1 + t : (uint32_t)i;
            struct workload_thread_op op = {.thread = t,
                                            .op = {.kind = HT_MALLOC, .size = 16, .slot = slot}};
            struct order_call call = {.result = address, .thread = t, .tid = t};
            assert_int_equal(addressed_add(&a, &op, &call, 1), 0);
        }
    }
    assert_int_equal(n_calls, THREADS + 1);
    assert_int_equal(addressed_finish(&a), 0);
    assert_int_equal(a.broken, THREADS);
    assert_int_equal(n_calls, 3 * THREADS + 1);
    addressed_release(&a);
    (void)state;
}

#define TIMED(test) cmocka_unit_test_setup_teardown(test, start_clock, check_clock)

static const struct CMUnitTest tests[] = {
    TIMED(frees_among_records_of_a_moment), TIMED(many_threads_wait),
    TIMED(addresses_chosen_to_collide),     TIMED(many_threads_wait_for_addresses),
    TIMED(no_stream_is_left_out),
};

UNIT_MAIN(tests)
