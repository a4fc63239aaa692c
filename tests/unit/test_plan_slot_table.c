#include "replay/plan/slot_table.h"
#include "unit.h"

static struct slot_table table;
static struct slot_table_pool pools[2];

static int init(void **state)
{
    (void)state;
    slot_table_init(&table);
    return 0;
}

static int release(void **state)
{
    (void)state;
    slot_table_release(&table);
    for (unsigned i = 0; i < 2; i++)
        slot_table_pool_release(&pools[i]);
    return 0;
}

static uint32_t allocate(struct slot_table_pool *p)
{
    struct slot_table_batch *batch;
    uint32_t entry;
    assert_int_equal(slot_table_allocate(&table, p, &entry, &batch), 0);
    assert_null(batch);
    return entry;
}

static void test_pools_have_cache_lines_of_their_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10 * SLOT_TABLE_LINE; i++) {
        uint32_t a = allocate(&pools[0]), b = allocate(&pools[1]);
        assert_true(a > 0 && b > 0); // entry 0 is NULL
        assert_true(a / SLOT_TABLE_LINE != b / SLOT_TABLE_LINE);
        assert_true(a < table.limit && b < table.limit);
    }
}

static void test_the_entry_freed_last_is_reused_first(void **state)
{
    (void)state;
    uint32_t a = allocate(&pools[0]), b = allocate(&pools[0]);
    assert_int_equal(slot_table_free(&pools[0], a), 0);
    assert_int_equal(slot_table_free(&pools[0], b), 0);
    assert_int_equal(allocate(&pools[0]), b);
    assert_int_equal(allocate(&pools[0]), a);
}

// Each shared entry contains the position that another thread must wait for. All shared entries are
// reused.
static void test_surplus_entries_are_shared(void **state)
{
    (void)state;
    enum { N = 4 * SLOT_TABLE_BATCH };
    struct slot_table_batch *batch;
    uint32_t entries[N], entry;
    for (unsigned i = 0; i < N; i++)
        entries[i] = allocate(&pools[0]);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(slot_table_free(&pools[0], entries[i]), i + 1 >= N);
    assert_int_equal(slot_table_share(&table, &pools[0], 7, 1234), 0);
    assert_int_equal(pools[0].n, N - SLOT_TABLE_BATCH);
    uint64_t limit = table.limit;
    for (unsigned i = 0; i < SLOT_TABLE_BATCH; i++) {
        assert_int_equal(slot_table_allocate(&table, &pools[1], &entry, &batch), 0);
        assert_true((batch != NULL) == (i == 0));
        if (batch)
            assert_true(batch->from_thread == 7 && batch->position == 1234);
        free(batch);
    }
    assert_int_equal(table.limit, limit);
    // If the pool is empty and there are no shared entries, the pool gets a new cache line.
    assert_int_equal(allocate(&pools[1]), limit);
}

static void test_an_unused_batch_is_released(void **state)
{
    (void)state;
    assert_int_equal(slot_table_free(&pools[0], allocate(&pools[0])), 0);
    assert_int_equal(slot_table_share(&table, &pools[0], 0, 1), 0);
    assert_int_equal(table.n - table.first, 1);
    assert_int_equal(pools[0].n, 0);
}

// The queue of batches does not grow while other threads consume it.
static void test_the_queue_stays_short(void **state)
{
    (void)state;
    struct slot_table_batch *batch;
    uint32_t entry;
    for (unsigned i = 0; i < 2000; i++) {
        assert_int_equal(slot_table_allocate_fresh(&table, &pools[0], &entry), 0);
        assert_int_equal(slot_table_free(&pools[0], entry), 0);
        assert_int_equal(slot_table_share(&table, &pools[0], 0, i), 0);
        if (i >= 3) {
            slot_table_pool_release(&pools[1]);
            assert_int_equal(slot_table_allocate(&table, &pools[1], &entry, &batch), 0);
            assert_int_equal(batch->position, i - 3);
            free(batch);
        }
    }
    assert_int_equal(table.n - table.first, 3);
    assert_true(table.capacity <= 256);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, init, release)

static const struct CMUnitTest tests[] = {
    TEST(test_pools_have_cache_lines_of_their_own),
    TEST(test_the_entry_freed_last_is_reused_first),
    TEST(test_surplus_entries_are_shared),
    TEST(test_an_unused_batch_is_released),
    TEST(test_the_queue_stays_short),
};

UNIT_MAIN(tests)
