// Tests the reduction of samples: few samples remain, in order, and these include all minima and
// maxima.
#include "workload/samples.h"

#include "unit.h"
#include "workload/format.h"

#include <errno.h>
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

// Returns noise with a downward spike every 100,000 and an upward spike every 130,000 samples.
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

// Only blocks whose use grew after the first step keep their steps.
static void steps_of_late_blocks(void **state)
{
    static const struct workload_residency blocks[] = {
        {.op = 7, .used = 900, .resident = 900},
        {.op = 9, .used = 903, .resident = 903},
        {.op = 9, .thread = 2, .used = 900, .resident = 900}};
    static const struct workload_residency_step steps[] = {
        {.op = 9, .stamp = 50, .thread = 2, .used = 800}, {.op = 9, .stamp = 30, .used = 900},
        {.op = 9, .stamp = 40, .thread = 2, .used = 100}, {.op = 8, .stamp = 30, .used = 5},
        {.op = 7, .stamp = ~0ull, .used = 600},           {.op = 7, .stamp = 30, .used = 0},
    };
    struct samples_residency l = {0}, read = {0};
    struct buf b = {0};
    size_t n;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        assert_int_equal(samples_residency_add(&l, &blocks[i]), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_int_equal(samples_residency_add_step(&l, &steps[i]), 0);
    samples_residency_sort(&l);
    assert_int_equal(format_put_steps(&b, l.steps, l.n_steps), 0);
    assert_int_equal(format_get_steps(b.data, b.size, &read), 0);
    assert_int_equal(read.n_steps, 4);
    const struct workload_residency_step *found = samples_residency_steps(&read, 0, 7, &n);
    assert_int_equal(n, 2);
    assert_int_equal(found[0].used, 0);
    assert_int_equal(found[1].used, 600);
    assert_int_equal(found[1].stamp, ~0ull);
    found = samples_residency_steps(&read, 2, 9, &n);
    assert_int_equal(n, 2);
    assert_int_equal(found[0].stamp, 40);
    assert_int_equal(found[1].stamp, 50);
    assert_null(samples_residency_steps(&read, 0, 8, &n));
    assert_null(samples_residency_steps(&read, 0, 9, &n));
    for (size_t cut = 0; cut < b.size; cut++) {
        samples_residency_release(&read);
        assert_int_equal(format_get_steps(b.data, cut, &read), -EBADMSG);
    }
    samples_residency_release(&read);
    samples_residency_release(&l);
    buf_release(&b);
    (void)state;
}

// A signal killed the program, so only the first block was measured when it was freed. The array
// holds an old step of the last block after its last step.
static void live_blocks_of_a_killed_program(void **state)
{
    const struct workload_residency block = {.op = 7, .used = 900, .resident = 900};
    const struct workload_residency_step steps[] = {{.op = 9, .stamp = 2, .used = 40},
                                                    {.op = 7, .stamp = 1, .used = 100},
                                                    {.op = 9, .stamp = 1, .used = 4},
                                                    {.op = 3, .thread = 2, .stamp = 1}};
    struct samples_residency l = {0};
    size_t n;
    assert_int_equal(samples_residency_add(&l, &block), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_int_equal(samples_residency_add_step(&l, &steps[i]), 0);
    assert_true(l.steps_capacity > l.n_steps);
    l.steps[l.n_steps] = steps[3];
    samples_residency_sort(&l);
    assert_int_equal(l.n, 3);
    assert_int_equal(samples_residency_find(&l, 0, 7)->used, 900);
    const struct workload_residency *r = samples_residency_find(&l, 0, 9);
    assert_true(r->used == 40 && r->resident == 40 && r->front == 40);
    samples_residency_steps(&l, 0, 9, &n);
    assert_int_equal(n, 2);
    assert_int_equal(samples_residency_find(&l, 2, 3)->used, 0);
    samples_residency_release(&l);
    (void)state;
}

// The words after the last step of the array are not steps.
static void the_end_of_steps(void **state)
{
    const struct workload_residency block = {.op = 7, .used = 900, .resident = 900};
    const struct workload_residency_step steps[] = {{.op = 7, .stamp = 1, .used = 1},
                                                    {.op = 7, .stamp = 2, .used = 2}};
    struct samples_residency l = {0};
    size_t n;
    assert_int_equal(samples_residency_add(&l, &block), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(samples_residency_add_step(&l, &steps[i]), 0);
    assert_true(l.steps_capacity > 2);
    l.steps[2] = (struct workload_residency_step){.op = 7, .stamp = 3};
    samples_residency_sort(&l);
    assert_int_equal(l.n_steps, 2);
    assert_non_null(samples_residency_steps(&l, 0, 7, &n));
    assert_int_equal(n, 2);
    samples_residency_release(&l);
    (void)state;
}

static void many_blocks_are_thinned(void **state)
{
    struct samples_residency l = {0};
    for (uint64_t i = 0; i <= RESIDENCY_MAX; i++) {
        const struct workload_residency block = {.op = i};
        const struct workload_residency_step step = {.op = i};
        assert_int_equal(samples_residency_add(&l, &block), 0);
        assert_int_equal(samples_residency_add_step(&l, &step), 0);
    }
    assert_int_equal(l.n, RESIDENCY_MAX / 2 + 1);
    for (size_t i = 0; i < l.n; i++)
        assert_int_equal(l.items[i].op, 2 * i);
    assert_int_equal(l.n_steps, RESIDENCY_MAX);
    samples_residency_release(&l);
    (void)state;
}

// If a block is measured twice, the larger figure is kept.
static void the_larger_residency_is_kept(void **state)
{
    for (unsigned first = 0; first < 2; first++) {
        struct samples_residency l = {0};
        for (unsigned i = 0; i < 2; i++) {
            const struct workload_residency block = {.op = 7, .used = i == first ? 900 : 100};
            assert_int_equal(samples_residency_add(&l, &block), 0);
        }
        samples_residency_sort(&l);
        assert_int_equal(l.n, 1);
        assert_int_equal(samples_residency_find(&l, 0, 7)->used, 900);
        samples_residency_release(&l);
    }
    (void)state;
}

static int residency_rc(const struct workload_residency *r, size_t n)
{
    struct workload_residency *read = NULL;
    struct buf b = {0};
    size_t count = 0, capacity = 0;
    assert_int_equal(format_put_residency(&b, r, n), 0);
    int rc = format_get_residency(b.data, b.size, &read, &count, &capacity);
    free(read);
    buf_release(&b);
    return rc;
}

static void wrong_residency_is_refused(void **state)
{
    const struct workload_residency good = {.op = 7, .used = 5, .resident = 9, .front = 5},
                                    front = {.op = 7, .used = 5, .resident = 9, .front = 6},
                                    later[] = {good, {.op = 8, .used = 1, .resident = 1}},
                                    twice[] = {good, good}, earlier[] = {later[1], good};
    assert_int_equal(residency_rc(&good, 1), 0);
    assert_int_equal(residency_rc(&front, 1), -EBADMSG);
    assert_int_equal(residency_rc(later, 2), 0);
    assert_int_equal(residency_rc(twice, 2), -EBADMSG);
    assert_int_equal(residency_rc(earlier, 2), -EBADMSG);
    (void)state;
}

static void steps_at_one_time_are_in_order(void **state)
{
    const struct workload_residency_step steps[] = {{.op = 7, .stamp = 30}, {.op = 7, .stamp = 30}};
    struct samples_residency read = {0};
    struct buf b = {0};
    assert_int_equal(format_put_steps(&b, steps, 2), 0);
    assert_int_equal(format_get_steps(b.data, b.size, &read), 0);
    assert_int_equal(read.n_steps, 2);
    samples_residency_release(&read);
    buf_release(&b);
    (void)state;
}

static void steps_that_are_in_no_order(void **state)
{
    static const struct workload_residency_step steps[][2] = {
        {{.op = 7, .stamp = 30}, {.op = 7, .stamp = 20}},
        {{.op = 7, .stamp = 30}, {.op = 6, .stamp = 40}},
        {{.op = 7, .thread = 2}, {.op = 7, .thread = 1}},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct samples_residency read = {0};
        struct buf b = {0};
        assert_int_equal(format_put_steps(&b, steps[i], 2), 0);
        assert_int_equal(format_get_steps(b.data, b.size, &read), -EBADMSG);
        samples_residency_release(&read);
        buf_release(&b);
    }
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(steps_of_late_blocks),
    cmocka_unit_test(the_end_of_steps),
    cmocka_unit_test(live_blocks_of_a_killed_program),
    cmocka_unit_test(many_blocks_are_thinned),
    cmocka_unit_test(the_larger_residency_is_kept),
    cmocka_unit_test(wrong_residency_is_refused),
    cmocka_unit_test(steps_at_one_time_are_in_order),
    cmocka_unit_test(steps_that_are_in_no_order),
    cmocka_unit_test(few_are_kept_as_they_are),
    cmocka_unit_test(lows_and_highs_stay),
    cmocka_unit_test(all_equal),
};
UNIT_MAIN(tests)
