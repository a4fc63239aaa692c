// libtest-uneven.so: libc's allocator with differences between processes. The 1,000th malloc uses
// extra memory and time. Each process adds a byte to the file $UNEVEN, and the number of earlier
// bytes selects the amount of extra memory and time.
#include "replay/libc_allocator.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const struct {
    size_t mib;
    long ms;
} takes[] = {{1, 1}, {64, 300}, {16, 999}};

static void take(void)
{
    int fd = open(getenv("UNEVEN"), O_CREAT | O_APPEND | O_WRONLY, 0600);
    size_t n = (size_t)lseek(fd, 0, SEEK_END) % (sizeof takes / sizeof *takes),
           bytes = takes[n].mib << 20;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (write(fd, "", 1) != 1 || at == MAP_FAILED)
        abort();
    close(fd);
    memset(at, 1, bytes);
    nanosleep(&(struct timespec){.tv_nsec = takes[n].ms * 1000000}, NULL);
}

EXPORT void *malloc(size_t size)
{
    static unsigned calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == 1000)
        take();
    return __libc_malloc(size);
}

FORWARD_CALLOC
FORWARD_REALLOC
FORWARD_FREE
