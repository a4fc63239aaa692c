// Names its two threads: names MS. The first thread exits immediately. The second thread lives for
// MS milliseconds and then exits the process with status 7.
#include "told.h"

#include <pthread.h>

static void *end_at_once(void *arg)
{
    pthread_setname_np(pthread_self(), "short-lived");
    free(malloc(TOLD_SIZE(0)));
    return arg;
}

static void *live(void *ms)
{
    pthread_setname_np(pthread_self(), "long-lived");
    for (long i = 0; i < (intptr_t)ms; i++) {
        free(malloc(TOLD_SIZE(1)));
        usleep(1000);
    }
    // This thread still runs when main returns.
    for (;;)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    long ms = argc > 1 ? strtol(argv[1], NULL, 0) : 1000;
    pthread_create(&threads[0], NULL, end_at_once, NULL);
    pthread_create(&threads[1], NULL, live, (void *)(intptr_t)ms);
    pthread_join(threads[0], NULL);
    usleep((useconds_t)ms * 1000);
    exit(7);
}
