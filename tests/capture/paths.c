// Blocks that glibc maps separately, and reallocs that resize a mapping, grow in place, or move the
// block.
#include <malloc.h>
#include <stdlib.h>

int main(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20); // disables the dynamic threshold
    char *small = malloc(100), *big = malloc(1 << 20);
    free(malloc(200));
    big = realloc(big, 2 << 20);
    char *wall = malloc(100); // prevents the block before it from growing
    small = realloc(small, 5000);
    small = realloc(small, 5000);
    big = realloc(big, 1 << 20);
    free(realloc(small, 1 << 20));
    free(big);
    free(wall);
    return 0;
}
