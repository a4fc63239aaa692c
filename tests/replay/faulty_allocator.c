// libtest-faulty.so: libc's allocator with a fault at malloc call number $FAULTY_AT of the process. $FAULTY is crash,
// null (also in all later calls), or exit.
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

static _Atomic long left = -1; // calls until the fault; -1: not known yet, or never
static const char *fault;

__attribute__((constructor)) static void init(void)
{
    const char *at = getenv("FAULTY_AT");
    fault = getenv("FAULTY");
    if (fault && at)
        left = atol(at);
}

EXPORT void *malloc(size_t size)
{
    long n = atomic_load(&left);
    if (n > 0)
        atomic_store(&left, n - 1);
    if (n != 0)
        return __libc_malloc(size);
    if (strcmp(fault, "crash") == 0)
        raise(SIGSEGV);
    if (strcmp(fault, "exit") == 0)
        _exit(0);
    return NULL;
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
    __libc_free(block);
}
