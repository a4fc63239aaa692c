// A program with its own pools: pools [quietly]. It has two pools. The memory of each pool is one
// block of malloc. With `quietly`, it does not report allocations of the pools. pools.bats contains
// the expected counts.
#include "heaptape/heaptape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { CHUNK = 1 << 16, ROUNDS = 10, ROWS = 100, NAMES = 50, ROW_BYTES = 96, NAME_BYTES = 32 };

struct pool {
    char *chunk;
    size_t used;
};

static bool quiet;

static void *take(struct pool *p, size_t size)
{
    void *block = p->chunk + p->used;
    p->used += size;
    if (!quiet)
        heaptape_pool_alloc(p, block, size);
    return block;
}

static void reset(struct pool *p)
{
    p->used = 0;
    if (!quiet)
        heaptape_pool_reset(p);
}

NOINLINE static char *take_row(struct pool *p)
{
    char *row = take(p, ROW_BYTES);
    row[0] = 'r';
    return row;
}

NOINLINE static char *take_name(struct pool *p)
{
    char *name = take(p, NAME_BYTES);
    name[0] = 'n';
    return name;
}

int main(int argc, char **argv)
{
    struct pool request = {.chunk = malloc(CHUNK)}, kept = {.chunk = malloc(CHUNK)};
    quiet = argc > 1 && strcmp(argv[1], "quietly") == 0;
    if (!request.chunk || !kept.chunk)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        char *first = take_row(&request);
        for (int i = 1; i < ROWS; i++)
            take_row(&request);
        for (int i = 0; i < NAMES; i++)
            take_name(&request);
        if (!quiet)
            heaptape_pool_free(&request, first);
        if (round + 1 < ROUNDS)
            reset(&request);
        take_name(&kept);
    }
    // The child has its own copies of the pools.
    pid_t child = fork();
    if (child == 0) {
        reset(&request);
        take_row(&request);
        _exit(0);
    }
    int status;
    return child < 0 || waitpid(child, &status, 0) != child || status;
}
