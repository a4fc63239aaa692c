// Every C function of the malloc API, as it is meant, at its edges, and failing. Checks that errno is kept.
#include "told.h"

#include <malloc.h>

static const size_t huge = (size_t)1 << 60;

static int other; // another allocator: errno and pvalloc are not what they are in glibc

static void errno_is(int want, const char *what)
{
    if (errno != want && !other) {
        printf("%s: errno is %d, not %d\n", what, errno, want);
        exit(1);
    }
    errno = 77;
}

static void *take(size_t size)
{
    TOLD_HIDE(size);
    void *p = malloc(size);
    told("malloc", NULL, size, 0, 0, p, p ? 0 : ENOMEM);
    return p;
}

static void give(void *p)
{
    TOLD_HIDE(p);
    told("free", p, 0, 0, 0, NULL, 0);
    free(p);
}

static void plain_calls(void)
{
    static const size_t sizes[] = {0, 1, 24, 4096, 65535, 65536, 70000, 1 << 20, 100 << 20};
    void *p[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        p[i] = take(sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        give(p[i]);
    give(NULL);
    errno_is(77, "malloc and free");
    take(huge);
    errno_is(ENOMEM, "malloc that fails");
}

static void *zeroed(size_t count, size_t size)
{
    TOLD_HIDE(count);
    void *p = calloc(count, size);
    told("calloc", NULL, size, count, 0, p, p || !count || !size ? 0 : ENOMEM);
    return p;
}

static void zeroed_calls(void)
{
    give(zeroed(1, 100));
    give(zeroed(1, 70000));
    give(zeroed(10, 100));
    give(zeroed(0, 100));
    give(zeroed(1, 0));
    errno_is(77, "calloc");
    zeroed(huge, 100);
    errno_is(ENOMEM, "calloc that overflows");
}

static void *resize(void *old, size_t size)
{
    uintptr_t was = (uintptr_t)old;
    TOLD_HIDE(was);
    void *p = realloc(old, size);
    told("realloc", (void *)was, size, 0, 0, p, p || !size ? 0 : ENOMEM);
    return p;
}

static void *resize_array(void *old, size_t count, size_t size)
{
    uintptr_t was = (uintptr_t)old;
    TOLD_HIDE(was);
    void *p = reallocarray(old, count, size);
    told("reallocarray", (void *)was, size, count, 0, p, p || !size ? 0 : ENOMEM);
    return p;
}

static void resize_calls(void)
{
    void *p = resize(NULL, 10);
    p = resize(p, 1000);
    p = resize(p, 100000);
    p = resize(p, 20);
    errno_is(77, "realloc");
    resize(p, huge); // the old block stays
    errno_is(ENOMEM, "realloc that fails");
    p = resize(p, 0); // gives it up; others make a smallest block of it
    errno_is(77, "realloc to nothing");
    if (p)
        give(p);
    p = resize_array(NULL, 10, 10);
    p = resize_array(p, 100, 10);
    errno_is(77, "reallocarray");
    resize_array(p, huge, 100);
    errno_is(ENOMEM, "reallocarray that overflows");
    give(p);
}

static void aligned_calls(void)
{
    void *p = memalign(1 << 20, 3000);
    told("memalign", NULL, 3000, 0, 1 << 20, p, 0);
    give(p);
    p = aligned_alloc(64, 6400);
    told("aligned_alloc", NULL, 6400, 0, 64, p, 0);
    give(p);
    int error = posix_memalign(&p, 32, 100);
    told("posix_memalign", NULL, 100, 0, 32, p, error);
    give(p);
    p = valloc(100);
    told("valloc", NULL, 100, 0, 0, p, 0);
    give(p);
    if (!other) {
        p = pvalloc(100);
        told("pvalloc", NULL, 100, 0, 0, p, 0);
        give(p);
    }
    errno_is(77, "aligned calls");
}

static void aligned_failures(void)
{
    void *p = NULL;
    size_t three = 3;
    TOLD_HIDE(three);
    told("posix_memalign", NULL, 100, 0, 3, NULL, posix_memalign(&p, three, 100));
    told("posix_memalign", NULL, huge, 0, 16, NULL, posix_memalign(&p, 16, huge));
    errno = 77;
    p = memalign(64, huge);
    told("memalign", NULL, huge, 0, 64, p, ENOMEM);
    errno_is(ENOMEM, "memalign that fails");
    p = valloc(huge);
    told("valloc", NULL, huge, 0, 0, p, ENOMEM);
    errno_is(ENOMEM, "valloc that fails");
}

// Filled to its last usable byte, a block must not run into anything.
static void usable_size(void)
{
    void *a = take(24), *b = take(24);
    memset(a, 1, malloc_usable_size(a));
    memset(b, 2, malloc_usable_size(b));
    give(a);
    give(b);
}

int main(int argc, char **argv)
{
    other = argc > 1 && strcmp(argv[1], "other") == 0;
    errno = 77;
    told_begin();
    plain_calls();
    zeroed_calls();
    resize_calls();
    aligned_calls();
    aligned_failures();
    usable_size();
    told_end();
    return 0;
}
