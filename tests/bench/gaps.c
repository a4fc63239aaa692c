// Usage: gaps THREADS. Threads that only allocate and free. When standard input ends, the program
// prints a line for each time that a thread did not run for at least 2 ms: start and end in ns of
// CLOCK_MONOTONIC. tests/bench/attach_gaps runs it.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 512, MAX_GAPS = 1 << 17, PAIRS = 50, LEAST_NS = 2000000 };

struct thread {
    pthread_t handle;
    uint32_t n;
    uint64_t gaps[MAX_GAPS][2];
};

static struct thread all[MAX_THREADS];
static volatile int ended;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *run_thread(void *arg)
{
    struct thread *t = arg;
    uint64_t last = now_ns();
    while (!ended && t->n < MAX_GAPS) {
        for (size_t i = 0; i < PAIRS; i++)
            free(malloc(100 + i));
        uint64_t now = now_ns();
        if (now - last >= LEAST_NS) {
            t->gaps[t->n][0] = last;
            t->gaps[t->n++][1] = now;
        }
        last = now;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    char c;
    int n = argc > 1 ? atoi(argv[1]) : 4;
    if (n < 1 || n > MAX_THREADS)
        return 2;
    for (int i = 0; i < n; i++)
        pthread_create(&all[i].handle, NULL, run_thread, &all[i]);
    while (read(STDIN_FILENO, &c, 1) == 1)
        continue;
    ended = 1;
    for (int i = 0; i < n; i++) {
        pthread_join(all[i].handle, NULL);
        for (uint32_t k = 0; k < all[i].n; k++)
            printf("%llu %llu\n", (unsigned long long)all[i].gaps[k][0],
                   (unsigned long long)all[i].gaps[k][1]);
    }
    return 0;
}
