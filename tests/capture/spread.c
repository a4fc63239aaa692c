// Starts threads that allocate in one library and free in another library: spread THREADS PAUSE_US
// LIBRARY... The two libraries are far apart in the loader's list. Half of the threads allocate in
// the first library and free in the last; the others do the reverse. Each thread has at most one
// allocated block at a time.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

struct ends {
    void *(*take)(size_t bytes);
    void (*give)(void *block);
};

static volatile sig_atomic_t stop;
static useconds_t pause_us; // pause between bursts, to keep the trace small

static void *own(void *arg)
{
    const struct ends *ends = arg;
    while (!stop) {
        for (unsigned i = 0; i < 100 && !stop; i++)
            ends->give(ends->take(100));
        if (pause_us)
            usleep(pause_us);
    }
    return NULL;
}

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

int main(int argc, char **argv)
{
    struct ends ends[2];
    pthread_t threads[MAX_THREADS];
    if (argc < 5 || atoi(argv[1]) > MAX_THREADS)
        return 2;
    unsigned n = (unsigned)atoi(argv[1]);
    pause_us = (useconds_t)atoi(argv[2]);
    for (int i = 3; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        if (!library)
            return 1;
        if (i == 3 || i == argc - 1) {
            *(void **)&ends[i > 3].take = dlsym(library, "service_take");
            *(void **)&ends[i == 3].give = dlsym(library, "service_give");
        }
    }
    signal(SIGUSR1, on_signal);
    for (unsigned i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, own, &ends[i % 2]);
    printf("ready\n");
    fflush(stdout);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("the same\n");
    return 0;
}
