#include "report/doctor.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

static struct doctor d;

// Returns a look at a process with 100 MiB of live blocks, no children and no cgroup.
static struct look make_look(void)
{
    return (struct look){.pid = 42,
                         .command = "service --port 80",
                         .state = 'S',
                         .threads = 3,
                         .time_ns = 1000000000,
                         .rss_bytes = 100 * MIB,
                         .owners = {[LOOK_LIVE] = 100 * MIB},
                         .heap = {.allocator = SOFTWARE_GLIBC,
                                  .version = "2.36",
                                  .is_read = true,
                                  .blocks = 1000,
                                  .live_bytes = 100 * MIB,
                                  .read_bytes = 100 * MIB},
                         .group = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
}

static void judge(const struct look *first, const struct look *last)
{
    struct look a = *first, b = *last;
    doctor_release(&d);
    assert_int_equal(doctor_add(&d, &a, a.rss_bytes, a.rss_bytes), 0);
    assert_int_equal(doctor_add(&d, &b, b.rss_bytes, b.rss_bytes), 0);
    doctor_judge(&d);
}

static bool has_note(const char *text)
{
    for (size_t i = 0; i < d.n_notes; i++) {
        if (strstr(d.notes[i], text))
            return true;
    }
    return false;
}

static void test_nothing_to_note(void **state)
{
    struct look l = make_look();
    (void)state;
    judge(&l, &l);
    assert_int_equal(d.n_notes, 0);
    assert_string_equal(d.title, "42 (service --port 80): RSS 100.0 MiB, 3 threads, glibc 2.36");
    assert_string_equal(d.next, "heaptape doctor --watch 60s 42");
    assert_null(d.effect);
}

static void test_children(void **state)
{
    struct look l = make_look();
    (void)state;
    l.children = 2;
    l.children_bytes = 300 * MIB;
    l.largest_child = (struct look_process){.pid = 43, .rss_bytes = 200 * MIB, .command = "worker"};
    judge(&l, &l);
    assert_true(has_note("Its child processes are bigger: 2 with 300.0 MiB; process 43 (worker)"));
    assert_string_equal(d.next, "heaptape doctor 43");
    l.children_bytes = 90 * MIB;
    judge(&l, &l);
    assert_false(has_note("child"));
}

static void test_group(void **state)
{
    struct look l = make_look();
    (void)state;
    l.group = (struct look_group){900 * MIB, 1000 * MIB, 600 * MIB};
    judge(&l, &l);
    assert_true(has_note("uses 900.0 MiB of 1000.0 MiB, but 600.0 MiB of that is page cache"));
    l.group.file_bytes = 100 * MIB;
    judge(&l, &l);
    assert_false(has_note("cgroup"));
    l.group = (struct look_group){500 * MIB, 1000 * MIB, 400 * MIB};
    judge(&l, &l);
    assert_false(has_note("cgroup"));
    l.group.limit_bytes = UINT64_MAX;
    judge(&l, &l);
    assert_false(has_note("cgroup"));
}

// The heap counts as corrupt only if both samples found the same invalid chunk.
static void test_corrupt(void **state)
{
    struct look a = make_look(), b = make_look();
    (void)state;
    a.heap.bad_at = b.heap.bad_at = 0x1230;
    judge(&a, &b);
    assert_true(has_note("the chunk at 0x1230 has the size 0"));
    a.heap.bad_at = 0x4560;
    judge(&a, &b);
    assert_false(has_note("corrupt"));
}

static void test_unread(void **state)
{
    struct look l = make_look();
    (void)state;
    l.owners[LOOK_LIVE] = 60 * MIB;
    l.owners[LOOK_UNREAD] = 40 * MIB;
    l.heap.read_bytes = 60 * MIB;
    judge(&l, &l);
    assert_true(has_note("Of malloc's memory, 40.0 MiB of 100.0 MiB was not read."));
    assert_false(d.facts.knows_blocks);
    l.heap = (struct look_heap){.allocator = SOFTWARE_GLIBC, .version = "2.99"};
    strcpy(l.heap.why_not, "the layout of glibc 2.99 is unknown");
    judge(&l, &l);
    assert_true(has_note("The blocks of malloc were not read: the layout of glibc 2.99"));
    l.heap = (struct look_heap){.allocator = SOFTWARE_JEMALLOC};
    judge(&l, &l);
    assert_true(has_note("The blocks and statistics of jemalloc were not read"));
}

// If an allocator other than glibc reports statistics, its blocks are known.
static void test_statistics(void **state)
{
    struct look l = make_look();
    (void)state;
    l.owners[LOOK_LIVE] = 0;
    l.owners[LOOK_ANONYMOUS] = 100 * MIB;
    l.heap = (struct look_heap){.allocator = SOFTWARE_JEMALLOC};
    judge(&l, &l);
    assert_int_equal(d.verdict.kind, VERDICT_KIND_unknown_blocks);
    assert_string_equal(d.next, "heaptape doctor --allocator-stats 42");
    assert_true(doctor_can_try(&d));
    l.owners[LOOK_LIVE] = 10 * MIB;
    l.owners[LOOK_FREE] = 85 * MIB;
    l.owners[LOOK_ANONYMOUS] = 5 * MIB;
    l.heap.has_statistics = true;
    l.heap.live_bytes = 10 * MIB;
    judge(&l, &l);
    assert_int_equal(d.n_notes, 0);
    d.asked_ns = 5000000;
    doctor_judge(&d);
    assert_int_equal(d.verdict.kind, VERDICT_KIND_retained);
    assert_non_null(strstr(d.verdict.text, "85.0 MiB of it are whole pages"));
    assert_non_null(strstr(d.verdict.remedy, "dirty_decay_ms"));
    assert_true(has_note("The statistics of jemalloc were read by calls"));
    assert_false(has_note("were not read"));
    assert_true(doctor_can_try(&d));
    assert_string_equal(d.next, "heaptape doctor --try 42");
    assert_non_null(strstr(d.effect, "asks"));
    // The process has no free memory.
    l.owners[LOOK_LIVE] = 95 * MIB;
    l.owners[LOOK_FREE] = 0;
    l.heap.live_bytes = 95 * MIB;
    judge(&l, &l);
    assert_false(doctor_can_try(&d));
    // For this allocator, heaptape knows neither statistics nor a function that returns memory.
    l.heap = (struct look_heap){.allocator = SOFTWARE_OTHER_ALLOCATOR};
    judge(&l, &l);
    assert_false(doctor_can_try(&d));
    assert_null(strstr(d.next, "--allocator-stats"));
}

// Judges 20 looks, 1 s apart. `mib` and `cpu_s` are the live bytes and the CPU time after s
// seconds.
static const struct software_runtime *runtime;

static enum verdict_kind judge_growth(double (*mib)(double s), double (*cpu_s)(double s))
{
    doctor_release(&d);
    for (unsigned i = 0; i < 20; i++) {
        struct look l = make_look();
        l.time_ns += i * 1000000000ull;
        l.runtime = runtime;
        l.cpu_ns = (uint64_t)(1e9 * (1 + cpu_s(i)));
        // The noise of a busy machine.
        l.heap.live_bytes = l.owners[LOOK_LIVE] = l.rss_bytes =
            (uint64_t)((100 + mib(i) + (i % 2 ? 2.5 : 0)) * (double)MIB);
        assert_int_equal(doctor_add(&d, &l, l.rss_bytes, l.rss_bytes), 0);
    }
    doctor_judge(&d);
    return d.verdict.kind;
}

static double line(double s)
{
    return 2 * s;
}

static double filling(double s)
{
    return 50 * (1 - exp(-s / 10));
}

// The CPU time with which a cache of 50 MiB grows like line().
static double cpu_of_cache(double s)
{
    return -10 * log(1 - line(s) / 50);
}

static void test_cpu_time(void **state)
{
    (void)state;
    assert_int_equal(judge_growth(line, line), VERDICT_KIND_grows);
    assert_non_null(strstr(d.title, ", watched for 19 s"));
    assert_string_equal(d.next, "heaptape record --pid 42 --stacks --duration 60s -o 42.ht");
    assert_int_equal(judge_growth(filling, line), VERDICT_KIND_fills);
    assert_string_equal(d.next, "heaptape doctor --watch 10m 42");
    assert_int_equal(d.n_notes, 0);
    // A cache that gets more and more CPU time, and a leak that gets less and less.
    assert_int_equal(judge_growth(line, cpu_of_cache), VERDICT_KIND_unclear);
    assert_int_equal(judge_growth(filling, filling), VERDICT_KIND_unclear);
}

// Before the user records a process that grows, the answer names the options of its runtime.
static void test_names(void **state)
{
    (void)state;
    runtime = software_runtime_of("/usr/bin/python3.11");
    assert_int_equal(judge_growth(line, line), VERDICT_KIND_grows);
    assert_true(has_note("To see functions of Python in the call stacks of a recording, record"));
    assert_int_equal(judge_growth(filling, line), VERDICT_KIND_fills);
    assert_int_equal(d.n_notes, 0);
    runtime = software_runtime_of("/usr/bin/ruby");
    assert_int_equal(judge_growth(line, line), VERDICT_KIND_grows);
    assert_int_equal(d.n_notes, 0);
    runtime = NULL;
}

static void test_runtime(void **state)
{
    struct look l = make_look();
    (void)state;
    l.runtime = software_runtime_of("python3.11");
    judge(&l, &l);
    assert_null(strstr(d.verdict.text, "Python"));
    l.owners[LOOK_LIVE] = 20 * MIB;
    l.owners[LOOK_RUNTIME] = 80 * MIB;
    judge(&l, &l);
    assert_non_null(strstr(d.verdict.text, "where Python has its own heap"));
    assert_non_null(strstr(d.title, ", Python"));
}

static void test_state(void **state)
{
    struct look l = make_look();
    (void)state;
    l.state = 'T';
    l.swap_bytes = 30 * MIB;
    judge(&l, &l);
    assert_false(has_note("60.0 MiB are in transparent huge pages"));
    l.huge_bytes = 60 * MIB;
    judge(&l, &l);
    assert_true(has_note("60.0 MiB are in transparent huge pages"));
    assert_true(has_note("The process is stopped."));
    assert_true(has_note("Another 30.0 MiB is swapped out."));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nothing_to_note), cmocka_unit_test(test_children),
    cmocka_unit_test(test_group),           cmocka_unit_test(test_corrupt),
    cmocka_unit_test(test_unread),          cmocka_unit_test(test_cpu_time),
    cmocka_unit_test(test_names),           cmocka_unit_test(test_runtime),
    cmocka_unit_test(test_state),           cmocka_unit_test(test_statistics),
};

UNIT_MAIN(tests)
