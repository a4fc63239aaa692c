// A program that defines malloc, like a statically linked allocator, and calls libstdc++'s operator
// new.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
static char heap[1 << 24];
static size_t at;
static long mine, foreign_free;
static bool in(const void *p)
{
    return (char *)p >= heap && (char *)p < heap + sizeof heap;
}
extern "C" {
void *malloc(size_t n)
{
    mine++;
    at = (at + 15) & ~size_t(15);
    char *p = heap + at + 16;
    *(size_t *)(p - 16) = n;
    at += n + 16;
    return p;
}
void free(void *p)
{
    if (p && !in(p))
        foreign_free++;
}
void *calloc(size_t a, size_t b)
{
    void *p = malloc(a * b);
    memset(p, 0, a * b);
    return p;
}
void *realloc(void *o, size_t n)
{
    void *p = malloc(n);
    if (o)
        memcpy(p, o, *(size_t *)((char *)o - 16) < n ? *(size_t *)((char *)o - 16) : n);
    return p;
}
size_t malloc_usable_size(void *p)
{
    if (!in(p)) {
        fprintf(stderr, "malloc_usable_size of a block that is not mine\n");
        abort();
    }
    return *(size_t *)((char *)p - 16);
}
}
int main()
{
    int *p = (int *)operator new(100);
    printf("new from my heap: %d\n", (int)in(p));
    printf("usable %zu\n", malloc_usable_size(p));
    operator delete(p);
    return 0;
}
