// Blocks that glibc's malloc maps for themselves, and reallocs that resize a mapping, grow in place, or make a new block.
#include <malloc.h>
#include <stdlib.h>

int main(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20); // and it stays there
    char *small = malloc(100), *big = malloc(1 << 20);
    free(malloc(200));
    big = realloc(big, 2 << 20);
    char *wall = malloc(100); // the block before it cannot grow
    small = realloc(small, 5000);
    small = realloc(small, 5000);
    big = realloc(big, 1 << 20);
    free(realloc(small, 1 << 20));
    free(big);
    free(wall);
    return 0;
}
