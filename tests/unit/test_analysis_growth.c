// Checks the models of growth on levels of a known shape, with noise.
#include "analysis/growth.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 400 };

static double leak(double s)
{
    return 2e6 * s;
}

static double leak_after_start(double s)
{
    return s < 0.5 ? 100e6 * s : 50e6 + 2e6 * s;
}

static double stairs(double s)
{
    return 4e6 * floor(s + 0.3);
}

static double cache(double s)
{
    return 65e6 * (1 - exp(-(s + 2) / 8.7));
}

static double starved_cache(double s)
{
    return cache(s < 5 ? s / 10 : s - 4.5);
}

// A leak whose rate falls by a quarter, as on a machine that becomes busier.
static double bent_leak(double s)
{
    return 2e6 * s - 5e4 * s * s;
}

static double full_cache(double s)
{
    return 65e6 * (1 - exp(-s / 0.4));
}

static double saw(double s)
{
    double at = fmod(s, 2);
    return at < 0.4 ? 80e6 * at / 0.4 : at < 0.6 ? 80e6 * (0.6 - at) / 0.2 : 1e5;
}

static double burst(double s)
{
    return s < 0.4 ? 500e6 * s : 1e6;
}

static double step(double s)
{
    return s < 1 ? 1e5 : 60e6;
}

static double steady(double s)
{
    (void)s;
    return 100e6;
}

static double falling(double s)
{
    return 100e6 - 5e6 * s;
}

static double square(double s)
{
    return s < 2.5 ? 1e6 * s : 2.5e6 + 20e6 * (s - 2.5) * (s - 2.5) * (s - 2.5);
}

// A load that varies slowly: a wave of 4 s that begins at its low point.
static double wave(double s)
{
    return 20e6 - 18e6 * cos(s * acos(0));
}

static double rising_wave(double s)
{
    return wave(s) + 3e6 * s;
}

// The second half is a straight rise to the height of an earlier one.
static double triangle(double s)
{
    return s < 1.6 ? 20e6 * s : s < 4 ? 32e6 - 13e6 * (s - 1.6) : 1e6 + 9e6 * (s - 4);
}

static double leak_after_burst(double s)
{
    return s < 2 ? 60e6 * s : 2e6 * s;
}

static struct growth judge(double (*level)(double s), double seconds, double noise)
{
    struct growth_point points[POINTS];
    struct growth g;
    srand(1);
    for (unsigned i = 0; i < POINTS; i++) {
        double at = seconds * i / POINTS, next = seconds * (i + 1) / POINTS;
        double a = level(at), b = level(next), off = noise * (rand() % 1000) / 1000;
        points[i] = (struct growth_point){next * 1e9, fmin(a, b) + off, fmax(a, b) + off};
    }
    growth_find(&g, points, POINTS);
    return g;
}

static void test_shapes(void **unused)
{
    static const struct {
        double (*level)(double s);
        double noise;
        enum growth_shape shape;
    } cases[] = {
        {leak, 0, GROWTH_LINEAR},
        {leak, 4e5, GROWTH_LINEAR},
        {leak_after_start, 1e5, GROWTH_IRREGULAR}, // the time after the start is too short
        {bent_leak, 0, GROWTH_IRREGULAR},          // not a cache: the limit is too uncertain
        {stairs, 1e5, GROWTH_LINEAR},
        {cache, 0, GROWTH_SATURATING},
        {cache, 4e5, GROWTH_SATURATING},
        {full_cache, 1e5, GROWTH_SATURATING},
        {saw, 1e5, GROWTH_SAWTOOTH},
        {burst, 1e5, GROWTH_SAWTOOTH},
        {step, 1e5, GROWTH_STEP},
        {steady, 1e5, GROWTH_STEADY},
        {steady, 5e6, GROWTH_STEADY},
        {falling, 1e5, GROWTH_FALLING},
        {square, 1e5, GROWTH_IRREGULAR},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct growth g = judge(cases[i].level, 5, cases[i].noise);
        if (g.shape != cases[i].shape)
            fail_msg("case %zu: %s instead of %s", i, growth_shape_name(g.shape),
                     growth_shape_name(cases[i].shape));
    }
}

static void test_full(void **unused)
{
    (void)unused;
    struct growth full = judge(full_cache, 5, 1e5), filling = judge(cache, 5, 0),
                  grows = judge(leak, 5, 0);
    assert_true(growth_is_full(&full));
    assert_false(growth_is_full(&filling));
    assert_false(growth_is_full(&grows));
}

static void test_rate_and_error(void **unused)
{
    (void)unused;
    struct growth g = judge(leak, 5, 4e5);
    assert_true(g.bytes_per_s_error > 0 && g.bytes_per_s_error < 0.1e6);
    assert_true(fabs(g.bytes_per_s - 2e6) <= 2 * g.bytes_per_s_error);
    assert_true(g.misfit < 0.05);
    g = judge(leak_after_start, 7, 0);
    assert_int_equal(g.shape, GROWTH_LINEAR);
    assert_true(fabs(g.bytes_per_s - 2e6) < 1e4);
    assert_true(g.grown_bytes < 8e6); // without the start
}

static void test_limit(void **unused)
{
    (void)unused;
    struct growth g = judge(cache, 5, 1e5);
    assert_true(g.limit_bytes > 55e6 && g.limit_bytes < 75e6);
    assert_true(g.limit_low_bytes < 65e6 && g.limit_high_bytes > 65e6);
    assert_true(g.limit_low_bytes > 40e6 && g.limit_high_bytes < 130e6);
    assert_true(isnan(judge(leak, 5, 1e5).limit_bytes));
}

static void test_teeth(void **unused)
{
    (void)unused;
    assert_int_equal(judge(saw, 10, 1e5).teeth, 5);
    assert_int_equal(judge(burst, 10, 1e5).teeth, 1);
}

// Whether a wave of the load grows or shrinks depends on its first and last point. Its rise is
// neither a leak nor a step after which the level hardly changes.
static void test_waves(void **unused)
{
    (void)unused;
    struct growth g = judge(wave, 5, 1e5);
    assert_int_equal(g.shape, GROWTH_IRREGULAR);
    assert_true(g.grown_bytes > 8e6 && growth_is_wave(&g) && g.fallen_bytes > 25e6);
    g = judge(triangle, 8, 1e5);
    assert_int_equal(g.shape, GROWTH_IRREGULAR);
    assert_true(growth_is_wave(&g));
    g = judge(wave, 10.6, 1e5);
    assert_int_equal(g.shape, GROWTH_SAWTOOTH);
    assert_true(g.trough_bytes < 5e6 && g.last_bytes > 10e6);
    g = judge(rising_wave, 10.6, 1e5);
    assert_int_equal(g.shape, GROWTH_IRREGULAR);
    // After one burst at the start, the rest can be judged.
    g = judge(leak_after_burst, 10, 1e5);
    assert_int_equal(g.shape, GROWTH_LINEAR);
    assert_true(fabs(g.bytes_per_s - 2e6) < 1e5);
    g = judge(leak, 10, 4e5);
    assert_false(growth_is_wave(&g));
}

// On a busy machine, a cache that fills may be sampled rarely, and may get little CPU time for half
// of the time. It must not be called a leak.
static void test_disturbed_cache(void **unused)
{
    struct growth_point few[5], uneven[16];
    struct growth g;
    (void)unused;
    for (unsigned i = 0; i < 5; i++)
        few[i] = (struct growth_point){1e9 * i, cache(i), cache(i)};
    for (unsigned i = 0; i < 16; i++) {
        double level = cache(0.9 * i) + (i % 2 ? 5e6 : 0);
        uneven[i] = (struct growth_point){1e9 * i, level, level};
    }
    growth_find(&g, few, 4);
    assert_int_equal(g.shape, GROWTH_UNKNOWN);
    growth_find(&g, few, 5);
    assert_int_equal(g.shape, GROWTH_UNKNOWN);
    assert_int_equal(judge(starved_cache, 10, 4e5).shape, GROWTH_IRREGULAR);
    growth_find(&g, uneven, 16);
    assert_int_equal(g.shape, GROWTH_IRREGULAR);
}

// A line after the start of a service needs six points.
static void test_few_points_after_the_start(void **unused)
{
    (void)unused;
    for (unsigned n = 10; n <= 12; n++) {
        struct growth_point points[12];
        struct growth g;
        for (unsigned i = 0; i < n; i++) {
            double level = i < n / 2 ? 30e6 * i / n : 30e6 + 2e6 * i;
            points[i] = (struct growth_point){1e9 * i, level, level};
        }
        growth_find(&g, points, n);
        assert_int_equal(g.shape, n - n / 2 >= 6 ? GROWTH_LINEAR : GROWTH_IRREGULAR);
    }
}

// Growth is not judged if the time is short or if there are few points.
static void test_too_short(void **unused)
{
    struct growth g;
    struct growth_point few[] = {{0, 0, 0}, {2e9, 2e6, 2e6}, {4e9, 4e6, 4e6}};
    (void)unused;
    assert_int_equal(judge(leak, 2.9, 0).shape, GROWTH_UNKNOWN);
    assert_int_equal(judge(leak, 3.1, 0).shape, GROWTH_LINEAR);
    growth_find(&g, few, 3);
    assert_int_equal(g.shape, GROWTH_UNKNOWN);
    assert_true(g.grown_bytes == 4e6);
    growth_find(&g, few, 0);
    assert_int_equal(g.shape, GROWTH_UNKNOWN);
    assert_string_equal(growth_shape_name(g.shape), "unknown");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shapes),         cmocka_unit_test(test_full),
    cmocka_unit_test(test_rate_and_error), cmocka_unit_test(test_limit),
    cmocka_unit_test(test_teeth),          cmocka_unit_test(test_disturbed_cache),
    cmocka_unit_test(test_too_short),      cmocka_unit_test(test_few_points_after_the_start),
    cmocka_unit_test(test_waves),
};

UNIT_MAIN(tests)
