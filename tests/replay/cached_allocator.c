// libtest-cached.so: libc's allocator with thread caches that can be moved between threads. The
// caches contain no blocks, but each cache counts calls of malloc. At exit, the library writes to
// the file $CACHES: "made N", "freed N", and the count of each cache, one per line.
#include "replay/libc_allocator.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

EXPORT bool release_malloc_thread_cache(void **cache);
EXPORT bool set_malloc_thread_cache(void *cache);

enum { MAX_CACHES = 100000 };

static struct cache {
    unsigned long mallocs;
} all[MAX_CACHES];
static unsigned made, freed;
static struct cache *mine; // no thread-local variable is necessary, because the tests have one OS
                           // thread

EXPORT bool release_malloc_thread_cache(void **cache)
{
    *cache = mine;
    mine = NULL;
    return true;
}

EXPORT bool set_malloc_thread_cache(void *cache)
{
    freed += mine != NULL;
    mine = cache;
    return true;
}

EXPORT void *malloc(size_t size)
{
    if (!mine)
        mine = &all[made++];
    mine->mallocs++;
    return __libc_malloc(size);
}

FORWARD_FREE
FORWARD_CALLOC
FORWARD_REALLOC

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("CACHES");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    dprintf(fd, "made %u\nfreed %u\n", made, freed);
    for (unsigned i = 0; i < made; i++)
        dprintf(fd, "%lu\n", all[i].mallocs);
    close(fd);
}
