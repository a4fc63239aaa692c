// Tests the live figures of top, updated call by call.
#include "report/top/live.h"

#include "unit.h"

#include <string.h>

static const struct trace_session session = {.clock_hz = 1000000000};
static const struct trace_process process = {.pid = 7, .exe = (char *)"program"};

static struct live *begin(void)
{
    struct live *l = live_new(&session, &process);
    assert_non_null(l);
    return l;
}

static void call(struct live *l, uint32_t thread, const struct event *ev)
{
    const struct walk_call c = {&process, thread, thread + 100, ev};
    assert_int_equal(live_call(l, &c), 0);
}

static void take(struct live *l, uint64_t stamp, uint64_t address, uint64_t size)
{
    call(l, 0, &(struct event){.kind = HT_MALLOC, .stamp = stamp, .size = size, .result = address});
}

static void give(struct live *l, uint64_t stamp, uint64_t address)
{
    call(l, 1, &(struct event){.kind = HT_FREE, .stamp = stamp, .ptr = address});
}

static void expect_live(const struct live *l, double blocks, double bytes)
{
    assert_int_equal((int)l->total.now[LIVE_BLOCKS], (int)blocks);
    assert_int_equal((int)l->total.now[LIVE_BYTES], (int)bytes);
    for (unsigned by = 0; by < LIVE_VIEWS; by++) {
        double n = 0, sum = 0;
        for (size_t i = 0; i < l->rows[by].n; i++) {
            n += l->rows[by].items[i].now[LIVE_BLOCKS];
            sum += l->rows[by].items[i].now[LIVE_BYTES];
        }
        assert_int_equal((int)n, (int)blocks);
        assert_int_equal((int)sum, (int)bytes);
    }
}

static void blocks_come_and_go(void **state)
{
    struct live *l = begin();
    (void)state;
    take(l, 10, 0x1000, 100);
    take(l, 20, 0x2000, 5000);
    give(l, 30, 0x1000);
    give(l, 40, 0x9000); // allocated before the recording
    give(l, 50, 0);
    expect_live(l, 1, 5000);
    assert_int_equal((int)l->peak_bytes, 5100);
    assert_int_equal((int)l->total.now[LIVE_ALLOCS], 2);
    assert_int_equal((int)l->total.now[LIVE_FREES], 1);
    // A block belongs to the thread that allocated it, whichever thread frees it.
    assert_int_equal((int)l->rows[LIVE_THREADS].items[0].now[LIVE_BLOCKS], 1);
    assert_int_equal((int)l->rows[LIVE_THREADS].items[1].now[LIVE_FREES], 0);
    live_free(l);
}

// The free of the previous block at the address may have a later stamp, by at most the skid.
static void an_early_stamp(void **state)
{
    struct live *l = begin();
    (void)state;
    take(l, 10, 0x1000, 100);
    take(l, 5000, 0x1000, 200);
    give(l, 5500, 0x1000);
    expect_live(l, 1, 200);
    give(l, 5600, 0x1000);
    expect_live(l, 0, 0);
    // Beyond the skid, the free of the previous block is considered lost.
    take(l, 10000, 0x1000, 100);
    take(l, 15000, 0x1000, 200);
    give(l, 17000, 0x1000);
    expect_live(l, 0, 0);
    live_free(l);
}

static void begin_resize(struct live *l, uint64_t stamp, uint64_t address)
{
    call(l, 0, &(struct event){.kind = HT_REALLOC_BEGIN, .stamp = stamp, .ptr = address});
}

static void end_resize(struct live *l, uint64_t stamp, uint64_t from, uint64_t to, uint64_t size)
{
    call(l, 0,
         &(struct event){
             .kind = HT_REALLOC, .stamp = stamp, .ptr = from, .size = size, .result = to});
}

static void reallocs(void **state)
{
    struct live *l = begin();
    (void)state;
    take(l, 10, 0x1000, 100);
    begin_resize(l, 20, 0x1000);
    // Another thread allocates at the address before the realloc returns.
    call(l, 1, &(struct event){.kind = HT_MALLOC, .stamp = 30, .size = 40, .result = 0x1000});
    end_resize(l, 40, 0x1000, 0x3000, 300);
    expect_live(l, 2, 340);
    // The realloc fails and the block is unchanged.
    begin_resize(l, 50, 0x3000);
    end_resize(l, 60, 0x3000, 0, 1 << 30);
    expect_live(l, 2, 340);
    assert_int_equal((int)l->total.now[LIVE_FREES], 1);
    // A realloc to size 0 frees the block.
    begin_resize(l, 70, 0x3000);
    end_resize(l, 80, 0x3000, 0, 0);
    expect_live(l, 1, 40);
    // The next calls are a realloc of NULL, and a realloc of an unknown block.
    end_resize(l, 90, 0, 0x4000, 7);
    begin_resize(l, 100, 0x5000);
    end_resize(l, 110, 0x5000, 0x5000, 8);
    expect_live(l, 3, 55);
    // The first half of the realloc is missing.
    end_resize(l, 120, 0x4000, 0x6000, 9);
    expect_live(l, 3, 57);
    live_free(l);
}

static void rates(void **state)
{
    struct live *l = begin();
    (void)state;
    for (uint64_t i = 1; i <= 100; i++)
        take(l, i, i << 12, 10);
    live_cut(l, 2, false);
    assert_int_equal((int)l->total.per_s[LIVE_ALLOCS], 50);
    assert_int_equal((int)l->rows[LIVE_THREADS].items[0].per_s[LIVE_ALLOCATED], 500);
    for (uint64_t i = 1; i <= 30; i++)
        give(l, 1000 + i, i << 12);
    live_cut(l, 0.5, false);
    assert_int_equal((int)l->total.per_s[LIVE_ALLOCS], 0);
    assert_int_equal((int)l->total.per_s[LIVE_FREES], 60);
    assert_int_equal((int)l->total.per_s[LIVE_BYTES], -600);
    live_cut(l, 10, true);
    assert_int_equal((int)l->total.per_s[LIVE_ALLOCS], 10);
    live_cut(l, 0, false);
    assert_int_equal((int)l->total.per_s[LIVE_ALLOCS], 0);
    live_free(l);
}

// Memory does not grow with the number of calls: slots of freed blocks are reused.
static void memory_is_bounded(void **state)
{
    struct live *l = begin();
    uint64_t random = 1;
    (void)state;
    for (uint64_t i = 0; i < 1000000; i++) {
        uint64_t address = (unit_random(&random) % 500 + 1) << 12;
        if (map_get(&l->addresses, address))
            give(l, 2000 * i, address);
        else
            take(l, 2000 * i, address, 16);
    }
    assert_true(l->n_blocks <= 500);
    assert_true(l->addresses.capacity <= 2048);
    live_free(l);
}

// If the stack of one allocation per 1,000 bytes is recorded, the figures of sites are estimates.
// All other figures are exact.
static void sampled_sites(void **state)
{
    const struct trace_session sampled = {.clock_hz = 1000000000, .stack_sample_bytes = 1000};
    struct live *l = live_new(&sampled, &process);
    (void)state;
    for (uint64_t i = 1; i <= 1000; i++) {
        struct event ev = {.kind = HT_MALLOC, .stamp = i, .size = 10, .result = i << 12};
        ev.notes[HT_NOTE_SITE] = i % 100 == 0 ? 77 : 0;
        call(l, 0, &ev);
    }
    assert_int_equal((int)l->total.now[LIVE_BYTES], 10000);
    assert_int_equal((int)l->rows[LIVE_SITES].n, 2);
    assert_int_equal((int)l->rows[LIVE_SITES].items[0].now[LIVE_ALLOCS], 0);
    // Ten sampled blocks, each with the weight 1 / (1 - exp(-10 / 1000)) = 100.5.
    assert_int_equal((int)l->rows[LIVE_SITES].items[1].now[LIVE_BLOCKS], 1005);
    assert_int_equal((int)l->rows[LIVE_SITES].items[1].now[LIVE_BYTES], 10050);
    assert_string_equal(live_site_name(l, 0, 0), "(unknown)");
    assert_string_equal(live_site_name(l, 1, 40), "(unknown)");
    for (uint64_t i = 1; i <= 1000; i++)
        give(l, 2000 + i, i << 12);
    assert_true(l->rows[LIVE_SITES].items[1].now[LIVE_BYTES] < 1e-6);
    live_free(l);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(blocks_come_and_go), cmocka_unit_test(an_early_stamp),
    cmocka_unit_test(reallocs),           cmocka_unit_test(rates),
    cmocka_unit_test(memory_is_bounded),  cmocka_unit_test(sampled_sites),
};

UNIT_MAIN(tests)
