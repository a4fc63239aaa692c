// Checks that the list of another process's threads and objects is complete.
#include "unit.h"

#include "record/attach/status.h"
#include "record/attach/tracees.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ptrace.h>
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

// Starts a child that rests, and opens it.
static pid_t open_resting(struct remote *r)
{
    pid_t child = start(rest);
    assert_int_equal(remote_open(r, child, &error), 0);
    return child;
}

static void test_each_thread_is_seized_whatever_failed_before(void **state)
{
    (void)state;
    struct attach_breakpoint entry = {0};
    struct tracees t;
    struct remote r;
    pid_t child = open_resting(&r);
    errno = ESRCH; // simulates a recorder that saw another process exit
    assert_int_equal(tracees_seize(&t, &r, &entry, &error), 0);
    assert_int_equal(t.n, 1);
    // This process already traces a thread that a traced thread created.
    struct tracees again;
    assert_int_equal(tracees_seize(&again, &r, &entry, &error), 0);
    assert_int_equal(again.n, 0);
    tracees_release(&again);
    tracees_release(&t);
    remote_close(&r);
    end(child);
}

static unsigned refusals; // number of the next calls to seize a thread that fail

// Replaces libc's function. The arguments are the arguments of the raw system call.
long ptrace(enum __ptrace_request request, ...)
{
    long (*real)(enum __ptrace_request, pid_t, void *, void *);
    va_list args;
    va_start(args, request);
    pid_t pid = va_arg(args, pid_t);
    void *at = va_arg(args, void *), *data = va_arg(args, void *);
    va_end(args);
    if (request == PTRACE_SEIZE && refusals) {
        refusals--;
        errno = EPERM;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "ptrace");
    return real(request, pid, at, data);
}

// The kernel refuses a thread that is about to exit, whose state is still that of a live thread.
static void test_a_refused_thread_is_seized_again(void **state)
{
    (void)state;
    struct attach_breakpoint entry = {0};
    struct tracees t;
    struct remote r;
    pid_t child = open_resting(&r);
    refusals = 1;
    assert_int_equal(tracees_seize(&t, &r, &entry, &error), 0);
    assert_int_equal(t.n, 1);
    tracees_release(&t);
    refusals = 1000;
    assert_int_equal(tracees_seize(&t, &r, &entry, &error), -EACCES);
    refusals = 0;
    tracees_release(&t);
    remote_close(&r);
    end(child);
}

// Waits until the main thread is a zombie.
static void wait_for_zombie(pid_t pid)
{
    while (status_letter(pid, pid, "State") != 'Z')
        usleep(1000);
}

// Runs in a process of another user, because root could read these files.
static void open_exited(void)
{
    struct remote r;
    if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
        _exit(77);
    pid_t child = start(rest);
    kill(child, SIGKILL);
    wait_for_zombie(child);
    _exit(remote_open(&r, child, &error) == -ESRCH ? 0 : 1);
}

static void test_files_of_an_exited_process(void **state)
{
    int status;
    pid_t child = start(open_exited);
    (void)state;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        UNIT_SKIP("this user cannot become another one");
    assert_int_equal(WEXITSTATUS(status), 0);
}

// Runs in a process of another user, which may not read the root directory of the zombie.
static void test_an_exited_process_of_another_user(void **state)
{
    int status;
    pid_t zombie = start(rest);
    (void)state;
    assert_int_equal(kill(zombie, SIGKILL), 0);
    wait_for_zombie(zombie);
    pid_t other = fork();
    if (other == 0)
        _exit(setgid(65534) || setuid(65534) ? 77 : status_ended(zombie, &error) != -ESRCH);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(waitpid(zombie, NULL, 0), zombie);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        UNIT_SKIP("this user cannot become another one");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int go[2];

static void *rest_in_thread(void *unused)
{
    rest();
    return unused;
}

static void end_main_thread(void)
{
    char byte;
    pthread_t thread;
    if (pthread_create(&thread, NULL, rest_in_thread, NULL) == 0 && read(go[0], &byte, 1) == 1)
        pthread_exit(NULL);
}

// The kernel returns EPERM for an exited thread.
static void test_an_exited_thread_is_skipped(void **state)
{
    struct attach_breakpoint entry = {0};
    struct tracees t;
    struct remote r;
    (void)state;
    assert_int_equal(pipe(go), 0);
    pid_t child = start(end_main_thread);
    assert_int_equal(remote_open(&r, child, &error), 0);
    assert_int_equal(write(go[1], "", 1), 1);
    wait_for_zombie(child);
    assert_int_equal(tracees_seize(&t, &r, &entry, &error), 0);
    assert_int_equal(t.n, 1);
    assert_int_not_equal(t.all[0].tid, child);
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

// Loads two objects, one after the other. Their paths have the same length, so the loader reuses
// the address of the first object's link_map for the second.
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
    cmocka_unit_test(test_a_refused_thread_is_seized_again),
    cmocka_unit_test(test_files_of_an_exited_process),
    cmocka_unit_test(test_an_exited_process_of_another_user),
    cmocka_unit_test(test_an_exited_thread_is_skipped),
    cmocka_unit_test(test_an_object_that_is_loaded_in_the_place_of_another),
};

UNIT_MAIN_TRACER(tests)
