#include "base/progress.h"

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static void line_has_count_share_rate_and_time_left(void **state)
{
    struct progress p = {.what = "convert a.ht", .unit = "events", .total = 40000000};
    char text[128];
    progress_text(&p, 10000000, 2000000000, text, sizeof text);
    assert_string_equal(text, "convert a.ht: 10.0 M events, 25 %, 5.0 M/s, 6 s left");
    progress_text(&p, 50000000, 2000000000, text, sizeof text);
    assert_non_null(strstr(text, "100 %"));
    assert_non_null(strstr(text, " 0 s left"));
    p.total = 0;
    progress_text(&p, 999, 1000000000, text, sizeof text);
    assert_string_equal(text, "convert a.ht: 999 events, 999/s");
    p.unit = "B";
    progress_text(&p, 2048000, 1000000000, text, sizeof text);
    assert_string_equal(text, "convert a.ht: 2.0 MB, 2.0 M/s");
    p.unit = "events";
    p.total = 5;
    progress_text(&p, 0, 0, text, sizeof text);
    assert_string_equal(text, "convert a.ht: 0 events, 0/s");
    (void)state;
}

// Runs updates over 0.35 s with stderr redirected to `fd`.
static void run(int fd, bool quiet)
{
    struct progress p;
    int saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    progress_init(&p, "job", "events", 350, quiet);
    for (uint64_t i = 1; i <= 350; i++) {
        progress_update(&p, i);
        usleep(1000);
    }
    progress_clear(&p);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static size_t drain(int fd, char *text, size_t size)
{
    size_t got = 0;
    ssize_t n;
    while ((n = read(fd, text + got, size - 1 - got)) > 0)
        got += (size_t)n;
    text[got] = 0;
    return got;
}

static void silent_without_a_terminal(void **state)
{
    int fds[2];
    char text[64];
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    run(fds[1], false);
    assert_int_equal(drain(fds[0], text, sizeof text), 0);
    close(fds[0]);
    close(fds[1]);
    (void)state;
}

static void few_lines_on_a_terminal_cleared_at_the_end(void **state)
{
    // A busy machine may need seconds for the updates, and then prints more lines.
    static char text[1 << 16];
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        UNIT_SKIP("no pseudoterminal");
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    run(terminal, true);
    assert_int_equal(drain(master, text, sizeof text), 0);
    run(terminal, false);
    size_t n = drain(master, text, sizeof text), lines = 0;
    for (const char *at = text; (at = strstr(at, "\rjob: ")); at++)
        lines++;
    // There is one line per 100 ms. On a busy machine, run may take longer than 0.35 s, but not
    // less.
    assert_true(lines >= 3);
    assert_true(n > 4 && memcmp(text + n - 4, "\r\033[K", 4) == 0);
    close(terminal);
    close(master);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(line_has_count_share_rate_and_time_left),
    cmocka_unit_test(silent_without_a_terminal),
    cmocka_unit_test(few_lines_on_a_terminal_cleared_at_the_end),
};
UNIT_MAIN(tests)
