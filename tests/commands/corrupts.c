// Allocates memory, and then damages the state of glibc's malloc: corrupts circle|size. Does not
// call malloc afterwards.
//
// circle  the list of arenas returns to the second arena instead of the first
// size    a chunk in the middle of the heap has the size 0
#include "record/attach/arena.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 40000, SIZE = 1000 };
static char *blocks[BLOCKS];
static volatile uintptr_t heap_of_thread;

static void *allocate(void *arg)
{
    heap_of_thread = (uintptr_t)malloc(SIZE) & ~(uintptr_t)(ARENA_HEAP_BYTES - 1);
    pause();
    return arg;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        memset(blocks[i], 1, SIZE);
    }
    pthread_create(&(pthread_t){0}, NULL, allocate, NULL);
    while (!heap_of_thread)
        usleep(1000);
    puts("ready");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "circle") == 0) {
        struct arena *a = (struct arena *)(heap_of_thread + sizeof(struct arena_heap));
        a->next = (uintptr_t)a;
    } else {
        memset(blocks[BLOCKS / 2] - 8, 0, 8);
    }
    for (;;)
        pause();
}
