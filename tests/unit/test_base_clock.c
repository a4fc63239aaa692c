#include "base/clock.h"

#include "unit.h"

static void ticks_become_nanoseconds(void **state)
{
    assert_int_equal(clock_to_ns(0, 1000), 0);
    assert_int_equal(clock_to_ns(2596, 2596000000u), 1000);
    assert_int_equal(clock_to_ns(5, 0), 0);
    // A year of ticks at 3 GHz times 10^9 overflows 64 bits.
    assert_true(clock_to_ns(3000000000u * 31536000ull, 3000000000u) == 31536000000000000ull);
    (void)state;
}

static void best_clock_can_be_forced(void **state)
{
    setenv("HEAPTAPE_CLOCK", "monotonic", 1);
    assert_int_equal(clock_best(), CLOCK_KIND_MONOTONIC);
    assert_int_equal(clock_hz(CLOCK_KIND_MONOTONIC), 1000000000);
    assert_string_equal(clock_kind_name(CLOCK_KIND_MONOTONIC), "monotonic");
    unsetenv("HEAPTAPE_CLOCK");
    (void)state;
}

// The measured rate agrees with the system clock to 1 %.
static void rate_agrees_with_the_system_clock(void **state)
{
    enum clock_kind kind = clock_best();
    uint64_t hz = clock_hz(kind);
    struct clock_point start = clock_point_take(kind), end;
    while (end = clock_point_take(kind), end.ns - start.ns < 50000000u)
        ;
    uint64_t ns = clock_to_ns(end.ticks - start.ticks, hz), real = end.ns - start.ns;
    assert_in_range(ns, real - real / 100, real + real / 100);
    (void)state;
}

// A call right after the start waits until the interval is long enough to measure.
static void rate_since_a_point(void **state)
{
    uint64_t before = clock_monotonic_ns();
    struct clock_point start = clock_point_take(CLOCK_KIND_MONOTONIC);
    assert_in_range(start.ticks, before, clock_monotonic_ns());
    assert_int_equal(clock_hz_since(CLOCK_KIND_MONOTONIC, start), 1000000000);
    enum clock_kind kind = clock_best();
    uint64_t hz = clock_hz(kind), since = clock_hz_since(kind, clock_point_take(kind));
    assert_in_range(since, hz - hz / 100, hz + hz / 100);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ticks_become_nanoseconds),
    cmocka_unit_test(best_clock_can_be_forced),
    cmocka_unit_test(rate_agrees_with_the_system_clock),
    cmocka_unit_test(rate_since_a_point),
};
UNIT_MAIN(tests)
