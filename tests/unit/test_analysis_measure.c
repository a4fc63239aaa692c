#include "analysis/measure.h"
#include "unit.h"

#include <math.h>

static void test_medians(void **state)
{
    (void)state;
    assert_true(measure_median(NULL, 0) == 0);
    assert_true(measure_median((double[]){3}, 1) == 3);
    assert_true(measure_median((double[]){9, 1, 3}, 3) == 3);
    assert_true(measure_median((double[]){9, 1, 3, 5}, 4) == 4);
    assert_int_equal(measure_median_index((double[]){9, 1, 3}, 3), 2);
    assert_int_equal(measure_median_index((double[]){9, 1, 3, 5}, 4), 2);
}

static void test_a_clear_difference(void **state)
{
    (void)state;
    const double slow[] = {20.1, 20.4, 19.8, 20.0, 20.2}, fast[] = {10.2, 9.9, 10.0, 10.1, 9.8};
    struct measure_ratio r = measure_ratio(slow, 5, fast, 5);
    assert_true(r.ratio > 2.009 && r.ratio < 2.011);
    assert_true(r.low > 1.9 && r.low <= r.ratio);
    assert_true(r.high < 2.1 && r.high >= r.ratio);
    assert_false(measure_is_same(&r));
}

static void test_noise_is_no_difference(void **state)
{
    (void)state;
    const double a[] = {10, 12, 9, 11, 13}, b[] = {11, 10, 12, 9, 11};
    struct measure_ratio r = measure_ratio(a, 5, b, 5);
    assert_true(measure_is_same(&r));
    assert_true(r.low < 1 && r.high > 1);
}

static void test_equal_input_gives_equal_output(void **state)
{
    (void)state;
    const double a[] = {10, 12, 9, 11}, b[] = {11, 10, 12};
    struct measure_ratio x = measure_ratio(a, 4, b, 3), y = measure_ratio(a, 4, b, 3);
    assert_memory_equal(&x, &y, sizeof x);
}

// About 5 % of 200 pairs of samples from one distribution may be called different. The limit is
// higher because medians of few values vary in steps.
static void test_the_interval_covers(void **state)
{
    (void)state;
    uint64_t random = 1;
    int different = 0;
    for (int i = 0; i < 200; i++) {
        double a[15], b[15];
        for (int k = 0; k < 15; k++) {
            a[k] = 100 + (double)(unit_random(&random) % 1000) / 100;
            b[k] = 100 + (double)(unit_random(&random) % 1000) / 100;
        }
        struct measure_ratio r = measure_ratio(a, 15, b, 15);
        different += !measure_is_same(&r);
    }
    assert_true(different <= 20);
}

// With fewer than five runs, neither a difference nor its absence can be claimed.
static void test_few_runs_have_no_interval(void **state)
{
    (void)state;
    const double slow[] = {20.1, 20.4, 19.8, 20.2, 20.0}, fast[] = {10.2, 9.9, 10.0, 10.1, 9.8};
    for (size_t n = 1; n <= 5; n++) {
        struct measure_ratio r = measure_ratio(slow, n, fast, 5),
                             reversed = measure_ratio(slow, 5, fast, n);
        assert_true(r.ratio > 1.9 && reversed.ratio > 1.9);
        assert_int_equal(measure_has_interval(&r), n == 5);
        assert_int_equal(measure_has_interval(&reversed), n == 5);
        r = measure_ratio(slow, n, slow, n);
        assert_true(r.ratio == 1);
        assert_int_equal(measure_is_same(&r), n == 5);
    }
}

static void test_nothing_to_compare_with(void **state)
{
    (void)state;
    struct measure_ratio r = measure_ratio((double[]){1}, 1, (double[]){0}, 1);
    assert_true(r.ratio == 0 && r.low == 0 && r.high == 0);
    r = measure_ratio(NULL, 0, (double[]){1}, 1);
    assert_true(r.ratio == 0);
}

static void test_p_values(void **state)
{
    (void)state;
    const double low[] = {1, 2, 3, 4, 5}, high[] = {6, 7, 8, 9, 10}, same[] = {4, 4, 4, 4, 4};
    assert_true(fabs(measure_p_value(low, 5, high, 5) - 2.0 / 252) < 1e-12);
    assert_true(measure_p_value(low, 5, high, 5) == measure_p_value(high, 5, low, 5));
    assert_true(measure_p_value(same, 5, same, 5) == 1);
    assert_true(measure_p_value(low, 5, NULL, 0) == 1);
    // Here U is 1. Of the 252 choices of five ranks, 4 are at least as far from the mean.
    const double between[] = {5.5, 7, 8, 9, 10}, crossed[] = {1, 2, 3, 4, 6};
    assert_true(fabs(measure_p_value(crossed, 5, between, 5) - 4.0 / 252) < 1e-12);
    // The values after a side's last value do not count.
    const double low_and_more[] = {1, 2, 3, 4, 5, 99, 99}, high_and_more[] = {6, 7, 8, 9, 10, 0, 0};
    assert_true(measure_p_value(low_and_more, 5, high_and_more, 5) ==
                measure_p_value(low, 5, high, 5));
    assert_true(measure_p_value(low_and_more, 4, high_and_more, 5) < 0.05);
    // The approximation for many values is close to the exact test.
    double a[21], b[21];
    for (int i = 0; i < 21; i++) {
        a[i] = i;
        b[i] = i + 4.5;
    }
    assert_true(fabs(measure_p_value(a, 20, b, 20) - measure_p_value(a, 21, b, 21)) < 0.02);
}

static void test_a_difference_is_large_and_significant(void **state)
{
    (void)state;
    const double a[] = {100, 101, 102, 103, 104}, more[] = {110, 111, 112, 113, 114};
    const double less_than_1_percent[] = {100.50, 100.51, 100.52, 100.53, 100.54},
                 steady[] = {100.00, 100.01, 100.02, 100.03, 100.04};
    struct measure_ratio r = measure_ratio(more, 5, a, 5);
    assert_true(measure_differs(&r, 1) && measure_differs(&r, 6));
    assert_false(measure_differs(&r, 7)); // 5 runs are too few
    r = measure_ratio(less_than_1_percent, 5, steady, 5);
    assert_false(measure_is_same(&r) || measure_differs(&r, 1));
    r = measure_ratio(more, 4, a, 4);
    assert_false(measure_differs(&r, 1));
    assert_int_equal(measure_runs_needed(1), 5);
    assert_int_equal(measure_runs_needed(6), 5);
    assert_int_equal(measure_runs_needed(7), 6);
    assert_int_equal(measure_runs_needed(120), 8);
}

// Simulates an A/A test: an allocator is compared with itself on 40 workloads. The times contain
// noise and single slow runs.
static void test_equal_sides_of_40_workloads(void **state)
{
    enum { WORKLOADS = 40, RUNS = 8, TRIALS = 5 };
    (void)state;
    uint64_t random = 9;
    int chance = 0, sure = 0, found = 0;
    for (int i = 0; i < TRIALS * WORKLOADS; i++) {
        double a[RUNS], b[RUNS], c[RUNS];
        for (int k = 0; k < RUNS; k++) {
            a[k] = 100 + (double)(unit_random(&random) % 1000) / 50 + (k == 3 ? 60 : 0);
            b[k] = 100 + (double)(unit_random(&random) % 1000) / 50 + (k == 5 ? 60 : 0);
            c[k] = b[k] * 2;
        }
        struct measure_ratio aa = measure_ratio(b, RUNS, a, RUNS),
                             ab = measure_ratio(c, RUNS, a, RUNS);
        chance += measure_differs(&aa, 1);
        sure += measure_differs(&aa, WORKLOADS);
        found += measure_differs(&ab, WORKLOADS);
    }
    assert_true(chance <= TRIALS * WORKLOADS / 10 && sure == 0);
    assert_true(found > TRIALS * WORKLOADS / 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_p_values),
    cmocka_unit_test(test_a_difference_is_large_and_significant),
    cmocka_unit_test(test_equal_sides_of_40_workloads),
    cmocka_unit_test(test_medians),
    cmocka_unit_test(test_a_clear_difference),
    cmocka_unit_test(test_noise_is_no_difference),
    cmocka_unit_test(test_equal_input_gives_equal_output),
    cmocka_unit_test(test_the_interval_covers),
    cmocka_unit_test(test_few_runs_have_no_interval),
    cmocka_unit_test(test_nothing_to_compare_with),
};

UNIT_MAIN(tests)
