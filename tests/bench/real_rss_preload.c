// Preloaded by real_rss: notes in shared memory which mappings the program makes itself. libc's own calls of mmap, for its
// malloc or for stacks of threads, do not come here; those of another allocator are left out.
// Both mmap and mmap64 are wanted, not one under the name of the other.
#undef _FILE_OFFSET_BITS
#include "real_rss.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
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

// Variables that no file holds: without a name too, and perhaps in one piece with memory that lies behind them.
static int note_bss(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct real_rss *r = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && r->n < REAL_RSS_RANGES; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr + h->p_filesz, to = from + h->p_memsz - h->p_filesz;
        if (h->p_type == PT_LOAD && h->p_flags & PF_W && h->p_memsz > h->p_filesz)
            r->ranges[r->n++] = (struct real_rss_range){from & ~(uintptr_t)4095, (to + 4095) & ~(uintptr_t)4095};
    }
    return 0;
}

static uint64_t heap_now(const struct real_rss *r)
{
    static char text[1 << 18];
    size_t n = 0;
    ssize_t got;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
        pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    while (maps >= 0 && n + 1 < sizeof text && (got = read(maps, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    uint64_t heap = pagemap >= 0 ? real_rss_heap(r, pagemap, text) : 0;
    close(maps);
    close(pagemap);
    return heap;
}

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
    dl_iterate_phdr(note_bss, r);
    r->heap_at_start = heap_now(r);
    __atomic_fetch_add(&r->starts, 1, __ATOMIC_RELEASE);
    Dl_info info;
    // Not &malloc, which in a program that is not position-independent may be an entry of its own table of calls.
    void *next = dlsym(RTLD_NEXT, "malloc");
    allocator = next && dladdr(next, &info) ? info.dli_fbase : NULL;
    noted = r;
}

// tbb's malloc is one library and what maps memory for it another; both are called malloc.
static int is_allocators(void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && (info.dli_fbase == allocator || strstr(info.dli_fname, "malloc"));
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

static void note(void *at, size_t bytes)
{
    if (!noted || at == MAP_FAILED)
        return;
    uintptr_t from = (uintptr_t)at, to = (from + bytes + 4095) & ~(uintptr_t)4095;
    pthread_mutex_lock(&lock);
    forget(from, to);
    if (noted->n < REAL_RSS_RANGES)
        noted->ranges[noted->n++] = (struct real_rss_range){from, to};
    pthread_mutex_unlock(&lock);
}

void *mmap(void *hint, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *at = (void *)syscall(SYS_mmap, hint, bytes, protection, flags, fd, offset);
    if (noted && !is_allocators(__builtin_return_address(0)))
        note(at, bytes);
    return at;
}

void *mmap64(void *hint, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *at = (void *)syscall(SYS_mmap, hint, bytes, protection, flags, fd, offset);
    if (noted && !is_allocators(__builtin_return_address(0)))
        note(at, bytes);
    return at;
}

int munmap(void *at, size_t bytes)
{
    // It is noted until it is gone: real_rss looks just before. Another thread that gets the same addresses notes them later.
    if (noted)
        pthread_mutex_lock(&lock);
    int rc = (int)syscall(SYS_munmap, at, bytes);
    if (noted) {
        forget((uintptr_t)at, ((uintptr_t)at + bytes + 4095) & ~(uintptr_t)4095);
        pthread_mutex_unlock(&lock);
    }
    return rc;
}
