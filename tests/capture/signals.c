// Allocates in a signal handler at a high rate while the program allocates: signals MILLISECONDS.
// Requires an allocator that is async-signal-safe (trivial.c).
#include "told.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

// Handlers of two signals count here, because they can interrupt each other.
static _Atomic unsigned long in_handler;

static void handler(int signal)
{
    (void)signal;
    free(malloc(TOLD_SIZE(1)));
    in_handler++;
}

static void *storm(void *target)
{
    const struct timespec pause = {.tv_nsec = 2000};
    for (;;) {
        if (pthread_kill(*(pthread_t *)target, SIGUSR1))
            return NULL;
        nanosleep(&pause, NULL);
        pthread_testcancel();
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    double end = seconds() + (argc > 1 ? atof(argv[1]) : 100) / 1000;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval.tv_usec = 50, .it_value.tv_usec = 50};
    unsigned long n = 0;
    pthread_t self = pthread_self(), thread;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    pthread_create(&thread, NULL, storm, &self);
    setitimer(ITIMER_PROF, &often, NULL);
    for (; n % 1000 || seconds() < end; n++) {
        void *p = malloc(TOLD_SIZE(2));
        TOLD_HIDE(p);
        free(p);
    }
    setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    told_count("malloc", TOLD_SIZE(2), n);
    told_count("free", TOLD_SIZE(2), n);
    told_count("malloc", TOLD_SIZE(1), in_handler);
    told_count("free", TOLD_SIZE(1), in_handler);
    return 0;
}
