// A program with its own allocator, whose functions call each other. Waits for the file `go`, makes
// CALLS calls of each function, and waits for the file `end`.
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Calls stay calls of the function itself.
#define CALLED __attribute__((noipa))

enum { CALLS = 1000, HEADER = 16, POOL_BYTES = 256 << 20 };

static _Alignas(16) char pool[POOL_BYTES];
static size_t used;

CALLED void *memalign(size_t align, size_t size)
{
    align = align < HEADER ? HEADER : align;
    size_t from = __atomic_fetch_add(&used, size + align + 2 * HEADER, __ATOMIC_RELAXED);
    char *p = pool + from + HEADER;
    if (from + size + align + 2 * HEADER > sizeof pool)
        return NULL;
    p += -(uintptr_t)p & (align - 1);
    memcpy(p - sizeof size, &size, sizeof size);
    return p;
}

CALLED void *malloc(size_t size)
{
    return memalign(HEADER, size);
}

CALLED void free(void *p)
{
    if (p)
        memset((char *)p - sizeof(size_t), 0, sizeof(size_t));
}

CALLED void *calloc(size_t count, size_t size)
{
    void *p = malloc(count * size);
    return p ? memset(p, 0, count * size) : NULL;
}

CALLED void *realloc(void *old, size_t size)
{
    size_t had = 0;
    void *p = malloc(size);
    if (old)
        memcpy(&had, (char *)old - sizeof had, sizeof had);
    if (p && old)
        memcpy(p, old, had < size ? had : size);
    free(old);
    return p;
}

CALLED void *aligned_alloc(size_t align, size_t size)
{
    void *p = malloc(size + align);
    return (char *)p + (-(uintptr_t)p & (align - 1));
}

CALLED int posix_memalign(void **to, size_t align, size_t size)
{
    *to = memalign(align, size);
    return *to ? 0 : ENOMEM;
}

static void await(const char *path)
{
    while (access(path, F_OK) != 0)
        usleep(1000);
}

int main(void)
{
    void *aligned = NULL;
    if (write(1, "ready\n", 6) != 6)
        return 1;
    await("go");
    for (int i = 0; i < CALLS; i++) {
        char *p = calloc(3, 111);
        free(malloc(777));
        p = realloc(p, 888);
        free(p);
        if (posix_memalign(&aligned, 64, 999))
            return 1;
        free(aligned);
        p = aligned_alloc(64, 640);
        p[0] = 1;
    }
    if (write(1, "done\n", 5) != 5)
        return 1;
    await("end");
    return 0;
}
