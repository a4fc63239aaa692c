// A program with three allocators in addition to libc's. Their functions have prefixes, and
// arguments in other orders. Makes CALLS calls of each function:
//   entries_prefixed           waits for the file `go` before, and for the file `end` afterwards
//   entries_prefixed once      without waiting
//   entries_prefixed none      makes no calls
#include "when_told.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Prevents the compiler from inlining, cloning or replacing the function.
#define FUNCTION __attribute__((noipa)) static

enum { CALLS = 1000, POOL_BYTES = 64 << 20 };

static _Alignas(64) char pool[POOL_BYTES];
static size_t used;

static void *allocate(size_t align, size_t size)
{
    size_t at = (used + align - 1) & -align;
    used = at + size;
    return used <= sizeof pool ? pool + at : NULL;
}

// Functions of jemalloc, with the names of the crate jemalloc-sys. The flags of mallocx contain the
// logarithm of the alignment.
FUNCTION void *_rjem_malloc(size_t size)
{
    return allocate(16, size);
}

FUNCTION void *_rjem_calloc(size_t count, size_t size)
{
    return _rjem_malloc(count * size);
}

FUNCTION void *_rjem_mallocx(size_t size, int flags)
{
    return allocate((size_t)1 << (flags & 63), size);
}

FUNCTION void *_rjem_rallocx(void *old, size_t size, int flags)
{
    void *p = _rjem_mallocx(size, flags);
    return p ? memcpy(p, old, 16) : NULL;
}

FUNCTION size_t _rjem_xallocx(void *p, size_t size, size_t extra, int flags)
{
    return size > 1000 ? 1000 : size + extra + (p && flags);
}

FUNCTION void _rjem_free(void *p)
{
    *(char *)p = 1;
}

FUNCTION void _rjem_sdallocx(void *p, size_t size, int flags)
{
    *(char *)p = (char)(size + (size_t)flags);
}

// Functions of mimalloc.
FUNCTION void *mi_malloc(size_t size)
{
    return allocate(16, size);
}

FUNCTION void *mi_malloc_aligned(size_t size, size_t align)
{
    return allocate(align, size);
}

FUNCTION void *mi_heap_realloc(void *heap, void *old, size_t size)
{
    void *p = allocate(16, size);
    return heap && p ? memcpy(p, old, 16) : NULL;
}

FUNCTION void *mi_expand(void *p, size_t size)
{
    return size > 1000 ? NULL : p;
}

FUNCTION void mi_free(void *p)
{
    *(char *)p = 1;
}

// These functions are recorded only with --wrap.
FUNCTION void *own_malloc(size_t size)
{
    return allocate(16, size);
}

FUNCTION void own_free(void *p)
{
    *(char *)p = 1;
}

FUNCTION void *second_malloc(size_t size)
{
    return allocate(32, size);
}

FUNCTION void second_free(void *p)
{
    *(char *)p = 2;
}

FUNCTION void *own_new_aligned(size_t size, size_t align)
{
    return allocate(align, size);
}

FUNCTION void own_delete_sized(void *p, size_t size)
{
    *(char *)p = (char)size;
}

static void call_all(void)
{
    static int heap;
    for (int i = 0; i < CALLS; i++) {
        void *p = _rjem_calloc(3, 101);
        _rjem_free(p);
        p = _rjem_mallocx(201, 6);
        p = _rjem_rallocx(p, 202, 4);
        _rjem_xallocx(p, 103, 0, 0);
        _rjem_xallocx(p, 1103, 0, 0);
        _rjem_sdallocx(p, 202, 0);
        p = mi_malloc_aligned(301, 64);
        mi_free(p);
        p = mi_malloc(302);
        p = mi_heap_realloc(&heap, p, 303);
        mi_expand(p, 203);
        mi_expand(p, 1203);
        mi_free(p);
        free(malloc(401));
        own_free(own_malloc(501));
        second_free(second_malloc(502));
        own_delete_sized(own_new_aligned(503, 64), 503);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "none") == 0)
        return 0;
    return when_told(argc, call_all);
}
