// Tests the losses that are collected over all processes, and the list of processes that were not
// recorded.
#include "trace/fields.h"
#include "trace/losses.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static struct trace_losses losses;

static int clear(void **state)
{
    (void)state;
    losses = (struct trace_losses){0};
    return 0;
}

static void test_facts_of_the_first_process(void **state)
{
    (void)state;
    trace_losses_add(&losses, &(struct trace_process){.pid = 1, .lost_records = 3});
    assert_int_equal(losses.off.processes, 0);
    trace_losses_add(&losses, &(struct trace_process){.pid = 2,
                                                      .exe = (char *)"/usr/bin/second",
                                                      .off_reason = (char *)"no space"});
    trace_losses_add(&losses, &(struct trace_process){.pid = 3,
                                                      .lost_records = 4,
                                                      .off_reason = (char *)"x",
                                                      .without_units = true});
    assert_int_equal(losses.lost_records, 7);
    assert_int_equal(losses.off.processes, 2);
    assert_int_equal(losses.off.pid, 2);
    assert_string_equal(losses.off.program, "second");
    assert_string_equal(losses.off.text, "no space");
    assert_int_equal(losses.bypassed.processes, 0);
    assert_int_equal(losses.without_units.processes, 1);
    assert_int_equal(losses.without_units.pid, 3);
}

// Adds a process with objects of `texts`, which are terminated by NUL.
static void add_objects(const char *texts, size_t n)
{
    trace_losses_add(&losses, &(struct trace_process){.deepbound = (char *)(uintptr_t)texts,
                                                      .deepbound_bytes = (uint32_t)n});
}

static void test_objects_are_collected_once(void **state)
{
    static const char first[] = "a.so\0b.so", second[] = "b.so\0a.s\0a.so\0c.so",
                      all[] = "a.so\0b.so\0a.s\0c.so";
    (void)state;
    add_objects(first, sizeof first);
    add_objects(second, sizeof second);
    assert_int_equal(losses.deepbound_bytes, sizeof all);
    assert_memory_equal(losses.deepbound, all, sizeof all);
}

// An object that does not fit is dropped. A shorter object may still fit.
static void test_objects_that_do_not_fit(void **state)
{
    enum { ROOM = sizeof losses.deepbound, LONG = 1000 };
    char text[ROOM + 2];
    (void)state;
    memset(text, 'a', sizeof text);
    text[LONG] = 0;
    add_objects(text, LONG + 1);
    memset(text, 'b', sizeof text);
    text[ROOM - LONG - 1] = 0; // one byte too long
    add_objects(text, ROOM - LONG);
    assert_int_equal(losses.deepbound_bytes, LONG + 1);
    text[ROOM - LONG - 2] = 0;
    add_objects(text, ROOM - LONG - 1);
    assert_int_equal(losses.deepbound_bytes, ROOM);
    add_objects("c", 2);
    assert_int_equal(losses.deepbound_bytes, ROOM);
    assert_int_equal(losses.deepbound[ROOM - 2], 'b');
    assert_int_equal(losses.deepbound[ROOM - 1], 0);
}

// A number that is not known is not stored.
static void test_missed_processes(void **state)
{
    static const struct trace_missed missed[] = {
        {7, (char *)"known", (char *)"it was set-user-ID", 2, 100, 2000},
        {8, (char *)"calls", (char *)"", 0, 0, UINT64_MAX},
        {9, (char *)"time", (char *)"", 0, UINT64_MAX, 0},
        {10, (char *)"none", (char *)"", 0, UINT64_MAX, UINT64_MAX},
    };
    enum { N = sizeof missed / sizeof *missed };
    struct trace_unrecorded u = {.processes = 9}, got = {0};
    struct buf b = {0};
    (void)state;
    for (size_t i = 0; i < N; i++)
        assert_int_equal(trace_unrecorded_add(&u, &missed[i]), 0);
    assert_int_equal(fields_put_unrecorded(&b, &u), 0);
    assert_int_equal(fields_get_unrecorded(b.data, b.size, &got), 0);
    assert_int_equal(got.processes, 9);
    assert_int_equal(got.n, N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(got.items[i].pid, missed[i].pid);
        assert_string_equal(got.items[i].name, missed[i].name);
        assert_string_equal(got.items[i].why, missed[i].why);
        assert_int_equal(got.items[i].forks, missed[i].forks);
        assert_int_equal(got.items[i].calls, missed[i].calls);
        assert_int_equal(got.items[i].ns, missed[i].ns);
    }
    trace_unrecorded_release(&u);
    trace_unrecorded_release(&got);
    buf_release(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_facts_of_the_first_process, clear),
    cmocka_unit_test_setup(test_objects_are_collected_once, clear),
    cmocka_unit_test_setup(test_objects_that_do_not_fit, clear),
    cmocka_unit_test(test_missed_processes),
};

UNIT_MAIN(tests)
