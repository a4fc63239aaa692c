// Allocates blocks that glibc maps separately. Makes reallocs that resize a mapping, grow a block
// in place, or move the block.
#include <malloc.h>
#include <stdlib.h>

int main(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20); // disables the dynamic threshold
    char *small = malloc(100), *big = malloc(1 << 20);
    free(malloc(200));
    big = realloc(big, 2 << 20);
    char *wall = malloc(100); // prevents the previous block from growing in place
    small = realloc(small, 5000);
    small = realloc(small, 5000);
    big = realloc(big, 1 << 20);
    free(realloc(small, 1 << 20));
    free(big);
    free(wall);
    return 0;
}
