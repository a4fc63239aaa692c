// However many samples come, few are kept, in their order, and none of the lows and highs is lost.
#include "workload/samples.h"

#include "unit.h"

#include <stdbool.h>

static struct workload_sample at(uint64_t stamp, uint64_t anon)
{
    return (struct workload_sample){.stamp = stamp, .rss_bytes = anon + 4096, .anon_bytes = anon};
}

static void few_are_kept_as_they_are(void **state)
{
    struct samples s = {0};
    for (uint64_t i = 0; i < SAMPLES_MAX - 1; i++) {
        struct workload_sample sample = at(i, i * 7919 % 1000);
        assert_int_equal(samples_add(&s, &sample), 0);
    }
    samples_finish(&s);
    assert_int_equal(s.n, SAMPLES_MAX - 1);
    for (uint64_t i = 0; i < s.n; i++)
        assert_int_equal(s.items[i].anon_bytes, i * 7919 % 1000);
    samples_release(&s);
    (void)state;
}

static bool has(const struct samples *s, uint64_t stamp)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->items[i].stamp == stamp)
            return true;
    }
    return false;
}

// A spike down every 100,000 and one up every 130,000 stand out of noise.
static uint64_t spiky(uint64_t i)
{
    return i % 100000 == 99 ? 1 : i % 130000 == 777 ? 1u << 30 : 1000000 + i * 7919 % 1000;
}

static void lows_and_highs_stay(void **state)
{
    enum { MANY = 5000003 };
    struct samples s = {0};
    for (uint64_t i = 0; i < MANY; i++) {
        struct workload_sample sample = at(i, spiky(i));
        assert_int_equal(samples_add(&s, &sample), 0);
        assert_true(s.n < SAMPLES_MAX);
    }
    samples_finish(&s);
    assert_true(s.n >= SAMPLES_MAX / 2);
    for (size_t i = 1; i < s.n; i++)
        assert_true(s.items[i - 1].stamp < s.items[i].stamp);
    for (size_t i = 0; i < s.n; i++)
        assert_int_equal(s.items[i].anon_bytes, spiky(s.items[i].stamp));
    for (uint64_t i = 99; i < MANY; i += 100000)
        assert_true(has(&s, i));
    for (uint64_t i = 777; i < MANY; i += 130000)
        assert_true(has(&s, i));
    assert_true(MANY - 1 - s.items[s.n - 1].stamp < 256);
    samples_release(&s);
    (void)state;
}

static void all_equal(void **state)
{
    struct samples s = {0};
    for (uint64_t i = 0; i < 3 * SAMPLES_MAX; i++) {
        struct workload_sample sample = at(i, 5);
        assert_int_equal(samples_add(&s, &sample), 0);
    }
    samples_finish(&s);
    assert_int_equal(s.items[0].stamp, 0);
    assert_int_equal(s.items[s.n - 1].stamp, 3 * SAMPLES_MAX - 1);
    samples_release(&s);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(few_are_kept_as_they_are),
    cmocka_unit_test(lows_and_highs_stay),
    cmocka_unit_test(all_equal),
};
UNIT_MAIN(tests)
