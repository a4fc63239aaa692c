// libtest-faulty.so: libc's allocator with a fault at malloc number $FAULTY_AT of the process.
// $FAULTY selects the fault:
//   crash    crashes
//   null     returns NULL, also in all later calls
//   exit     exits
//   plan     removes a call from the replayed plan
//   strict   rejects alignments that are not powers of two, like jemalloc
//   large    rejects alignments over 64 bytes
//   full     has no memory for aligned blocks
#include "replay/libc_allocator.h"
#include "replay/plan/file.h"
#include "replay/plan/ops.h"
#include "replay/player/results.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Number of calls until the fault. It is -1 before the first call, and if no fault is selected.
static _Atomic long left = -1;
static const char *fault;

__attribute__((constructor)) static void init(void)
{
    const char *at = getenv("FAULTY_AT");
    fault = getenv("FAULTY");
    if (fault && at)
        left = atol(at);
}

// Turns the last free of thread 0 into an op without a call. Aborts if there is no such free.
static void damage_plan(void)
{
    struct stat st;
    fstat(RESULTS_PLAN_FD, &st);
    uint64_t *words = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                           RESULTS_PLAN_FD, 0),
             *last = NULL;
    if (words == MAP_FAILED)
        abort();
    const struct plan_header *h = (const struct plan_header *)words;
    uint64_t *w = words + ((const struct plan_thread *)(words + h->threads_at))->first_word;
    for (; plan_op_of(*w) != PLAN_STOP; w += plan_op_words(*w)) {
        if (plan_op_of(*w) == PLAN_JUMP)
            w += *w >> 8;
        else if (plan_op_of(*w) == PLAN_FREE)
            last = w;
    }
    if (!last)
        abort();
    *last = *last - PLAN_FREE + PLAN_SKIPPED;
    munmap(words, (size_t)st.st_size);
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
    if (strcmp(fault, "plan") == 0) {
        damage_plan();
        atomic_store(&left, -1);
        return __libc_malloc(size);
    }
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
