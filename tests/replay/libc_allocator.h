// Forwards functions to libc's allocator, for test allocators that change only one function.
// FORWARD_MALLOC and so on define the unchanged functions.
#ifndef LIBC_ALLOCATOR_H
#define LIBC_ALLOCATOR_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

#define FORWARD_MALLOC                                                                             \
    EXPORT void *malloc(size_t size)                                                               \
    {                                                                                              \
        return __libc_malloc(size);                                                                \
    }
#define FORWARD_CALLOC                                                                             \
    EXPORT void *calloc(size_t count, size_t size)                                                 \
    {                                                                                              \
        return __libc_calloc(count, size);                                                         \
    }
#define FORWARD_REALLOC                                                                            \
    EXPORT void *realloc(void *old, size_t size)                                                   \
    {                                                                                              \
        return __libc_realloc(old, size);                                                          \
    }
#define FORWARD_FREE                                                                               \
    EXPORT void free(void *block)                                                                  \
    {                                                                                              \
        __libc_free(block);                                                                        \
    }

#endif
