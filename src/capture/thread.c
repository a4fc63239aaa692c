// Births of threads, and of the process.
#include "capture/next.h"
#include "capture/wrap.h"
#include "capture/wrap_cxx.h"

#include <errno.h>

// The new thread's first step. A tail call: the program's stack traces end in its own function.
static void *begin(void *data)
{
    struct producer_thread *t = data;
    void *(*start)(void *) = t->start;
    void *arg = t->arg;
    producer_thread_begin(t);
    return start(arg);
}

WRAPPER int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    struct producer_thread *t = producer_thread_create(start, arg);
    if (!t)
        return next.pthread_create(thread, attr, start, arg);
    int error = next.pthread_create(thread, attr, begin, t);
    if (error)
        producer_thread_cancel(t);
    return error;
}

static __attribute__((constructor)) void at_start(void)
{
    int saved_errno = errno;
    next_resolve();
    if (next_loaded("libstdc++.so") || next_loaded("libc++"))
        wrap_cxx_resolve();
    producer_start();
    producer_alone_share();
    pthread_atfork(producer_before_fork, NULL, producer_after_fork);
    errno = saved_errno;
}

static __attribute__((destructor)) void at_end(void)
{
    next_report_deepbound();
    producer_finish();
    producer_alone_finish();
}
