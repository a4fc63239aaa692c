// Allocates blocks of all kinds in several arenas, prints the live and freed blocks, and waits for
// SIGUSR1: walked [busy]. With `busy`, threads allocate and free other blocks at the same time.
// Frees the blocks at exit.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 4000, THREADS = 4, BIG = 6 };

struct owner {
    unsigned seed;
    void *blocks[BLOCKS], *freed[BLOCKS], *big[BIG];
    pthread_t thread;
};

static atomic_int ready, stop;
static int busy;
static struct owner owners[THREADS + 1];
// Copy of glibc's pointer to the thread cache, which is the first block of a thread. It is set in
// only one thread, because a stack may retain copies.
static __thread char *copy_of_cache;

static size_t random_size(struct owner *o)
{
    unsigned kind = rand_r(&o->seed) % 100;
    return kind < 70   ? rand_r(&o->seed) % 200
           : kind < 98 ? rand_r(&o->seed) % 5000
                       : rand_r(&o->seed) % 100000;
}

// Allocates the blocks and frees every third block. The freed blocks are in the thread cache, in
// fastbins and in bins.
static void fill(struct owner *o)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        o->blocks[i] = i % 10 ? malloc(random_size(o)) : memalign(16u << i % 7, random_size(o));
    for (unsigned i = 0; i < BIG; i++)
        o->big[i] = i % 2 ? malloc(40 << 20) : aligned_alloc(4096u << i, 40 << 20);
    for (unsigned i = 0; i < BLOCKS; i += 3) {
        free(o->blocks[i]);
        o->freed[i] = o->blocks[i];
        o->blocks[i] = NULL;
    }
}

static void *own(void *arg)
{
    struct owner *o = arg;
    fill(o);
    atomic_fetch_add(&ready, 1);
    while (!stop) {
        if (busy) {
            for (unsigned i = 0; i < 200; i++)
                free(malloc(random_size(o)));
        }
        usleep(500);
    }
    return NULL;
}

static void print(struct owner *o)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (o->blocks[i])
            printf("live %lx %zu\n", (unsigned long)(uintptr_t)o->blocks[i],
                   malloc_usable_size(o->blocks[i]));
        else if (!busy)
            printf("free %lx\n", (unsigned long)(uintptr_t)o->freed[i]);
    }
    for (unsigned i = 0; i < BIG; i++)
        printf("live %lx %zu\n", (unsigned long)(uintptr_t)o->big[i],
               malloc_usable_size(o->big[i]));
}

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

int main(int argc, char **argv)
{
    static char buffer[1 << 22];
    char *heap = sbrk(0);
    free(malloc(1));
    copy_of_cache = heap + 16;
    busy = argc > 1 && strcmp(argv[1], "busy") == 0;
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    signal(SIGUSR1, on_signal);
    for (unsigned i = 0; i <= THREADS; i++)
        owners[i].seed = i + 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&owners[i].thread, NULL, own, &owners[i]);
    while (ready < THREADS)
        usleep(1000);
    fill(&owners[THREADS]);
    for (unsigned i = 0; i <= THREADS; i++)
        print(&owners[i]);
    printf("ready\n");
    fflush(stdout);
    while (!stop) {
        free(malloc(100));
        usleep(1000);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(owners[i].thread, NULL);
    for (unsigned i = 0; i <= THREADS; i++) {
        for (unsigned k = 0; k < BLOCKS; k++)
            free(owners[i].blocks[k]);
        for (unsigned k = 0; k < BIG; k++)
            free(owners[i].big[k]);
    }
    printf("the same\n");
    return copy_of_cache == NULL;
}
