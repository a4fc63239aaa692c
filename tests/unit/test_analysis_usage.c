// Tests the counters of stat: the sketch of sizes, the bins of timelines, and the composition of
// the peak.
#include "analysis/frequent.h"
#include "analysis/size_classes.h"
#include "analysis/timeline.h"
#include "analysis/usage.h"

#include "unit.h"

static uint64_t count_of(const struct frequent *f, uint64_t value)
{
    static struct frequent_entry all[FREQUENT_MAX];
    size_t n = frequent_entries(f, all);
    for (size_t i = 0; i < n; i++) {
        if (all[i].value == value)
            return all[i].count;
    }
    return 0;
}

static void frequent_is_exact_for_few(void **state)
{
    struct frequent *f = calloc(1, sizeof *f);
    (void)state;
    for (uint64_t i = 0; i < 5 * FREQUENT_MAX; i++)
        frequent_add(f, 10000 + i % FREQUENT_MAX);
    assert_int_equal(f->n, FREQUENT_MAX);
    assert_int_equal(f->missed, 0);
    for (uint64_t i = 0; i < FREQUENT_MAX; i++)
        assert_int_equal(count_of(f, 10000 + i), 5);
    free(f);
}

// One value makes up a tenth of the input; the others occur once.
static void frequent_finds_the_frequent(void **state)
{
    enum { ALL = 200000 };
    struct frequent *f = calloc(1, sizeof *f);
    (void)state;
    for (uint64_t i = 0; i < ALL; i++)
        frequent_add(f, i % 10 ? 1000000 + i : 77777);
    assert_true(f->missed > 0);
    assert_true(f->missed <= ALL / (FREQUENT_MAX / 2));
    assert_true(count_of(f, 77777) <= ALL / 10);
    assert_true(count_of(f, 77777) + f->missed >= ALL / 10);
    free(f);
}

static void add_bin(struct timeline *t, uint64_t number)
{
    t->open.counts = (struct timeline_counts){
        .min_bytes = 1000 - number % 1000, .max_bytes = number, .events = 1};
    t->open.end_bytes = number;
    assert_int_equal(timeline_close(t), 0);
}

static void timeline_joins_bins(void **state)
{
    struct timeline t = {0};
    uint64_t events = 0;
    (void)state;
    for (uint64_t i = 0; i < TIMELINE_BINS; i++)
        add_bin(&t, i);
    assert_int_equal(t.n, TIMELINE_BINS);
    assert_int_equal(t.width_shift, 0);
    add_bin(&t, TIMELINE_BINS);
    assert_int_equal(t.n, TIMELINE_BINS / 2);
    assert_int_equal(t.width_shift, 1);
    assert_int_equal(timeline_end(&t), TIMELINE_BINS + 2);
    for (size_t i = 0; i < t.n; i++) {
        events += t.bins[i].counts.events;
        assert_int_equal(t.bins[i].counts.max_bytes, 2 * i + 1);
        assert_int_equal(t.bins[i].counts.min_bytes, 1000 - 2 * i - 1);
        assert_int_equal(t.bins[i].end_bytes, 2 * i + 1);
    }
    assert_int_equal(events + t.open.counts.events, TIMELINE_BINS + 1);
    timeline_release(&t);
}

static void timeline_reaches_far(void **state)
{
    struct timeline t = {0};
    (void)state;
    add_bin(&t, 0);
    add_bin(&t, 1);
    add_bin(&t, 2);
    timeline_reach(&t, UINT64_MAX / 2);
    assert_int_equal(t.n, 0);
    assert_true(timeline_end(&t) > 0);
    assert_int_equal(t.open.counts.events, 3);
    timeline_release(&t);
}

static struct workload_op op(uint8_t kind, uint32_t slot, uint64_t size, uint64_t stamp)
{
    return (struct workload_op){.kind = kind, .slot = slot, .size = size, .stamp = stamp};
}

static void peak_keeps_its_composition(void **state)
{
    struct usage_sums *sums = calloc(1, sizeof *sums);
    struct usage u;
    const struct workload_op ops[] = {
        op(HT_MALLOC, 0, 100, 10), op(HT_MALLOC, 1, 1000, 20), op(HT_FREE, 0, 0, 30),
        op(HT_MALLOC, 0, 50, 40),  op(HT_MALLOC, 2, 60, 50),   op(HT_FREE, 1, 0, 60),
        op(HT_MALLOC, 1, 7, 70),
    };
    (void)state;
    usage_init(&u, sums, 10, 1);
    assert_int_equal(usage_run(&u, 3, ops, sizeof ops / sizeof *ops), 0);
    assert_int_equal(usage_finish(&u), 0);
    assert_int_equal(u.peak.bytes, 1110);
    assert_int_equal(u.peak.event, 4);
    assert_int_equal(u.peak.stamp, 40);
    assert_int_equal(usage_at_peak(&u, usage_size_class(1000)).bytes, 1000);
    assert_int_equal(usage_at_peak(&u, usage_size_class(50)).bytes, 110);
    assert_int_equal(usage_at_peak(&u, usage_size_class(100)).bytes, 0);
    assert_int_equal(usage_at_peak(&u, usage_size_class(7)).bytes, 0);
    assert_int_equal(u.threads[3].local_frees, 2);
    uint64_t allocated = 0;
    for (size_t i = 0; i < u.by_event.n; i++)
        allocated += u.by_event.bins[i].counts.allocated_bytes;
    assert_int_equal(allocated, 1217);
    usage_release(&u);
    free(sums);
}

static struct workload_op of(uint8_t allocator, struct workload_op op)
{
    op.allocator = allocator;
    return op;
}

static void assert_allocator(const struct usage *u, unsigned allocator, uint64_t calls,
                             uint64_t peak, uint64_t live)
{
    struct usage_allocator_figures f = usage_of_allocator(u, allocator);
    assert_int_equal(f.calls, calls);
    assert_int_equal(f.peak.bytes, peak);
    assert_int_equal(f.live.bytes, live);
}

static void allocators_are_counted_apart(void **state)
{
    struct usage_sums *sums = calloc(1, sizeof *sums);
    struct usage u;
    struct workload_op grown = of(2, op(HT_REALLOC, 1, 300, 50)),
                       failed = {.kind = HT_MALLOC, .slot = WORKLOAD_NO_SLOT, .flags = 1};
    const struct workload_op ops[] = {
        of(7, op(HT_PREEXISTING, 5, 64, 10)),
        op(HT_MALLOC, 0, 100, 10),
        of(2, op(HT_MALLOC, 1, 200, 20)),
        of(2, op(HT_MALLOC, 2, 30, 30)),
        of(2, op(HT_FREE, 2, 0, 40)),
        grown,
        of(1, failed),
        of(2, op(HT_FREE, 0, 0, 60)),
        op(HT_MALLOC, 3, 10, 70),
    };
    (void)state;
    usage_init(&u, sums, 10, 1);
    assert_int_equal(usage_run(&u, 0, ops, 2), 0);
    assert_true(usage_has_allocators(&u));
    assert_int_equal(usage_run(&u, 0, ops + 2, sizeof ops / sizeof *ops - 2), 0);
    assert_int_equal(usage_finish(&u), 0);
    assert_int_equal(u.peak.bytes, 464);
    assert_allocator(&u, 0, 2, 100, 10);
    assert_allocator(&u, 1, 0, 0, 0);
    assert_allocator(&u, 2, 5, 300, 300);
    assert_allocator(&u, 7, 0, 64, 64);
    assert_int_equal(u.mismatched_frees, 1);
    usage_release(&u);
    usage_init(&u, sums, 10, 1);
    assert_int_equal(usage_run(&u, 0, ops + 1, 1), 0);
    assert_false(usage_has_allocators(&u));
    usage_release(&u);
    free(sums);
}

static struct workload_op aligned(uint32_t slot, uint64_t size, uint64_t align)
{
    struct workload_op a = op(HT_MEMALIGN, slot, size, 10);
    a.align = align;
    return a;
}

static void sizes_are_rounded(void **state)
{
    struct usage_sums *sums = calloc(1, sizeof *sums);
    struct usage u;
    const struct workload_op ops[] = {
        // Rounding of 7 + 0 + 15 bytes: the size and a header of 8 bytes are a multiple of 16.
        op(HT_MALLOC, 0, USAGE_EXACT + 1, 10),
        op(HT_MALLOC, 1, USAGE_EXACT + 8, 10),
        op(HT_MALLOC, 2, USAGE_EXACT + 9, 10),
        // Padding of 63 + 0 + 62 bytes. 24 is not a power of two.
        aligned(3, 1, 64),
        aligned(4, 128, 64),
        aligned(5, 66, 64),
        aligned(6, 7, 24),
    };
    (void)state;
    usage_init(&u, sums, 10, 1);
    assert_int_equal(usage_run(&u, 0, ops, sizeof ops / sizeof *ops), 0);
    assert_int_equal(usage_finish(&u), 0);
    assert_int_equal(sums->large_rounding_bytes, 22);
    assert_int_equal(sums->align_padding_bytes, 125);
    assert_int_equal(sums->aligns[6].blocks, 3);
    assert_int_equal(sums->aligns[4].blocks, 1);
    assert_int_equal(sums->kinds[HT_MALLOC].min_bytes, USAGE_EXACT + 1);
    assert_int_equal(sums->kinds[HT_MALLOC].max_bytes, USAGE_EXACT + 9);
    assert_int_equal(sums->kinds[HT_MEMALIGN].sized, 4);
    assert_int_equal(sums->kinds[HT_MEMALIGN].bytes, 202);
    assert_int_equal(u.live.blocks, u.max_blocks);
    assert_int_equal(u.max_blocks, 7);
    usage_release(&u);
    free(sums);
}

static void long_names_of_threads_are_cut(void **state)
{
    static const char name[] = "abcdefghijklmnopqrst";
    struct usage_thread threads[2] = {0};
    (void)state;
    usage_name_thread(threads, name, 15);
    assert_string_equal(threads->name, "abcdefghijklmno");
    usage_name_thread(threads, name, 3);
    assert_string_equal(threads->name, "abc");
    for (size_t n = 16; n <= sizeof name; n++) {
        usage_name_thread(threads, name, n);
        assert_string_equal(threads->name, "abcdefghijklmno");
    }
    usage_name_thread(threads, name, 0);
    assert_string_equal(threads->name, "");
    assert_int_equal(threads[1].events, 0);
}

// Ops that heaptape never writes must not cause harm.
static void broken_ops_are_harmless(void **state)
{
    struct usage_sums *sums = calloc(1, sizeof *sums);
    struct usage u;
    const struct workload_op ops[] = {
        op(HT_FREE, 5, 0, 100),          op(HT_MALLOC, 1, 10, 50), op(HT_MALLOC, 1, 20, 40),
        op(HT_REALLOC, 7, 30, 1),        op(HT_FREE, 7, 0, 2),     op(HT_FREE, 7, 0, UINT64_MAX),
        op(HT_MALLOC, 2, UINT64_MAX, 3),
    };
    (void)state;
    usage_init(&u, sums, 60, 1e9);
    assert_int_equal(usage_run(&u, 0, ops, sizeof ops / sizeof *ops), 0);
    assert_int_equal(usage_finish(&u), 0);
    assert_int_equal(u.live.blocks, 2);
    assert_int_equal(u.events, 7);
    usage_release(&u);
    free(sums);
}

static void sizes_just_above_a_class(void **state)
{
    // At 129 bytes, classes are 32 bytes apart, and an eighth of this is the limit. At 1,025 bytes,
    // classes are 256 bytes apart, and the limit is 16 bytes.
    static const struct {
        uint64_t size, wasted;
    } rows[] = {{113, 0},
                {128, 0},
                {129, 31},
                {132, 28},
                {133, 0},
                {160, 0},
                {1024, 0},
                {1025, 255},
                {1040, 240},
                {1041, 0},
                {1056, 0},
                {1ull << 62, 0},
                {(1ull << 62) + 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(size_classes_above(rows[i].size), rows[i].wasted);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_just_above_a_class),    cmocka_unit_test(frequent_is_exact_for_few),
    cmocka_unit_test(frequent_finds_the_frequent), cmocka_unit_test(timeline_joins_bins),
    cmocka_unit_test(timeline_reaches_far),        cmocka_unit_test(peak_keeps_its_composition),
    cmocka_unit_test(broken_ops_are_harmless),     cmocka_unit_test(allocators_are_counted_apart),
    cmocka_unit_test(sizes_are_rounded),           cmocka_unit_test(long_names_of_threads_are_cut),
};

UNIT_MAIN(tests)
