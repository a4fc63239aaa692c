// The pool of libraries with an allocator, which tests compile.
#pragma once

#include <stddef.h>
#include <string.h>

#define CALLED __attribute__((noipa))
// Releases a block. Its memory is not reused.
#define RELEASE(p)                                                                                 \
    if (p)                                                                                         \
    *(volatile char *)p = 1

static _Alignas(64) char pool[64 << 20];
static size_t used;

// Returns a block after its size, or NULL.
static void *allocate(size_t size)
{
    size_t at = __atomic_fetch_add(&used, (size + 31) & ~15ul, __ATOMIC_RELAXED);
    if (at + size + 32 > sizeof pool)
        return 0;
    memcpy(pool + at, &size, sizeof size);
    return pool + at + 16;
}
