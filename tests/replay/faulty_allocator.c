// libtest-faulty.so: libc's allocator with a fault at malloc call number $FAULTY_AT of the process. $FAULTY is crash,
// null (also in all later calls), or exit.
#include "replay/libc_allocator.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

FORWARD_CALLOC
FORWARD_REALLOC
FORWARD_FREE
