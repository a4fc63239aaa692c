// An async-signal-safe allocator: it allocates from one mapping with an atomic add and never reuses
// memory. Its calloc and realloc call malloc by the exported name, as simple allocators do. These
// calls are not events.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void *malloc(size_t size);
void free(void *p);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
void *aligned_alloc(size_t align, size_t size);
void free_sized(void *p, size_t size);
void free_aligned_sized(void *p, size_t align, size_t size);
extern unsigned long trivial_sized;

static const size_t room = (size_t)16 << 30;
static _Atomic(char *) start;
static _Atomic size_t used;

static char *heap(void)
{
    char *at = atomic_load(&start), *made;
    if (at)
        return at;
    made = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
    if (made == MAP_FAILED)
        return NULL;
    if (!atomic_compare_exchange_strong(&start, &at, made)) {
        munmap(made, room);
        return at;
    }
    return made;
}

void *malloc(size_t size)
{
    char *at = heap();
    if (!at || size > room / 4) {
        errno = ENOMEM;
        return NULL;
    }
    size_t bytes = 16 + ((size + 15) & ~(size_t)15);
    char *p = at + atomic_fetch_add(&used, bytes);
    *(size_t *)p = size;
    return p + 16;
}

void free(void *p)
{
    (void)p;
}

// Counts calls of the sized functions, which also call `free` by its exported name.
unsigned long trivial_sized;

void free_sized(void *p, size_t size)
{
    (void)size;
    trivial_sized++;
    free(p);
}

void free_aligned_sized(void *p, size_t align, size_t size)
{
    (void)align;
    free_sized(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    char *p = malloc(size + align);
    uintptr_t up = -(uintptr_t)p & (align - 1);
    return p ? p + up : NULL;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *old, size_t size)
{
    void *p = malloc(size);
    size_t was = old ? ((size_t *)old)[-2] : 0;
    if (p && old)
        memcpy(p, old, was < size ? was : size);
    free(old);
    return p;
}
