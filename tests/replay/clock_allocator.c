// libtest-clock.so: libc's allocator with delayed frees. A freed block is kept until it has been
// unused for 45 ms; malloc then frees it. For each malloc that frees such blocks, the library
// counts the blocks that are still kept. At exit, it writes the median of these counts to the file
// $CLOCK_COUNTS. A few of the mallocs are calls of the player before and after the replay. Aborts
// if the clock goes backwards.
#include "replay/libc_allocator.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KEPT = 4096, KEEP_NS = 45000000 };

static struct {
    void *block;
    uint64_t since;
} kept[KEPT];
static unsigned first, n;
static unsigned mallocs_that_kept[KEPT + 1];
static uint64_t last_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    uint64_t ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    if (ns < last_ns)
        abort();
    return last_ns = ns;
}

EXPORT void *malloc(size_t size)
{
    pthread_mutex_lock(&lock);
    bool freed = false;
    for (uint64_t now = now_ns(); n && now - kept[first].since >= KEEP_NS; n--) {
        __libc_free(kept[first].block);
        first = (first + 1) % KEPT;
        freed = true;
    }
    mallocs_that_kept[n] += freed;
    pthread_mutex_unlock(&lock);
    return __libc_malloc(size);
}

FORWARD_CALLOC
FORWARD_REALLOC

EXPORT void free(void *block)
{
    if (!block)
        return;
    pthread_mutex_lock(&lock);
    if (n == KEPT)
        abort();
    kept[(first + n) % KEPT].block = block;
    kept[(first + n++) % KEPT].since = now_ns();
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void print(void)
{
    const char *path = getenv("CLOCK_COUNTS");
    unsigned mallocs = 0, below = 0, median = 0;
    for (unsigned i = 0; i <= KEPT; i++)
        mallocs += mallocs_that_kept[i];
    while (median < KEPT && 2 * (below += mallocs_that_kept[median]) < mallocs)
        median++;
    FILE *out = path ? fopen(path, "w") : NULL;
    if (out) {
        fprintf(out, "%u\n", median);
        fclose(out);
    }
}
