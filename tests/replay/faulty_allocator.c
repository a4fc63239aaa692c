// libtest-faulty.so: libc's allocator with a fault at malloc call number $FAULTY_AT of the process. $FAULTY is crash,
// null (also in all later calls), or exit. Aligned blocks: $FAULTY is strict, which refuses alignments that are no power of two
// as jemalloc does, large, which refuses those of over 64 bytes, or full, which has no memory for any.
#include "replay/libc_allocator.h"

#include <errno.h>
#include <malloc.h>
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

static int get_aligned(void **block, size_t align, size_t size)
{
    const char *how = fault ? fault : "";
    int error = strcmp(how, "full") == 0                              ? ENOMEM
                : strcmp(how, "large") == 0 && align > 64             ? EOVERFLOW
                : strcmp(how, "strict") == 0 && (align & (align - 1)) ? EINVAL
                                                                      : 0;
    *block = error ? NULL : __libc_memalign(align, size);
    return error ? error : *block ? 0 : ENOMEM;
}

EXPORT void *memalign(size_t align, size_t size)
{
    void *block;
    int error = get_aligned(&block, align, size);
    if (error)
        errno = error;
    return block;
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
    return get_aligned(block, align, size);
}
