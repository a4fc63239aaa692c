// Checks that the list of another process's threads and objects is complete.
#include "unit.h"

#include "record/attach/tracees.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err error;

static pid_t start(void (*work)(void))
{
    pid_t child = fork();
    if (child == 0) {
        alarm(300);
        work();
        _exit(0);
    }
    assert_true(child > 0);
    return child;
}

static void end(pid_t child)
{
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void rest(void)
{
    for (;;)
        pause();
}

static void test_each_thread_is_seized_whatever_failed_before(void **state)
{
    (void)state;
    struct attach_breakpoint breakpoints[2] = {{0}};
    struct tracees t;
    struct remote r;
    pid_t child = start(rest);
    assert_int_equal(remote_open(&r, child, &error), 0);
    errno = ESRCH; // simulates a recorder that saw another process exit
    assert_int_equal(tracees_seize(&t, &r, breakpoints, &error), 0);
    assert_int_equal(t.n, 1);
    tracees_release(&t);
    remote_close(&r);
    end(child);
}

static int steps[2];

static void step(void)
{
    assert_int_equal(write(steps[1], "", 1), 1);
    raise(SIGSTOP);
}

static void *load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("HEAPTAPE_PROGRAMS"), name);
    return dlopen(path, RTLD_NOW);
}

// Both paths have the same length, so the loader reuses the address of the first object's link_map
// for the second.
static void load_two(void)
{
    void *first = load("libservice_library.so");
    step();
    dlclose(first);
    if (!load("./libnamed_library.so"))
        fprintf(stderr, "%s\n", dlerror());
    step();
}

static void test_an_object_that_is_loaded_in_the_place_of_another(void **state)
{
    (void)state;
    struct remote r;
    char c;
    int status;
    assert_int_equal(pipe(steps), 0);
    pid_t child = start(load_two);
    assert_int_equal(read(steps[0], &c, 1), 1);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_int_equal(remote_open(&r, child, &error), 0);
    assert_int_not_equal(remote_last_function(&r, "service_call"), 0);
    assert_int_equal(remote_last_function(&r, "pre_malloc"), 0);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(read(steps[0], &c, 1), 1);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_int_not_equal(remote_last_function(&r, "pre_malloc"), 0);
    assert_int_equal(remote_last_function(&r, "service_call"), 0);
    remote_close(&r);
    end(child);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_thread_is_seized_whatever_failed_before),
    cmocka_unit_test(test_an_object_that_is_loaded_in_the_place_of_another),
};

UNIT_MAIN(tests)
