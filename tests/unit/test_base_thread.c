#include "base/thread.h"

#include "unit.h"

#include <errno.h>
#include <signal.h>

static void *get_signals(void *blocked)
{
    pthread_sigmask(SIG_SETMASK, NULL, blocked);
    return blocked;
}

static void runs_with_all_signals_blocked_but_sigbus(void **state)
{
    pthread_t thread;
    sigset_t blocked, before, after;
    void *result;
    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(thread_start(&thread, 0, get_signals, &blocked), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &blocked);
    assert_true(sigismember(&blocked, SIGTERM));
    assert_false(sigismember(&blocked, SIGBUS));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

static void no_thread_is_an_error(void **state)
{
    pthread_t thread;
    (void)state;
    assert_int_equal(thread_start(&thread, 1, get_signals, NULL), -EINVAL);
}

static void wait_without_a_signal_ends(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    (void)state;
    pthread_mutex_lock(&mutex);
    thread_wait(&condition, &mutex, 1000);
    assert_int_equal(pthread_mutex_unlock(&mutex), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(runs_with_all_signals_blocked_but_sigbus),
    cmocka_unit_test(no_thread_is_an_error),
    cmocka_unit_test(wait_without_a_signal_ends),
};

UNIT_MAIN(tests)
