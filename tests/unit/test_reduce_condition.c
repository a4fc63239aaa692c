// Tests the syntax of conditions and their evaluation.
#include "experiments/reduce/judge.h"

#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static struct condition_figures figures(void)
{
    static struct replay_call calls[HT_KIND_LIMIT];
    struct condition_figures f = {.calls = calls};
    f.figures.peak_rss_bytes = 3 << 20;
    f.figures.peak_live_bytes = 1 << 20;
    f.figures.wall_ns = 2e9;
    f.figures.cycles = NAN;
    calls[HT_MALLOC] =
        (struct replay_call){.count = 999, .p99_ns = 5000, .p999_ns = 70000, .max_ns = 80000};
    return f;
}

static bool holds(const char *text, double floor_bytes, unsigned needs)
{
    struct condition c;
    struct condition_seen seen;
    struct err e = {0};
    const struct condition_figures f = figures();
    assert_int_equal(condition_parse(&c, text, "glibc", &e), 0);
    assert_int_equal(c.kind, CONDITION_FIGURES);
    assert_int_equal(c.needs, needs);
    c.floor_bytes = floor_bytes;
    bool does = condition_compare(&c, &f, &seen);
    condition_release(&c);
    return does;
}

static void comparisons(void **state)
{
    enum {
        MEMORY = CONDITION_NEEDS_MEMORY,
        TIME = CONDITION_NEEDS_TIME,
        LATENCY = CONDITION_NEEDS_LATENCY
    };
    (void)state;
    assert_true(holds("peak_rss_bytes > 2MiB", 0, MEMORY));
    assert_true(holds("peak_rss > 2M", 0, MEMORY));
    assert_false(holds("peak_rss > 3M", 0, MEMORY));
    assert_true(holds("peak_rss >= 3072K", 0, MEMORY));
    assert_true(holds("peak_rss >= 3072k + 0G + 0g", 0, MEMORY));
    assert_true(holds("peak_rss * 1M >= 3T", 0, MEMORY));
    assert_true(holds("peak_rss * 1024 * 1024 <= 3t", 0, MEMORY));
    assert_true(holds("peak_rss * 1MiB >= 3TiB", 0, MEMORY));
    assert_true(holds("peak_rss/peak_live>2", 0, MEMORY));
    assert_true(holds("peak_rss / peak_live >= 3", 0, MEMORY));
    assert_false(holds("peak_rss / peak_live > 3", 0, MEMORY));
    assert_true(holds("(peak_rss - peak_live) * 2 <= 4096KiB", 0, MEMORY));
    assert_true(holds("peak_rss - peak_live - peak_live >= 1 * 1024KiB", 0, MEMORY));
    assert_false(holds("peak_rss - peak_live / 2 < 2560KiB", 0, MEMORY));
    assert_true(holds("2 < 1s * wall / 1s / 1s + peak_live", 0, MEMORY | TIME));
    assert_true(holds("wall > 1999.5ms", 0, TIME));
    assert_true(holds("malloc.p99 > 4.9us", 0, LATENCY));
}

static void unknown_values_satisfy_no_condition(void **state)
{
    (void)state;
    assert_false(holds("cycles > 0", 0, CONDITION_NEEDS_TIME));
    assert_false(holds("cycles < 1", 0, CONDITION_NEEDS_TIME));
    // p999 needs a thousand calls, and there are 999.
    assert_false(holds("malloc.p999 > 1ns", 0, CONDITION_NEEDS_LATENCY));
    assert_true(holds("malloc.max > 79us", 0, CONDITION_NEEDS_LATENCY));
    assert_false(holds("free.mean >= 0", 0, CONDITION_NEEDS_LATENCY));
}

static void the_floor_is_under_dividends(void **state)
{
    (void)state;
    assert_true(holds("peak_rss/peak_live > 2", 3 << 20, CONDITION_NEEDS_MEMORY));
    assert_false(holds("peak_rss/peak_live > 2", (3 << 20) + 1, CONDITION_NEEDS_MEMORY));
    assert_true(holds("peak_live/peak_rss < 2", 1e9, CONDITION_NEEDS_MEMORY));
    assert_true(holds("peak_rss > 1", 1e9, CONDITION_NEEDS_MEMORY));
    assert_true(holds("peak_rss/2 > 1MiB", 1e9, CONDITION_NEEDS_MEMORY));
}

static void the_margin_is_between_the_sides(void **state)
{
    static const struct {
        const char *text;
        double margin;
        bool holds;
        double seen; // the margin
    } cases[] = {
        {"malloc.p99 > 4us", 0, true, 0.25},     {"malloc.p99 > 4us", 0.24, true, 0.25},
        {"malloc.p99 > 4us", 0.25, false, 0.25}, {"malloc.p99 >= 4us", 0.25, true, 0.25},
        {"malloc.p99 < 8us", 0.37, true, 0.375}, {"malloc.p99 < 8us", 0.38, false, 0.375},
        {"malloc.p99 < 4us", 0, false, -0.25},   {"malloc.p99 > 1us - 5us", 2, true, 2.25},
        {"malloc.p99 > 0", 0.1, true, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct condition c;
        struct condition_seen seen;
        struct err e = {0};
        const struct condition_figures f = figures();
        assert_int_equal(condition_parse(&c, cases[i].text, "glibc", &e), 0);
        c.margin = cases[i].margin;
        assert_int_equal(condition_compare(&c, &f, &seen), cases[i].holds);
        assert_true(fabs(seen.margin - cases[i].seen) < 1e-9);
        condition_release(&c);
    }
}

static void half_of_the_margin_of_the_input_at_most(void **state)
{
    static const struct {
        const char *text;
        double seen, expected;
    } cases[] = {
        {"malloc.p99 > 4us", 0.25, 0.1},
        {"malloc.p99 > 4us", 0.08, 0.04},
        {"wall < 4s", 3, 0.1},
        {"peak_rss/peak_live > 2", 3, 0.01},
        {"peak_rss/peak_live >= 3", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct judge j;
        static struct judge_report report;
        struct err e = {0};
        j.n_conditions = 1;
        report.seen[0].margin = cases[i].seen;
        assert_int_equal(condition_parse(&j.conditions[0], cases[i].text, "glibc", &e), 0);
        judge_expect(&j, &report, 0);
        assert_true(fabs(j.conditions[0].margin - cases[i].expected) < 1e-9);
        condition_release(&j.conditions[0]);
    }
}

// RSS differs from replay to replay, so judge_expect raises the floor by a margin.
static void the_floor_has_a_margin(void **state)
{
    static struct judge j;
    static struct judge_report report;
    struct err e = {0};
    (void)state;
    j.n_conditions = 1;
    assert_int_equal(condition_parse(&j.conditions[0], "peak_rss/peak_live > 2", "glibc", &e), 0);
    report.seen[0].dividend_bytes = 1e9;
    judge_expect(&j, &report, 1000000);
    assert_true(fabs(j.conditions[0].floor_bytes - 1010000) < 1e-6);
    report.seen[0].dividend_bytes = 1600000;
    judge_expect(&j, &report, 1000000);
    assert_true(fabs(j.conditions[0].floor_bytes - 800000) < 1e-6);
    condition_release(&j.conditions[0]);
}

static void failures_and_allocators(void **state)
{
    struct condition c;
    struct err e = {0};
    (void)state;
    assert_int_equal(condition_parse(&c, "glibc,MALLOC_ARENA_MAX=1:2: verify", "nobody", &e), 0);
    assert_int_equal(c.kind, CONDITION_VERIFY);
    assert_string_equal(c.allocator.name, "glibc");
    assert_string_equal(c.allocator.tunables[0], "MALLOC_ARENA_MAX=1:2");
    condition_release(&c);
    assert_int_equal(condition_parse(&c, "hang", "glibc", &e), 0);
    assert_int_equal(c.kind, CONDITION_HANG);
    condition_release(&c);
    assert_int_equal(condition_parse(&c, "nobody: crash", "glibc", &e), -ENOENT);
    assert_non_null(strstr(e.text, "nobody"));
}

static void unknown_units(void **state)
{
    static const char *const texts[] = {"peak_rss > 1m", "peak_rss > 1MB", "wall > 1h"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct condition c;
        struct err e = {0};
        assert_int_equal(condition_parse(&c, texts[i], "glibc", &e), -EINVAL);
        assert_non_null(strstr(e.text, "cannot read"));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(comparisons),
    cmocka_unit_test(unknown_values_satisfy_no_condition),
    cmocka_unit_test(the_floor_is_under_dividends),
    cmocka_unit_test(the_margin_is_between_the_sides),
    cmocka_unit_test(half_of_the_margin_of_the_input_at_most),
    cmocka_unit_test(the_floor_has_a_margin),
    cmocka_unit_test(failures_and_allocators),
    cmocka_unit_test(unknown_units),
};

UNIT_MAIN(tests)
