// An allocator on top of malloc with other function names.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *pre_malloc(size_t size);
void *pre_calloc(size_t count, size_t size);
void *pre_realloc(void *old, size_t size);
void pre_free(void *p);
size_t pre_usable_size(void *p);

enum { HEAD = 64 };

void *pre_malloc(size_t size)
{
    char *p = malloc(HEAD + size);
    memcpy(p, &size, sizeof size);
    return p + HEAD;
}

void *pre_calloc(size_t count, size_t size)
{
    return memset(pre_malloc(count * size), 0, count * size);
}

size_t pre_usable_size(void *p)
{
    size_t size;
    memcpy(&size, (char *)p - HEAD, sizeof size);
    return size;
}

void *pre_realloc(void *old, size_t size)
{
    void *p = pre_malloc(size);
    if (old)
        memcpy(p, old, pre_usable_size(old) < size ? pre_usable_size(old) : size);
    pre_free(old);
    return p;
}

void pre_free(void *p)
{
    if (p)
        free((char *)p - HEAD);
}
