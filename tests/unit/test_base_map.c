#include "base/map.h"

#include "unit.h"

#include <stdbool.h>
#include <time.h>

enum { KEYS = 512, STEPS = 200000 };

// Compares the map with an array indexed by key.
static void inserted_keys_are_found_until_removed(void **state)
{
    struct map m = {0};
    uint64_t want[KEYS] = {0}, seed = 3;
    size_t n = 0;
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        // The keys form groups with neighbouring hash positions. One key is 0.
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

// Returns the inverse of an odd number modulo 2^64. Each step doubles the number of correct bits.
static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;
    for (int i = 0; i < 6; i++)
        x *= 2 - odd * x;
    return x;
}

enum { CHOSEN = 200000, CPU_SECONDS = 5 };

// Inserts multiples of `step`. Returns false if that takes longer than the limit.
static bool put_multiples(uint64_t step, clock_t limit)
{
    struct map m = {0};
    clock_t end = clock() + limit;
    bool quick = true;
    // clock() takes longer than an insertion.
    for (uint64_t i = 1; i <= CHOSEN && quick; i++) {
        assert_int_equal(map_put(&m, step * i, i), 0);
        quick = i % 128 || clock() < end;
    }
    for (uint64_t i = 1; i <= CHOSEN && quick; i++)
        assert_int_equal(map_get(&m, step * i), i);
    map_release(&m);
    return quick;
}

// Inserts keys whose products with the usual multiplier differ only in the low bits, and keys that
// differ only in the high bits. With a fixed multiplier, every put would probe all earlier keys,
// which takes 20,000,000,000 steps. One of 100,000 random multipliers places the keys of the second
// kind almost as badly, so each kind has a second map with another multiplier.
static void keys_that_were_chosen_to_collide_do_not(void **state)
{
    uint64_t of = inverse(0x9e3779b97f4a7c15u), high = 1ull << 40;
    clock_t limit = unit_cpu_limit(CPU_SECONDS);
    (void)state;
    assert_true(put_multiples(of, limit) || put_multiples(of, limit));
    assert_true(put_multiples(high, limit) || put_multiples(high, limit));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(inserted_keys_are_found_until_removed),
    cmocka_unit_test(an_empty_map_has_nothing),
    cmocka_unit_test(keys_that_were_chosen_to_collide_do_not),
};

UNIT_MAIN(tests)
