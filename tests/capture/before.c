// A program with blocks that it allocates before heaptape attaches. It prints "ready" after the
// allocation. After SIGUSR1, threads allocate and free. While the threads run, the program then
// frees a third of the blocks and reallocates another third. It prints the usable size of each of
// these blocks, and then "done".
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 6000, THREADS = 4, LIVE = 500, BIG_EVERY = 100, ROUNDS = 15 };

static void *blocks[BLOCKS];
static volatile sig_atomic_t asked;
static atomic_int stop;
static atomic_uint rounds[THREADS]; // each is LIVE calls of malloc and free

static void on_signal(int sig)
{
    (void)sig;
    asked = 1;
}

static size_t size_of(unsigned i)
{
    return i % BIG_EVERY == 0 ? 20000 + 100 * i : 1 + i * 7919u % 700;
}

static void *work(void *arg)
{
    void *live[LIVE] = {0};
    uint64_t random = (uintptr_t)arg;
    atomic_uint *done = &rounds[(uintptr_t)arg - 1];
    for (unsigned i = 0; !stop; i = (i + 1) % LIVE) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        free(live[i]);
        live[i] = malloc(1 + (random >> 54));
        if (i == 0) {
            atomic_fetch_add(done, 1);
            usleep(1000);
        }
    }
    for (unsigned i = 0; i < LIVE; i++)
        free(live[i]);
    return NULL;
}

// Waits until each thread has finished ROUNDS more rounds, however slowly the machine runs them.
static void wait_for_rounds(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        for (unsigned end = rounds[i] + ROUNDS; rounds[i] < end;)
            usleep(1000);
    }
}

static void release(unsigned i)
{
    printf("%zu\n", malloc_usable_size(blocks[i]));
    if (i % 3 == 0)
        free(blocks[i]);
    else
        blocks[i] = realloc(blocks[i], size_of(i) + (i % 2 ? 1000 : 1));
}

int main(void)
{
    static char buffer[1 << 20];
    pthread_t threads[THREADS];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    signal(SIGUSR1, on_signal);
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = i % 5 ? malloc(size_of(i)) : calloc(1, size_of(i));
    printf("ready\n");
    fflush(stdout);
    while (!asked) {
        free(malloc(100));
        usleep(100);
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    wait_for_rounds();
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % 3 != 2)
            release(i);
        if (i % 20 == 0)
            usleep(100);
    }
    wait_for_rounds();
    stop = 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("done\n");
    fflush(stdout);
    for (;;) {
        free(malloc(100));
        usleep(1000);
    }
}
