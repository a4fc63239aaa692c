// Names its two threads: names MS. The first thread exits immediately. The second thread runs for
// at least MS milliseconds, until the process exits with status 7. The recorder makes a pass every
// 10 ms of this time.
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
    for (long i = 0; i < ms / 10; i++) {
        usleep(10000);
        heaptape_sync();
    }
    exit(7);
}
