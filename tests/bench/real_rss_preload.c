// Preloaded by real_rss: notes in shared memory which mappings the program makes itself. libc's own calls of mmap, for its
// malloc or for stacks of threads, do not come here; those of another allocator are left out.
// Both mmap and mmap64 are wanted, not one under the name of the other.
#undef _FILE_OFFSET_BITS
#include "real_rss.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct real_rss *noted;
static void *allocator; // load address of malloc's object
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void init(void)
{
    const char *path = getenv("REAL_RSS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = (void *)syscall(SYS_mmap, NULL, sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    const char *wanted = getenv("REAL_RSS_PROGRAM");
    if (at == MAP_FAILED || (wanted && *wanted && strcmp(wanted, program_invocation_short_name) != 0))
        return;
    struct real_rss *r = at;
    // Of a tree of processes the one asked for counts: gcc's cc1.
    r->n = 0;
    r->pid = getpid();
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t n = 0, got;
    while (maps >= 0 && (got = read(maps, r->maps_at_start + n, sizeof r->maps_at_start - 1 - (size_t)n)) > 0)
        n += got;
    r->maps_at_start[n] = 0;
    close(maps);
    __atomic_fetch_add(&r->starts, 1, __ATOMIC_RELEASE);
    Dl_info info;
    allocator = dladdr((void *)malloc, &info) ? info.dli_fbase : NULL;
    noted = r;
}

static int is_allocators(void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fbase == allocator;
}

// Cuts [from, to) out of what is noted.
static void forget(uintptr_t from, uintptr_t to)
{
    for (uint32_t i = 0; i < noted->n; i++) {
        struct real_rss_range *r = &noted->ranges[i];
        if (to <= r->from || from >= r->to)
            continue;
        if (from > r->from && to < r->to && noted->n < REAL_RSS_RANGES)
            noted->ranges[noted->n++] = (struct real_rss_range){to, r->to};
        if (from <= r->from)
            r->from = to < r->to ? to : r->to;
        else
            r->to = from;
        if (r->from == r->to)
            *r-- = noted->ranges[--noted->n], i--;
    }
}

static void note(void *at, size_t bytes, int add)
{
    if (!noted || at == MAP_FAILED)
        return;
    uintptr_t from = (uintptr_t)at, to = (from + bytes + 4095) & ~(uintptr_t)4095;
    pthread_mutex_lock(&lock);
    forget(from, to);
    if (add && noted->n < REAL_RSS_RANGES)
        noted->ranges[noted->n++] = (struct real_rss_range){from, to};
    pthread_mutex_unlock(&lock);
}

void *mmap(void *hint, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *at = (void *)syscall(SYS_mmap, hint, bytes, protection, flags, fd, offset);
    if (noted && !is_allocators(__builtin_return_address(0)))
        note(at, bytes, 1);
    return at;
}

void *mmap64(void *hint, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *at = (void *)syscall(SYS_mmap, hint, bytes, protection, flags, fd, offset);
    if (noted && !is_allocators(__builtin_return_address(0)))
        note(at, bytes, 1);
    return at;
}

int munmap(void *at, size_t bytes)
{
    note(at, bytes, 0);
    return (int)syscall(SYS_munmap, at, bytes);
}
