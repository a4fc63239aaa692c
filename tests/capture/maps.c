// Makes mappings that succeed or fail, between calls of malloc that make the allocator map memory.
// Checks that errno is preserved.
#include "told.h"

#include <stdbool.h>
#include <sys/mman.h>

static void *errno_kept(void *p, int want)
{
    if (errno != want) {
        printf("errno is %d, not %d\n", errno, want);
        exit(1);
    }
    errno = 77;
    return p;
}

static void *map(size_t size, int flags, int want)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    told("mmap", NULL, size, 0, 0, p == MAP_FAILED ? NULL : p, want == 77 ? 0 : want);
    return errno_kept(p, want);
}

static void unmap(void *p, size_t size, int want)
{
    told("munmap", p, size, 0, 0, NULL, 0);
    munmap(p, size);
    errno_kept(p, want);
}

static void *remap(void *p, size_t old_size, size_t size, void *to)
{
    void *q = mremap(p, old_size, size, to ? MREMAP_MAYMOVE | MREMAP_FIXED : MREMAP_MAYMOVE, to);
    told("mremap", p, old_size, size, 0, q == MAP_FAILED ? NULL : q, q == MAP_FAILED ? errno : 0);
    return q;
}

static void *move_break(intptr_t change)
{
    void *p = sbrk(change);
    bool failed = (intptr_t)p == -1;
    printf("sbrk 0 0 0 0 %#jx %d %ju\n", failed ? 0 : (uintmax_t)(uintptr_t)p, failed ? errno : 0,
           (uintmax_t)change);
    return p;
}

static void block(size_t size)
{
    void *p = malloc(size);
    told("malloc", NULL, size, 0, 0, p, 0);
    told("free", p, 0, 0, 0, NULL, 0);
    free(p);
}

int main(void)
{
    told_begin();
    errno = 77;
    char *p = map(8192, MAP_PRIVATE, 77), *q = map(1 << 20, MAP_SHARED, 77);
    p[0] = q[0] = 1;
    block(64 << 20);
    map(0, MAP_PRIVATE, EINVAL);
    p = remap(p, 8192, 1 << 20, NULL);
    if (remap(p, 1 << 20, 1 << 20, q) != q || q[0] != 1)
        return 1;
    errno = 77;
    if (remap((void *)4096, 4096, 8192, NULL) != MAP_FAILED)
        return 1;
    errno = 77;
    unmap(q, 1 << 20, 77);
    unmap(q + 1, 4096, EINVAL);
    block(100 << 20);
    void *end = move_break(0);
    move_break(65536);
    told("brk", end, 0, 0, 0, NULL, 0);
    if (brk(end) || move_break(0) != end)
        return 1;
    told_end();
    return 0;
}
