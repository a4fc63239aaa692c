// Tests the verdicts of advise and its trim intervals.
#include "experiments/advise/advise.h"
#include "unit.h"

#include <stdlib.h>

static void a_clear_difference(void **state)
{
    (void)state;
    const double now[] = {20.1, 20.4, 19.8, 20.0, 20.2, 20},
                 fast[] = {10.2, 9.9, 10.0, 10.1, 9.8, 10};
    assert_int_equal(advise_verdict_of(fast, 6, now, 6), -1);
    assert_int_equal(advise_verdict_of(now, 6, fast, 6), 1);
    assert_int_equal(advise_verdict_of(fast, 5, now, 6), 0); // too few runs
    assert_int_equal(advise_verdict_of(fast, 6, now, 5), 0);
}

static void overlapping_or_near_values_do_not_differ(void **state)
{
    (void)state;
    const double now[] = {20, 21, 22, 22, 23, 24}, overlaps[] = {10, 10, 10, 10, 10, 20.5},
                 near[] = {17, 18, 18, 19, 19.5, 19.9};
    const double even[] = {100, 100, 100, 100, 100, 100},
                 hardly_less[] = {99.5, 99.5, 99.5, 99.5, 99.5, 99.5};
    assert_int_equal(advise_verdict_of(overlaps, 6, now, 6), 0);
    assert_int_equal(advise_verdict_of(near, 6, now, 6),
                     0); // the difference is smaller than the spread of either side
    assert_int_equal(advise_verdict_of(hardly_less, 6, even, 6), 0);
    assert_int_equal(advise_verdict_of(even, 6, even, 6), 0);
}

// Returns a random run time, as measured on a machine that disturbs one run in five.
static double draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    double of_one = (double)(*seed >> 11) / 0x1p53;
    return 1 + 0.05 * of_one + (of_one < 0.2 ? 0.5 : 0);
}

static void equal_settings_look_different_in_one_of_a_thousand(void **state)
{
    enum { TIMES = 100000, N = ADVISE_MIN_ROUNDS };
    uint64_t seed = 1, different = 0;
    double a[N], b[N];
    (void)state;
    for (unsigned i = 0; i < TIMES; i++) {
        for (unsigned k = 0; k < N; k++) {
            a[k] = draw(&seed);
            b[k] = draw(&seed);
        }
        different += advise_verdict_of(a, N, b, N) < 0;
    }
    assert_true(different <= TIMES / 1000);
}

// A kind is limited to its share of the time. Unused time goes to the kinds after it.
static void each_kind_gets_its_turn(void **state)
{
    (void)state;
    const uint64_t budget = 100 * 1000;
    assert_int_equal(advise_turn_ns(budget, ADVISE_ALLOCATOR, false), 10 * 1000);
    assert_int_equal(advise_turn_ns(budget, ADVISE_TRIM, false), 20 * 1000);
    assert_int_equal(advise_turn_ns(budget, ADVISE_HUGE_PAGES, false), 50 * 1000);
    for (unsigned g = 0; g < ADVISE_GROUPS; g++)
        assert_int_equal(advise_turn_ns(budget, g, true), 50 * 1000);
}

static void intervals_of_trims(void **state)
{
    (void)state;
    assert_int_equal(advise_trim_interval(18618915), 200000);
    assert_int_equal(advise_trim_interval(64 * 500), 500);
    assert_int_equal(advise_trim_interval(64 * 100), 100);
    assert_int_equal(advise_trim_interval(64 * 99), 0);
    assert_int_equal(advise_trim_interval(0), 0);
}

// The allocator without settings precedes its settings.
static void the_table_is_ordered(void **state)
{
    (void)state;
    for (const struct advise_setting *s = advise_settings; s->allocator; s++) {
        bool known = false;
        for (const struct allocator_info *i = allocator_infos; i->name; i++)
            known |= strcmp(i->name, s->allocator) == 0;
        assert_true(known);
        assert_true(!s[1].allocator || s[1].group >= s->group);
        assert_true((s->group == ADVISE_ALLOCATOR) ==
                    (!s->environment[0] && !s->trim_step && !s->huge_pages_off));
        for (const struct advise_setting *other = advise_settings; other < s; other++)
            assert_true(strcmp(other->allocator, s->allocator) != 0 ||
                        other->trim_step != s->trim_step ||
                        strcmp(other->environment, s->environment) != 0 ||
                        other->huge_pages_off != s->huge_pages_off);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_clear_difference),
    cmocka_unit_test(overlapping_or_near_values_do_not_differ),
    cmocka_unit_test(equal_settings_look_different_in_one_of_a_thousand),
    cmocka_unit_test(intervals_of_trims),
    cmocka_unit_test(each_kind_gets_its_turn),
    cmocka_unit_test(the_table_is_ordered),
};
UNIT_MAIN(tests)
