// A program that uses mimalloc's functions and libc's malloc. Arguments as for entries_prefixed.c.
// Live at the peak: 100 blocks of mimalloc of 10000 bytes, and 50 blocks of libc of 15000 bytes.
// Live at the end: 90 blocks of mimalloc. One block of libc is passed to mi_free. A fork child
// allocates one block of each allocator, and frees one block of mimalloc that it inherited.
#include "when_told.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// Prevents the compiler from inlining, cloning or replacing the function.
#define FUNCTION __attribute__((noipa)) static

enum { BLOCKS = 100, FREED = 10, BLOCK_BYTES = 10000, LIBC_BLOCKS = 50, LIBC_BYTES = 15000 };

static _Alignas(64) char pool[1 << 21];
static size_t used;

FUNCTION void *mi_malloc(size_t size)
{
    size_t at = used;
    used = (at + size + 15) & ~(size_t)15;
    return used <= sizeof pool ? pool + at : NULL;
}

FUNCTION void mi_free(void *p)
{
    if (p >= (void *)pool && p < (void *)(pool + sizeof pool))
        memset(p, 1, 16);
}

static void call_all(void)
{
    void *blocks[BLOCKS], *of_libc[LIBC_BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = mi_malloc(BLOCK_BYTES);
    for (int i = 0; i < LIBC_BLOCKS; i++)
        of_libc[i] = malloc(LIBC_BYTES);
    for (int i = 0; i < FREED; i++)
        mi_free(blocks[i]);
    for (int i = 1; i < LIBC_BLOCKS; i++)
        free(of_libc[i]);
    mi_free(of_libc[0]);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(401));
        mi_malloc(402);
        mi_free(blocks[FREED]);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "none") == 0)
        return 0;
    return when_told(argc, call_all);
}
