// Frees random blocks among a million live blocks, so that any lookup of a block by address misses
// every cache. Arguments: number of live blocks (default 1M), number of iterations (default 10M)
// with a free and a malloc each
#include <stdint.h>
#include <stdlib.h>

static uint64_t next(uint64_t *s)
{
    uint64_t x = *s;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *s = x;
}

int main(int argc, char **argv)
{
    uint64_t live = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000,
             n = argc > 2 ? strtoull(argv[2], NULL, 0) : 10000000;
    uint64_t seed = 88172645463325252ull;
    char **block = malloc(live * sizeof *block);
    for (uint64_t i = 0; i < live; i++)
        block[i] = malloc(16 + next(&seed) % 100);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t r = next(&seed), k = r % live;
        free(block[k]);
        block[k] = malloc(16 + (r >> 40) % 100);
    }
    for (uint64_t i = 0; i < live; i++)
        free(block[i]);
    free(block);
    return 0;
}
