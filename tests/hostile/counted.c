// A program whose counts survive a kill: counted FILE THREADS PAIRS. Each thread allocates and
// frees a block whose size is 100000 plus the number of the thread, then PAIRS blocks of 16 + i %
// 4093 bytes for i = 0, 1, … After each pair it increments its count in FILE (counts.h). At the end
// it prints the sum and exits with 7. It writes the session's directory to "FILE.folder".
#include "counts.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct counts *counts;
static long pairs;

static void pair(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" ::"r"(p) : "memory");
    free(p);
}

static void *run(void *number)
{
    long t = (long)number;
    pair(COUNTS_FIRST_SIZE + (size_t)t);
    for (long i = 0; i < pairs; i++) {
        pair(counts_size((uint64_t)i));
        atomic_store_explicit(&counts->done[t], (uint64_t)i + 1, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    pthread_t threads[COUNTS_THREADS];
    long n = atol(argv[2]);
    uint64_t sum = 0;
    char name[4096];
    const char *folder = getenv("HEAPTAPE_SPOOL");
    snprintf(name, sizeof name, "%s.folder", argv[1]);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    if (folder && write(fd, folder, strlen(folder)) < 0)
        return 3;
    fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (n > COUNTS_THREADS || ftruncate(fd, sizeof *counts))
        return 4;
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED)
        return 5;
    pairs = atol(argv[3]);
    counts->pid = (uint32_t)getpid();
    for (long i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, run, (void *)i))
            return 6;
    }
    for (long i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        sum += counts->done[i];
    }
    printf("%lu\n", (unsigned long)sum);
    return 7;
}
