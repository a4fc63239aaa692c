#include "base/thread.h"

#include "base/clock.h"

#include <semaphore.h>
#include <signal.h>

enum { MIN_STACK_BYTES = 1 << 20 };

struct start {
    void *(*run)(void *);
    void *arg;
    sem_t running;
};

static void *run_started(void *arg)
{
    struct start *s = arg;
    void *(*run)(void *) = s->run;
    void *arg_of_run = s->arg;
    // The thread that called thread_start may now return, after which *s is invalid.
    sem_post(&s->running);
    return run(arg_of_run);
}

int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *arg)
{
    struct start s = {.run = run, .arg = arg};
    pthread_attr_t attributes;
    sigset_t blocked, before;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0)
        return -rc;
    size_t default_bytes = 0;
    pthread_attr_getstacksize(&attributes, &default_bytes);
    if (!stack_bytes && default_bytes < MIN_STACK_BYTES)
        stack_bytes = MIN_STACK_BYTES;
    if (stack_bytes)
        rc = pthread_attr_setstacksize(&attributes, stack_bytes);
    sem_init(&s.running, 0, 0);
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (rc == 0)
        rc = pthread_create(thread, &attributes, run_started, &s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (rc == 0 && sem_wait(&s.running) < 0)
        continue;
    sem_destroy(&s.running);
    pthread_attr_destroy(&attributes);
    return -rc;
}

void thread_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t ns)
{
    uint64_t until = clock_monotonic_ns() + ns;
    const struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &at);
}
