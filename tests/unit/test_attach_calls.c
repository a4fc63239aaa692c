// Tests calls of functions in another process. The process is a copy of this program. Functions of
// this program replace the functions of libheaptape.so.
#include "unit.h"

#include "base/clock.h"
#include "record/attach/attach.h"
#include "record/attach/status.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct shared {
    _Atomic uint32_t recorder; // result of heaptape_recorder
    _Atomic uint32_t ended_by; // argument of heaptape_end
    _Atomic bool blocks;       // heaptape_recorder waits for a lock
    _Atomic bool stays;        // heaptape_recorder waits until its caller has been killed
    _Atomic pid_t tracer;      // process that called heaptape_recorder
    _Atomic bool reads;        // the process waits for a byte, and `reading` is then set
    _Atomic bool reading;
    _Atomic bool ends; // the process exits
} * shared;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pid_t find_tracer(void)
{
    return (pid_t)status_number(getpid(), getpid(), "TracerPid", 10);
}

static void wait_until_killed(void)
{
    while (find_tracer())
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    errno = EIO;
}

__attribute__((visibility("default"))) uint32_t heaptape_recorder(void);
uint32_t heaptape_recorder(void)
{
    if (shared->blocks)
        pthread_mutex_lock(&lock);
    shared->tracer = find_tracer();
    if (shared->stays)
        wait_until_killed();
    return shared->recorder;
}

__attribute__((visibility("default"))) int heaptape_end(uint32_t by);
int heaptape_end(uint32_t by)
{
    shared->ended_by = by;
    return EALREADY;
}

enum { GOOD = 42, WRONG_BLOCK, WRONG_ERRNO, WRONG_MASK, WRONG_READ };

static int bytes_pipe[2];

static void read_byte(void)
{
    char byte;
    shared->reading = true;
    if (read(bytes_pipe[0], &byte, 1) != 1)
        _exit(WRONG_READ);
    shared->reads = shared->reading = false;
}

// Holds the lock and calls malloc until the process must exit. The calls of heaptape must not
// change the arguments of malloc, errno or the signal mask.
static void work(void)
{
    sigset_t mask;
    size_t bytes = 0;
    alarm(300);
    pthread_mutex_lock(&lock);
    errno = ENOTTY;
    while (!shared->ends) {
        void *volatile block = malloc(100);
        size_t now = malloc_usable_size(block);
        if (now < 100 || (bytes && now != bytes))
            _exit(WRONG_BLOCK);
        bytes = now;
        free(block);
        if (shared->reads)
            read_byte();
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (errno != ENOTTY)
        _exit(WRONG_ERRNO);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    _exit(sigismember(&mask, SIGUSR1) ? WRONG_MASK : GOOD);
}

static pid_t start(void)
{
    *shared = (struct shared){0};
    pid_t child = fork();
    if (child == 0)
        work();
    assert_true(child > 0);
    return child;
}

// Checks that the process still executes its own code.
static void end(pid_t child)
{
    int status;
    shared->ends = true;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GOOD);
}

static int end_recording(pid_t child, pid_t owner, struct err *e)
{
    struct attach_result result = {0};
    *e = (struct err){0};
    return attach_end(child, owner, NULL, &result, e);
}

static void test_the_recording_of_another_recorder_is_not_ended(void **state)
{
    (void)state;
    struct err e;
    char text[100];
    pid_t child = start(), owner = getpid();
    shared->recorder = 7;
    assert_int_equal(end_recording(child, owner, &e), -ENOENT);
    snprintf(text, sizeof text, "%ld: is being recorded by process 7", (long)child);
    assert_string_equal(e.text, text);
    assert_int_equal(shared->ended_by, 0);
    // A recorder may end its own recording, and a recording whose recorder is dead (0). With the
    // owner 0, a call ends the recording of any recorder.
    const uint32_t recorders[] = {(uint32_t)owner, 0, 7};
    for (unsigned i = 0; i < 3; i++) {
        shared->recorder = recorders[i];
        shared->ended_by = 0;
        assert_int_equal(end_recording(child, i < 2 ? owner : 0, &e), 0);
        assert_int_equal(shared->ended_by, owner);
    }
    end(child);
}

// The call waits for a lock. Its owner may in turn wait for the thread that makes the call.
static void test_a_call_that_waits_for_a_lock_is_abandoned(void **state)
{
    (void)state;
    struct err e;
    char text[100];
    uint64_t before = attach_call_ns;
    pid_t child = start();
    shared->blocks = true;
    attach_call_ns = 100000000;
    assert_int_equal(end_recording(child, getpid(), &e), -EIO);
    attach_call_ns = before;
    snprintf(text, sizeof text,
             "%ld: a call in the process waited for a lock for too long (try again)", (long)child);
    assert_string_equal(e.text, text);
    assert_int_equal(shared->ended_by, 0);
    // The next call succeeds because the lock is free.
    shared->blocks = false;
    assert_int_equal(end_recording(child, getpid(), &e), 0);
    assert_int_not_equal(shared->ended_by, 0);
    end(child);
}

static unsigned kill_after_us;

static void kill_tracer(void *unused)
{
    (void)unused;
    pid_t tracer = shared->tracer;
    if (tracer <= 0)
        return;
    uint64_t end_ns = clock_monotonic_ns() + kill_after_us * 1000ull;
    while (clock_monotonic_ns() < end_ns)
        continue;
    shared->tracer = 0;
    assert_int_equal(kill(tracer, SIGKILL), 0); // waited for by the caller
}

static int end_and_kill(pid_t child, struct err *e)
{
    struct attach_result result = {0};
    *e = (struct err){0};
    shared->tracer = 0;
    return attach_end(child, getpid(), &(struct attach_meanwhile){kill_tracer, NULL}, &result, e);
}

// The function returns to code that restores the thread.
static void test_the_tracer_is_killed_during_a_call(void **state)
{
    (void)state;
    struct err e;
    char text[100];
    pid_t child = start();
    shared->stays = true;
    kill_after_us = 0;
    assert_int_equal(end_and_kill(child, &e), -EIO);
    snprintf(text, sizeof text,
             "%ld: the process of heaptape that traced it was killed (try again)", (long)child);
    assert_string_equal(e.text, text);
    assert_int_equal(shared->ended_by, 0);
    // The next call succeeds.
    shared->stays = false;
    assert_int_equal(end_recording(child, getpid(), &e), 0);
    assert_int_not_equal(shared->ended_by, 0);
    end(child);
}

// The thread is stopped between two calls, or is being restored.
static void test_the_tracer_is_killed_after_a_call(void **state)
{
    (void)state;
    pid_t child = start();
    for (unsigned i = 0; i < 20; i++) {
        struct err e;
        kill_after_us = 53 * i;
        int rc = end_and_kill(child, &e);
        assert_true(rc == 0 || rc == -EIO);
    }
    end(child);
}

// The call interrupts a system call, which the code that restores the thread must restart.
static void test_the_tracer_is_killed_while_the_thread_reads(void **state)
{
    (void)state;
    struct err e;
    pid_t child = start();
    shared->reads = true;
    while (!shared->reading || status_letter(child, child, "State") != 'S')
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    shared->stays = true;
    kill_after_us = 0;
    assert_int_equal(end_and_kill(child, &e), -EIO);
    assert_int_equal(write(bytes_pipe[1], "x", 1), 1);
    end(child);
    assert_false(shared->reads);
}

static int map_shared(void **state)
{
    (void)state;
    if (!bytes_pipe[1] && pipe(bytes_pipe) < 0)
        return -1;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_the_recording_of_another_recorder_is_not_ended, map_shared),
    cmocka_unit_test_setup(test_the_tracer_is_killed_during_a_call, map_shared),
    cmocka_unit_test_setup(test_the_tracer_is_killed_after_a_call, map_shared),
    cmocka_unit_test_setup(test_the_tracer_is_killed_while_the_thread_reads, map_shared),
    cmocka_unit_test_setup(test_a_call_that_waits_for_a_lock_is_abandoned, map_shared),
};

UNIT_MAIN_TRACER(tests)
