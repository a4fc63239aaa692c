// Allocates and frees in five stages and waits for an input line after each: rss_stages
// small|threads|arrays. After each stage it prints the milliseconds since the start, the sum of Rss
// in /proc/self/smaps, and the bytes in use by mallinfo2 (0 if there are several arenas).
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 60000, THREADS = 3, ARRAYS = 40 };

static char *blocks[THREADS][BLOCKS];
static struct timespec started;
static pthread_barrier_t barrier;

static long since_start_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (t.tv_sec - started.tv_sec) * 1000 + (t.tv_nsec - started.tv_nsec) / 1000000;
}

static void stop_after(const char *how)
{
    static char line[4096]; // stdio allocates a buffer only for the file
    static char buffer[4096];
    unsigned long kib, sum = 0;
    FILE *f = fopen("/proc/self/smaps", "re");
    setvbuf(f, buffer, _IOFBF, sizeof buffer);
    while (fgets(line, sizeof line, f))
        sum += sscanf(line, "Rss: %lu kB", &kib) == 1 ? kib : 0;
    fclose(f);
    struct mallinfo2 m = mallinfo2();
    printf("%ld %lu %lu\n", since_start_ms(), sum,
           strcmp(how, "small") == 0 ? (unsigned long)(m.uordblks + m.hblkhd) : 0);
    fflush(stdout);
    for (char c = 0; c != '\n' && read(STDIN_FILENO, &c, 1) == 1;)
        ;
}

static size_t size_of(unsigned i)
{
    return i % 50 ? 16 + i * 7919 % 700 : 2000 + i % 4000;
}

static void fill(char **to, unsigned from, unsigned step)
{
    for (unsigned i = from; i < BLOCKS; i += step) {
        if (to[i])
            continue;
        to[i] = malloc(size_of(i));
        memset(to[i], 1, size_of(i));
    }
}

// Frees all blocks but one of each `of` blocks.
static void thin(char **from, unsigned of)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % of == 0)
            continue;
        free(from[i]);
        from[i] = NULL;
    }
}

static void do_stage(char **b, unsigned stage)
{
    if (stage == 0)
        fill(b, 0, 2);
    else if (stage == 1)
        fill(b, 1, 2);
    else if (stage == 2)
        thin(b, 9);
    else if (stage == 3)
        fill(b, 0, 3);
    else
        thin(b, 1000);
}

// Allocates large arrays. Leaves some untouched, clears some, and writes to parts of others.
static void do_arrays(unsigned stage)
{
    static char *arrays[ARRAYS];
    for (unsigned i = 0; i < ARRAYS; i++) {
        size_t size = 100000 + i * 30000;
        if (stage == 2 && i % 3)
            free(arrays[i]), arrays[i] = NULL;
        else if (stage != 2 && !arrays[i])
            arrays[i] = i % 2 ? calloc(1, size) : malloc(size);
        if (arrays[i] && stage > 0)
            memset(arrays[i], 1, size / (i % 4 + 1) / (stage == 4 ? 1 : 2));
    }
    do_stage(blocks[0], stage);
}

static void *run_thread(void *arg)
{
    for (unsigned stage = 0; stage < 5; stage++) {
        do_stage(arg, stage);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_thread, blocks[i]);
    for (unsigned stage = 0; stage < 5; stage++) {
        pthread_barrier_wait(&barrier);
        stop_after("threads");
        pthread_barrier_wait(&barrier);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc == 2 ? argv[1] : "";
    clock_gettime(CLOCK_MONOTONIC, &started);
    if (strcmp(how, "threads") == 0)
        run_threads();
    for (unsigned stage = 0; stage < 5 && strcmp(how, "threads") != 0; stage++) {
        if (strcmp(how, "arrays") == 0)
            do_arrays(stage);
        else
            do_stage(blocks[0], stage);
        stop_after(how);
    }
    return 0;
}
