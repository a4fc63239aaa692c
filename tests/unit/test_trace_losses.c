// Tests the losses that are collected over all processes.
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_facts_of_the_first_process, clear),
    cmocka_unit_test_setup(test_objects_are_collected_once, clear),
    cmocka_unit_test_setup(test_objects_that_do_not_fit, clear),
};

UNIT_MAIN(tests)
