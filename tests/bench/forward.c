// A preload library that only forwards malloc and free. It shows the minimum cost of an interposer.
// The overhead of recording is measured relative to this cost.
#include <dlfcn.h>
#include <stddef.h>

static void *boot_malloc(size_t size);
static void boot_free(void *p);
static void *(*next_malloc)(size_t) = boot_malloc;
static void (*next_free)(void *) = boot_free;

static void resolve(void)
{
    void (*found_free)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next_free = found_free;
}

static void *boot_malloc(size_t size)
{
    resolve();
    return next_malloc(size);
}

static void boot_free(void *p)
{
    resolve();
    next_free(p);
}

void *malloc(size_t size)
{
    return next_malloc(size);
}

void free(void *p)
{
    next_free(p);
}
