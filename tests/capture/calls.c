// Calls every C function of the malloc API in usual cases, in edge cases, and in ways that fail.
// Checks that errno is preserved.
#include "told.h"

#include <malloc.h>

// C23 functions. libheaptape.so defines these functions, but the C library and the allocator may
// lack them.
void free_sized(void *p, size_t size) __attribute__((weak));
void free_aligned_sized(void *p, size_t align, size_t size) __attribute__((weak));

// Number of sized frees, if the allocator counts sized frees (trivial.c).
extern unsigned long trivial_sized __attribute__((weak));

static const size_t huge = (size_t)1 << 60;

static int other; // true if the allocator is not glibc's: errno and pvalloc then differ

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
    static const size_t sizes[] = {0,     1,     24,      4096,      65535,
                                   65536, 70000, 1 << 20, 100 << 20, (size_t)1 << 40};
    void *p[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        p[i] = take(sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        give(p[i]);
    give(NULL);
    // The largest size may or may not succeed.
    errno_is(p[sizeof sizes / sizeof *sizes - 1] ? 77 : ENOMEM, "malloc and free");
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
    resize(p, huge); // the old block is kept
    errno_is(ENOMEM, "realloc that fails");
    p = resize(p, 0); // Most allocators free the block. Some allocators return a minimal block.
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

// Writing all usable bytes of a block must not damage its neighbours.
static void usable_size(void)
{
    void *a = take(24), *b = take(24);
    memset(a, 1, malloc_usable_size(a));
    memset(b, 2, malloc_usable_size(b));
    give(a);
    give(b);
}

static void sized_frees(void)
{
    void *p = take(500);
    told("free_sized", p, 500, 0, 0, NULL, 0);
    free_sized(p, 500);
    p = aligned_alloc(64, 640);
    told("aligned_alloc", NULL, 640, 0, 64, p, 0);
    told("free_aligned_sized", p, 640, 0, 64, NULL, 0);
    free_aligned_sized(p, 64, 640);
    told("free_sized", NULL, 0, 0, 0, NULL, 0);
    free_sized(NULL, 0);
    errno_is(77, "sized frees");
}

int main(int argc, char **argv)
{
    other = argc > 1 && strcmp(argv[1], "other") == 0;
    errno = 77;
    // The first call of each function looks up the symbol, and the trace shows the loader's
    // allocations.
    if (free_sized && free_aligned_sized) {
        free_sized(NULL, 0);
        free_aligned_sized(NULL, 1, 0);
    }
    told_begin();
    if (free_sized && free_aligned_sized)
        sized_frees();
    if (&trivial_sized && trivial_sized != 5)
        return 2;
    plain_calls();
    zeroed_calls();
    resize_calls();
    aligned_calls();
    aligned_failures();
    usable_size();
    told_end();
    return 0;
}
