// libtest-first.so: libc's allocator, except that blocks of 1 to 64 MiB are placed in two separate
// areas: one for malloc, one for calloc. The pages of both areas are inaccessible at first. The
// first access to a page adds a line to the file $FIRST: "calloc" or "malloc", and "read" or
// "write". Works only on x86-64.
#include "replay/libc_allocator.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, BIG = 1 << 20, BYTES = 64 << 20 };

static char *zeroed, *other;

static int is_in(const char *place, const char *at)
{
    return place && at >= place && at < place + BYTES;
}

static void note(int signal, siginfo_t *info, void *context)
{
    char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
    int writes = 0, fd = open(getenv("FIRST"), O_CREAT | O_APPEND | O_WRONLY, 0600);
    (void)signal;
#if defined(__x86_64__)
    writes = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    (void)context;
#endif
    if (!is_in(zeroed, page) && !is_in(other, page))
        abort();
    dprintf(fd, "%s %s\n", is_in(zeroed, page) ? "calloc" : "malloc", writes ? "write" : "read");
    close(fd);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

__attribute__((constructor)) static void begin(void)
{
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = note, .sa_flags = SA_SIGINFO}, NULL);
}

static void *map(char **place)
{
    return *place = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

EXPORT void *malloc(size_t size)
{
    return size >= BIG && size < BYTES ? map(&other) : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return count * size >= BIG && count * size < BYTES ? map(&zeroed) : __libc_calloc(count, size);
}

FORWARD_REALLOC

EXPORT void free(void *block)
{
    if (!block || (block != zeroed && block != other))
        __libc_free(block);
}
