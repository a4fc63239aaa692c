// Allocates blocks of many sizes with many calls, fills them to the last usable byte, and reports
// malloc_usable_size:
//   usable          a line for each call, with the usable size at the end
//   usable paused   frees and resizes unrecorded blocks and reports their sizes
#include "told.h"

#include <malloc.h>

static size_t usable(void *p)
{
    size_t size = malloc_usable_size(p);
    if (p)
        memset(p, 0x5a, size);
    return size;
}

static void *tell(const char *kind, const void *old, size_t size, size_t count, size_t align,
                  void *p)
{
    printf("%s %#jx %zu %zu %zu %#jx 0 0 %zu\n", kind, (uintmax_t)(uintptr_t)old, size, count,
           align, (uintmax_t)(uintptr_t)p, usable(p));
    return p;
}

static void give(void *p)
{
    printf("free %#jx 0 0 0 0 0 0 0\n", (uintmax_t)(uintptr_t)p);
    free(p);
}

static void calls(size_t size)
{
    TOLD_HIDE(size);
    void *all[6], *old;
    all[0] = tell("malloc", NULL, size, 0, 0, malloc(size));
    all[1] = tell("calloc", NULL, size, 3, 0, calloc(3, size));
    all[2] = tell("aligned_alloc", NULL, size, 0, 64, aligned_alloc(64, size));
    all[3] = NULL;
    if (posix_memalign(&all[3], 256, size))
        exit(1);
    tell("posix_memalign", NULL, size, 0, 256, all[3]);
    all[4] = tell("realloc", NULL, size, 0, 0, realloc(NULL, size));
    old = all[4];
    all[4] = tell("realloc", old, 2 * size, 0, 0, realloc(old, 2 * size));
    all[5] = tell("memalign", NULL, size, 0, 4096, memalign(4096, size));
    for (unsigned i = 0; i < 6; i++)
        give(all[i]);
}

static int paused(void)
{
    void *p[100];
    heaptape_pause();
    for (unsigned i = 0; i < 100; i++)
        p[i] = malloc(10 * i);
    heaptape_resume();
    for (unsigned i = 0; i < 50; i++) {
        printf("free %#jx %zu\n", (uintmax_t)(uintptr_t)p[i], malloc_usable_size(p[i]));
        free(p[i]);
    }
    for (unsigned i = 50; i < 100; i++) {
        printf("realloc %#jx %zu\n", (uintmax_t)(uintptr_t)p[i], malloc_usable_size(p[i]));
        p[i] = realloc(p[i], 70000);
    }
    return !p[99];
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 24, 25, 100, 1000, 5000, 65535, 65536, 1 << 20};
    told_begin();
    if (argc > 1 && strcmp(argv[1], "paused") == 0)
        return paused();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        calls(sizes[i]);
    told_end();
    return 0;
}
