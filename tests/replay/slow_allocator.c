// libtest-slow.so: libc's allocator, but each free sleeps for 0.1 ms.
#include "replay/libc_allocator.h"

#include <stdlib.h>
#include <time.h>

FORWARD_MALLOC
FORWARD_CALLOC
FORWARD_REALLOC

EXPORT void free(void *block)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    __libc_free(block);
}
