// Tests settings and allocators of a session. tests/commands/replay*.bats run sessions.
#include "replay/json.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void verify_measures_nothing(void **state)
{
    (void)state;
    struct replay_session s;
    const struct replay_settings set = {.runs = 2,
                                        .verify = true,
                                        .latency = true,
                                        .fragmentation = true,
                                        .stats_every = 5,
                                        .trim_every = 7};
    replay_session_init(&s, &set);
    assert_true(s.settings.touch == RESULTS_TOUCH_VERIFY);
    assert_false(s.settings.latency || s.settings.fragmentation || s.plan_settings.stats_every);
    assert_int_equal(s.plan_settings.trim_every, 7);
    assert_int_equal(s.plan_settings.memory_bytes, plan_default_memory());
    assert_false(replay_session_needs_input(&s));
    replay_session_release(&s);
}

static void allocators_are_added_in_order(void **state)
{
    (void)state;
    struct replay_session s;
    struct err e = {0};
    replay_session_init(&s, &(struct replay_settings){.runs = 1});
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(replay_session_add(&s, i % 2 ? "glibc,MALLOC_ARENA_MAX=1" : "glibc", &e),
                         0);
    assert_int_equal(replay_session_add(&s, "nosuch", &e), -EINVAL);
    assert_int_equal(s.n_results, 20);
    assert_int_equal(s.results[7].allocator.n_tunables, 1);
    assert_int_equal(s.results[8].allocator.n_tunables, 0);
    replay_session_release(&s);
}

static void the_number_of_runs_is_checked(void **state)
{
    (void)state;
    struct replay_session s;
    struct err e = {0};
    replay_session_init(&s, &(struct replay_settings){.runs = MEASURE_MAX_RUNS + 1});
    assert_int_equal(replay_session_run(&s, &e), -EINVAL);
    assert_non_null(strstr(e.text, "runs"));
    replay_session_release(&s);
}

static void json_of_verify(void **state)
{
    (void)state;
    struct replay_session s;
    struct err e = {0};
    char *text = NULL;
    size_t n = 0;
    replay_session_init(&s, &(struct replay_settings){.runs = 1, .verify = true});
    s.workload = "w.htw";
    assert_int_equal(replay_session_add(&s, "glibc", &e), 0);
    struct replay_result *r = &s.results[0];
    r->runs = calloc(1, sizeof *r->runs);
    assert_non_null(r->runs);
    r->runs[0] =
        (struct replay_run){.report.checked_blocks = 42, .library = strdup("/lib/libc.so.6")};
    r->n_runs = 1;
    struct json j = {.to = open_memstream(&text, &n)};
    replay_json(&j, &s);
    fclose(j.to);
    assert_non_null(strstr(text, "\"schema_version\":2,\"workload\":\"w.htw\""));
    assert_non_null(
        strstr(text, "\"verify\":{\"runs\":1,\"blocks\":42,\"violations\":0,\"refused_calls\":0"));
    free(text);
    replay_session_release(&s);
}

// The best placement is never above the peak of an allocator.
static void best_placement(void **state)
{
    (void)state;
    struct replay_result results[2] = {};
    struct replay_session s = {
        .results = results, .n_results = 2, .placement = {.lower_bytes = 10, .found_bytes = 15}};
    results[0].figures.peak_rss_bytes = 20;
    results[1].figures.peak_rss_bytes = 15;
    struct replay_best_placement b = replay_session_best_placement(&s);
    assert_true(b.bytes == 15 && !b.result);
    results[1].figures.peak_rss_bytes = 14;
    b = replay_session_best_placement(&s);
    assert_true(b.bytes == 14 && b.result == &results[1]);
    s.placement_missing_reason = "a block is too big";
    b = replay_session_best_placement(&s);
    assert_true(isnan(b.bytes) && !b.result);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(best_placement),
    cmocka_unit_test(verify_measures_nothing),
    cmocka_unit_test(allocators_are_added_in_order),
    cmocka_unit_test(the_number_of_runs_is_checked),
    cmocka_unit_test(json_of_verify),
};

UNIT_MAIN(tests)
