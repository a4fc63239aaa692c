#include "replay/player/player.h"
#include "unit.h"

#include <sys/mman.h>

struct player player;
static struct results results;

void *player_map_shared(size_t bytes, int flags)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
}

static struct player_thread begin(uint64_t gap_ns, uint64_t other_ns)
{
    results.task = (struct results_task){.gap_ns = gap_ns, .other_ns = other_ns};
    player.results = &results;
    player_evict_init();
    return (struct player_thread){.gap_ns = gap_ns};
}

static void test_lines_are_proportional_to_time(void **state)
{
    (void)state;
    struct player_thread t = begin(50, 0);
    for (unsigned i = 0; i < 3200; i++)
        player_evict(&t);
    assert_int_equal(t.evicted, 3200 * 50 / 32);
    // Lines wrap around. A call evicts at most all of them.
    t.gap_ns = 100000;
    player_evict(&t);
    assert_int_equal(t.evicted, 5000 + 100000 / 32);
    t.gap_ns = 1000000000;
    player_evict(&t);
    assert_int_equal(t.evicted, 5000 + 100000 / 32 + 4096);
}

static void test_gaps_follow_the_recorded_time(void **state)
{
    (void)state;
    struct player_thread t = begin(100, 30);
    // The time of the calls and of recording does not count.
    player_set_gap(&t, 500000, 5000);
    assert_int_equal(t.gap_ns, 70);
    // Idle time.
    player_set_gap(&t, 900000000, 6000);
    assert_int_equal(t.gap_ns, 400);
    // No calls since.
    player_set_gap(&t, 900500000, 6000);
    assert_int_equal(t.gap_ns, 400);
    // A burst of calls.
    player_set_gap(&t, 900600000, 16000);
    assert_int_equal(t.gap_ns, 30);
    player_set_gap(&t, 900700000, 26000);
    assert_int_equal(t.gap_ns, 0);
    player_set_gap(&t, 901700000, 36000);
    assert_int_equal(t.gap_ns, 70);
}

static void test_gaps_remain(void **state)
{
    (void)state;
    // The program's CPU time is unknown.
    struct player_thread t = begin(0, 0);
    player_set_gap(&t, 500000, 5000);
    assert_int_equal(t.gap_ns, 0);
    // The times of a paced replay are not the program's.
    t = begin(100, 30);
    results.task.paced = 1;
    player_set_gap(&t, 500000, 5000);
    assert_int_equal(t.gap_ns, 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lines_are_proportional_to_time),
    cmocka_unit_test(test_gaps_follow_the_recorded_time),
    cmocka_unit_test(test_gaps_remain),
};

UNIT_MAIN(tests)
