// Tests the share of malloc in a program's CPU time and the prediction for another allocator.
#include "replay/program.h"
#include "replay/real.h"
#include "unit.h"

#include <math.h>

#define MS 1000000.0

// A session that replays a program's workload. The CPU time includes the time of recording. Replays
// take 130 ms on the program's own allocator, 80 ms on another, and 30 ms on the null allocator.
struct fixture {
    struct replay_session session;
    struct replay_result results[2];
    struct replay_run runs[2][3], null_runs[3];
};

static struct replay_session *make(struct fixture *f, double cpu_ms, double recording_ms)
{
    static const double cpu_ns[] = {130 * MS, 80 * MS};
    *f = (struct fixture){.session = {.summary.cpu_ns = (uint64_t)(cpu_ms * MS),
                                      .summary.recording_ns = (uint64_t)(recording_ms * MS),
                                      .recorded_allocator = "/lib/own.so",
                                      .results = f->results,
                                      .n_results = 2,
                                      .null = {.runs = f->null_runs, .n_runs = 3}}};
    for (unsigned i = 0; i < 3; i++) {
        f->null_runs[i].figures.cpu_ns = 30 * MS + i - 1.0;
        for (unsigned k = 0; k < 2; k++) {
            f->runs[k][i].figures.cpu_ns = cpu_ns[k] + 2.0 * i - 2.0;
            f->runs[k][i].library = k ? "/lib/other.so" : "/lib/own.so";
        }
    }
    for (unsigned k = 0; k < 2; k++)
        f->results[k] = (struct replay_result){.runs = f->runs[k], .n_runs = 3};
    return &f->session;
}

static void share_and_ratio(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, 500, 100);
    struct program_time t = program_time(s);
    assert_null(t.missing_reason);
    assert_true(t.cpu_ns == 400 * MS && t.recording_ns == 100 * MS && t.calls_ns == 100 * MS &&
                t.share == 0.25);
    assert_true(program_ratio(s, &t, &f.results[0]) == 1);
    assert_true(program_calls_ns(s, &f.results[1], PROGRAM_ALL_RUNS) == 50 * MS);
    assert_true(fabs(program_ratio(s, &t, &f.results[1]) - 350.0 / 400) < 1e-9);
}

static void the_recorded_allocator_need_not_be_the_first(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, 500, 100);
    struct replay_result own = f.results[0];
    f.results[0] = f.results[1];
    f.results[1] = own;
    struct program_time t = program_time(s);
    assert_true(t.share == 0.25 && isnan(t.max_share));
    assert_true(fabs(program_ratio(s, &t, &f.results[1]) - 400.0 / 350) < 1e-9);
}

// The prediction includes the time to load the libraries of an allocator.
static void the_load_of_an_allocator(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, 500, 100);
    for (unsigned i = 0; i < 3; i++) {
        f.runs[0][i].figures.load_cpu_ns = 2 * MS + i;
        f.runs[1][i].figures.load_cpu_ns = 12 * MS + i;
    }
    struct program_time t = program_time(s);
    assert_true(program_load_ns(s, &f.results[1], PROGRAM_ALL_RUNS) == 10 * MS &&
                program_load_ns(s, &f.results[0], PROGRAM_ALL_RUNS) == 0);
    assert_true(program_ratio(s, &t, &f.results[0]) == 1);
    assert_true(fabs(program_ratio(s, &t, &f.results[1]) - 360.0 / 400) < 1e-9);
    s->recorded_allocator = "/lib/third.so";
    assert_true(isnan(program_load_ns(s, &f.results[1], PROGRAM_ALL_RUNS)));
}

// First touches of large blocks are not part of the calls, but depend on the allocator.
static void the_first_use_of_big_blocks(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, 500, 100);
    for (unsigned i = 0; i < 3; i++) {
        f.null_runs[i].figures.touch_ns = 10 * MS;
        f.runs[0][i].figures.touch_ns = 50 * MS + i;
        f.runs[1][i].figures.touch_ns = 20 * MS + i;
    }
    struct program_time t = program_time(s);
    assert_true(fabs(program_use_ns(s, &f.results[0], PROGRAM_ALL_RUNS) - 40 * MS) < 2 &&
                fabs(t.calls_ns - 60 * MS) < 2);
    assert_true(fabs(t.share - 0.15) < 1e-6 &&
                fabs(program_calls_ns(s, &f.results[1], PROGRAM_ALL_RUNS) - 40 * MS) < 2);
    assert_true(program_ratio(s, &t, &f.results[0]) == 1);
    assert_true(fabs(program_ratio(s, &t, &f.results[1]) - 350.0 / 400) < 1e-6);
    // In the program, the calls took twice as long as in the replay. The first use of the blocks
    // took as long as in the replay.
    s->summary.calls_min_ns = (uint64_t)(120 * MS);
    s->summary.calls_max_ns = (uint64_t)(130 * MS);
    t = program_time(s);
    assert_true(fabs(program_ratio(s, &t, &f.results[1]) - 330.0 / 400) < 1e-6);
    // If touches take half of the time or more, the rest of the program cannot be estimated.
    for (unsigned i = 0; i < 3; i++)
        f.runs[0][i].figures.cpu_ns = 300 * MS;
    for (unsigned i = 0; i < 3; i++)
        f.runs[0][i].figures.touch_ns = 209 * MS;
    t = program_time(s);
    assert_null(program_ratio_missing_reason(s, &t, &f.results[1]));
    for (unsigned i = 0; i < 3; i++)
        f.runs[0][i].figures.touch_ns = 211 * MS;
    t = program_time(s);
    assert_null(t.missing_reason);
    assert_string_equal(program_ratio_missing_reason(s, &t, &f.results[1]),
                        "in replay, page faults in big blocks alone take over half of it");
    assert_true(isnan(program_ratio(s, &t, &f.results[1])) && t.share > 0.2);
    for (unsigned i = 0; i < 3; i++)
        f.runs[0][i].figures.cpu_ns = 130 * MS;
    // If touches take all of the time, no time is left for calls.
    for (unsigned i = 0; i < 3; i++)
        f.runs[0][i].figures.touch_ns = 200 * MS;
    assert_true(program_calls_ns(s, &f.results[0], PROGRAM_ALL_RUNS) == 0);
    s->summary.calls_max_ns = 0;
    t = program_time(s);
    assert_true(t.share == 0 && fabs(program_ratio(s, &t, &f.results[1]) - 350.0 / 400) < 1e-6);
}

// The recorded allocator causes no page faults. On the other allocator, page faults raise the CPU
// time from 400 ms to 650 and 850 ms.
static void mostly_page_faults_on_another_allocator(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, 500, 100);
    struct program_time t = program_time(s);
    for (unsigned ms = 300; ms <= 500; ms += 200) {
        for (unsigned i = 0; i < 3; i++) {
            f.runs[1][i].figures.touch_ns = ms * MS;
            f.runs[1][i].figures.cpu_ns = (80 + ms) * MS;
        }
        bool known = ms == 300;
        assert_true((program_ratio_missing_reason(s, &t, &f.results[1]) == NULL) == known);
        assert_true(isnan(program_ratio(s, &t, &f.results[1])) == !known);
        assert_true(program_ratio(s, &t, &f.results[0]) == 1);
    }
}

// Calls in the program have colder caches than calls in the replay. The lower bound of the share is
// the greater of the two measurements.
static void timed_calls(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, 500, 100);
    s->summary.calls_min_ns = (uint64_t)(200 * MS);
    s->summary.calls_max_ns = (uint64_t)(240 * MS);
    struct program_time t = program_time(s);
    assert_true(t.share == 0.5 && t.max_share == 0.6);
    assert_true(fabs(program_ratio(s, &t, &f.results[1]) - 300.0 / 400) < 1e-9);
    s->summary.calls_min_ns = (uint64_t)(60 * MS);
    t = program_time(s);
    assert_true(t.share == 0.25 && t.max_share == 0.6);
    s->summary.calls_max_ns = (uint64_t)(80 * MS);
    assert_true(program_time(s).max_share == 0.25);
    s->recorded_allocator = NULL;
    t = program_time(s);
    assert_true(t.share == 0.15 && t.max_share == 0.2 &&
                isnan(program_ratio(s, &t, &f.results[1])));
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

// Runs on the other allocator take 80 to 84 ms, all other runs as in `make`. In the program, the
// calls take 100 to 200 of 400 ms. The remaining code may run 12 % faster or slower.
static void interval_of_the_ratio(void **state)
{
    enum { RUNS = 5 };
    (void)state;
    struct fixture f;
    struct replay_run runs[2][RUNS] = {0}, null_runs[RUNS] = {0};
    struct replay_session *s = make(&f, 500, 100);
    for (unsigned i = 0; i < RUNS; i++) {
        runs[0][i] = f.runs[0][1];
        runs[1][i] = f.runs[1][1];
        runs[1][i].figures.cpu_ns = (80 + i) * MS;
        null_runs[i] = f.null_runs[1];
    }
    for (unsigned k = 0; k < 2; k++) {
        f.results[k].runs = runs[k];
        f.results[k].n_runs = RUNS;
    }
    s->null.runs = null_runs;
    s->null.n_runs = RUNS;
    struct program_time t = program_time(s);
    struct measure_ratio r = program_interval(s, &t, &f.results[1]);
    assert_true(is_near(t.rest_share, 0.75));
    assert_true(is_near(r.ratio, 352.0 / 400));
    assert_true(is_near(r.low, 350.0 / 400 - 0.09) && is_near(r.high, 354.0 / 400 + 0.09));
    s->summary.calls_min_ns = (uint64_t)(50 * MS);
    s->summary.calls_max_ns = (uint64_t)(200 * MS);
    t = program_time(s);
    r = program_interval(s, &t, &f.results[1]);
    assert_true(is_near(r.ratio, 352.0 / 400));
    assert_true(is_near(r.low, 300.0 / 400 - 0.09) && is_near(r.high, 354.0 / 400 + 0.09));
    r = program_interval(s, &t, &f.results[0]);
    assert_true(r.ratio == 1 && r.low == 1 && r.high == 1);
    f.results[1].n_runs = RUNS - 1;
    r = program_interval(s, &t, &f.results[1]);
    assert_true(r.ratio > 0 && !measure_has_interval(&r));
}

static void missing(struct replay_session *s, const char *reason)
{
    struct program_time t = program_time(s);
    assert_string_equal(t.missing_reason, reason);
    assert_true(isnan(t.share) && isnan(program_ratio(s, &t, &s->results[0])));
}

static void missing_predictions(void **state)
{
    (void)state;
    struct fixture f;
    missing(make(&f, 0, 0), "the workload lacks the CPU time of a whole process");
    missing(make(&f, 500, 200), "recording took too much of the CPU time");
    missing(make(&f, 90, 0), "the calls took more CPU time than the program");
    struct replay_session *s = make(&f, 500, 100);
    s->recorded_allocator = "/lib/third.so";
    missing(s, "the recording did not time the calls, and the recorded allocator is not among "
               "those replayed");
    s->recorded_allocator = NULL;
    missing(s, "the recording did not time the calls, and the recorded allocator is not among "
               "those replayed");
}

// The program's own ratio is compared with the interval, whose half-width is at least 12 % of the
// rest.
static void the_real_ratio_and_the_interval(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, 500, 100);
    struct replay_real real[2][5] = {0};
    struct replay_run runs[3][5] = {0};
    for (unsigned k = 0; k < 3; k++) {
        for (unsigned i = 0; i < 5; i++)
            runs[k][i] = k < 2 ? f.runs[k][i % 3] : f.null_runs[i % 3];
    }
    for (unsigned k = 0; k < 2; k++) {
        f.results[k] =
            (struct replay_result){.runs = runs[k], .n_runs = 5, .real = real[k], .n_real = 5};
        for (unsigned i = 0; i < 5; i++)
            real[k][i].values[REAL_CPU] = k ? 0.9 : 1;
    }
    s->null.runs = runs[2];
    s->null.n_runs = 5;
    assert_int_equal(replay_real_cpu_is_within(s, &f.results[0]), -1);
    assert_int_equal(replay_real_cpu_is_within(s, &f.results[1]), 1);
    for (unsigned i = 0; i < 5; i++)
        real[1][i].values[REAL_CPU] = 0.7;
    assert_int_equal(replay_real_cpu_is_within(s, &f.results[1]), 0);
    for (unsigned i = 0; i < 5; i++)
        real[1][i].values[REAL_CPU] = 1.1;
    assert_int_equal(replay_real_cpu_is_within(s, &f.results[1]), 0);
    f.results[1].n_runs = 2;
    assert_int_equal(replay_real_cpu_is_within(s, &f.results[1]), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(share_and_ratio),
    cmocka_unit_test(mostly_page_faults_on_another_allocator),
    cmocka_unit_test(the_recorded_allocator_need_not_be_the_first),
    cmocka_unit_test(the_load_of_an_allocator),
    cmocka_unit_test(the_first_use_of_big_blocks),
    cmocka_unit_test(timed_calls),
    cmocka_unit_test(interval_of_the_ratio),
    cmocka_unit_test(missing_predictions),
    cmocka_unit_test(the_real_ratio_and_the_interval),
};

UNIT_MAIN(tests)
