// Tests the end of the process that writes another format while the program runs.
#include "unit.h"

#include "formats/export_live.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

// The library's waitid calls return only after the writer has exited.
static bool waits_for_exit;

int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    return __real_waitid(type, id, info, waits_for_exit ? options & ~WNOHANG : options);
}

// Returns true if the parent process catches the signal.
static bool is_caught_by_parent(int sig)
{
    char path[64], line[256];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)getppid());
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        (void)sscanf(line, "SigCgt: %llx", &caught);
    if (f)
        fclose(f);
    return caught >> (sig - 1) & 1;
}

// Signal that the writer sends to its parent, or 0, and whether its output then accepts no data.
struct scene {
    int sig;
    bool blocked;
};

// The parent installs the handler of this signal last.
static void wait_for_handlers(void)
{
    while (!is_caught_by_parent(SIGCHLD))
        usleep(1000);
}

static int write_or_block(const void *context, struct err *e)
{
    const struct scene *s = context;
    alarm(300);
    if (s->sig) {
        wait_for_handlers();
        if (!is_caught_by_parent(s->sig))
            return err_set(e, -EPERM, "signal %d is not caught", s->sig);
        kill(getppid(), s->sig);
    }
    while (s->blocked)
        pause();
    return 0;
}

// Returns the result of a writer after `requests` signals that requested the end.
static int finish(struct scene scene, int requests, struct err *e)
{
    struct export_live live;
    struct output to;
    *e = (struct err){0};
    assert_int_equal(export_live_start_other(&live, write_or_block, &scene, &to, e), 0);
    assert_int_equal(output_close(&to, true, e), 0);
    return export_live_finish(&live, requests, e);
}

static void test_the_second_request_ends_a_blocked_writer(void **state)
{
    struct err e;
    (void)state;
    static const struct {
        struct scene scene;
        int requests;
    } ends[] = {{{0, true}, 2}, {{SIGTERM, true}, 1}, {{SIGINT, true}, 0}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        assert_int_equal(finish(ends[i].scene, ends[i].requests, &e), -ECANCELED);
        assert_string_equal(e.text, "the output accepts no data: it was cut off");
    }
}

static void test_one_request_does_not_end_the_writer(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(finish((struct scene){SIGTERM, false}, 0, &e), 0);
    assert_int_equal(finish((struct scene){0, false}, 1, &e), 0);
    assert_int_equal(finish((struct scene){0, false}, EXPORT_LIVE_PATIENT, &e), 0);
}

// The parent of the writer gets no CPU between the signal and the writer's exit.
static void test_a_request_just_before_the_writer_exits_does_not_end_the_parent(void **state)
{
    struct err e;
    (void)state;
    waits_for_exit = true;
    assert_int_equal(finish((struct scene){SIGTERM, false}, 0, &e), 0);
    assert_int_equal(finish((struct scene){SIGINT, false}, 0, &e), 0);
    waits_for_exit = false;
}

// A parent may have blocked the signals.
static void test_blocked_signals_are_seen(void **state)
{
    struct err e;
    sigset_t ours, before;
    (void)state;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, SIGTERM);
    sigprocmask(SIG_BLOCK, &ours, &before);
    assert_int_equal(finish((struct scene){0, false}, 0, &e), 0);
    assert_int_equal(finish((struct scene){SIGTERM, true}, 1, &e), -ECANCELED);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

// Background jobs ignore the signals of the terminal.
static void test_an_ignored_signal_stays_ignored(void **state)
{
    struct err e;
    (void)state;
    signal(SIGHUP, SIG_IGN);
    assert_int_equal(finish((struct scene){SIGHUP, false}, 0, &e), -EIO);
    assert_string_equal(e.text, "signal 1 is not caught");
    signal(SIGHUP, SIG_DFL);
    assert_int_equal(finish((struct scene){SIGHUP, false}, 0, &e), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_second_request_ends_a_blocked_writer),
    cmocka_unit_test(test_one_request_does_not_end_the_writer),
    cmocka_unit_test(test_a_request_just_before_the_writer_exits_does_not_end_the_parent),
    cmocka_unit_test(test_blocked_signals_are_seen),
    cmocka_unit_test(test_an_ignored_signal_stays_ignored),
};

UNIT_MAIN(tests)
