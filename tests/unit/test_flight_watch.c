// Tests the triggers that dump a flight recording.
#include "cli/command.h"
#include "record/flight/watch.h"
#include "unit.h"

#include <string.h>

// The test parses options without any command.
const struct command *const cli_commands[] = {NULL};
const struct command_row cli_command_rows[] = {{0}};

static struct trace_session session = {.clock = CLOCK_KIND_MONOTONIC, .clock_hz = 1000000000};
static struct trace_process process = {.number = 2, .pid = 77};
static char reason[WATCH_REASON_BYTES];

static bool sees(struct watch *w, uint64_t second, uint64_t mib)
{
    const struct trace_sample s = {
        .process = 2, .stamp = second * 1000000000u, .rss_bytes = mib << 20};
    reason[0] = 0;
    return watch_sample(w, &process, &s, reason);
}

static struct watch watch_of(const char *text, struct flight_triggers *t)
{
    struct watch w;
    assert_int_equal(flight_triggers_parse(text, t), 0);
    watch_init(&w, t, &session);
    return w;
}

static void test_parse(void **state)
{
    static const char *const bad[] = {"",
                                      "rss",
                                      "rss>",
                                      "rss>0",
                                      "rss>1X",
                                      "rss+20%",
                                      "rss+%/5s",
                                      "rss+0%/5s",
                                      "rss+20/5s",
                                      "rss+20%/5",
                                      "rss+20%/0s",
                                      "cgroup>0%",
                                      "cgroup>100%",
                                      "cgroup>9",
                                      "oom,",
                                      "pressure>0%",
                                      "pressure>5",
                                      "exit=0",
                                      "exit,,oom"};
    struct flight_triggers t;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(flight_triggers_parse(bad[i], &t) < 0);
    assert_int_equal(flight_triggers_parse("rss>2G,rss+20%/5min,cgroup>90%,oom,exit!=0", &t), 0);
    assert_int_equal(t.rss_bytes, 2ull << 30);
    assert_int_equal(t.growth_percent, 20);
    assert_int_equal(t.growth_ns, 300000000000);
    assert_int_equal(t.cgroup_percent, 90);
    assert_true(t.any && t.oom && t.failure && !t.exit);
}

// The trigger fires when the RSS crosses the limit. It fires again only after the RSS was well
// below the limit.
static void test_rss(void **state)
{
    struct flight_triggers t;
    struct watch w = watch_of("rss>100M", &t);
    (void)state;
    assert_false(sees(&w, 1, 100));
    assert_true(sees(&w, 2, 101));
    assert_string_equal(reason, "rss>100.0 MiB: process 77 has 101.0 MiB");
    assert_false(sees(&w, 3, 102));
    assert_false(sees(&w, 4, 95));
    assert_false(sees(&w, 5, 120));
    assert_false(sees(&w, 6, 80));
    assert_true(sees(&w, 7, 120));
    watch_release(&w);
}

static void test_growth(void **state)
{
    struct flight_triggers t;
    struct watch w = watch_of("rss+20%/60s", &t);
    (void)state;
    // Growth during startup does not fire.
    for (uint64_t s = 0; s < 60; s++)
        assert_false(sees(&w, s, 10 * s));
    // The RSS grows at the same rate. Above 600 MiB, the growth within 60 s is less than a fifth of
    // the RSS.
    for (uint64_t s = 125; s < 300; s++)
        assert_false(sees(&w, s, 600));
    unsigned seen = 0;
    for (uint64_t s = 300; s < 400; s++)
        seen += sees(&w, s, 600 + 3 * (s - 300));
    assert_int_equal(seen, 1);
    watch_release(&w);
}

static void test_the_reason_of_growth(void **state)
{
    struct flight_triggers t;
    struct watch w = watch_of("rss+50%/10s", &t);
    (void)state;
    // The newest point that is at least 10 s old counts.
    for (uint64_t s = 0; s <= 40; s++)
        assert_false(sees(&w, s, 100 + s));
    assert_false(sees(&w, 41, 196));
    assert_true(sees(&w, 42, 199));
    assert_string_equal(reason, "rss+50%: process 77 has 199.0 MiB, up from 132.0 MiB 10.00 s ago");
    assert_false(sees(&w, 43, 200));
    watch_release(&w);
}

// Returns true if the exit of the program with `status` fires the triggers. A status of -1 means
// that the status is unknown.
static bool ends(const char *text, int status)
{
    struct flight_triggers t = {0};
    struct watch w;
    if (text)
        assert_int_equal(flight_triggers_parse(text, &t), 0);
    watch_init(&w, &t, &session);
    struct trace_process p = {.has_exit_status = status >= 0,
                              .exit_status = (uint64_t)(status >= 0 ? status : 0)};
    watch_process_end(&w, &p);
    // A child of the program exits.
    watch_process_end(&w, &(struct trace_process){0});
    reason[0] = 0;
    bool seen = watch_end(&w, reason);
    watch_release(&w);
    return seen;
}

static void test_end(void **state)
{
    (void)state;
    assert_true(ends(NULL, 0));
    assert_string_equal(reason, "exit: the program exited with status 0");
    assert_true(ends(NULL, -1));
    assert_string_equal(reason, "exit: the recording ended");
    assert_false(ends("exit!=0", 0));
    assert_false(ends("exit!=0", -1));
    assert_true(ends("exit!=0", 3 << 8));
    assert_string_equal(reason, "exit!=0: the program exited with status 3");
    assert_true(ends("exit!=0", 11));
    assert_string_equal(reason, "exit!=0: signal 11 terminated the program");
    assert_true(ends("exit", 0));
    assert_false(ends("rss>1G", 0));
    assert_false(ends("oom", 0));
    assert_false(ends("oom", 15));
    assert_true(ends("oom", 9));
    assert_string_equal(reason, "oom: SIGKILL terminated the program, perhaps by the OOM killer");
}

static void test_pressure(void **state)
{
    struct flight_triggers t;
    struct watch w = watch_of("pressure>20%", &t);
    struct proc_cgroup c = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, false, 0};
    (void)state;
    assert_false(watch_limits(&w, &c, reason));
    c.pressure = 2000;
    assert_false(watch_limits(&w, &c, reason));
    c.pressure = 2110;
    assert_true(watch_limits(&w, &c, reason));
    assert_string_equal(
        reason, "pressure>20%: in the last 10 s, tasks of the cgroup waited for memory for 21.1 %");
    c.pressure = 9000;
    assert_false(watch_limits(&w, &c, reason));
    c.pressure = 1700;
    assert_false(watch_limits(&w, &c, reason));
    c.pressure = 3000;
    c.pressure_of_host = true;
    assert_true(watch_limits(&w, &c, reason));
    assert_non_null(strstr(reason, "tasks of the host waited"));
    watch_release(&w);
    // The trigger is not set.
    w = watch_of("oom", &t);
    assert_false(watch_limits(&w, &c, reason));
    watch_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),  cmocka_unit_test(test_rss),
        cmocka_unit_test(test_growth), cmocka_unit_test(test_the_reason_of_growth),
        cmocka_unit_test(test_end),    cmocka_unit_test(test_pressure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
