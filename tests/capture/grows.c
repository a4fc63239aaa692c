// Reads lines "BLOCKS SIZE" from standard input, allocates the blocks and answers "done".
#include <stdio.h>
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) static void grow(unsigned blocks, size_t size)
{
    for (unsigned i = 0; i < blocks; i++) {
        void **block = malloc(size);
        *block = kept;
        kept = block;
    }
}

int main(void)
{
    unsigned blocks;
    size_t size;
    while (scanf("%u %zu", &blocks, &size) == 2) {
        grow(blocks, size);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
