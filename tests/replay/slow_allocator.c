// libtest-slow.so: libc's allocator, whose free sleeps for a tenth of a millisecond.
#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

EXPORT void *malloc(size_t size)
{
    return __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    return __libc_realloc(old, size);
}

EXPORT void free(void *block)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    __libc_free(block);
}
