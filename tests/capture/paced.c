// Starts threads that allocate, resize and free blocks with pauses:
// paced THREADS SECONDS [ROUNDS [ROUNDS_A_PASS]]. Each thread runs for SECONDS and makes at least
// ROUNDS rounds of calls. The recorder makes a pass after every ROUNDS_A_PASS rounds of a thread.
#include "heaptape/heaptape.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 300, CALLS = 20 };

static void *blocks[PLACES * 16];
static double seconds;
static int rounds, rounds_a_pass;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void call(void **place, uint64_t random)
{
    size_t size = 16 + (random >> 20) % 2000;
    if (!*place) {
        *place = malloc(size);
    } else if (random >> 40 & 1) {
        *place = realloc(*place, size);
    } else {
        free(*place);
        *place = NULL;
    }
}

static void *run(void *of)
{
    void **mine = of;
    uint64_t random = (uint64_t)(mine - blocks) + 1;
    double end = now() + seconds;
    for (int round = 0; round < rounds || now() < end; round++) {
        for (int i = 0; i < CALLS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            call(&mine[(random >> 33) % PLACES], random);
        }
        usleep(1000);
        if (mine == blocks && rounds_a_pass && round % rounds_a_pass == 0)
            heaptape_sync();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    int n = argc >= 3 && argc <= 5 ? atoi(argv[1]) : 0;
    if (n < 1 || n > 16)
        return 2;
    seconds = atof(argv[2]);
    rounds = argc > 3 ? atoi(argv[3]) : 0;
    rounds_a_pass = argc > 4 ? atoi(argv[4]) : 0;
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, run, &blocks[PLACES * i]);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
