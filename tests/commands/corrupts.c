// Allocates memory, and then damages the state of glibc's malloc: corrupts circle|size|flag. Does
// not call malloc afterwards. Prints the address of the first damaged chunk.
//
// circle  the list of arenas returns to the second arena instead of the first
// size    two chunks of the heap have the size 0
// flag    two chunks of the heap belong to another arena, according to their headers
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

// Returns the size field of a block's chunk.
static uint64_t *size_of(size_t block)
{
    return (uint64_t *)(void *)(blocks[block] - sizeof(uint64_t));
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "size";
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        memset(blocks[i], 1, SIZE);
    }
    pthread_create(&(pthread_t){0}, NULL, allocate, NULL);
    while (!heap_of_thread)
        usleep(1000);
    printf("%p\nready\n", (void *)(blocks[BLOCKS / 2] - 2 * sizeof(uint64_t)));
    fflush(stdout);
    if (strcmp(how, "circle") == 0) {
        struct arena *a = (struct arena *)(heap_of_thread + sizeof(struct arena_heap));
        a->next = (uintptr_t)a;
    }
    for (size_t i = BLOCKS / 2; i < BLOCKS; i += BLOCKS / 4) {
        if (strcmp(how, "size") == 0)
            *size_of(i) = 0;
        if (strcmp(how, "flag") == 0)
            *size_of(i) |= ARENA_NON_MAIN;
    }
    for (;;)
        pause();
}
