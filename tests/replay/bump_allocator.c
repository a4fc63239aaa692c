// libtest-bump.so: an allocator with predictable addresses. Blocks of one size are placed in the
// order of their allocation from the start of a page. Memory is never reused.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

enum { SIZES = 64, REGION = 16 << 20 };

static struct region {
    size_t size;
    char *at, *end;
} regions[SIZES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *bump(struct region *r, size_t bytes)
{
    if (!r->at) {
        char *at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return NULL;
        r->at = at;
        r->end = at + REGION;
    }
    if (bytes > (size_t)(r->end - r->at))
        return NULL;
    r->at += bytes;
    return r->at - bytes;
}

static size_t size_of(const char *block)
{
    for (struct region *r = regions; r < regions + SIZES && r->size; r++) {
        if (block < r->end && block >= r->end - REGION)
            return r->size;
    }
    return 0;
}

EXPORT void *malloc(size_t size)
{
    struct region *r = regions;
    char *block = NULL;
    size = size ? (size + 15) / 16 * 16 : 16;
    pthread_mutex_lock(&lock);
    while (r < regions + SIZES && r->size && r->size != size)
        r++;
    if (r < regions + SIZES) {
        r->size = size;
        block = bump(r, size);
    }
    pthread_mutex_unlock(&lock);
    if (!block)
        errno = ENOMEM;
    return block;
}

EXPORT void free(void *block)
{
    (void)block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

EXPORT void *realloc(void *old, size_t size)
{
    char *block = malloc(size);
    size_t had = old ? size_of(old) : 0;
    if (block && old)
        memcpy(block, old, had < size ? had : size);
    return block;
}
