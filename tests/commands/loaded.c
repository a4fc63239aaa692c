// A library that exports glibc's malloc and fills 8 MiB of static memory when it is loaded.
#include <string.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);

static char map[8 << 20];
void *malloc(size_t n)
{
    return __libc_malloc(n);
}
void free(void *p)
{
    __libc_free(p);
}
void *calloc(size_t n, size_t m)
{
    return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
    return __libc_realloc(p, n);
}
__attribute__((constructor)) static void load(void)
{
    memset(map, 1, sizeof map);
}
