#include "base/map.h"

#include "unit.h"

enum { KEYS = 512, STEPS = 200000 };

// Against an array of all keys' values.
static void what_was_put_and_not_removed_is_there(void **state)
{
    struct map m = {0};
    uint64_t want[KEYS] = {0}, seed = 3;
    size_t n = 0;
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        // Keys in groups whose homes are close to each other, 0 among them.
        uint64_t k = unit_random(&seed) % KEYS, key = k % 8 ? k << 4 : k << 40;
        if (unit_random(&seed) % 3) {
            n += want[k] == 0;
            want[k] = unit_random(&seed) | 1;
            assert_int_equal(map_put(&m, key, want[k]), 0);
        } else {
            n -= want[k] != 0;
            want[k] = 0;
            map_remove(&m, key);
        }
        assert_int_equal(m.n, n);
        uint64_t other = unit_random(&seed) % KEYS;
        assert_int_equal(map_get(&m, other % 8 ? other << 4 : other << 40), want[other]);
    }
    for (uint64_t k = 0; k < KEYS; k++)
        assert_int_equal(map_get(&m, k % 8 ? k << 4 : k << 40), want[k]);
    map_release(&m);
}

static void an_empty_map_has_nothing(void **state)
{
    struct map m = {0};
    (void)state;
    assert_int_equal(map_get(&m, 0), 0);
    map_remove(&m, 0);
    assert_int_equal(m.n, 0);
    map_release(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_put_and_not_removed_is_there),
    cmocka_unit_test(an_empty_map_has_nothing),
};

UNIT_MAIN(tests)
