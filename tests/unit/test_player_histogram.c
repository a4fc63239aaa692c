#include "replay/player/histogram.h"
#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

static struct histogram h;

static int empty(void **state)
{
    (void)state;
    h = (struct histogram){0};
    return 0;
}

static void test_buckets_are_dense_and_narrow(void **state)
{
    (void)state;
    unsigned before = 0;
    for (uint64_t v = 1; v < 1 << 20; v++) {
        unsigned bucket = histogram_bucket(v);
        assert_true(bucket == before || bucket == before + 1);
        before = bucket;
    }
    // Lower bounds of adjacent buckets differ by at most 1/64 of the value.
    for (unsigned shift = 7; shift < HISTOGRAM_VALUE_BITS; shift++) {
        uint64_t v = 1ull << shift;
        assert_int_equal(histogram_bucket(v + v / 64 - 1), histogram_bucket(v));
        assert_int_equal(histogram_bucket(v + v / 64), histogram_bucket(v) + 1);
        assert_int_equal(histogram_bucket(v - 1), histogram_bucket(v) - 1);
    }
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void test_quantiles_of_small_numbers_are_exact(void **state)
{
    (void)state;
    for (uint64_t v = 1; v <= 100; v++)
        histogram_add(&h, v);
    assert_int_equal(histogram_quantile(&h, 0.5), 50);
    assert_int_equal(histogram_quantile(&h, 0.99), 99);
    assert_int_equal(histogram_quantile(&h, 0.999), 100);
    assert_int_equal(histogram_quantile(&h, 0), 1);
    assert_int_equal(histogram_quantile(&h, 1), 100);
    assert_int_equal(h.sum, 5050);
    assert_int_equal(h.count, 100);
}

static void test_quantiles_of_large_numbers_are_within_1_6_percent(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 10000; i++)
        histogram_add(&h, i * 1000003);
    for (double share = 0.01; share < 1; share += 0.01) {
        double exact = share * 10000 * 1000003, got = (double)histogram_quantile(&h, share);
        assert_true(got > exact * (1 - 1.0 / 64) && got < exact * (1 + 1.0 / 64));
    }
    assert_int_equal(histogram_quantile(&h, 1), h.max);
    assert_int_equal(h.max, 10000ull * 1000003);
}

static void test_trimmed_mean_leaves_out_the_highest(void **state)
{
    (void)state;
    for (int i = 0; i < 99; i++)
        histogram_add(&h, 20);
    histogram_add(&h, 1000000);
    assert_true(histogram_trimmed_mean(&h, 0.99) == 20);
    assert_true(histogram_trimmed_mean(&h, 1) > 9000);
    assert_true(histogram_trimmed_mean(&(struct histogram){0}, 0.99) == 0);
}

static void test_mean_up_to_a_limit_counts_the_others(void **state)
{
    uint64_t outliers = 9;
    (void)state;
    for (uint64_t v = 1; v <= 100; v++)
        histogram_add(&h, v);
    assert_true(histogram_mean_up_to(&h, 100, &outliers) == 50.5);
    assert_int_equal(outliers, 0);
    histogram_add(&h, 4000000);
    histogram_add(&h, 5000000);
    assert_true(histogram_mean_up_to(&h, 10000, &outliers) == 50.5);
    assert_int_equal(outliers, 2);
    assert_true(histogram_mean_up_to(&h, 6000000, &outliers) > 80000);
    assert_int_equal(outliers, 0);
    assert_true(histogram_mean_up_to(&(struct histogram){0}, 10, &outliers) == 0);
}

static void test_outliers_are_ten_times_the_99th_percentile(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 49; i++)
        histogram_add(&h, 20);
    histogram_add(&h, 100000);
    assert_int_equal(histogram_outlier_limit(&h, 0), 200);
    assert_int_equal(histogram_outlier_limit(&h, 300), 300);
    for (unsigned i = 0; i < 150; i++)
        histogram_add(&h, i < 149 ? 50 : 9999);
    // The histogram contains 200 values. Two values are far above the others.
    assert_int_equal(histogram_outlier_limit(&h, 0), 500);
}

static void test_merge_is_as_if_added_to_one(void **state)
{
    (void)state;
    static struct histogram a, b;
    uint64_t random = 7;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = unit_random(&random) >> (unit_random(&random) % 64);
        histogram_add(i % 3 ? &a : &b, v);
        histogram_add(&h, v);
    }
    histogram_merge(&a, &b);
    assert_memory_equal(&a, &h, sizeof h);
}

// Reading the buckets above the largest value would populate their pages.
static void test_merge_reads_up_to_the_largest_value(void **state)
{
    (void)state;
    enum { VALUES = 300 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page + sizeof h;
    struct histogram *from =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(from, MAP_FAILED);
    for (uint64_t v = 1; v <= VALUES; v++)
        histogram_add(from, v);
    size_t used = offsetof(struct histogram, buckets[histogram_bucket(VALUES) + 1]);
    used = (used + page - 1) / page * page;
    assert_true(used < sizeof h);
    assert_int_equal(mprotect((char *)from + used, bytes - used, PROT_NONE), 0);
    histogram_merge(&h, from);
    assert_int_equal(h.count, VALUES);
    assert_int_equal(h.max, VALUES);
    assert_memory_equal(h.buckets, from->buckets, used - offsetof(struct histogram, buckets));
    munmap(from, bytes);
}

static void test_an_empty_histogram_is_0(void **state)
{
    (void)state;
    assert_int_equal(histogram_quantile(&h, 0.5), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_buckets_are_dense_and_narrow, empty),
    cmocka_unit_test_setup(test_quantiles_of_small_numbers_are_exact, empty),
    cmocka_unit_test_setup(test_quantiles_of_large_numbers_are_within_1_6_percent, empty),
    cmocka_unit_test_setup(test_trimmed_mean_leaves_out_the_highest, empty),
    cmocka_unit_test_setup(test_mean_up_to_a_limit_counts_the_others, empty),
    cmocka_unit_test_setup(test_outliers_are_ten_times_the_99th_percentile, empty),
    cmocka_unit_test_setup(test_merge_is_as_if_added_to_one, empty),
    cmocka_unit_test_setup(test_merge_reads_up_to_the_largest_value, empty),
    cmocka_unit_test_setup(test_an_empty_histogram_is_0, empty),
};

UNIT_MAIN(tests)
