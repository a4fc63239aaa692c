// libtest-ends.so: libc's allocator. When a thread that called malloc(10) or malloc(11) exits, the
// library adds a line to the file $ENDS: this size, and the number of mallocs of all threads so
// far. If $ENDS_US is set, the exit first takes this many microseconds.
#include "replay/libc_allocator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic unsigned calls;
static pthread_key_t key;

static void end(void *size)
{
    const char *us = getenv("ENDS_US");
    if (us)
        usleep((useconds_t)strtoul(us, NULL, 0));
    FILE *out = fopen(getenv("ENDS"), "a");
    fprintf(out, "%u %u\n", (unsigned)(uintptr_t)size, atomic_load(&calls));
    fclose(out);
}

__attribute__((constructor)) static void begin(void)
{
    pthread_key_create(&key, end);
}

EXPORT void *malloc(size_t size)
{
    if (size == 10 || size == 11)
        pthread_setspecific(key, (void *)size);
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(size);
}

FORWARD_CALLOC
FORWARD_REALLOC
FORWARD_FREE
