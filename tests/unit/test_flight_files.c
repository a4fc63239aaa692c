// Tests the commands that run for the files of a recording, and the notes about them.
#include "cli/command.h"
#include "record/flight/files.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The test parses options without any command.
const struct command *const cli_commands[] = {NULL};
const struct command_row cli_command_rows[] = {{0}};

static char noted[4096];

static void keep_note(const char *text)
{
    size_t n = strlen(noted);
    snprintf(noted + n, sizeof noted - n, "%s\n", text);
}

static struct flight_files files_of(const char *command)
{
    noted[0] = 0;
    return (struct flight_files){.command = command, .option = "--on-segment", .note = keep_note};
}

static void add(struct flight_files *f, const char *path)
{
    assert_int_equal(flight_files_add(f, path, NULL), 0);
}

static void test_commands_that_end_are_awaited(void **state)
{
    (void)state;
    struct flight_files f = files_of("test $1 != b");
    add(&f, "a");
    add(&f, "c");
    flight_files_reap(&f, true);
    assert_string_equal(noted, "");
    add(&f, "b");
    flight_files_reap(&f, true);
    assert_string_equal(noted, "b: --on-segment failed\n");
    assert_int_equal(f.command_pid, 0);
    flight_files_release(&f);
}

static void test_a_command_that_hangs_is_not_awaited_after_the_signal(void **state)
{
    (void)state;
    char expected[200];
    struct flight_files f = files_of("exec sleep 300");
    add(&f, "a");
    add(&f, "b");
    add(&f, "c");
    assert_int_equal(kill(getpid(), FLIGHT_FILES_END), 0);
    flight_files_reap(&f, true);
    snprintf(expected, sizeof expected,
             "a: --on-segment is still running (process %ld); heaptape does not wait for it\n"
             "c: --on-segment was not run for 2 files\n",
             (long)f.command_pid);
    assert_string_equal(noted, expected);
    assert_int_equal(kill(f.command_pid, SIGKILL), 0);
    flight_files_release(&f);
}

static int block_end(void **state)
{
    (void)state;
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, FLIGHT_FILES_END);
    return sigprocmask(SIG_BLOCK, &end, NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_commands_that_end_are_awaited, block_end),
    cmocka_unit_test_setup(test_a_command_that_hangs_is_not_awaited_after_the_signal, block_end),
};

UNIT_MAIN(tests)
