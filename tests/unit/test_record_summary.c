// Checks the lines that `record` prints at the end: one line for a recording without gaps, and one
// more line for each gap.
#include "unit.h"

#include "commands/record_summary.h"
#include "record/unrecorded/running.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char printed[65536];

// Returns the text that is printed to standard error.
static const char *summary_of(bool verbose, const struct record_result *r, const struct output *out)
{
    int before = dup(STDERR_FILENO), to = memfd_create("stderr", MFD_CLOEXEC);
    fflush(stderr);
    assert_true(dup2(to, STDERR_FILENO) >= 0);
    record_summary_print(verbose, r, out);
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    ssize_t n = pread(to, printed, sizeof printed - 1, 0);
    assert_true(n >= 0);
    printed[n] = 0;
    close(before);
    close(to);
    return printed;
}

#define FIRST                                                                                      \
    "heaptape: recorded 100 events of 2 processes to a.ht: 1.0 KiB, 10.24 bytes per event\n"

static const struct output output = {.name = "a.ht", .offset = 1024};

// A gap, and its line.
struct gap {
    struct record_result r;
    const char *line;
};

#define BALANCE(...)                                                                               \
    {                                                                                              \
        .unrecorded.balance = { __VA_ARGS__ }                                                      \
    }
#define LOSSES(...)                                                                                \
    {                                                                                              \
        .losses = { __VA_ARGS__ }                                                                  \
    }
#define VISIT(...)                                                                                 \
    {                                                                                              \
        .visit = { __VA_ARGS__ }                                                                   \
    }

static const struct gap gaps[] = {
    {LOSSES(.lost_records = 3), "3 records were lost: overwritten by the program, or cut off with "
                                "the recording (record again)"},
    {{.losses.lost_records = 1,
      .unrecorded.balance = {.lost_elsewhere = 1, .lost_at_least = 1, .lossy = 1}},
     "at least 2 records were lost: the recorder fell behind (try without --lossy, or with -z "
     "none)"},
    {BALANCE(.without_spool = 1),
     "1 process was not recorded: no space, memory or file descriptor was left for a spool (try "
     "more space in /dev/shm, or a higher ulimit -n or -v)"},
    {BALANCE(.unreadable_spools = 2),
     "2 spools could not be read: a program truncated or overwrote it before the recorder read it "
     "(try --follow, to leave that program out)"},
    {BALANCE(.unopened_spools = 1), "1 spool could not be opened: the recorder had no memory or "
                                    "file descriptor left (try a higher ulimit -n or -v)"},
    {{.unrecorded = {.by = TRACE_MISSED_KERNEL, .processes = 1}},
     "1 other process was not recorded (remedies: heaptape-record(1))"},
    {BALANCE(.bad_code_names = 1),
     "1 record of perf-PID.map or jit-PID.dump was skipped: expected START SIZE NAME in a line, in "
     "hexadecimal digits, or a record of jitdump (their functions have no names: correct the "
     "program that writes the file)"},
    {BALANCE(.cut_code_names = 2),
     "only the first 64 MiB of perf-PID.map and jit-PID.dump were read, of 2 processes (later "
     "functions have no names: record a shorter run)"},
    {LOSSES(.bypassed = {1, 12, "tool", "/bin/tool"}),
     "process 12 (tool) calls its own malloc (in /bin/tool): those calls were not recorded "
     "(record again if the machine was busy; otherwise link it without that malloc)"},
    {LOSSES(.off = {3, 12, "tool", "its spool was removed"}),
     "recording turned itself off in process 12 (tool), and 2 other processes: its spool was "
     "removed (remove the cause, and record again)"},
    {LOSSES(.deepbound = "/lib/plugin.so", .deepbound_bytes = sizeof "/lib/plugin.so"),
     "/lib/plugin.so was opened with RTLD_DEEPBIND: its calls of malloc, realloc and free were not "
     "recorded (open it without the flag)"},
    {BALANCE(.clock_pid = 12, .clock_ahead_ns = 2000000000, .clock_behind_ns = 1000),
     "the clock of process 12 is 2.00 s ahead of the recorder's: times and the order of its events "
     "are wrong (try without a time namespace, or if the CPUs' counters differ, "
     "HEAPTAPE_CLOCK=monotonic)"},
    {BALANCE(.clock_pid = 12, .clock_behind_ns = 2000000000),
     "the clock of process 12 is 2.00 s behind the recorder's: times and the order of its events "
     "are wrong (try without a time namespace, or if the CPUs' counters differ, "
     "HEAPTAPE_CLOCK=monotonic)"},
    {BALANCE(.clock_distrusted = 1),
     "the kernel stopped using the processor's counter as its clock: times and the order of events "
     "may be wrong (try HEAPTAPE_CLOCK=monotonic)"},
    {BALANCE(.overwritten_session = 1),
     "a program overwrote the memory that it shares with the recorder: the recording may be "
     "incomplete (correct its wild pointer, and record again)"},
    {BALANCE(.ended_early = 1, .ended_by = 34),
     "process 34 ended the recording, as 'heaptape ctl PID detach' does; the program continued (to "
     "continue the recording, attach again)"},
    {BALANCE(.ended_early = 1),
     "the recording ended early; the program continued (to continue the recording, attach again)"},
    {BALANCE(.size_limit = 1),
     "the recording stopped at --max-size; the program continued untraced (try --flight or "
     "--segment)"},
    {BALANCE(.stop_signal = 15),
     "signal 15 stopped the recording before its processes exited (end the program instead)"},
    {VISIT(.threads = 1, .paused_ns = 3000000), "paused 1 thread for at most 3.0 ms"},
    {VISIT(.not_listed = "its threads did not leave malloc in time"),
     "preexisting blocks are not recorded: its threads did not leave malloc in time (to record all "
     "blocks, start the program with 'heaptape record')"},
    {VISIT(.not_redirected = "malloc of /bin/tool"),
     "some functions are recorded through the loader's tables, so calls through stored pointers "
     "are not recorded: malloc of /bin/tool (to record all calls, start the program with 'heaptape "
     "record')"},
    {VISIT(.not_recorded = "malloc of /bin/tool"),
     "the program's own malloc is not recorded: its functions cannot be redirected: malloc of "
     "/bin/tool"},
    {{.not_left = "12: a thread cannot be stopped"},
     "libheaptape.so remains in the process: 12: a thread cannot be stopped (try 'heaptape ctl PID "
     "detach')"},
    {{.cut_off = true},
     "a.ht accepted no more data: the trace is cut off (recover the intact part with 'heaptape "
     "check --salvage')"},
};

// Returns the gap's result of a recording of 100 events.
static struct record_result result_of(const struct gap *g)
{
    struct record_result r = g->r;
    r.events = 100;
    r.processes = 2;
    return r;
}

static void test_a_recording_without_gaps_has_one_line(void **state)
{
    const struct gap none = {.line = ""};
    struct record_result r = result_of(&none);
    (void)state;
    assert_string_equal(summary_of(false, &r, &output), FIRST);
    assert_string_equal(summary_of(false, &r, NULL),
                        "heaptape: recorded 100 events of 2 processes\n");
    // The kernel reported all processes.
    r.unrecorded.by = TRACE_MISSED_KERNEL;
    assert_string_equal(summary_of(false, &r, &output), FIRST);
}

static void test_each_gap_has_its_line(void **state)
{
    char expected[4096];
    (void)state;
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        const struct record_result r = result_of(&gaps[i]);
        snprintf(expected, sizeof expected, FIRST "heaptape: %s\n", gaps[i].line);
        assert_string_equal(summary_of(false, &r, &output), expected);
    }
}

static void test_listed_blocks_are_no_events(void **state)
{
    const struct gap walked = {.r.visit = {.listed_blocks = 90, .listed_bytes = 2048}};
    const struct record_result r = result_of(&walked);
    (void)state;
    assert_string_equal(summary_of(false, &r, NULL), "heaptape: recorded 10 events of 2 processes\n"
                                                     "heaptape: 90 preexisting blocks: 2.0 KiB\n");
    // The program made no call during the recording.
    const struct gap idle = {.r.visit = {.listed_blocks = 100, .listed_bytes = 2048}};
    const struct record_result of_idle = result_of(&idle);
    assert_string_equal(summary_of(false, &of_idle, NULL),
                        "heaptape: recorded 0 events of 2 processes\n"
                        "heaptape: 100 preexisting blocks: 2.0 KiB\n");
}

static void test_the_limits_of_the_search_for_processes(void **state)
{
    struct trace_missed one = {12, "sh", "it is statically linked", 0, UINT64_MAX, 2000000000};
    struct trace_missed two = {13, "", "it has another loader", 2, 7, 0};
    const struct gap none = {.line = ""};
    struct record_result r = result_of(&none);
    (void)state;
    r.unrecorded = (struct trace_unrecorded){.by = TRACE_MISSED_GAPS, .processes = 5};
    assert_int_equal(trace_unrecorded_add(&r.unrecorded, &one), 0);
    assert_int_equal(trace_unrecorded_add(&r.unrecorded, &two), 0);
    assert_string_equal(
        summary_of(false, &r, NULL),
        "heaptape: recorded 100 events of 2 processes\n"
        "heaptape: process 12 (sh) was not recorded: it is statically linked (it ran for 2.00 s) "
        "(remedies: heaptape-record(1))\n"
        "heaptape: process 13 (ended before its name was read) and 2 processes that it forked were "
        "not recorded: it has another loader (7 calls) (remedies: heaptape-record(1))\n"
        "heaptape: 1 other process was not recorded (remedies: heaptape-record(1))\n"
        "heaptape: the kernel did not report all processes: others may not have been recorded "
        "(record fewer processes, with --follow)\n");
    r.unrecorded.by = TRACE_MISSED_PROC;
    assert_non_null(
        strstr(summary_of(false, &r, NULL),
               "\n"
               "heaptape: the kernel did not report processes: others that lived for less than 0.1 "
               "s may not have been recorded (record as root, or with CAP_NET_ADMIN)\n"));
    trace_unrecorded_release(&r.unrecorded);
}

static void test_another_format_that_was_cut_off(void **state)
{
    const struct gap cut = {.r.cut_off = true};
    const struct record_result r = result_of(&cut);
    (void)state;
    assert_string_equal(summary_of(false, &r, NULL),
                        "heaptape: recorded 100 events of 2 processes\n"
                        "heaptape: the output accepted no more data: it was cut off (check its "
                        "reader, and record again)\n");
}

static void test_the_cost(void **state)
{
    const struct gap none = {.r = {.cpu_ns = 1000, .batches = 1, .wait_ns = 5000000}};
    const struct record_result r = result_of(&none);
    (void)state;
    assert_string_equal(summary_of(true, &r, &output), FIRST
                        "heaptape: recorder: 10.0 ns of CPU per event, 1 batch; backpressure: "
                        "threads waited 5.0 ms\n");
}

// Checks the reason why nothing was recorded.
static void test_why_nothing_was_recorded(void **state)
{
    struct err e;
    (void)state;
    static struct trace_missed attached = {.pid = 42, .why = "was started without a library"},
                               other = {.pid = 43, .why = "was started without a library"},
                               worker = {.pid = 44, .why = RUNNING_WHY};
    static const struct gap reasons[] = {
        {LOSSES(.off = {1, 12, "tool", "no memory"}), "no memory"},
        {BALANCE(.without_spool = 1), "no space, memory or file descriptor was left for its spool"},
        {BALANCE(.unreadable_spools = 1), "its spool was truncated or overwritten"},
        {BALANCE(.unopened_spools = 1),
         "the recorder had no memory or file descriptor left for its spool"},
        {LOSSES(.bypassed = {1, 12, "tool", "/bin/tool"}),
         "the program calls its own malloc (in /bin/tool)"},
        {VISIT(.not_recorded = "malloc"),
         "the functions of its own malloc cannot be redirected: malloc"},
        {{.visit.threads = 1}, "the process ended, or executed another program"},
        {{.visit.threads = 1, .processes = 1, .unrecorded = {.items = &attached, .n = 1}},
         "the process ended, or executed another program"},
        {{.visit.threads = 1, .processes = 1, .unrecorded = {.items = &other, .n = 1}},
         "was started without a library"},
        {{.visit.threads = 1, .processes = 1, .unrecorded = {.items = &worker, .n = 1}},
         "the program did not call the malloc API"},
        {{.processes = 1}, "the program did not call the malloc API"},
        {{.processes = 0}, "libheaptape.so never started in it"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        char expected[400];
        e = (struct err){0};
        record_summary_nothing("true", 42, &reasons[i].r, &e);
        snprintf(expected, sizeof expected, "true: nothing was recorded: %s", reasons[i].line);
        assert_string_equal(e.text, expected);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_recording_without_gaps_has_one_line),
    cmocka_unit_test(test_each_gap_has_its_line),
    cmocka_unit_test(test_listed_blocks_are_no_events),
    cmocka_unit_test(test_the_limits_of_the_search_for_processes),
    cmocka_unit_test(test_another_format_that_was_cut_off),
    cmocka_unit_test(test_the_cost),
    cmocka_unit_test(test_why_nothing_was_recorded),
};

UNIT_MAIN(tests)
